#!/usr/bin/env bash
# A model whose layers are on several devices: the same weights as on one, micro-batches, soft placement
# and its errors, the log of placement, threads.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/runs.sh"
unset VIRTUAL_ENV PJRT_NAMES_AND_LIBRARY_PATHS TPU_LIBRARY_PATH
model=$SEXTANT_SRC/examples/lstm_stack.c
python3 - <<'PY'
import struct

def save(name, descr, shape, data):
    head = repr({"descr": descr, "fortran_order": False, "shape": shape})
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head.encode() + data)

rows = 96
kind = [i % 3 for i in range(rows)]
x = [((i * 13 + k * 7) % 11) / 11 + (k // 8 == kind[i]) for i in range(rows) for k in range(32)]
save("sequence.npy", "<f4", (rows, 8, 4), struct.pack(f"<{len(x)}f", *x))
save("kind.npy", "<i4", (rows,), struct.pack(f"<{rows}i", *kind))
PY
files=(--data sequence.npy,kind.npy)
data=("${files[@]}" --batch-size 16 --seed 3)

# One device and two, with one number of shards and with that of the threads.
ok train "$model" "${data[@]}" --model-dir one --epochs 8 --shards 2
ok train "$model" "${data[@]}" --model-dir two --epochs 8 --shards 2 --device cpu:0,cpu:1 --explain
warns 'placed: on cpu:0,cpu:1'
same_variables one two 48
ok train "$model" "${data[@]}" --model-dir free --epochs 2 --threads 2
ok train "$model" "${data[@]}" --model-dir split --epochs 2 --threads 2 --device cpu,cpu
same_variables free split 12
# --inter-op says when parts run, not how the batch is cut: as many shards as threads of all cpus.
ok train "$model" "${data[@]}" --model-dir intra --epochs 2 --intra-op 3
ok train "$model" "${data[@]}" --model-dir inter --epochs 2 --intra-op 3 --inter-op 1
same_variables intra inter 12
ok train "$model" "${data[@]}" --model-dir intra6 --epochs 2 --intra-op 6
ok train "$model" "${data[@]}" --model-dir inter6 --epochs 2 --intra-op 3 --inter-op 2 --device cpu,cpu
same_variables intra6 inter6 12

# Micro-batches are shards; of the last batch, which they do not divide, too.
ok train "$model" "${data[@]}" --model-dir piped --epochs 8 --micro-batches 2 --device cpu,cpu
same_variables one piped 48
ok train "$model" "${files[@]}" --batch-size 20 --seed 3 --model-dir rest --epochs 2 --shards 5
ok train "$model" "${files[@]}" --batch-size 20 --seed 3 --model-dir rest2 --epochs 2 --micro-batches 5 --device cpu,cpu
same_variables rest rest2 10

# What a checkpoint was computed with: micro-batches are shards, and each kind of device counts.
ok train "$model" "${data[@]}" --model-dir micro --max-steps 2 --device cpu,cpu --micro-batches 4
fails 1 train "$model" "${data[@]}" --model-dir micro --max-steps 3 --shards 1 --require-exact
warns 'cannot resume exactly: the checkpoint was computed with'
ok train "$model" "${data[@]}" --model-dir micro --max-steps 3 --shards 4 --require-exact
fails 1 train "$model" "${data[@]}" --model-dir micro --max-steps 4 --device host,cpu --shards 4 --require-exact
warns 'device:HOST:0'

# A run goes on under other devices, is evaluated and makes predictions on them.
ok train "$model" "${data[@]}" --model-dir moved --max-steps 20 --shards 2 --device cpu,cpu --intra-op 1
ok train "$model" "${data[@]}" --model-dir moved --epochs 8 --shards 2
says 'Resuming'
same_variables one moved 48
ok evaluate one "${files[@]}" --json
cp out alone
ok evaluate two "${files[@]}" --json --device cpu,cpu --inter-op 1
python3 - <<'PY' || fail 'devices change the evaluation'
import json, sys

one, two = json.load(open("alone")), json.load(open("out"))
sys.exit(any(one[k] != two[k] for k in ("loss", "accuracy")) or one["accuracy"] < 0.9)
PY
ok predict one "${files[@]}"
cp out alone
ok predict one "${files[@]}" --device cpu,cpu
cmp alone out || fail 'devices change predictions'

# An ensemble: its members predict on three devices, and on one.
cat >ensemble.c <<'C'
#include <sextant/sextant.h>
#include <stdio.h>

static sx_spec ensemble(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value flat = sx_flatten(b, in->features), sum = SX_NO_VALUE;
    (void)p;
    for (int i = 0; i < 3; i++) {
        char device[16];
        snprintf(device, sizeof(device), "/device:CPU:%d", i);
        sx_device_scope_begin(b, device);
        sx_value member = sx_dense(b, sx_dense(b, flat, 16, .activation = SX_TANH), 3);
        sx_device_scope_end(b);
        sum = i == 0 ? member : sx_add(b, sum, member);
    }
    return sx_classifier_spec(b, sum, in->labels, .optimizer = sx_adam(.learning_rate = 1e-2));
}
SX_MODEL(ensemble, .build = ensemble, .num_classes = 3, .inputs = {{"sequence", .dims = {8, 4}}},
         .labels = {{.name = "kind"}})
C
ok train ./ensemble.c "${data[@]}" --model-dir members --epochs 4 --shards 2
ok train ./ensemble.c "${data[@]}" --model-dir members3 --epochs 4 --shards 2 --device cpu:0,cpu:1,cpu:2
same_variables members members3 24
ok predict members "${files[@]}"
cp out alone
ok predict members "${files[@]}" --device cpu:0,cpu:1,cpu:2
cmp alone out || fail 'devices change the predictions of an ensemble'
# Exported, its nodes name these devices, on which a list places them.
ok export members --out models/members
ok run models/members --input sequence.npy --json
cp out alone
ok run models/members --input sequence.npy --json --device cpu:0,cpu:1,cpu:2 --log-device-placement
cmp alone out || fail 'devices change the answers of a SavedModel'
warns 'dense_5/kernel: (parameter): /job:localhost/replica:0/task:0/device:CPU:2'
[ "$(grep ': (MatMul): .*:CPU:2$' err | sort -u | wc -l)" = 2 ] || fail 'the last member is not on its device'
ok run models/members --input sequence.npy --json --device cpu,cpu
cmp alone out || fail 'soft placement changes the answers of a SavedModel'
fails 1 run models/members --input sequence.npy --device cpu,cpu --no-soft-device-placement
warns 'is to run on /device:CPU:2, which is not there'
fails 1 run models/members --input sequence.npy --device cpu,cpu --replicas 2
warns 'give one or the other'
fails 1 run models/members --input sequence.npy --device cpu:0,cpu:2
ok predict --model models/members/1 --data sequence.npy --out placed --device cpu,cpu,cpu
ok predict --model models/members/1 --data sequence.npy --out whole
diff -r placed whole >&2 || fail 'devices change the predictions of a SavedModel'
# The strategy by its name.
ok train "$model" "${data[@]}" --model-dir named --epochs 2 --threads 2 --device cpu,cpu --strategy placed
same_variables free named 12
# What is not recorded is said.
ok profile "$model" "${files[@]}" --batch-size 16 --device cpu,cpu --steps 3
says 'no times of operators: several devices (/device:CPU:0, /device:CPU:1) do not record operations; profile the program on one of them'
# No scope, no use of a second device.
ok train mlp --data 'generated:digits?n=64' --model-dir plain --max-steps 1 --device cpu,cpu
warns 'the program names no devices (sx_device_scope_begin, or tf.device in a SavedModel): all of it runs on /job:localhost/replica:0/task:0/device:CPU:0'

# Where each node runs, in TensorFlow's words.
ok train "$model" "${data[@]}" --model-dir logged --max-steps 1 --device cpu,cpu --log-device-placement
warns 'lstm_1/kernel: (parameter): /job:localhost/replica:0/task:0/device:CPU:1'
grep -q ': (MatMul): /job:localhost/replica:0/task:0/device:CPU:0' err || fail 'no node on the first device'

# The scopes ask for a device that is not there.
ok train "$model" "${data[@]}" --model-dir soft --max-steps 1 --device cpu
fails 1 train "$model" "${data[@]}" --model-dir hard --max-steps 1 --no-soft-device-placement
warns 'is to run on /device:CPU:1, which is not there'
warns 'the devices are /job:localhost/replica:0/task:0/device:CPU:0'
ok train "$model" "${data[@]}" --model-dir hard2 --max-steps 1 --soft-device-placement=false --device cpu:0,cpu:1

refuses() {
    local code=$1 words=$2
    shift 2
    fails "$code" train "$model" "${data[@]}" --model-dir x "$@"
    warns "$words"
}
refuses 2 '"cpu:2" is CPU:1, as devices of a type are numbered in the list'"'"'s order; write CPU:1' --device cpu:0,cpu:2
refuses 2 '"foo" in the device "/foo/cpu:0" is not a part of a device'"'"'s name' --device /foo/cpu:0
refuses 2 'unknown device "gqu"' --device cpu,gqu
refuses 2 'the list of devices "cpu,cpu" places a program on devices' --device cpu,cpu --virtual-devices 2
refuses 2 'inter_op places a program on devices by the scopes of its model, and replicas shares batches' --inter-op 2 --replicas 2
refuses 1 'micro_batches (--micro-batches) is 6, which does not divide a training batch of 16 examples: the nearest that do are 4 and 8' --micro-batches 6 --device cpu,cpu
refuses 1 'the nearest that do are 16 and 16' --micro-batches 64 --device cpu,cpu
refuses 2 'cross_device_ops reduction-to-one-device is how replicas add their gradients' --device cpu,cpu --all-reduce reduction-to-one-device
refuses 1 'shards is 4, but micro_batches is 2' --device cpu,cpu --micro-batches 2 --shards 4
refuses 1 'memory_limit_bytes (--memory-limit) is of cpu; host,host has no limit of memory' --device host,host --memory-limit 1G
refuses 5 'would exceed the memory limit of /job:localhost/replica:0/task:0/device:CPU:' --device cpu,cpu --memory-limit 100K
warns 'for /job:localhost/replica:0/task:0/device:CPU:'
# Each cpu has so much memory.
ok train "$model" "${data[@]}" --model-dir limited --epochs 2 --threads 2 --device cpu,cpu --memory-limit 64M
same_variables free limited 12
