#!/usr/bin/env bash
# A model-dir of another model: the first differing variable and both shapes; nothing is lost.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=64'
ok train mlp --data "$data" --model-dir run --steps 2
fails 1 train linear --data "$data" --model-dir run --steps 2
warns 'run'
warns 'dense/kernel'
warns '784,128'
warns '784,10'
ok evaluate run --data "$data" --json
says '"step": 2'
