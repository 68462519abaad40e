#!/usr/bin/env bash
# --verbosity debug says where an error came from.
. "$SEXTANT_SRC/tests/cli/lib.sh"
fails 2 help nothing
warns_not 'command.c:'
fails 2 help nothing --verbosity debug
grep -qE '^  NOT_FOUND at ([^ ]*/)?cli/command\.c:[0-9]+$' err || fail 'no place in the source'
