#!/usr/bin/env bash
# The zoo's table: parameters as Keras counts them, FLOPs of one prediction.
. "$SEXTANT_SRC/tests/cli/lib.sh"
ok zoo
grep -qE '^name +input +parameters +FLOPs +layers$' out || fail 'no heading'
grep -qE '^mnist_cnn +28x28x1 +34,826 +[0-9.]+ M ' out || fail 'mnist_cnn'
grep -qE '^flowers_cnn +128x128x3 +8,483,397 +[0-9]+ M ' out || fail 'flowers_cnn'
grep -qE '^linear +28x28x1 +7,850 ' out || fail 'linear'
quiet

# One model: its parameters and their defaults, as it asks for them.
ok zoo flowers_cnn
says 'flowers_cnn: three conv + pool'
says_line '  weights  8,483,397'
says_line '  dropout        0.4'
says_line '  num_classes    5  (or the number of classes in the data, if known)'
ok zoo resnet50
says_line '  schedule       constant  (constant|reference)'
fails 2 train resnet50 --data 'generated:flowers?n=4&size=32' -- --schedule cosine
warns 'parameter schedule is "cosine", expected constant|reference'
ok zoo catsdogs_cnn
says_not 'num_classes'
fails 2 zoo flower_cnn
warns 'flowers_cnn'
