#!/usr/bin/env bash
# Unknown commands and options name the nearest ones.
. "$SEXTANT_SRC/tests/cli/lib.sh"
fails 2 vershun
warns 'sextant: unknown command "vershun"; did you mean "version"?'
fails 2 frobnicate
printf '%s\n' 'sextant: unknown command "frobnicate"' 'see: sextant help' | diff - err || fail 'the message'
fails 2 help frobnicate
printf '%s\n' 'sextant help: unknown command "frobnicate"' 'see: sextant help' | diff - err || fail 'the message'
fails 2 help zo
warns 'did you mean "zoo"?'
fails 2 zoo --verbosty debug
warns 'sextant zoo: unknown option --verbosty; did you mean "--verbosity"?'
warns 'see: sextant help zoo'
# Each option of every command, also of one that has no others.
for command in zoo version train serve; do
    for option in quiet:quit verbosity:verbosty color:colr; do
        fails 2 $command --${option#*:}
        warns "unknown option --${option#*:}; did you mean \"--${option%:*}\""
    done
done
fails 2 zoo --frobnicate
printf '%s\n' 'sextant zoo: unknown option --frobnicate' 'see: sextant help zoo' | diff - err || fail 'the message'
fails 2 zoo -v
warns 'unknown option -v; options start with --'
fails 2 train mnist_cnn --batch 32
warns 'unknown option --batch; did you mean "--batch-size" or "--batch-norm"?'
fails 2 train mnist_cnn --batch_siez 32
warns 'unknown option --batch_siez; did you mean "--batch_size"'
fails 2 train linear --no-shuffle=3
warns '--no-shuffle takes no value'
fails 2 train linear --no_shuffle=
warns '--no_shuffle takes no value'
fails 2 eval
warns 'unknown command "eval"; did you mean "evaluate"?'
