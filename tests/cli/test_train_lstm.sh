#!/usr/bin/env bash
# The example lstm.c, a model built of functions: with --shards, the weights are the same on any number
# of threads; a run is continued, evaluated and exported.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/runs.sh"
model=$SEXTANT_SRC/examples/lstm.c
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
data=(--data sequence.npy,kind.npy --batch-size 16 --seed 3)
ok train "$model" "${data[@]}" --model-dir one --epochs 8 --shards 4 --threads 1
ok train "$model" "${data[@]}" --model-dir two --max-steps 20 --shards 4 --threads 2
ok train "$model" "${data[@]}" --model-dir two --epochs 8 --shards 4 --threads 2
says 'Resuming'
same_variables one two 48
ok evaluate one --data sequence.npy,kind.npy --json
python3 -c 'import json,sys; sys.exit(json.load(open("out"))["accuracy"] < 0.9)' || fail 'it has not learned'
ok export one --out models/lstm
ok show models/lstm/1 --all
says 'sequence'
