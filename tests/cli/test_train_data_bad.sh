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
cp good first
printf '\xff\x00\xff' | dd of=first bs=1 seek=200 conv=notrunc status=none
fails 3 train linear --data first --epochs 1
warns '(--skip-corrupt skips it)'
printf '\xff\x00\xff' | dd of=d-00000-of-00001 bs=1 seek=$((record * 5 + 200)) conv=notrunc status=none
fails 3 train linear --data d-00000-of-00001 --model-dir run --epochs 1
warns "d-00000-of-00001: record 5 at offset $((record * 5))"
warns '(--skip-corrupt skips it)'
ok train linear --data d-00000-of-00001 --model-dir run --epochs 1 --skip-corrupt
warns '63 records'
warns 'skipped 1 corrupt record'
fails 1 train linear --data good --label-base 1 --epochs 1
warns 'good: record'
warns 'label 0'
warns_not '--skip-corrupt' # it would not help
head -c $((record * 10 + 7)) good >cut
fails 3 train linear --data cut --epochs 1
warns 'cut: record 10'
warns '(--skip-corrupt skips it)'
ok train linear --data t-images-idx3-ubyte t-labels-idx1-ubyte --epochs 1
photos 3
head -c 500 photos/rose/rose-0.jpg >photos/rose/broken.jpg
fails 3 train mnist_cnn --data photos --epochs 1 -- --num_classes 3
warns 'rose/broken.jpg'
warns '(--skip-corrupt skips it)'
# A good frame around an image that is none: the option looks at frames and Examples only.
ok data from-images photos --out images/all --shards 1 --no-decode
fails 3 train mnist_cnn --data images/all-00000-of-00001 --epochs 1 -- --num_classes 3
warns_not '--skip-corrupt'
