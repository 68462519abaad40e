#!/usr/bin/env bash
# Every mistake on the command line of train: what, expected, got.
. "$SEXTANT_SRC/tests/cli/lib.sh"
limit=20s # a mistake that is not seen trains for ever
data='generated:digits?n=64'
fails 2 train
warns 'expected MODEL|./model.c'
fails 2 train linear
warns_line 'sextant train: --data DATA is required'
fails 2 train mnist-cnn --data "$data"
warns 'unknown model "mnist-cnn"; did you mean "mnist_cnn"?'
fails 2 train linear --data "$data" --epoch 3
warns 'unknown option --epoch; did you mean "--epochs"'
fails 2 train linear --data "$data" --batch-size 0
warns '--batch-size is 0, expected 1 to 16777216'
fails 2 train linear --data "$data" --batch-size 99999999999
warns '--batch-size is 99999999999, expected 1 to 16777216'
for option in --seed --steps --max-steps --epochs --save-checkpoints-steps; do
    for number in 99999999999999999999 9223372036854775808 -99999999999999999999; do
        fails 2 train linear --data "$data" "$option" "$number"
        least=1
        [ "$option" != --seed ] || least=0
        warns "$option is $number, expected $least to 9223372036854775807"
    done
done
fails 2 train linear --data "$data" --batch-size many
warns '--batch-size is "many", expected an integer'
fails 2 train linear --data "$data" --steps-per-eval never
warns '--steps-per-eval is "never", expected an integer or epoch'
fails 2 train linear --data "$data" --epochs 2 --steps 3
warns 'are mutually exclusive'
fails 2 train linear --data "$data" --optimizer adma
warns '--optimizer is "adma", expected sgd|momentum|rmsprop|adam|lars'
for time in 0 -3 soon 5d 10sm 1.5m; do
    fails 2 train linear --data "$data" --iterations-per-loop "$time"
    warns "--iterations-per-loop is \"$time\", expected a number of steps or a time: 100, 30s, 5m, 1h"
done
fails 1 train linear --data nothing-here
warns 'nothing-here'
mkdir empty
fails 1 train linear --data empty
warns empty
fails 2 train linear --data "$data" --steps 1 --param units=3
warns 'units'
fails 2 train linear --data "$data" --param units
warns 'parameter "units": expected NAME=VALUE'
fails 2 train linear --data "$data" --steps 1 -- --num_classes ten
warns 'num_classes'
fails 1 train linear --data "$data" --steps 1 -- --num_classes 3
warns '10 classes'
fails 2 train linear --data "$data" --recipe nonsense --steps 1
warns 'nonsense'
fails 2 train linear --data "$data" --feature picture=x
warns 'expected image=KEY or label=KEY'
