#!/usr/bin/env bash
# compile --memory: the plan of the CPU's memory, beside the least that any plan takes.
. "$SEXTANT_SRC/tests/cli/lib.sh"

fails 2 compile mnist_cnn
warns 'give --target, or --memory'
fails 2 compile mnist_cnn --memory --target v5litepod-4
warns '--memory, --memory-limit, --svg and --threads are for the target cpu, not v5litepod-4'
fails 2 compile mnist_cnn --target cpu --save x
warns '--save is not for the target cpu'
fails 2 compile mnist_cnn --memory --signature tensors
warns '--signature applies only to SavedModels'
fails 1 compile linear --memory --svg gone/plan.svg
warns 'gone/plan.svg'

ok compile mnist_cnn --memory --batch-size 32 --threads 2 --svg plan.svg
says_line 'mnist_cnn, train step, float32, batch 32, on the CPU: 2 shards'
grep -qE '^  temporaries  [0-9.]+ MiB, [0-9.]+ % more than the [0-9.]+ MiB that are alive at once$' out ||
    fail 'the temporaries'
grep -qE '^most is alive in step [0-9]+ of [0-9]+, ' out || fail 'where most is alive'
grep -qE '^  2 × 400.0 KiB  float32\[16,10,10,64\] of relu_grad "gradients' out || fail 'the largest value'
python3 - plan.svg <<'P' || fail 'the picture'
import sys
import xml.etree.ElementTree as xml
svg = '{http://www.w3.org/2000/svg}'
root = xml.parse(sys.argv[1])
texts = [t.text for t in root.iter(svg + 'text')]
assert 'shard 0' in texts and 'shard 1' in texts and texts[1].startswith('temporaries: '), texts
abouts = [t.text for t in root.iter(svg + 'title')]
assert sum('conv2d_1' in a for a in abouts) >= 2, abouts
P

# A name of a layer that is cut is cut between characters.
cat >accents.c <<'C'
#include <sextant/sextant.h>
static sx_spec build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = sx_flatten(b, in->features);
    (void)p;
#define LONG "éééééééééééééééééééééééééééééééééééééééé"
    x = sx_dense(b, x, 64, .name = LONG LONG LONG);
    x = sx_dense(b, x, 65, .name = "-" LONG LONG LONG);
    return sx_classifier_spec(b, sx_dense(b, x, 10), in->labels);
}
SX_MODEL(accents, .build = build, .image = {8, 8, 1})
C
ok compile ./accents.c --memory --svg accents.svg
python3 -c 'import xml.etree.ElementTree as xml; xml.parse("accents.svg")' || fail 'a picture with accents'

# No plan of the zoo takes 5 % more than what is alive at once; what is listed adds up to that.
for words in 'mnist_cnn' 'mnist_cnn --mode predict' 'mnist_cnn --batch-size 33' 'flowers_cnn' \
    'flowers_cnn --mode predict' 'catsdogs_cnn' 'resnet50 --batch-size 8' \
    'resnet50 --batch-size 8 --precision bfloat16' 'resnet50 --batch-size 20 --threads 20' \
    'resnet50 --mode predict --batch-size 1' 'resnet50 --mode predict --batch-size 8'; do
    ok compile $words --memory --json
    python3 - out <<'P' || fail 'the figures'
import json, sys
r = json.load(open(sys.argv[1]))
m = dict(r['memory'], least_temporary_bytes=r['least_temporary_bytes'])
assert m['least_temporary_bytes'] <= m['temporary_bytes'], m
assert abs(r['percent_above_least'] - 100 * (m['temporary_bytes'] / m['least_temporary_bytes'] - 1)) < 1e-9
assert r['percent_above_least'] <= 5, r['percent_above_least']
alive = sum(v['bytes'] * (r['shards'] if v['of_each_shard'] else 1) for v in r['alive_at_peak'])
assert alive == m['least_temporary_bytes'], (alive, m)
for v in r['alive_at_peak']:
    assert v['first_step'] <= r['peak_step'] <= v['last_step'] < r['steps'], v
P
done

# Within a limit, values are computed again; what cannot be is an error with the least.
ok compile resnet50 --memory --batch-size 8 --threads 2 --memory-limit 700M --svg limit.svg
grep -qE '^  again        [0-9]+ of [0-9]+ steps, [0-9.]+ % of what the others compute$' out ||
    fail 'what is computed again'
grep -q '>computed again<' limit.svg || fail 'the picture of what is computed again'
ok compile resnet50 --memory --batch-size 8 --threads 2 --memory-limit 700M --json
python3 - out <<'P' || fail 'the figures within a limit'
import json, sys
r = json.load(open(sys.argv[1]))
assert sum(b for k, b in r['memory'].items() if k != 'least_temporary_bytes') <= 700 << 20, r['memory']
assert r['again_steps'] > 0 and 0 < r['again_percent'] < 50, r
P
fails 5 compile resnet50 --memory --batch-size 8 --threads 2 --memory-limit 100M
warns 'a training step with batch size 8 takes at least '
warns 'more than the memory limit of 100.0 MiB; give more, or take a smaller batch'

# Evaluation and prediction of models and runs have 8 shards, whatever the threads.
ok compile mnist_cnn --memory --mode predict --batch-size 32 --threads 2
says_line 'mnist_cnn, predict step, float32, batch 32, on the CPU: 8 shards'

# What is stored: runs, SavedModels.
ok train linear --data 'generated:digits?n=64' --model-dir run1 --steps 1 --batch-size 16
ok export run1 --out models
ok compile run1 --target cpu --batch-size 16
says 'run1, train step, float32, batch 16, on the CPU'
fails 5 train linear --data 'generated:digits?n=64' --model-dir run2 --steps 1 --memory-limit 64K
warns 'a training step with batch size 32 takes at least'
ok train linear --data 'generated:digits?n=64' --model-dir run2 --steps 1 --memory-limit 64M
ok compile models --memory --mode predict --batch-size 8
says 'packed weights among them'
fails 2 compile models --memory
warns 'is a SavedModel, which has no training step; use --mode predict'
