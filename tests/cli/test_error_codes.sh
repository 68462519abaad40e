#!/usr/bin/env bash
# Each usage error has exit code 2, names the help page, and is an INVALID_ARGUMENT, which
# `--verbosity debug` shows with where it was raised.
. "$SEXTANT_SRC/tests/cli/lib.sh"
misuse() {
    local part=$1 command=$2
    shift 2
    fails 2 --verbosity debug $command "$@"
    warns "$part"
    warns '  INVALID_ARGUMENT at '
    warns "see: sextant help $command"
    fails 2 $command "$@"
    warns_not 'INVALID_ARGUMENT'
    [ ! -s out ] || fail 'a usage error prints to stdout'
}
misuse 'unexpected argument "now"' version now
misuse 'unexpected argument "now" after --' version -- now
misuse 'unexpected argument "b"; expected only' zoo a b
misuse 'missing argument; expected MODEL' train
misuse 'missing argument; expected RUN_DIR before any option that takes a list' evaluate --data a b
misuse '--out FILE is required' 'data take' 'generated:digits?n=8'
misuse 'unknown option --frobnicate' zoo --frobnicate
misuse 'unknown option -x; options start with --' zoo -x
misuse '--color needs a value' zoo --color
misuse '--color is "pink", expected auto|always|never' zoo --color=pink
misuse '--color is "", expected auto|always|never' zoo --color=
misuse '--color is "auto|always", expected' zoo '--color=auto|always'
misuse '--color is "aut", expected' zoo --color=aut
misuse '--image needs at least one FILE' run m --image
misuse '--threads is "x", expected an integer' run m --threads x
misuse '--threads is "", expected an integer' run m --threads=
misuse '--threads is "1 ", expected an integer' run m '--threads=1 '
misuse '--threads is 0, expected 1 to 4096' run m --threads 0
misuse '--threads is 9999999999999999999, expected 1 to 4096' run m --threads 9999999999999999999
misuse '--learning-rate is "1x", expected a number' train linear --learning-rate 1x
misuse '--learning-rate is "nan", expected a number' train linear --learning-rate nan
misuse '--max-body-bytes is "1X", expected a size like 512M or 2G' serve --max-body-bytes 1X
misuse '--max-body-bytes is "1KiBs", expected a size like' serve --max-body-bytes 1KiBs
misuse '--max-body-bytes is "-1K", expected a size like' serve --max-body-bytes=-1K
misuse '--max-body-bytes is "9000000T", expected a size like' serve --max-body-bytes 9000000T
misuse '--fresh is "maybe", expected true or false' train linear --fresh=maybe

# A command of several words is named whole; before a command there is none to name.
fails 2 --verbosity=loud zoo
warns '--verbosity is "loud", expected debug|info|warn|error'
warns 'see: sextant help'
fails 1 --verbosity debug show gone
warns '  NOT_FOUND at '
warns_not 'see: sextant help'
