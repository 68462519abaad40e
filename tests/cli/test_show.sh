#!/usr/bin/env bash
# show: a SavedModel's signatures, variables, classes; a run; what is neither.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
photos 2
ok train mnist_cnn --data photos --model-dir run --steps 1 -- --num_classes 3
ok export run --out m
ok show m/1
says_line 'SavedModel m/1'
says_line 'signature serving_default (tensorflow/serving/predict)'
grep -qE '^  in   image_bytes +string\[N\] ' out || fail 'input'
grep -qE '^  out  probabilities +float32\[N,3\] ' out || fail 'output'
says_line 'signature tensors (tensorflow/serving/predict)'
grep -qE '^  in   image +float32\[N,28,28,1\] ' out || fail 'tensors'
says_line 'classes: 3: daisy, rose, tulip'
grep -qE '^variables: [0-9]+ tensors, [0-9,]+ values, [0-9.]+ KiB$' out || fail 'variables'
ok show run
says_line 'model: mnist_cnn (zoo)'
says_line 'parameter: num_classes=3'
says_line 'checkpoints: 0 1'
ok show m
says_line 'SavedModel m/1'
mkdir nothing
fails 1 show nothing
warns 'nothing is neither a SavedModel nor a run (no sextant.json)'
fails 1 show missing
warns 'missing: no such directory'
head -c 100 m/1/saved_model.pb >cut && mv cut m/1/saved_model.pb
fails 3 show m/1
