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
# What else people name: which file it is, and what to do with it.
other() { # NAME WORDS, from each command that takes a SavedModel
    for command in show 'show --all' 'scan --dir' 'run --input_exprs x=1 --dir'; do
        fails 1 $command "$1"
        warns "$1 is $2"
    done
}
printf '\x1c\0\0\0TFL3\0\0\0\0' >m.tflite
printf '\x89HDF\r\n\x1a\n1234' >m.h5
printf 'PK\3\4abcd' >m.keras
printf '\x1f\x8babcd' >m.tar.gz
printf '\x0a\x05\x0a\x01x\x12\x00' >frozen.pb
printf '\10\7\22\7pytorch' >m.onnx
printf 'PK\3\4data.pkl' >m.pt
echo words >m.txt
mkdir hub text js
printf x >hub/tfhub_module.pb
printf x >text/saved_model.pbtxt
printf '{}' >js/model.json
other m.tflite 'a TensorFlow Lite model'
other m.h5 'a Keras file in the HDF5 format'
other m.keras 'a ZIP archive'
other m.tar.gz 'a compressed archive'
other frozen.pb 'a frozen graph'
other hub 'a module of TensorFlow Hub'
other m.onnx 'an ONNX model'
other m.pt 'a file of PyTorch'
other m.txt 'a file, expected a directory'
other js 'a TensorFlow.js model'
fails 1 show text
warns 'text has the text form of a SavedModel'
mkdir graph
cp frozen.pb graph/saved_model.pb
fails 3 show graph
warns 'graph/saved_model.pb is a graph (GraphDef), not a SavedModel'
other run/model.ckpt-1 'a TensorFlow checkpoint'
other run/model.ckpt-1.index 'a TensorFlow checkpoint'
other m/1/saved_model.pb 'a file of a SavedModel: name the directory that it is in'
head -c 100 m/1/saved_model.pb >cut && mv cut m/1/saved_model.pb
fails 3 show m/1

# As saved_model_cli prints it; tests/interop compares the whole text with TensorFlow's.
ok export run --out n
ok show --dir n/1
is <<'END'
The given SavedModel contains the following tag-sets:
'serve'
END
ok show --dir n/1 --tag_set serve
is <<'END'
The given SavedModel MetaGraphDef contains SignatureDefs with the following keys:
SignatureDef key: "serving_default"
SignatureDef key: "tensors"
END
ok show --dir n --tag_set serve --signature_def tensors
says_line 'The given SavedModel SignatureDef contains the following input(s):'
says_line "  inputs['image'] tensor_info:"
says_line '      dtype: DT_FLOAT'
says_line '      shape: (-1, 28, 28, 1)'
says_line 'Method name is: tensorflow/serving/predict'
ok show --dir n/1 --tag_set serve --list_ops
says "The MetaGraph with tag set ['serve'] contains the following ops: {"
says "'Conv2D'"
ok show n/1 --all
says "MetaGraphDef with tag-set: 'serve' contains the following SignatureDefs:"
fails 1 show --dir n/1 --tag_set gpu
warns 'no graph has the tags "gpu"; the model has "serve"'
fails 1 show --dir n/1 --tag_set serve --signature_def x
warns 'no signature "x"; the graph has "serving_default", "tensors"'
fails 2 show
warns 'give the directory to describe'
fails 2 show n/1 --dir n/1
warns 'not both'
