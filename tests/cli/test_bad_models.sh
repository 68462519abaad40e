#!/usr/bin/env bash
# SavedModels that are damaged, incomplete or something else: each command names the file, what is
# wrong with it and what to do. tests/savedmodel has the errors within graphs.
. "$SEXTANT_SRC/tests/cli/lib.sh"
ok train linear --data generated:digits --model-dir trained --steps 1
ok export trained --out m
mv m/1 good
limit=10

fails_all() { # CODE TEXT DIR
    for command in "show $3" "show --dir $3 --all" "scan --dir $3" "ops $3" "run --dir $3 --input_exprs x=1"; do
        fails "$1" $command
        warns "$2"
        warns_not "$3: $3"
    done
}
bad() { # NAME: a copy of the model, with the file of its graph from stdin
    cp -r good "$1"
    cat >"$1/saved_model.pb"
}

# The file of the graph.
bad empty </dev/null
fails_all 3 'empty/saved_model.pb is an empty file: copy it again, or export the model again' empty
head -c 1000 good/saved_model.pb | bad half
fails_all 3 'half/saved_model.pb is damaged, or is no SavedModel: copy it again' half
head -c 9 good/saved_model.pb | bad short
fails_all 3 'short/saved_model.pb is damaged' short
head -c 4096 /dev/zero | bad zeros
fails_all 3 'zeros/saved_model.pb is damaged' zeros
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n' | bad lfs
fails_all 3 'lfs/saved_model.pb stands for a file that Git LFS stores' lfs
printf '<!DOCTYPE html><title>404</title>' | bad page
fails_all 3 'page/saved_model.pb is a text, perhaps the page of an error' page
cp -r good folder
rm folder/saved_model.pb
mkdir folder/saved_model.pb
fails_all 1 'cannot read folder/saved_model.pb: Is a directory' folder
cp -r good circle
ln -sf saved_model.pb circle/saved_model.pb
fails_all 1 'cannot open circle/saved_model.pb: Too many levels of symbolic links' circle
cp -r good dangling
ln -sf gone dangling/saved_model.pb
fails_all 1 'dangling/saved_model.pb is a symbolic link to a file that does not exist' dangling
cp -r good piped
rm piped/saved_model.pb
mkfifo piped/saved_model.pb pipe
fails_all 1 'cannot read piped/saved_model.pb: expected a regular file, got a named pipe' piped
fails_all 1 'cannot list pipe: Not a directory' pipe
ln -s around around
fails_all 1 'Too many levels of symbolic links' around

# Its variables.
run_model() { fails "$1" run --dir "$2" --signature_def tensors --input_exprs "image=np.zeros((1, 28, 28, 1))"; }
cp -r good unlisted
rm unlisted/variables/variables.index
run_model 3 unlisted
warns 'the model has no variables/variables.index, which lists the values of variables: copy its whole directory'
cp -r good lost
rm lost/variables/*.data-*
run_model 1 lost
warns 'cannot open lost/variables/variables.data-00000-of-00001: No such file or directory'
cp -r good cut
: >cut/variables/variables.data-00000-of-00001
run_model 3 cut
warns 'variables.data-00000-of-00001 ends at byte 0, expected at least'
for content in '' hello; do
    cp -r good listed
    printf '%s' "$content" >listed/variables/variables.index
    run_model 3 listed
    warns 'listed/variables/variables.index: table: '
    rm -r listed
done
cp -r good plain
rm -r plain/variables
echo >plain/variables
run_model 1 plain
warns 'cannot open plain/variables/variables.index: Not a directory'

# Tags are listed as --tag_set takes them.
tags() { # NAME ESCAPES: the graph's tag "serve" replaced, in as many bytes
    cp -r good "$1"
    LC_ALL=C sed -i "s/\x22\x05serve/$2/" "$1/saved_model.pb"
}
tags other '\x22\x05other'
fails 1 run --dir other --input_exprs x=1
warns 'other/saved_model.pb: no graph has the tags "serve"; the model has "other"'
tags two '\x22\x01a\x22\x02bc'
fails 1 run --dir two --input_exprs x=1
warns 'the model has "a,bc"'
ok show --dir two --tag_set bc,a
ok show --dir two --tag_set ' bc , a,a,'
fails 1 show --dir two --tag_set a
fails 1 show --dir two --tag_set a,bc,d

# Directories with models of another kind.
kind() { # FILE WHAT
    local dir=kinds/$1
    mkdir -p "$dir"
    printf x >"$dir/$1"
    echo '{}' >"$dir/config.json"
    fails_all 1 "$dir has no saved_model.pb; its $1 $2" "$dir"
}
kind frozen_inference_graph.pb 'is a frozen graph (GraphDef) or another protocol buffer, which no command takes'
kind model.tflite 'is a TensorFlow Lite model, which no command takes'
kind model.keras 'is a ZIP archive, as Keras writes .keras files'
kind model.weights.h5 'is a Keras file in the HDF5 format'
kind model.onnx 'is an ONNX model'
kind model.pt 'is a file of PyTorch'
kind pytorch_model.bin 'is a file of PyTorch'
kind model.safetensors 'is a file of weights (safetensors)'
kind model-7.index 'is a TensorFlow checkpoint'
kind fingerprint.pb 'is a file of a SavedModel: copy the whole directory'
mkdir notes && echo text >notes/readme.txt
fails_all 1 'notes has no saved_model.pb, and no numbered version directory with one' notes
