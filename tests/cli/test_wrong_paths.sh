#!/usr/bin/env bash
# Directories of another kind than the command takes, storage that is not local, options of other
# programs and commands: each message says what to use instead.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=8'
ok train linear --data "$data" --steps 1 --model-dir runs/a
ok export runs/a --out models/flowers
mkdir nothing

fails 1 predict models/flowers/1 --data "$data"
warns 'models/flowers/1 is not a run directory (it has no sextant.json); it is a SavedModel: use sextant run'
fails 1 evaluate models/flowers --data "$data"
warns 'it is a directory of SavedModel versions: use sextant run'
fails 1 export runs --out more
warns 'runs is not a run directory (it has no sextant.json); did you mean runs/a, which is a run?'
fails 1 run runs/a --input x.npy
warns_not 'it is a run' # the array is missing, which is said first
ok data take "$data" --out x.npy --count 1
fails 1 run runs/a --input x.npy
warns 'it is a run: use sextant evaluate, predict or export'
fails 1 run models --input x.npy
warns 'did you mean models/flowers, which is a directory of SavedModel versions?'
fails 1 run runs --input x.npy
warns_not 'did you mean'
fails 1 show runs
warns 'did you mean runs/a, which is a run?'
fails 1 show nothing
warns_not 'did you mean'

# The right kind of directory, of which something is missing.
cp -r runs/a lost
rm lost/graphs/predict.graph lost/.backup/predict.graph
fails 1 evaluate lost --data "$data"
warns 'lost/graphs/predict.graph'
warns_not 'use sextant'
mkdir unserved && printf '\010\001' >unserved/saved_model.pb # without a graph for serving
fails 1 run unserved --input x.npy
warns_not 'use sextant'

# Storage elsewhere is refused at once; serve does not wait for it.
limit=10
for words in 'serve --model_name=m --model_base_path=gs://bucket/m' 'train linear --data s3://bucket/x' \
    'train linear --data x --model-dir hdfs://host/run' 'export runs/a --out gs://bucket/m' \
    'predict gs://bucket/run --data x' 'data show https://example.org/x' 'run s3://bucket/m --input x.npy'; do
    fails 2 $words
    warns 'is not supported; copy the files to a local directory and name that'
done
fails 2 serve --model_name=m --model_base_path=gs://bucket/m
warns '--model_base_path is "gs://bucket/m": storage at gs:// is not supported'
mkdir -p gs:/bucket && cp -r models/flowers gs:/bucket/m # a name that looks like it
ok show gs://bucket/m

# An empty path would be the current directory or, with names appended to it, /.
check_empty() {
    fails 2 "$@"
    warns ": empty path"
}
check_empty export runs/a --out ''
warns 'sextant export: --out: empty path'
check_empty train linear --data "$data" --steps 1 --model-dir ''
check_empty train linear --data '' --steps 1
check_empty evaluate runs/a --data "$data" --report=
check_empty predict runs/a --data "$data" --out ''
check_empty predict runs/a --image runs/a ''
check_empty run models/flowers --input ''
fails 2 serve --model_name=m --model_base_path=
warns '--model_base_path DIR is required'
echo '{"model_dir": ""}' >config.json
check_empty train linear --data "$data" --steps 1 --config config.json
for words in 'evaluate @ --data x' 'run @ --input x.npy' 'train @ --data x' 'data show @' 'data verify @'; do
    read -ra words <<<"$words"
    fails 2 "${words[@]/@/}"
    warns ': empty argument; expected '
done

# Options of other commands.
fails 2 data show "$data" --examples 3
warns 'unknown option --examples; use --count'
fails 2 predict runs/a --data "$data" --count 3
warns 'unknown option --count; use --examples'

# Archives without anything in them.
python3 -c 'import zipfile; zipfile.ZipFile("empty.zip", "w").close()'
: >zero.zip
fails 1 data from-images empty.zip --out x
warns 'empty.zip is a .zip archive without files'
fails 1 data from-images zero.zip --out x
warns 'zero.zip is an empty file, not an archive'
