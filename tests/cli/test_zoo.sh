#!/usr/bin/env bash
# The zoo's table: parameters as Keras counts them, FLOPs of one prediction.
. "$SEXTANT_SRC/tests/cli/lib.sh"
ok zoo
grep -qE '^name +input +parameters +FLOPs +layers$' out || fail 'no heading'
grep -qE '^mnist_cnn +28x28x1 +34,826 +[0-9.]+ M ' out || fail 'mnist_cnn'
grep -qE '^flowers_cnn +128x128x3 +8,483,397 +[0-9]+ M ' out || fail 'flowers_cnn'
grep -qE '^linear +28x28x1 +7,850 ' out || fail 'linear'
quiet
