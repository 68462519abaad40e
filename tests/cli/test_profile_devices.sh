#!/usr/bin/env bash
# profile on data and on other devices: the step loop's timeline, and what is said to bound the run.
# Our own plugin (tests/pjrt_ref) takes as long as SX_PJRT_REF tells it to.
. "$SEXTANT_SRC/tests/cli/lib.sh"
unset PJRT_NAMES_AND_LIBRARY_PATHS TPU_LIBRARY_PATH VIRTUAL_ENV
ref=(--device pjrt --pjrt-plugin "$SEXTANT_TEST_BIN/libpjrt_ref.so")
digits=(--data 'generated:digits?n=256')

# bound NAME WORDS...: what --json says, whose figures add up
bound() {
    local name=$1
    shift
    ok profile "$@" --json
    python3 - out "$name" <<'P' || fail "not bound by $name"
import json, sys
r = json.load(open(sys.argv[1]))
t = r['timeline']
assert t['bound'] == sys.argv[2], t
assert r['verdict'].startswith('what bounds this run: ' + t['bound']), r['verdict']
launches = t['launches']
assert launches and all(l['steps'] > 0 and l['ms'] > 0 for l in launches), launches
assert sum(l['steps'] for l in launches) >= r['steps'] > 0, (r['steps'], launches)
assert t['ms_per_step'] > 0 and 0 <= t['idle_share'] <= 1, t
assert abs(r['ms_per_step'] - t['ms_per_step']) < 1e-9 and r['steps'] == sum(l['steps'] for l in launches), r
assert abs(sum(l['ms'] for l in launches) / sum(l['steps'] for l in launches) - t['ms_per_step']) < 1e-6
assert set(t['ms_per_step_of']) == {'input', 'stage', 'submit', 'wait', 'show', 'transfer', 'compute'}
P
}
slow=(linear "${digits[@]}" --batch-size 16 --steps 8 --iterations-per-loop 4 "${ref[@]}")
SX_PJRT_REF=delay=0,step=15000 bound compute "${slow[@]}"
SX_PJRT_REF=delay=0,mib=4800000 bound transfer "${slow[@]}" # 12.5 KB a step: 57 ms
cat >tiny.c <<'C'
#include <sextant/model.h>

static sx_spec tiny(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value logits = sx_dense(b, sx_flatten(b, in->features), 5);
    return sx_classifier_spec(b, logits, in->labels, .optimizer = sx_sgd(.learning_rate = 1e-3));
}

SX_MODEL(tiny, .build = tiny, .image = {8, 8, 3})
C
SX_PJRT_REF=delay=0 bound input ./tiny.c --data 'generated:flowers?n=64&size=1024' --batch-size 4 \
    --steps 60 --iterations-per-loop 2 "${ref[@]}"

# Each step ends the data, and is waited for: the device has nothing to do until it is known.
short=(linear --data 'generated:digits?n=16' --batch-size 16 --steps 8 --iterations-per-loop 2 "${ref[@]}")
SX_PJRT_REF=delay=0,step=2000,out=20000 bound idle "${short[@]}"
# Launches of a step in a superbatch of 10: its bytes alone are copied, where the plugin can.
few=(linear --data 'generated:digits?n=16' --batch-size 16 --steps 3 --iterations-per-loop 10 "${ref[@]}")
copied() { python3 -c 'import json; t = json.load(open("out"))["timeline"]; print(round(t["transfer_bytes"] / 1024 / sum(l["steps"] for l in t["launches"])))'; }
ok profile "${few[@]}" --json
[ "$(copied)" -le 14 ] || fail "$(copied) KiB a step"
SX_PJRT_REF_FAULT=missing:0:Client_CreateBuffersForAsyncHostToDevice ok profile "${few[@]}" --json
[ "$(copied)" -ge 100 ] || fail "$(copied) KiB a step, without the function"
SX_PJRT_REF=delay=0,step=2000,out=20000 ok profile "${short[@]}" --svg idle.svg
says 'what bounds this run: idle device, '
says 'larger batches (--batch-size) or more steps per launch (--iterations-per-loop) give each launch more to do'
python3 - idle.svg <<'P' || fail 'a line of the picture is too long'
import sys
import xml.etree.ElementTree as xml
texts = [t.text for t in xml.parse(sys.argv[1]).iter('{http://www.w3.org/2000/svg}text')]
at = next(i for i, t in enumerate(texts) if t.startswith('what bounds this run: idle device, '))
assert texts[at + 1].endswith('more to do') and max(map(len, texts)) <= 150, texts[:at + 3]
P

# As text, as a picture, as a trace; nothing of the run changes.
ok train linear "${digits[@]}" --model-dir run1 --steps 2 --batch-size 32 --device cpu
find run1 -type f -exec sha256sum {} + | sort >before
SX_PJRT_REF=step=5000 ok profile run1 "${ref[@]}" --iterations-per-loop 4 --steps 8 --svg p.svg --trace t.json
find run1 -type f -exec sha256sum {} + | sort >after
cmp -s before after || fail 'the run changed'
says 'run1, train step, float32, batch 32, pjrt: '
says 'no times of operators: '
grep -qE '^ +[0-9.]+ +[0-9.]+ %  copies to the device, [0-9.]+ GB/s$' out || fail 'no copies'
grep -qE '^ +[0-9.]+ 100\.0 %  a step$' out || fail 'no sum'
grep -qE '^ +device \|[ctb.]{64}\|$' out || fail 'no bar of the device'
grep -qE '^ +loop +\|[ isuwr]{64}\|$' out || fail 'no bar of the loop'
grep -qE '^what bounds this run: compute, [0-9]+ % of the time \([0-9.]+ images/s; the input alone gives [0-9.]+ images/s\)$' out ||
    fail 'no verdict'
python3 - t.json p.svg <<'P' || fail 'the trace, the picture'
import json, sys
import xml.etree.ElementTree as xml
events = json.load(open(sys.argv[1]))['traceEvents']
rows = {e['args']['name']: e['tid'] for e in events if e['ph'] == 'M'}
assert list(rows) == ['step loop', 'copies to the device', 'device'], rows
by = {name: [e for e in events if e['ph'] == 'X' and e['tid'] == tid] for name, tid in rows.items()}
assert {e['name'] for e in by['step loop']} == {'input', 'stage', 'submit', 'wait', 'show'}
assert {e['name'] for e in by['copies to the device']} == {'transfer'}
launches = [e for e in by['device'] if e['name'] == 'compute']
assert len(launches) >= 5, launches
for a, b in zip(launches, launches[1:]): # one after the other
    assert a['ts'] + a['dur'] <= b['ts'] + 0.01, (a, b)
assert any(e['dur'] > 4 * 5000 for e in launches), launches
texts = [t.text for t in xml.parse(sys.argv[2]).iter('{http://www.w3.org/2000/svg}text')]
assert any(t.startswith('what bounds this run: compute') for t in texts), texts
assert {'loop', 'copies', 'device'} <= set(texts), texts
P

# A plugin with a profiler: operations by the names of our nodes, by operator and layer. Twice: its
# answer is copied, or lent.
for profiler in 1 2; do
    SX_PJRT_REF=profiler=$profiler ok profile run1 "${ref[@]}" --iterations-per-loop 4 --steps 4 --json --trace t.json
    python3 - out t.json <<'P' || fail 'what the device computed'
import json, sys
r = json.load(open(sys.argv[1]))
assert r['no_operators_because'] is None, r['no_operators_because']
near = lambda a, b: abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1e-3)
total = sum(k['ms_per_step'] for k in r['kernels'])
assert total > 0
for key in 'operators', 'layers', 'groups':
    assert near(sum(k['ms_per_step'] for k in r[key]), total), key
matmul = next(k for k in r['operators'] if k['operator'] == 'matmul')
# 784 by 10, forward, and the gradient of the filter; 8 steps, in a loop on the device
assert matmul['calls'] == 2 * 8, matmul
flops = matmul['flops_per_second_and_thread'] * matmul['ms_per_step'] * 1e-3
assert abs(flops - 2 * 2 * 784 * 10 * 32) < 1, flops
layers = {k['layer'] for k in r['layers']}
assert {'dense', 'classifier', 'training'} <= layers, layers
dot = next(k for k in r['kernels'] if k['kernel'].startswith('dot_general.'))
assert dot['operators'] == 'matmul' and dot['layer'].endswith('matmul'), dot
assert not any(k['kernel'].startswith('while') for k in r['kernels'])
assert r['causes_ms_per_step'] is None and dot['causes_ms_per_step'] is None, r['causes_ms_per_step']
events = json.load(open(sys.argv[2]))['traceEvents']
row = next(e['tid'] for e in events if e['ph'] == 'M' and e['args']['name'] == '/device:REF:0 XLA Ops')
ops = [e for e in events if e['ph'] == 'X' and e['tid'] == row]
assert ops and any(e['args']['layer'] == 'dense/matmul' for e in ops), ops[:3]
P
done
# A compiler that gives operations equal names, and names parts of nodes: what the nodes compute is
# counted once.
SX_PJRT_REF=profiler=3 ok profile run1 "${ref[@]}" --iterations-per-loop 4 --steps 4 --json
python3 - out <<'P' || fail 'operations with equal names'
import json, sys
r = json.load(open(sys.argv[1]))
dots = [k for k in r['kernels'] if k['kernel'] == 'dot_general']
assert len(dots) == 2 and len({k['layer'] for k in dots}) == 2, dots
assert all(k['calls'] == 8 for k in dots), dots
# a node without operations, such as a constant, may be missing
flops = sum(k['flops_per_second_and_thread'] * k['ms_per_step'] * 1e-3 for k in r['kernels'])
assert 0.9 * r['flops_per_step'] < flops < 1.0001 * r['flops_per_step'], (flops, r['flops_per_step'])
for key in 'operators', 'layers':
    flops = sum(k['flops_per_second_and_thread'] * k['ms_per_step'] * 1e-3 for k in r[key])
    assert 0.9 * r['flops_per_step'] < flops < 1.0001 * r['flops_per_step'], (key, flops)
P

# A profiler that refuses: what else is known.
for fault in 'profiler start: another profiler runs' 'collect collect: the trace is broken'; do
    SX_PJRT_REF=profiler=1 SX_PJRT_REF_FAULT=${fault%% *} ok profile run1 "${ref[@]}" --iterations-per-loop 4 --steps 4
    says_line "no times of operators: the plugin's profiler, ${fault#* }"
    says '  the step loop'
    says 'what bounds this run: '
    says_not '  operator'
done
# Errors of the steps that it records are errors. The 6th execution is one.
SX_PJRT_REF=profiler=1 SX_PJRT_REF_FAULT=later:6 fails 6 profile run1 "${ref[@]}" --iterations-per-loop 4 --steps 4
warns 'device lost'

# One that does not say when an array has its value: what else is known.
SX_PJRT_REF=profiler=1 SX_PJRT_REF_FAULT=missing:0:Buffer_ReadyEvent ok profile run1 "${ref[@]}" --iterations-per-loop 4 --steps 4
says_line 'what bounds this run: unknown: the device did not tell when its launches ended'
says '  operator'

# Predictions, of a run and of a SavedModel.
ok profile run1 "${ref[@]}" --mode predict --steps 3 --batch-size 8
says 'run1, predict step, float32, batch 8, pjrt: '
says '  computes'
ok export run1 --out models
ok profile models "${ref[@]}" --steps 3 --signature tensors
says 'models, signature tensors, float32, batch 1, pjrt: '
says '  computes'

# On the CPU: the run's own data and batch; the kernels beside the loop.
ok profile run1 --steps 5 --device cpu
says 'run1, train step, float32, batch 32, '
says ', 5 steps'
says '  the step loop'
says '  operator'
says '  layer'
says '  kernel'
ok profile run1 --steps 3 --device cpu --by layer --batch-size 16
says ', batch 16, '
grep -q '  layer$' out || fail 'no layers'
! grep -qE '  (operator|kernel)$' out || fail 'tables that were not asked for'
ok profile run1 --steps 3 --device cpu --data 'generated:digits?n=64' --json
python3 - out <<'P' || fail 'operators, layers'
import json, sys
r = json.load(open(sys.argv[1]))
near = lambda a, b: abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1e-3)
for key, name in ('operators', 'operator'), ('layers', 'layer'):
    assert near(sum(k['ms_per_step'] for k in r[key]), sum(k['ms_per_step'] for k in r['kernels'])), key
    assert all(k[name] for k in r[key]), r[key]
assert {'dense'} <= {k['layer'] for k in r['layers']}, [k['layer'] for k in r['layers']]
assert 'matmul' in {k['operator'] for k in r['operators']}, r['operators']
assert r['data'] == 'generated:digits?n=64' and r['timeline']['input_examples_per_second'] > 0, r
assert r['device'] == 'cpu', r['device']
P

# Data that are gone, and what data do not apply to.
. "$SEXTANT_SRC/tests/cli/photos.sh"
photos 4
ok train flowers_cnn --data photos/ --model-dir run2 --steps 1 --batch-size 4 --device cpu -- --num_classes 3
mv photos moved
ok profile run2 --steps 2 --device cpu
warns "the run's data cannot be opened, so its inputs are generated; name others with --data: "
says_not '  the step loop'
ok profile run2 --steps 2 --device cpu --data moved/
says '  the step loop'
fails 2 profile linear --mode predict --data 'generated:digits?n=8'
warns '--data is for training steps'
fails 1 profile run1 --data 'gone-*' --steps 1
warns 'gone-*'
