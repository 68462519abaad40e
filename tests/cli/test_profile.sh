#!/usr/bin/env bash
# profile: its figures are there and add up; the files; what it refuses. Not how fast anything is.
. "$SEXTANT_SRC/tests/cli/lib.sh"
fails 2 profile
fails 2 profile mnist_cn
warns 'did you mean "mnist_cnn"'
fails 2 profile mnist_cnn --steps 0
fails 2 profile mnist_cnn --signature tensors
warns '--signature applies only to SavedModels'

ok profile mnist_cnn --batch-size 8 --threads 2 --steps 4 --rows 3 --trace t.json --svg p.svg
says 'mnist_cnn, train step, float32, batch 8, 2 threads: '
says ', 4 steps'
says 'measured now'
grep -qE '^ +[0-9.]+ +[0-9.]+ % +4 +[0-9.]+ +[0-9]+ % +[0-9.]+ +[0-9]+ %  conv2d .*conv2d_1/conv2d' out ||
    grep -qE '  in [0-9]+ kernels more$' out || fail 'the kernels'
grep -qE '^ +[0-9.]+ 100\.0 %  a step$' out || fail 'no sum'
grep -qE '^bytes read and written for an example: [0-9.]+ [KM]iB by convolutions and products, [0-9.]+ [KM]iB between them$' out ||
    fail 'no bytes'
grep -qE '^what bounds this run: .*[0-9]+ % of the time' out || fail 'no verdict'
python3 - t.json p.svg <<'P' || fail 'the trace, the picture'
import json, sys
import xml.etree.ElementTree as xml
events = json.load(open(sys.argv[1]))['traceEvents']
names = [e['args']['name'] for e in events if e['ph'] == 'M']
assert names == ['executions', 'thread 0', 'thread 1'], names
runs = [e for e in events if e.get('cat') == 'execution']
assert len(runs) == 4, len(runs)
kernels = [e for e in events if e.get('cat') == 'kernel']
assert {e['tid'] for e in kernels} == {1, 2}, 'both threads have work'
for k in kernels:
    assert any(r['ts'] <= k['ts'] and k['ts'] + k['dur'] <= r['ts'] + r['dur'] + 0.01 for r in runs), k
filters = [k for k in kernels if k['name'].startswith('filter ')] # packed for all shards
assert filters and all('conv2d' in k['args']['layer'] for k in filters), filters
conv = [k for k in kernels if 'conv2d_1/conv2d' in k['args']['layer'].split('+') and k not in filters]
assert len(conv) == 4 * 2 and {k['args']['shard'] for k in conv} == {0, 1}, conv
texts = [t.text for t in xml.parse(sys.argv[2]).iter('{http://www.w3.org/2000/svg}text')]
assert any(t.startswith('what bounds this run') for t in texts) and 'thread 1' in texts, texts
P

# All time is divided, once by kernel, operator and layer and once by cause; the limits are kept.
ok profile mnist_cnn --batch-size 8 --threads 2 --steps 3 --json
python3 - out <<'P' || fail 'the figures'
import json, sys
r = json.load(open(sys.argv[1]))
assert (r['mode'], r['batch'], r['threads'], r['steps']) == ('train', 8, 2, 3), r
limits = r['limits']
assert limits['measured_now'] is False
for name in ('f32_flops_per_second_and_thread', 'int8_operations_per_second_and_thread',
             'memory_bytes_per_second', 'cache_bytes_per_second_and_thread'):
    assert limits[name] > 1e8, (name, limits)
causes = r['causes_ms_per_step']
near = lambda a, b: abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1e-3)
assert all(v >= -1e-9 for v in causes.values()), causes
assert near(sum(causes.values()), r['ms_per_step']), (causes, r['ms_per_step'])
for rows in r['kernels'], r['groups'], r['operators'], r['layers']:
    for k in rows:
        own = sum(v for name, v in k['causes_ms_per_step'].items() if name != 'alone')
        assert near(own, k['ms_per_step']), k
        assert k['calls'] > 0 and k['flops_limit'] > 0 and k['bytes_limit'] > 0, k
    for name in ('computing', 'memory', 'slow', 'small', 'host', 'alone'):
        assert near(sum(k['causes_ms_per_step'][name] for k in rows), causes[name]), name
assert near(sum(k['ms_per_step'] for k in r['kernels']), sum(k['ms_per_step'] for k in r['groups']))
# 12 MFLOP an image: the second convolution and its gradients are 3 × 2 × 11² × 64 × 32 × 9 of 13.4,
# less what is cropped
flops = sum(k['flops_per_second_and_thread'] * k['ms_per_step'] * 2e-3 for k in r['kernels'])
assert 11e6 * 8 < flops < 15e6 * 8, flops
for rows in r['groups'], r['operators'], r['layers']:
    assert sum(k['kernels'] for k in rows) == len(r['kernels'])
# The backward pass is part of the layers: three products of a convolution.
layers = {k['layer']: k for k in r['layers']}
assert not any('gradients' in name for name in layers), layers.keys()
assert {'conv2d', 'conv2d_1', 'dense', 'training'} <= set(layers), layers.keys()
conv = layers['conv2d_1']
flops = conv['flops_per_second_and_thread'] * conv['ms_per_step'] * 2e-3
assert 0.75 < flops / (3 * 2 * 11 * 11 * 64 * 32 * 9 * 8) < 1.01, flops # less what is cropped
assert {'conv2d', 'conv2d_grad_input', 'conv2d_grad_filter', 'matmul'} <= {k['operator'] for k in r['operators']}
conv = next(k for k in r['kernels'] if k['layer'].startswith('conv2d_1/conv2d'))
assert conv['operators'].startswith('conv2d+bias_add+relu'), conv
P

# Rates above the limits, which are kept as if this processor were slow, are no percentages.
python3 - "$XDG_CACHE_HOME"/sextant/limits/*.json <<'P' || fail 'no limits were kept'
import json, sys
for name in sys.argv[1:]:
    limits = json.load(open(name))
    for key in limits:
        if key.endswith('second') or key.endswith('thread'):
            limits[key] *= 1e-4
    json.dump(limits, open(name, 'w'))
P
ok profile mnist_cnn --batch-size 8 --threads 2 --steps 3
says ' >100 %'
says 'GB/s >100 %: a nearer cache had the data, or other threads left more of the memory to this one'
says 'GFLOP/s >100 %: max was measured while the processor was slower; measure it again with --measure-limits'
! grep -qE ' [0-9]{3,} % .* [0-9]+ %  ' out || fail 'more than all'
rm -r "$XDG_CACHE_HOME/sextant/limits"

# A run; a SavedModel, whose images are made up; what does not apply to them.
ok train linear --data 'generated:digits?n=8' --model-dir run1 --steps 1 --batch-size 4
ok export run1 --out models
fails 2 profile run1 --precision float32
warns 'a run is compiled as it was built'
ok profile run1 --mode predict --steps 1
ok profile run1 --steps 1
says 'run1, train step, float32, batch 4'
ok profile models --steps 2 --threads 1
says 'models, signature serving_default, float32, batch 1, 1 thread: '
ok profile models/1 --steps 2 --signature_def tensors --batch-size 3
says 'signature tensors, float32, batch 3'
# What runs once, before the steps that are recorded, is no kernel of a step.
ok profile models/1 --steps 3 --signature tensors --json
python3 - out <<'P' || fail 'a kernel that took no time'
import json, sys
r = json.load(open(sys.argv[1]))
assert r['signature'] == 'tensors' and r['kernels'], r
assert all(k['calls'] == 3 and k['ms_per_step'] > 0 for k in r['kernels']), r['kernels']
assert r['product_bytes_per_example'] > 0 and r['other_bytes_per_example'] > 0, r
P
fails 1 profile models/1 --signature tensorz
warns 'serving_default'
fails 2 profile models/1 --mode train
warns 'is a SavedModel, which has no training step; use --mode predict'
ok profile models/1 --precision bfloat16 --steps 3
says 'bytes read and written for an example: '
grep -q 'serving_default, bfloat16' out || warns 'bfloat16: this processor multiplies it no faster than float32'
fails 2 profile models/1 --param x=1
warns 'a SavedModel is run as it was built; a parameter applies only to'
fails 1 profile linear --steps 1 --svg gone/p.svg
warns 'gone/p.svg'

# One file for both would lose the first.
fails 2 profile linear --steps 1 --svg both --trace both
warns '--svg and --trace name the same file, both; give each a file of its own'
mkdir -p in
ln -s . in/here
fails 2 profile linear --steps 1 --svg in/both --trace ./in/here/both
warns '--svg and --trace name the same file'
echo kept >a.svg
ln a.svg b.svg # which would be two files once they are written
ok profile linear --steps 1 --svg a.svg --trace b.svg
grep -q '<svg' a.svg || fail 'no picture'
grep -q traceEvents b.svg || fail 'no trace'
