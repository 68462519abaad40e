#!/usr/bin/env bash
# The example census.c: a table of numbers and texts, from CSV to the server, which is sent its rows.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/runs.sh"
. "$SEXTANT_SRC/tests/cli/server.sh"
model=$SEXTANT_SRC/examples/census.c
python3 "$SEXTANT_SRC/examples/census_csv.py" data

ok train "$model" --data data/train.csv --eval-data data/val.csv --model-dir whole --epochs 3 --seed 5 --threads 1
ok train "$model" --data data/train.csv --model-dir run --max-steps 70 --seed 5 --threads 1
ok train "$model" --data data/train.csv --eval-data data/val.csv --model-dir run --epochs 3 --seed 5 --threads 1
says 'Resuming'
same_variables whole run 375
ok evaluate run --data data/val.csv --json
python3 -c 'import json,sys; sys.exit(json.load(open("out"))["accuracy"] < 0.8)' || fail 'it has not learned'
ok show run
says 'feature: education string[N]'
says 'preprocessed: education int32[N]'
ok predict run --data data/val.csv --examples 8 --out rows.csv
ok export run --out models/census

# the server computes what predict did from the same rows
python3 - <<'PY'
import csv, json
rows = [r for r, _ in zip(csv.DictReader(open("data/val.csv")), range(8))]
number = lambda text, otherwise: float(text) if text else otherwise
json.dump({"instances": [{"age": float(r["age"]), "gain": number(r["gain"], 0), "hours": number(r["hours"], 40),
                          "education": r["education"].upper(), "job": r["job"] or "unknown"} for r in rows]},
          open("request.json", "w"))
PY
start census --model_name=census --model_base_path=models/census
ok query "$url" --request request.json --json
python3 - <<'PY' || fail 'the server and predict differ'
import csv, json, sys
served = [p["probabilities"] for p in json.load(open("out"))["predictions"]]
rows = list(csv.DictReader(open("rows.csv")))
sys.exit(len(rows) != 8 or not all(abs(max(p) - float(r["probability"])) <= 1e-5 for p, r in zip(served, rows)))
PY
