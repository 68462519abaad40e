#!/usr/bin/env bash
# export: versions count up; --version keeps its zeros; nothing is overwritten.
. "$SEXTANT_SRC/tests/cli/lib.sh"
ok train linear --data 'generated:digits?n=64' --model-dir run --steps 2
ok export run --out models/d
is <<<'models/d/1'
ok export run --out models/d
is <<<'models/d/2'
ok export run --out models/e --version 0001
is <<<'models/e/0001'
[ -s models/e/0001/saved_model.pb ] && [ -s models/e/0001/variables/variables.index ] || fail 'files'
fails 1 export run --out models/e --version 1
warns '0001'
ok export run --out models/e
is <<<'models/e/2'
fails 2 export run --out models/e --version one
warns 'one'
fails 1 export nowhere --out models/f
warns 'nowhere'
[ ! -e models/f/1 ] || fail 'something was left'
