#!/usr/bin/env bash
# Batch sizes of 0, below, and beyond all measure are refused; one larger than the data costs no more
# memory than the data.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=64'
ok train linear --data "$data" --model-dir run --steps 1
for command in "train linear --steps 1" "evaluate run" "predict run"; do
    for size in 0 -1 16777217 99999999999 99999999999999999999 1e3 many ''; do
        fails 2 $command --data "$data" --batch-size="$size"
        warns '--batch-size is '
        warns 'expected'
    done
done
for option in train-batch-size eval-batch-size; do
    fails 2 train linear --data "$data" --$option 0
    warns "--$option is 0, expected 1 to 16777216"
done
(
    [ -n "$SEXTANT_SANITIZE" ] || ulimit -v 4000000 # kilobytes; 16777216 pictures would be 52 GB
    ok train linear --data "$data" --eval-data "$data" --batch-size 16777216 --model-dir large --epochs 2
    says_line 'Done at step 2 (finished).'
    ok evaluate run --data "$data" --batch-size 16777216 --json
    says '"examples": 64,'
    ok predict run --data "$data" --batch-size 16777216 --out p.csv
    says_line 'p.csv: 64 rows'
)
