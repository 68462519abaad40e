#!/usr/bin/env bash
. "$SEXTANT_SRC/tests/cli/lib.sh"
ok version
grep -qxE 'sextant [0-9]+\.[0-9]+\.[0-9]+' out || fail 'no version'
cp out first
ok --version
diff first out
quiet
