#!/usr/bin/env bash
# Words too many, words after --, values that are none.
. "$SEXTANT_SRC/tests/cli/lib.sh"
fails 2 version now
warns '"now" is one word too many; expected options only'
fails 2 version -- now
warns 'nothing may follow --, got "now"'
fails 2 zoo --color
warns '--color needs a value: auto|always|never'
fails 2 zoo --color=pink
warns '--color is "pink", expected auto|always|never'
