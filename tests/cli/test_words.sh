#!/usr/bin/env bash
# Words too many, words after --, values that are none.
. "$SEXTANT_SRC/tests/cli/lib.sh"
fails 2 version now
warns 'unexpected argument "now"'
fails 2 version -- now
warns 'unexpected argument "now" after --'
fails 2 help train extra
warns 'unexpected argument "extra"'
fails 2 help data show more
warns 'unexpected argument "more"'
fails 2 help exit-codes x
warns 'unexpected argument "x"'
fails 2 help --man train extra
warns 'unexpected argument "extra"'
[ ! -s out ] || fail 'help was printed'
fails 2 zoo --color
warns '--color needs a value: auto|always|never'
fails 2 zoo --color=pink
warns '--color is "pink", expected auto|always|never'
fails 2 train mnist_cnn flowers_cnn --data 'generated:digits?n=8'
warns 'unexpected argument "flowers_cnn"; expected only MODEL|./model.c'
fails 2 evaluate --data a b
warns 'missing argument; expected RUN_DIR before any option that takes a list'
fails 2 train mnist_cnn --data 'generated:digits?n=8' --device gpu
warns 'unknown device "gpu"; use --device cuda for GPUs'
