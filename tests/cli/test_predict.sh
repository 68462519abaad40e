#!/usr/bin/env bash
# predict: one row for each example, in order; the same whatever the batch size; --image.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
photos 4
ok train mnist_cnn --data photos --model-dir run --steps 2 --batch-size 4 --seed 1 -- --num_classes 3
ok predict run --data photos --out p.csv
says_line 'p.csv: 12 rows'
[ "$(head -n 1 p.csv)" = 'id,class,probability,daisy,rose,tulip' ] || fail "$(head -n 1 p.csv)"
[ "$(cut -d , -f 1 p.csv | tail -n 12 | tr '\n' ' ')" = '0 1 2 3 4 5 6 7 8 9 10 11 ' ] || fail 'ids'
python3 - <<'PY' || fail 'columns do not fit together'
import csv
for row in csv.DictReader(open("p.csv")):
    p = {c: float(row[c]) for c in ("daisy", "rose", "tulip")}
    assert abs(sum(p.values()) - 1) < 1e-5
    assert row["class"] == max(p, key=p.get) and float(row["probability"]) == max(p.values())
PY
ok predict run --data photos --batch-size 1
cmp out p.csv || fail 'the batch size changes the rows'
ok predict run --image photos/rose/rose-0.jpg photos/daisy/daisy-2.png
[ "$(cut -d , -f 1 out | tail -n 2 | tr '\n' ' ')" = 'photos/rose/rose-0.jpg photos/daisy/daisy-2.png ' ] || fail 'ids of files'
[ "$(sed -n 2p out | cut -d , -f 2-)" = "$(sed -n 6p p.csv | cut -d , -f 2-)" ] || fail 'the file alone gives another row'
echo 'no image' >x.jpg
fails 1 predict run --image x.jpg
warns 'x.jpg'
head -c 300 photos/rose/rose-0.jpg >cut.jpg
run predict run --image cut.jpg
[ "$code" != 0 ] && warns cut.jpg
fails 2 predict run
warns 'expected either --data or --image'
mkdir -p other/a other/b && cp photos/rose/rose-0.jpg other/a && cp photos/rose/rose-0.jpg other/b
fails 1 evaluate run --data other
warns 'class 0 is "a", the run was trained with "daisy"'
