#!/usr/bin/env bash
# run: a SavedModel on images and arrays answers as the run's own predict does.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
photos 3
ok train mnist_cnn --data photos --model-dir run --steps 2 -- --num_classes 3
ok export run --out m
ok run m/1 --image photos/rose/rose-0.jpg photos/daisy/daisy-2.png
grep -qE '^photos/rose/rose-0.jpg: (daisy|rose|tulip) [0-9.]+ %, (daisy|rose|tulip) [0-9.]+ %, (daisy|rose|tulip) [0-9.]+ %$' out || fail 'line'
ok predict run --image photos/rose/rose-0.jpg photos/daisy/daisy-2.png --out p.csv
ok run m/1 --image photos/rose/rose-0.jpg photos/daisy/daisy-2.png --json
python3 - <<'PY' || fail 'run and predict differ'
import csv, json
rows = list(csv.DictReader(open("p.csv")))
answers = json.load(open("out"))["predictions"]
assert len(rows) == len(answers) == 2
for row, answer in zip(rows, answers):
    assert row["class"] == answer["class"]
    for name, p in zip(("daisy", "rose", "tulip"), answer["probabilities"]):
        assert abs(float(row[name]) - p) < 1e-6
PY
ok data take photos --size 28 --channels 1 --count 2 --out x.npy
ok run m/1 --input x.npy
grep -qE '^1: (daisy|rose|tulip) ' out || fail 'array line'
ok run m/1 --input image=x.npy --signature tensors
ok run m/1 --input x.npy --profile
warns 'conv2d onednn'
ok run m/1 --input x.npy
quiet
fails 1 run m/1 --input x.npy --signature tensorz
warns 'tensors'
fails 1 run m/1 --input picture=x.npy --signature tensors
warns '--input: "picture" is not an input of signature tensors; it has "image"'
fails 1 run m/1 --input x.npy image=x.npy --signature tensors
warns '--input: input "image" is given twice: x.npy, x.npy'
fails 1 run m/1 --input image= --signature tensors
warns '"image=": expected [NAME=]X.npy'
fails 1 run m/1 --input image=x.npy picture=x.npy --signature tensors
warns '"picture" is not an input of signature tensors; it has "image"'
ok data take photos --count 1 --out raw.npy
fails 1 run m/1 --input raw.npy
fails 2 run m/1
warns 'give either --image or --input'
fails 1 run m/9 --image photos/rose/rose-0.jpg
warns 'm/9'
# Names that cannot be read are an error, not numbers in their place; so in show.
cp -r m broken
rm broken/1/assets/*.txt
mkdir broken/1/assets/classes.txt
fails 1 run broken/1 --image photos/rose/rose-0.jpg
warns 'classes.txt'
fails 1 show broken/1
warns 'classes.txt'
echo no >no.jpg
fails 3 run m/1 --image no.jpg
warns 'no.jpg'
