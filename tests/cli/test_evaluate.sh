#!/usr/bin/env bash
# evaluate: one object with --json; the batch size changes no byte; checkpoints by step and best.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=100&seed=4'
ok train mnist_cnn --data 'generated:digits?n=320' --eval-data "$data" --model-dir run --epochs 2 --seed 1
ok evaluate run --data "$data" --json
grep -qxE '\{"step": 20, "examples": 100, "loss": [0-9.e-]+, "accuracy": [0-9.]+\}' out || fail 'not that object'
cp out first
for batch in 1 7 32 1024; do
    ok evaluate run --data "$data" --json --batch-size $batch
    cmp first out || fail "batch size $batch gives another result"
done
ok evaluate run --data "$data" --checkpoint best
says 'Eval results at step '
says '(100 examples)'
grep -qxE 'Eval results at step [0-9]+: accuracy = [0-9.]+, loss = [0-9.]+ \(100 examples\)' out || fail 'not that line'
ok evaluate run --data "$data" --checkpoint 10 --json
says '"step": 10,'
ok evaluate run --data "$data" --examples 40 --json
says '"examples": 40,'
fails 1 evaluate run --data "$data" --checkpoint 11
warns 'no checkpoint for step 11; available: 0, 10, 20'
fails 2 evaluate run --data "$data" --checkpoint newest
warns '--checkpoint is "newest", expected a step, latest or best'
fails 1 evaluate nowhere --data "$data"
warns 'nowhere is not a run directory'
fails 2 evaluate --data "$data"
warns 'expected RUN_DIR'
