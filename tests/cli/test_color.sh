#!/usr/bin/env bash
# Colours only where they can be seen, or when asked for.
. "$SEXTANT_SRC/tests/cli/lib.sh"
unset NO_COLOR
escape=$(printf '\033')
fails 2 version extra
warns_not "$escape"
fails 2 version --color always extra
warns "$escape"
fails 2 help --color always nothing
warns "$escape"
fails 2 help --color never nothing
warns_not "$escape"
