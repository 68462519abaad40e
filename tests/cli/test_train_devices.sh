#!/usr/bin/env bash
# The options that say where to compute, on train, evaluate and predict.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/runs.sh"
unset VIRTUAL_ENV PJRT_NAMES_AND_LIBRARY_PATHS TPU_LIBRARY_PATH
data='generated:digits?n=96'
train() { ok train mnist_cnn --data "$data" --batch-size 32 --epochs 1 --seed 3 "$@"; }

# Virtual devices of cpu: the bits do not depend on the threads.
train --model-dir a --virtual-devices 4 --threads 1 --explain
warns 'mirrored: 4 virtual devices on cpu'
train --model-dir b --virtual-devices 4 --threads 3
train --model-dir c --replicas 4 --shards 4
same_variables a b 3
same_variables a c 3
# Of four shards, each of two virtual devices has two.
train --model-dir d --virtual-devices 2 --shards 4
train --model-dir e --shards 4
same_variables a d 3
same_variables a e 3
ok evaluate a --data "$data" --virtual-devices 2
cp out two
ok evaluate a --data "$data"
cmp out two || fail 'virtual devices change the evaluation'

# Central storage, mirrored and one device compute the same bits with a fixed number of shards.
train --model-dir f --strategy central-storage --devices cpu:0,cpu:1 --parameter-device cpu:0 \
    --shards 4 --explain
warns 'central-storage: 2 virtual devices on cpu: cpu:0,cpu:1; variables on cpu:0'
train --model-dir g --strategy central-storage --virtual-devices 4 --shards 4 --threads 1
train --model-dir h --strategy mirrored --devices /device:CPU:0,/device:CPU:1 --shards 4 \
    --all-reduce reduction-to-one-device
train --model-dir i --strategy one-device --shards 4
for n in e f g h i; do same_variables a $n 3; done
ok evaluate f --data "$data" --devices cpu:0,cpu:1,cpu:2
cmp out two || fail 'named devices change the evaluation'

fails 2 train mnist_cnn --data "$data" --strategy one-device --virtual-devices 2
warns 'use a mirrored strategy'
fails 2 train mnist_cnn --data "$data" --devices cpu:0,cpu:0
warns 'CPU:0 is there twice'
fails 2 train mnist_cnn --data "$data" --devices cpu:0,cpu:1 --all-reduce ring
warns 'virtual devices share one memory'
fails 2 train mnist_cnn --data "$data" --parameter-device cpu:0
warns 'only for central storage'
fails 2 train mnist_cnn --data "$data" --strategy central
fails 2 train mnist_cnn --data "$data" --device cpu:4
warns '--virtual-devices N'
fails 2 train mnist_cnn --data "$data" --virtual-devices 4 --shards 3
warns 'shards is 3, which 4 virtual devices cannot share equally; give a multiple of 4, such as 4'
fails 2 train mnist_cnn --data "$data" --batch-norm replica
warns 'uses the moments of the whole batch'
fails 2 train mnist_cnn --data "$data" --dump-stablehlo hlo
warns 'not for cpu'
fails 2 evaluate a --data "$data" --device cup
warns 'did you mean "cpu"?'
fails 6 predict a --data "$data" --device cuda
warns 'pip install jax-cuda13-pjrt'
