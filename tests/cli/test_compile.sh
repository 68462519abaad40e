#!/usr/bin/env bash
# Ahead of time for XLA's CPU plugin: the figures, JSON, the kept executable, the errors.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/pjrt.sh"
unset TPU_LIBRARY_PATH VIRTUAL_ENV

fails 2 compile mnist_cnn --target v5lite-4
warns 'did you mean "v5litepod"'
fails 2 compile mnist_cnn --target tpu:v9
warns 'did you mean "tpu7x"?'
fails 2 compile mnist_cnn --target v4-7
warns 'cores (two per chip)'
fails 2 compile mnist_cn --target pjrt-cpu
warns 'did you mean "mnist_cnn"'
PJRT_NAMES_AND_LIBRARY_PATHS= fails 6 compile linear --target v5e-4
warns 'pip install libtpu'
fails 1 compile linear --target v5litepod-4 --pjrt-plugin "$SEXTANT_PJRT_PLUGIN"
warns "$SEXTANT_PJRT_PLUGIN cannot compile for v5e:2x2 ("
warns 'This requires libtpu'
fails 1 compile linear --target pjrt-cpu:2 --batch-size 7
warns 'batch size 7 is not a multiple of 2 replicas; the nearest are 6 and 8'

ok compile linear --target pjrt-cpu:2 --batch-size 64 --save kept.exe --dump-stablehlo .
says 'linear, train step, float32, for pjrt-cpu:2: 2 × cpu on 1 host'
says 'batch 64: 32 examples per device'
says_not 'input of each host' # there is one
grep -qE '^  arguments +[0-9.]+ KiB$' out || fail 'no arguments'
grep -qE '^  code ' out || fail 'no code'
grep -qE 'GFLOP per step and device' out || fail 'no FLOPs'
says 'largest layers'
[ -s kept.exe ] || fail 'nothing kept'
grep -q stablehlo.dot_general program-pjrt-cpu-64.mlir || fail 'no program'
fails 1 compile linear --target pjrt-cpu --batch-size 64 --save gone/kept.exe
warns 'gone/kept.exe: No such file'
says_not 'compiled in'

# Options of XLA reach the compiler: it refuses those that it does not know; other figures are kept
# for others.
fails 1 compile linear --target pjrt-cpu --batch-size 64 --xla-options no_such_option=1
warns 'no_such_option'
fails 2 compile linear --target pjrt-cpu --batch-size 64 --xla-options 'xla_a=[1]'
warns "xla_options: xla_a is a list, which XLA's options cannot be"
fails 2 compile linear --target cpu --memory --xla-options xla_a=1
warns '--xla-options is not for the target cpu'
kept=$(ls cache/sextant/compiled | wc -l)
ok compile linear --target pjrt-cpu --batch-size 64 --xla-options xla_cpu_enable_fast_math=true
[ "$(ls cache/sextant/compiled | wc -l)" -gt "$kept" ] || fail 'the figures of other options'

ok compile linear --target pjrt-cpu --batch-size 8 --mode predict --json
python3 - out <<'P' || fail 'the JSON'
import json, sys
r = json.load(open(sys.argv[1]))
assert r['devices'] == 1 and r['fits'] is True and r['batch'] == 8 and r['mode'] == 'predict', r
assert r['memory']['argument_bytes'] == (784 * 8 + 7850) * 4, r['memory']
assert r['hosts'] == [{'devices': 1, 'first_example': 0, 'examples': 8}], r['hosts']
assert r['padding']['arguments']['bytes'] == r['memory']['argument_bytes'], r['padding']
assert r['flops'] > 0 and len(r['layers']) > 0
P
[ "$(ls cache/sextant/compiled | wc -l)" -ge 1 ] || fail 'no figures kept'

# What is stored: a run's graphs, a SavedModel's signatures; both as they were built.
ok train linear --data 'generated:digits?n=64' --model-dir run1 --steps 1 --batch-size 16
ok export run1 --out models
ok compile run1 --target pjrt-cpu --batch-size 16
says 'run1, train step, float32, for pjrt-cpu: 1 × cpu on 1 host'
ok compile models/1 --target pjrt-cpu:2 --batch-size 64 --mode predict --dump-stablehlo .
says 'models/1, predict step, float32, for pjrt-cpu:2: 2 × cpu on 1 host'
says 'batch 64: 32 examples per device'
grep -q 'tensor<32x28x28x1xf32>' program-pjrt-cpu-64.mlir || fail 'not the signature'
ok compile models/1 --target pjrt-cpu --batch-size 8 --mode predict --signature tensors
fails 1 compile models/1 --target pjrt-cpu --mode predict --signature tensorz
warns 'serving_default'
fails 2 --verbosity debug compile models/1 --target pjrt-cpu
warns 'INVALID_ARGUMENT at'
warns 'models/1 is a SavedModel, which has no training step; use --mode predict'
fails 2 compile models/1 --target pjrt-cpu --mode predict --precision bfloat16
warns 'a SavedModel is compiled as it was built; --precision applies only to'
fails 2 compile run1 --target pjrt-cpu -- --units 3
warns 'a run is compiled as it was built; a parameter applies only to'
ok compile models --target pjrt-cpu --batch-size 8 --mode predict --signature tensors
fails 2 compile linear --target pjrt-cpu --signature tensors
warns '--signature applies only to SavedModels'

# The step loop, with its staged batches.
ok compile linear --target pjrt-cpu:2 --batch-size 64 --iterations-per-loop 8 --json
python3 - out <<'P' || fail 'the staged batches'
import json, sys
r = json.load(open(sys.argv[1]))
assert r['iterations_per_loop'] == 8, r
assert r['hosts'] == [{'devices': 2, 'first_example': 0, 'examples': 64}], r['hosts']
assert 0 <= r['memory']['argument_bytes'] - (8 * (784 + 1) * 32 + 7850) * 4 <= 64, r['memory']
assert r['padding']['values']['bytes'] > 32 * 784 * 4 and len(r['layers']) > 0, r['padding']
P
ok compile run1 --target pjrt-cpu --batch-size 16 --iterations-per-loop 4
says 'run1, train step in launches of 4, float32, for pjrt-cpu'
fails 2 compile linear --target pjrt-cpu --mode predict --iterations-per-loop 8
warns '--iterations-per-loop is for --mode train'

# Only the batch that is asked for is compiled.
mkdir dump
ok compile linear --target pjrt-cpu:2 --batch-size 48 --no-compile-cache --dump-stablehlo dump
[ "$(ls dump | wc -l)" = 1 ] || fail "programs compiled: $(ls dump)"
says_not 'largest batch'
quiet
ok compile linear --target pjrt-cpu:2 --batch-size 48 --no-compile-cache --dump-stablehlo dump --json
[ "$(ls dump | wc -l)" = 1 ] || fail "programs compiled: $(ls dump)"
says_not 'largest_batch'

# The largest batch that fits does not depend on the batch that is asked for.
export PJRT_NAMES_AND_LIBRARY_PATHS=cpu:$SEXTANT_TEST_BIN/libpjrt_ref.so SX_PJRT_REF=limit=8000000
ok compile linear --target pjrt-cpu:2 --batch-size 64 --find-largest-batch
says '(extrapolated from 512 and 4,096: '
says 'compiled, fits)'
largest=$(sed -n 's/^largest batch that fits: \([0-9,]*\) .*/\1/p' out | tr -d ,)
[ "$largest" -gt 4096 ] || fail 'the largest batch'
warns 'batch size 512: '
grep -qE '^batch size 4,096: [0-9.]+ MiB of 7.6 MiB per device, fits; compiled in [0-9.]+ s$' err || fail 'no progress'
grep -q 'layouts' out && [ "$(tail -n 1 out | cut -c 1-13)" = 'largest batch' ] || fail 'the answer does not come first'
fails 5 compile linear --target pjrt-cpu:2 --batch-size 65536
[ "$(grep -n 'does not fit on' err | head -n 1 | cut -d : -f 1)" = 1 ] || fail 'the misfit is not said first'
warns 'a batch of 65536 does not fit on pjrt-cpu:2: it needs about 98.'
warns 'per device, which has 7.6 MiB; the largest batch that fits is about '"$largest"
fails 5 compile linear --target pjrt-cpu:2 --batch-size 65536 --no-find-largest-batch
warns_not 'the largest'
ok compile linear --target pjrt-cpu:2 --batch-size "$largest"
fails 5 compile linear --target pjrt-cpu:2 --batch-size $((largest + 16)) --no-find-largest-batch
SX_PJRT_REF=limit=100000000000000 ok compile linear --target pjrt-cpu:2 --batch-size 64 --find-largest-batch --no-compile-cache
says_line 'largest batch that fits: 1,048,576 (the search ends here; larger batches may fit)'
# Where hardly an example fits, too.
SX_PJRT_REF=limit=45000 ok compile linear --target pjrt-cpu:1 --batch-size 1 --find-largest-batch --param num_classes=2
grep -qE '^largest batch that fits: [1-9]' out || fail 'no largest batch'

# The answer for the batch that is asked for comes before the search, which takes compiles of 3 s.
: >out # what the last command printed must not count
SX_PJRT_REF=limit=8000000,compile=3000 "$sextant" compile linear --target pjrt-cpu:2 --batch-size 64 \
    --find-largest-batch --no-compile-cache >out 2>err &
pid=$!
for ((i = 0; i < 600; i++)); do
    grep -q layouts out && break
    sleep 0.1
done
grep -q layouts out || fail 'no answer'
kill -0 "$pid" || fail 'the answer comes after the search'
kill "$pid"
wait "$pid" || true
says_not 'largest batch'
