#!/usr/bin/env bash
. "$SEXTANT_SRC/tests/cli/lib.sh"
ok devices
grep -qE '^cpu +/device:CPU:0 ' out || fail 'no cpu'
grep -qE '^ref +/device:CPU:0 +reference' out || fail 'no ref'
quiet
