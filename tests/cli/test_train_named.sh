#!/usr/bin/env bash
# A model with several named inputs and example weights, from records to the server: train, kill and
# resume, evaluate, predict, export, show, run, serve in both forms of requests.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/records.sh"
. "$SEXTANT_SRC/tests/cli/runs.sh"
. "$SEXTANT_SRC/tests/cli/server.sh"
with_tfrecord <<'PY'
import random
from tfrecord import *

rng = random.Random(7)

def review():
    product, good = rng.randrange(10), rng.random() < 0.5
    words = [rng.randrange(25) + (25 if good != (product == 3) else 0) for _ in range(rng.randrange(16))]
    return example(feature(b"age", FLOATS, floats(rng.gauss(0, 1))), feature(b"product", INTS, ints(product)),
                   feature(b"words", INTS, ints(*words)), feature(b"recommends", INTS, ints(int(good))),
                   feature(b"weight", FLOATS, floats(rng.choice([0.5, 1, 2]))))

write("train", [review() for _ in range(600)])
write("val", [review() for _ in range(100)])
write("bare", [example(feature(b"age", FLOATS, floats(0.5)), feature(b"product", INTS, ints(3)),
                       feature(b"words", INTS, ints(26, 27)))])
write("old", [example(feature(b"age", FLOATS, floats(0.5)))])
PY
model=$SEXTANT_SRC/examples/reviews.c

# trained, and interrupted half way: the same bits
ok train "$model" --data train --eval-data val --model-dir whole --epochs 4 --seed 3 --threads 1 --json-log
grep -q '"accuracy"' out || fail 'no accuracy'
ok train "$model" --data train --eval-data val --model-dir run --max-steps 30 --seed 3 --threads 1
ok train "$model" --data train --eval-data val --model-dir run --epochs 4 --seed 3 --threads 1
says 'Resuming'
same_variables whole run 76
ok evaluate run --data val --json
python3 -c 'import json,sys; sys.exit(json.load(open("out"))["accuracy"] < 0.8)' || fail 'it has not learned'
cp out by_default
ok evaluate run --data val --json --batch-size 7
diff out by_default || fail 'the batch size changes the evaluation'

# records without labels can be predicted, not evaluated; what is missing is named
ok predict run --data bare
says 'id,class,probability'
fails 1 evaluate run --data bare
warns "bare: record 0"
warns "record has no feature 'recommends'; its features: age, product, words"
fails 1 predict run --data old
warns "record has no feature 'product'"
fails 1 train "$model" --data generated:digits?n=10
warns 'features ("age", …) are read from TFRecords, CSV, .npy files or an .npz archive'

ok show run
says 'feature: words int32[N,12]'
says 'feature: words_mask bool[N,12]'
says 'weight: weight float32[N]'
ok export run --out models/reviews
ok show models/reviews
says 'words_mask'

# arrays by name, and both forms of a request
python3 - <<'PY'
import struct

def npy(name, descr, shape, data):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    open(f"{name}.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)

npy("age", "<f4", "(2,)", struct.pack("<2f", 0.5, -1))
npy("product", "<i4", "(2,)", struct.pack("<2i", 3, 4))
npy("words", "<i4", "(2, 12)", struct.pack("<24i", 26, 27, *[0] * 22))
npy("words_mask", "|b1", "(2, 12)", bytes([1, 1] + [0] * 22))
PY
arrays='age=age.npy product=product.npy words=words.npy words_mask=words_mask.npy'
ok run models/reviews/1 --input $arrays --json
cp out by_run
ok predict run --data bare --out bare.csv
python3 - <<'PY' || fail 'predict and run differ'
import csv, json, sys
p = json.load(open("by_run"))["predictions"][0]["probabilities"]
row = list(csv.DictReader(open("bare.csv")))[0]
sys.exit(not abs(max(p) - float(row["probability"])) <= 1e-6)
PY
fails 1 run models/reviews/1 --input age=age.npy
warns 'input "product" is missing; give --input product=X.npy'

start m --model_name=m --model_base_path=models/reviews
ok query "$url" --input $arrays --json
same='import json, sys; sys.exit(json.load(open("out"))["predictions"] != json.load(open("by_run"))["predictions"])'
python3 -c "$same" || fail 'query and run differ'
python3 - <<'PY'
import json
pad = [0] * 10
rows = [{"age": 0.5, "product": 3, "words": [26, 27] + pad, "words_mask": [True, True] + [False] * 10},
        {"age": -1, "product": 4, "words": [0, 0] + pad, "words_mask": [False] * 12}]
json.dump({"instances": rows}, open("rows.json", "w"))
json.dump({"inputs": {k: [r[k] for r in rows] for k in rows[0]}}, open("columns.json", "w"))
del rows[0]["age"]
json.dump({"instances": rows}, open("bad.json", "w"))
PY
ok query "$url" --request rows.json --json
python3 -c "$same" || fail 'rows and arrays differ'
ok query "$url" --request columns.json --json
python3 - <<'PY' || fail 'columns and rows differ'
import json, sys
columns = json.load(open("out"))["outputs"]["probabilities"]
rows = [p["probabilities"] for p in json.load(open("by_run"))["predictions"]]
sys.exit(columns != rows)
PY
fails 1 query "$url" --request bad.json
warns 'age'
kill -TERM $server
wait $server || fail 'exit code of serve'
