#!/usr/bin/env bash
# A loss that is no number: exit code 4, the step, the first value at fault; nothing of it is saved.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/runs.sh"
data='generated:digits?n=640'
fails 4 train mlp --data "$data" --model-dir run --epochs 1 --optimizer sgd --learning-rate 1e30 \
    --save-checkpoints-steps 1
warns 'step 2: matmul "dense_1/matmul" (mlp.c:'
warns 'is not finite; the update was not applied or saved'
step=$(ls run | sed -n 's/^model.ckpt-\([0-9]*\).index$/\1/p' | sort -n | tail -n 1)
[ "$step" = 1 ] || fail "the last checkpoint is of step $step"
for step in 0 1; do
    variables run $step >variables
    python3 - <<'PY' || fail "step $step: not finite"
import math, struct
floats = 0
for line in open("variables"):
    key, kind, *data = line.split()
    if kind.startswith("float32"):
        floats += 1
        for x, in struct.iter_unpack("<f", bytes.fromhex("".join(data))):
            assert math.isfinite(x), key
assert floats >= 4
PY
done
ok evaluate run --data "$data" --json --checkpoint 0
grep -qE '"loss": [0-9.]+,' out || fail 'the run is not whole'
