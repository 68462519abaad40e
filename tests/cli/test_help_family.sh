#!/usr/bin/env bash
# `data` alone lists the commands that begin with it.
. "$SEXTANT_SRC/tests/cli/lib.sh"
ok help data
says 'usage: sextant data COMMAND'
says '  data from-images '
says_not '  zoo '
cp out direct
ok data --help
diff direct out
fails 2 data
diff direct out
fails 2 data shwo
warns 'unknown command "data shwo"; did you mean "data show"?'
ok data from_images --help
says 'usage: sextant data from-images SOURCE [options]'
