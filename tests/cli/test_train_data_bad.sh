#!/usr/bin/env bash
# Damaged data while training: file, record, offset; --skip-corrupt counts; labels outside the
# classes; pictures that are none. What was saved before stays.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/idx.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
idx t 64
ok data from-idx t-images-idx3-ubyte t-labels-idx1-ubyte --out d
record=$(($(stat -c %s d-00000-of-00001) / 64))
cp d-00000-of-00001 good
printf '\xff\x00\xff' | dd of=d-00000-of-00001 bs=1 seek=$((record * 5 + 200)) conv=notrunc status=none
fails 3 train linear --data d-00000-of-00001 --model-dir run --epochs 1
warns "d-00000-of-00001: record 5 at offset $((record * 5))"
ok train linear --data d-00000-of-00001 --model-dir run --epochs 1 --skip-corrupt
warns '63 records'
warns 'skipped 1 corrupt record'
fails 1 train linear --data good --label-base 1 --epochs 1
warns 'good: record'
warns 'label 0'
head -c $((record * 10 + 7)) good >cut
fails 3 train linear --data cut --epochs 1
warns 'cut: record 10'
ok train linear --data t-images-idx3-ubyte t-labels-idx1-ubyte --epochs 1
photos 3
head -c 500 photos/rose/rose-0.jpg >photos/rose/broken.jpg
fails 3 train mnist_cnn --data photos --epochs 1 -- --num_classes 3
warns 'rose/broken.jpg'
