#!/usr/bin/env bash
# TPUEstimator's habits: the rate of a base batch size, warm-up, evaluation steps, reserved names.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=320'
eval='generated:digits?n=1026&seed=2'
ok train linear --data "$data" --eval-data "$eval" --model-dir run --epochs 1 --batch-size 64 \
    --eval-batch-size 1024 --eval-steps 1 --learning-rate 0.1 --base-batch-size 256 --warmup-epochs 1
says_line 'Learning rate 0.025 = 0.1 x 64 / 256, rising over the first 5 steps.'
says '1,024 of 1,026 examples (steps = 1)'
ok evaluate run --data "$eval" --eval-steps 1 --batch-size 1000
says '1,000 of 1,026 examples (steps = 1)'
ok evaluate run --data "$eval"
says '(1,026 examples)'
ok train resnet50 --data 'generated:flowers?n=2&size=32' --steps 1 --batch-size 1 -- --schedule reference
says_line 'Learning rate 0.000390625 = 0.1 x 1 / 256, rising over the first 10 steps.'
loss() { sed -n 's/^Loss for final step: \(.*\)\.$/\1/p' out; }
ok train linear --data "$data" --steps 1
plain=$(loss)
ok train linear --data "$data" --steps 1 --l2 0.1
awk "BEGIN { exit !($(loss) > $plain) }" || fail 'no L2 in the loss'
ok train linear --data "$data" --epochs 1 --optimizer lars --learning-rate 4 --l2 1e-4 --log-step-count-steps 1
awk "BEGIN { exit !($(loss) < $plain) }" || fail 'LARS learns nothing'
ok train linear --data "$data" --epochs 1 --warmup-steps 4
says_line 'Learning rate 0.01, rising over the first 4 steps.'
fails 2 train linear --data "$data" --warmup-epochs 1 --warmup-steps 4
warns '--warmup-epochs and --warmup-steps are mutually exclusive'
fails 2 train linear --data "$data" --eval-steps 1 --eval-examples 4
warns '--eval-examples and --eval-steps are mutually exclusive'
fails 2 train linear --data "$data" -- --batch_size 64
warns 'the parameter name "batch_size" is reserved'
