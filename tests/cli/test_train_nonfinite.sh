#!/usr/bin/env bash
# A loss that is no number: exit code 4, the step, the first value at fault; the run stays whole.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=640'
fails 4 train mlp --data "$data" --model-dir run --epochs 1 --optimizer sgd --learning-rate 1e30
warns 'step'
ok evaluate run --data "$data" --json
says '"loss":'
