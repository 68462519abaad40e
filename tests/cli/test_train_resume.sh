#!/usr/bin/env bash
# A run in pieces, ended by Ctrl-C and SIGTERM, gives the weights and predictions of one in one piece.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/runs.sh"
data='generated:digits?n=2000'
train() { # DIR WORDS...
    local dir=$1
    shift
    ok train mnist_cnn --data "$data" --model-dir "$dir" --seed 5 "$@"
}
train whole --epochs 3
train pieces --epochs 1
says '. Current step 0.'
for signal in INT TERM; do
    rm -f out err
    "$sextant" train mnist_cnn --data "$data" --model-dir pieces --seed 5 --epochs 3 \
        --log-step-count-steps 1 >out 2>err &
    pid=$!
    until grep -q "^epoch" out 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
    kill -$signal $pid || true
    code=0
    wait $pid || code=$?
    ran="train, SIG$signal"
    [ "$code" = $((128 + $(kill -l $signal))) ] || [ "$code" = 0 ] || fail 'exit code'
    [ "$code" = 0 ] || says 'Stopped at step'
    [ "$code" != 0 ] || echo "note: the run was over before SIG$signal"
done
train pieces --epochs 3
same_variables whole pieces 189
for run in whole pieces; do
    ok predict $run --data 'generated:digits?n=100&seed=8' --out $run.csv
done
cmp whole.csv pieces.csv || fail 'predictions differ'
