#!/usr/bin/env bash
# --quiet and --verbosity error: no progress, no messages; results and errors stay. Options may stand
# in front of the command.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
photos 3
data='generated:digits?n=40'
silent() { [ ! -s "$here/out" ] && [ ! -s "$here/err" ] || fail 'it is not silent'; }
ok data from-images photos --out set/all --quiet
silent
ok train linear --data "$data" --model-dir run --steps 2 --verbosity error
silent
ok -q predict run --data "$data" --out p.csv
silent
ok --verbosity=error data take "$data" --out x.npy
silent
ok evaluate run --data "$data" --quiet --json
says '"examples": 40'
quiet
ok --quiet export run --out models
is <<<'models/1'
quiet
ok train linear --data "$data" --steps 1 --quiet --json-log
says '"event":"end"'
quiet
# Errors are said, warnings by --quiet only.
fails 1 --verbosity error evaluate run --data nowhere
warns 'sextant evaluate: nowhere'
ok train linear --data "$data" --model-dir run --steps 2 --quiet
printf x >run/sextant.json # its copy is used
ok evaluate run --data "$data" --quiet
warns 'warning: '
ok evaluate run --data "$data" --verbosity error
quiet
escape=$(printf '\033')
unset NO_COLOR
fails 2 --color always version extra
warns "$escape"
fails 2 --color=always frobnicate
warns "$escape"
fails 2 --color always --colour never version
warns 'unknown option --colour; did you mean "--color"?'
fails 2 --color
warns '--color needs a value'
fails 2 -x version
warns 'unknown option -x; options start with --'
fails 2 --quiet
says 'usage: sextant COMMAND'
ok -V
says_line "$("$sextant" version)"
ok --quiet --version
says_line "$("$sextant" version)"
ok -q --help
says 'Commands:'
