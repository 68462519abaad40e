#!/usr/bin/env bash
# CSV files: described, checked, trained on; what does not fit is named by file, line and column.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/runs.sh"
python3 - <<'PY'
import gzip, random

rng = random.Random(3)
rows = []
for i in range(300):
    age, city = rng.randrange(18, 90), rng.randrange(4)
    rows.append(f'{age if i % 7 else ""},{city},"note, {i}",{int((age > 45) == (city < 2))},{rng.choice([0.5, 1, 2])}\n')
head = "age,city,note,rich,weight\n"
open("people.csv", "w").write(head + "".join(rows))
gzip.open("people.csv.gz", "wt").write(head + "".join(rows))
open("swapped.csv", "w").write("weight,rich,city,age\n1,1,0,50\n")
open("short.csv", "w").write(head + "".join(rows[:3]) + "1,2\n" + rows[3])
open("wrong.csv", "w").write(head + rows[0] + "old,1,x,1,1\n")
PY
cat >net.c <<'C'
#include <sextant/model.h>
static void prepare(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value age = sx_mul(b, sx_feature(b, in, "age"), sx_constant_f32(b, 0.02));
    sx_output(b, "age", sx_clip(b, sx_sub(b, age, sx_constant_f32(b, 1)), -1, 1));
    sx_output(b, "city", sx_one_hot(b, sx_feature(b, in, "city"), .depth = 4));
}
static sx_spec net(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_concat(b, 1, sx_reshape(b, sx_feature(b, in, "age"), SX_BATCH, 1),
                           sx_feature(b, in, "city"));
    x = sx_dense(b, x, 16, .activation = SX_RELU);
    return sx_classifier_spec(b, sx_dense(b, x, 2), sx_label(b, in, "rich"), .optimizer = sx_adam(0.02));
}
SX_MODEL(net, .build = net, .preprocess = prepare,
         .inputs = {{"age", .optional = true, .default_value = 40}, {"city", SX_I32}},
         .labels = {{"rich"}}, .example_weight = "weight")
C

ok data show people.csv --count 1
says 'people.csv: CSV, 300 rows; columns age, city, note, rich, weight'
says 'people.csv: line 2'
says 'note: "note, 0"'
ok data verify people.csv people.csv.gz
says '600 records in 2 files'
says 'all good'
fails 1 data verify short.csv
warns 'short.csv: line 5: 2 fields, expected 5, as in the header'
fails 3 data verify short.csv --skip-corrupt
says 'short.csv: line 5: 2 fields'
says '5 records in 1 file'
warns 'corrupt records: 1'

# trained, and interrupted: the same bits; the compressed file is the same data
ok train net.c --data people.csv --model-dir whole --epochs 12 --seed 3 --threads 1
ok train net.c --data people.csv --model-dir run --max-steps 40 --seed 3 --threads 1
ok train net.c --data people.csv.gz --model-dir run --epochs 12 --seed 3 --threads 1
says 'Resuming'
same_variables whole run 120
ok evaluate run --data people.csv --json
python3 -c 'import json,sys; sys.exit(json.load(open("out"))["accuracy"] < 0.8)' || fail 'it has not learned'
ok show run
says 'feature: age float32[N]'
says 'preprocessed: city float32[N,4]'
ok predict run --data swapped.csv
says 'id,class,probability'
warns 'swapped.csv: CSV, 1 row; columns age float32, city int32'
ok train net.c --data short.csv --model-dir skipped --steps 1 --skip-corrupt
fails 1 train net.c --data short.csv
warns 'short.csv: line 5: 2 fields, expected 5, as in the header (--skip-corrupt skips it)'
fails 1 train net.c --data wrong.csv
warns 'wrong.csv: line 3: column "age": "old", expected float32'
sed 's/rich/poor/' people.csv >other.csv
fails 1 train net.c --data other.csv
warns 'other.csv: line 1: there is no column "rich" (it has "age", "city", "note", "poor", "weight")'
