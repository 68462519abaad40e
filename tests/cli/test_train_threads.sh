#!/usr/bin/env bash
# With --shards the number of threads changes no bit, not even in the middle of a run.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/runs.sh"
train() { # DIR WORDS...
    ok train mnist_cnn --data 'generated:digits?n=300' --seed 3 --shards 4 --require-exact \
        --log-step-count-steps 0 --model-dir "$@"
}
train one --threads 1 --epochs 3
train two --threads 2 --epochs 3
same_variables one two 30
train mixed --threads 2 --max-steps 7
train mixed --threads 3 --max-steps 13
train mixed --threads 1 --epochs 3
same_variables one mixed 30

# Another number of shards may give other bits: it is said, and refused where that was asked for.
run train mnist_cnn --data 'generated:digits?n=300' --seed 3 --shards 2 --require-exact --steps 1 \
    --model-dir one
[ "$code" = 1 ] || fail 'another width was taken for exact'
warns 'shards'
ok train mnist_cnn --data 'generated:digits?n=300' --seed 3 --shards 2 --steps 1 --model-dir one
warns 'warning'
warns 'shards:2'
