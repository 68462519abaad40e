#!/usr/bin/env bash
# A run whose files are lost or damaged is used with their copies, which is said, and repaired when training
# goes on; without file and copy, what is left is said.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=64'
ok train linear --data "$data" --model-dir run --max-steps 2
for command in 'evaluate run --json' 'predict run --out p.csv'; do
    ok $command --data "$data"
    warns_not 'warning'
done
ok evaluate run --data "$data" --json
cp out whole
while read -r file damage; do
    cp "run/$file" kept
    $damage "run/$file"
    ok evaluate run --data "$data" --json
    cmp out whole || fail 'another result'
    warns "run/$file: "
    warns 'using its copy in .backup'
    ok predict run --data "$data" --out p.csv
    warns "run/$file: "
    ok export run --out model
    warns "run/$file: "
    ok train linear --data "$data" --model-dir run --max-steps 2
    warns "warning: run/$file has been restored from its copy in .backup"
    cmp "run/$file" kept || fail "run/$file is not what it was"
done <<'END'
sextant.json rm
graphs/train.graph truncate -s 20
graphs/eval.graph truncate -s 0
graphs/predict.graph rm
END
rm -r run/graphs
ok train linear --data "$data" --model-dir run --max-steps 2
for graph in train eval predict; do
    warns "warning: run/graphs/$graph.graph has been restored from its copy in .backup"
done
ok evaluate run --data "$data" --json
warns_not 'warning'
rm run/sextant.json
ok show run
warns 'run/sextant.json: '
ok train linear --data "$data" --model-dir run --max-steps 2
ok evaluate run --data "$data" --json
warns_not 'warning'
# A graph that is lost stops only what needs it.
cp -r run plain
rm run/graphs/train.graph run/.backup/train.graph
ok evaluate run --data "$data" --json
cmp out whole || fail 'another result'
rm run/graphs/eval.graph run/.backup/eval.graph
ok predict run --data "$data" --out again.csv
cmp p.csv again.csv || fail 'another prediction'
ok export run --out again
fails 1 evaluate run --data "$data"
warns 'run/graphs/eval.graph'
fails 1 train linear --data "$data" --model-dir run --max-steps 3
warns 'run/graphs/train.graph'
warns '2 checkpoints are left: train a new run in another directory with --warm-start-from run/model.ckpt-2'
ok train linear --data "$data" --model-dir second --max-steps 2 --warm-start-from run/model.ckpt-2
rm run/sextant.json run/.backup/sextant.json
fails 1 export run --out model
warns 'run contains 2 checkpoints (model.ckpt-2), but sextant.json and its copy in .backup are missing'
fails 1 train linear --data "$data" --model-dir run --max-steps 2
warns '--warm-start-from run/model.ckpt-2'
ok train linear --data "$data" --model-dir run --max-steps 2 --fresh

# A run of an earlier version: without copies and checksums.
rm -r plain/.backup
python3 - <<'END'
import json
info = json.load(open("plain/sextant.json"))
del info["checksums"], info["crc32c"]
json.dump(info, open("plain/sextant.json", "w"))
END
ok predict plain --data "$data" --out again.csv
cmp p.csv again.csv || fail 'another prediction'
truncate -s 100 plain/graphs/predict.graph
fails 3 predict plain --data "$data"
warns 'plain/graphs/predict.graph: damaged, and there is no intact copy in .backup'
warns 'train a new run in another directory with --warm-start-from plain/model.ckpt-2'

ok train linear --data "$data" --eval-data "$data" --model-dir run --max-steps 4
for file in history.json .backup/history.json; do echo '{' >run/$file; done
ok evaluate run --data "$data" --checkpoint best
warns 'run/history.json: '
warns 'continuing without the history'
ok train linear --data "$data" --eval-data "$data" --model-dir run --max-steps 6
[ "$(cat run/history.json.damaged)" = '{' ] || fail 'the damaged history is gone'
ok evaluate run --data "$data"
warns_not 'warning'
