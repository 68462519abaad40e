#!/usr/bin/env bash
# Unknown commands and options name the nearest ones.
. "$SEXTANT_SRC/tests/cli/lib.sh"
fails 2 vershun
warns 'sextant: no command "vershun"; did you mean "version"?'
fails 2 frobnicate
warns 'sextant: no command "frobnicate"; `sextant help` lists them'
fails 1 help zo
warns 'did you mean "zoo"?'
fails 2 zoo --verbosty debug
warns 'sextant zoo: no option --verbosty; did you mean "--verbosity"?'
warns 'see: sextant help zoo'
fails 2 zoo --frobnicate
warns 'no option --frobnicate; --help lists them'
fails 2 zoo -v
warns 'options begin with two dashes'
