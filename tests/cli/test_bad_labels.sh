#!/usr/bin/env bash
# Labels outside the classes: the record is named, and what the classes are.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
. "$SEXTANT_SRC/tests/cli/records.sh"
jpeg=$SEXTANT_SRC/fuzz/corpus/jpeg/rgb.jpg
photos 4
ok data from-images photos --out d/p
ok train mnist_cnn --data 'd/p-*' --steps 1 --model-dir run -- --num_classes 3
for label in 3 12 4294967296 9223372036854775807 -1; do
    records d/p-00000-of-00001 "0=$jpeg" "1=$jpeg" "$label=$jpeg"
    for command in "train mnist_cnn --epochs 1 --param num_classes=3" "evaluate run"; do
        fails 1 $command --data 'd/p-*'
        warns "d/p-00000-of-00001: record 2: label $label"
    done
done
says_not nan
# Without a schema the labels tell how many classes there are.
records bare.tfrecord "0=$jpeg" "12=$jpeg" "1=$jpeg"
fails 1 train mnist_cnn --data bare.tfrecord --steps 1
warns '13 classes'
warns 'label 12: bare.tfrecord: record 1'
warns 'num_classes'
# Counted from 1, said to be from 0, and the reverse.
records one.tfrecord "1=$jpeg" "2=$jpeg" "3=$jpeg"
ok train mnist_cnn --data one.tfrecord --steps 1 --label-base 1 -- --num_classes 3
records zero.tfrecord "0=$jpeg" "1=$jpeg" "2=$jpeg"
fails 1 train mnist_cnn --data zero.tfrecord --steps 1 --label-base 1 -- --num_classes 3
warns 'zero.tfrecord: record 0: label 0 is below the label base 1'
