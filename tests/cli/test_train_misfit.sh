#!/usr/bin/env bash
# What cannot work is refused before the data are read and before anything is written: layers that
# do not fit the pictures, more classes than the model tells apart, other classes than the run's, and
# a batch that does not fit in the device's memory, with both sizes and the largest that fits.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
model() { # FILE SIDE SED: the flowers example on pictures of that size
    sed "s/{128, 128, 3}/{$2, $2, 3}/; $3" "$SEXTANT_SRC/examples/flowers.c" >"$1.c"
}
refused() {
    fails 1 train "$@" --steps 1 --model-dir refused
    [ ! -e refused ] || fail 'something was written'
}
photos 2
model small 7 ''
refused ./small.c --data photos
warns 'model "flowers" on float32[N,7,7,3]: small.c:16: max_pool2d "max_pooling2d_2'
warns 'a window of height 2 does not fit an image of height 1'
model rank 128 's/sx_flatten(b, x)/x/'
refused ./rank.c --data photos
warns 'rank.c:18: dense "dense": input float32[N,16,16,128] has rank 4, expected [N,K]; add sx_flatten()'
refused mnist_cnn --data photos --param num_classes=2
warns 'the data has 3 classes, the model "mnist_cnn" has outputs for 2: its layer "dense" (mnist_cnn.c:14) gives float32[N,2]; set its parameter num_classes to 3'
refused catsdogs_cnn --data photos
warns 'it is a binary classifier; use a model for several classes'
mkdir other && cp -r photos/daisy other/aster && cp -r photos/rose photos/tulip other
refused mnist_cnn --data photos --eval-data other
warns 'evaluation data: class 0 is "aster", but the run was trained with "daisy"'
ok train mnist_cnn --data photos --steps 1 --model-dir photos1
fails 1 train mnist_cnn --data other --steps 1 --model-dir photos1
warns 'training data: class 0 is "aster", but the run was trained with "daisy"'

export PJRT_NAMES_AND_LIBRARY_PATHS=ref:$SEXTANT_BUILD/tests/libpjrt_ref.so SX_PJRT_REF=devices=1,limit=400000
train() { run train linear --data 'generated:digits?n=512' --device pjrt --steps 1 --iterations-per-loop 1 --model-dir run1 "$@"; }
train --batch-size 256
[ "$code" = 5 ] || fail 'expected exit code 5'
warns 'a batch of 256 takes '
warns " of each device's memory, and /device:CPU:0 has 390.6 KiB; the largest batch that fits is about "
[ ! -e run1 ] || fail 'something was written'
train --batch-size 16
[ "$code" = 0 ] || fail 'a small batch does not train'
# The suggestion is of the same program as the refusal: two launches, each with its staged batches,
# of bytes.
rm -r run1
export SX_PJRT_REF=devices=1,limit=2500000
fails 5 train linear --data 'generated:digits?n=512' --device pjrt --steps 4 --iterations-per-loop 4 \
    --model-dir run1 --batch-size 512
largest=$(sed -n 's/.*the largest batch that fits is about \([0-9]*\).*/\1/p' err)
[ "$largest" -gt 320 ] && [ "$largest" -lt 400 ] || fail "twice four batches of $largest do not fill 2.4 MiB"
# The last batch of an epoch, 63, is odd: four replicas hold 16 of a full one each, but all of that.
export SX_PJRT_REF=devices=4,limit=1310000
train() { run train mlp --data 'generated:digits?n=127' --device pjrt --replicas 4 --batch-size 64 "$@"; }
train --iterations-per-loop 1 --epochs 1
[ "$code" = 5 ] || fail 'expected exit code 5'
warns 'the last batch of an epoch, 63 examples, is not divisible by 4 replicas: each computes it whole, which takes 1.3 MiB'
warns '; choose a batch size that leaves less'
train --iterations-per-loop 1 --steps 1
warns_not 'the last batch of an epoch'
