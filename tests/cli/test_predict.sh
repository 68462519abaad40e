#!/usr/bin/env bash
# predict: one row for each example, in order; the same whatever the batch size; --image.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
photos 4
ok train mnist_cnn --data photos --model-dir run --steps 2 --batch-size 4 --seed 1 -- --num_classes 3
ok predict run --data photos --out p.csv
says_line 'p.csv: 12 rows'
[ "$(head -n 1 p.csv)" = 'id,file,label,class,probability,daisy,rose,tulip' ] || fail "$(head -n 1 p.csv)"
[ "$(cut -d , -f 1 p.csv | tail -n 12 | tr '\n' ' ')" = '0 1 2 3 4 5 6 7 8 9 10 11 ' ] || fail 'ids'
python3 - <<'PY' || fail 'columns do not fit together'
import csv
for i, row in enumerate(csv.DictReader(open("p.csv"))):
    label = ("daisy", "rose", "tulip")[i // 4]
    assert row["label"] == label and row["file"].startswith(f"photos/{label}/{label}-{i % 4}.")
    p = {c: float(row[c]) for c in ("daisy", "rose", "tulip")}
    assert abs(sum(p.values()) - 1) < 1e-5
    assert row["class"] == max(p, key=p.get) and float(row["probability"]) == max(p.values())
PY
ok predict run --data photos --batch-size 1
cmp out p.csv || fail 'the batch size changes the rows'
ok predict run --data photos -q --out -
cmp out p.csv || fail '--out - is stdout, and -q ends the list of --data'
[ ! -e ./- ] || fail 'a file is named -'
ok predict run --image photos/rose/rose-0.jpg photos/daisy/daisy-2.png
[ "$(head -n 1 out)" = 'id,file,class,probability,daisy,rose,tulip' ] || fail "$(head -n 1 out)"
[ "$(cut -d , -f 2 out | tail -n 2 | tr '\n' ' ')" = 'photos/rose/rose-0.jpg photos/daisy/daisy-2.png ' ] || fail 'files'
[ "$(sed -n 2p out | cut -d , -f 3-)" = "$(sed -n 6p p.csv | cut -d , -f 4-)" ] || fail 'the file alone gives another row'
echo 'no image' >x.jpg
fails 3 predict run --image x.jpg
warns 'x.jpg'
head -c 300 photos/rose/rose-0.jpg >cut.jpg
run predict run --image cut.jpg
[ "$code" != 0 ] && warns cut.jpg
fails 2 predict run
warns 'expected either --data or --image'
mkdir -p other/a other/b && cp photos/rose/rose-0.jpg other/a && cp photos/rose/rose-0.jpg other/b
fails 1 evaluate run --data other
warns 'class 0 is "a", but the run was trained with "daisy"'

# Data that lack a class have the run's labels, not those of their own folders.
cp -r photos fewer && rm -r fewer/daisy
ok predict run --data photos --out all.csv
ok predict run --data fewer --out fewer.csv
[ "$(wc -l <fewer.csv)" -gt 2 ] || fail 'rows'
cut -d , -f 3- all.csv | grep -v '^daisy,' >all.rows
cut -d , -f 3- fewer.csv | diff all.rows - || fail 'data without a class has other labels'
ok evaluate run --data fewer --report fewer-report
awk -F , 'NR > 1 { n++; right += $3 == $4 } END { printf "accuracy = %.6g\n", right / n }' fewer.csv >accuracy
says "$(cat accuracy)"
head -n 1 fewer-report/confusion.csv | grep -q 'daisy.*rose.*tulip' || fail 'the classes of the report'
ok train mnist_cnn --data photos --eval-data fewer --steps 1 --batch-size 4
says 'Eval results'

# Names that need quoting or are not UTF-8; records carry image/filename, or no name at all.
odd=photos/rose/$'a,"b"\nc.jpg'
cp photos/rose/rose-0.jpg "$odd"
cp photos/rose/rose-0.jpg photos/rose/$'caf\xe9 \xe8\x8a\xb1.jpg'
ok predict run --data photos --out odd.csv
ok data from-images photos --out records --shards 1
ok predict run --data records-00000-of-00001 --out records.csv
python3 - <<'PY' || fail 'names are not as they should be'
import csv, os
rows = list(csv.DictReader(open("odd.csv", newline="")))
assert [r["file"] for r in rows if r["label"] == "rose"][:2] == ['photos/rose/a,"b"\nc.jpg', "photos/rose/caf\ufffd \u82b1.jpg"]
records = {r["file"]: r for r in csv.DictReader(open("records.csv", newline=""))}
assert len(records) == len(rows) == 14, (len(records), len(rows))
for r in rows:
    other = records[os.path.basename(r["file"])]
    assert {k: v for k, v in other.items() if k not in ("id", "file")} == {k: v for k, v in r.items() if k not in ("id", "file")}
PY
ok data take 'generated:digits?n=3' --count 3 --out x.npy
ok predict run --data x.npy
[ "$(head -n 1 out)" = 'id,class,probability,daisy,rose,tulip' ] || fail "$(head -n 1 out)"
ok train linear --data 'generated:digits?n=64' --model-dir digits --steps 1
ok predict digits --data 'generated:digits?n=3'
[ "$(head -n 1 out)" = 'id,label,class,probability,0,1,2,3,4,5,6,7,8,9' ] || fail "$(head -n 1 out)"
