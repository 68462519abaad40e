#!/usr/bin/env bash
# run, serve --precision int8: answers as in float32 but for little, and what is said of it.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/server.sh"
limit=60
ok train mnist_cnn --data 'generated:digits?n=6000&seed=1' --model-dir run --steps 300
ok export run --out m
ok data take 'generated:digits?n=500&seed=2' --size 28 --channels 1 --count 500 --out x.npy --labels y.npy
# Data, for a signature that takes encoded images; its accuracy is within a percent of float32's.
ok run m --input x.npy --precision int8 --calibration 'generated:digits?n=500&seed=3' --json
warns 'int8: 1 of 3 products, calibrated with 256 examples of serving_default'
mv out int8
python3 - <<'PY' || fail 'accuracy'
import re
text = open("err").read()
int8, float32 = map(float, re.search(r"accuracy ([0-9.]+) %, in float32 ([0-9.]+) %", text).groups())
assert float32 > 90 and abs(int8 - float32) <= 1, text
agreement = float(re.search(r"the same answer as float32 for ([0-9.]+) %", text).group(1))
assert agreement >= 99, text
PY
# The other signature, which takes pixels, has become the same.
ok run m --input x.npy --json
python3 - <<'PY' || fail 'int8 differs too much from float32, or not at all'
import json
rows = [json.load(open(name))["predictions"] for name in ("out", "int8")]
assert len(rows[0]) == len(rows[1]) == 500
off = [max(abs(p - q) for p, q in zip(a["probabilities"], b["probabilities"])) for a, b in zip(*rows)]
assert 0 < max(off) < 0.1, max(off)
assert sum(a["class"] == b["class"] for a, b in zip(*rows)) >= 495
PY
# Arrays; fewer of them; no labels, so no accuracy.
ok run m --input x.npy --precision int8 --calibration x.npy --calibration-examples 20
warns 'calibrated with 20 examples of tensors'
warns_not accuracy
ok run m --input x.npy --precision int8 --calibration image=x.npy --signature tensors
warns 'calibrated with 256 examples of tensors'
ok run m --input x.npy --precision float32
quiet
# bfloat16 needs no examples. A processor that is no faster at it computes in float32, and says so.
ok run m --input x.npy --json
mv out float32
ok run m --input x.npy --precision bfloat16 --json
if grep -q 'no faster than float32' err; then
    cmp float32 out || fail 'not the bits of float32'
fi
SEXTANT_CPU_BF16=1 ok run m --input x.npy --precision bfloat16 --json
python3 - <<'PY' || fail 'bfloat16 differs too much from float32'
import json
rows = [json.load(open(name))["predictions"] for name in ("out", "float32")]
off = [max(abs(p - q) for p, q in zip(a["probabilities"], b["probabilities"])) for a, b in zip(*rows)]
fast = "no faster" not in open("err").read()
assert max(off) < 0.03 and fast == (max(off) > 0), max(off)
PY
fails 2 run m --input x.npy --precision bfloat16 --calibration x.npy
warns '--calibration is for --precision int8'
# The server.
start default --model_base_path="$PWD/m" --precision=int8 --calibration="generated:digits?n=300&seed=3" \
    --calibration_examples=100
grep -q 'int8: 1 of 3 products, calibrated with 100 examples of serving_default' serve.err || fail 'report'
ok query "$url" --input x.npy --signature tensors
stop
# Wrong options and examples.
fails 2 run m --input x.npy --precision int8
warns 'give --calibration'
fails 2 run m --input x.npy --calibration x.npy
warns '--calibration is for --precision int8'
fails 2 run m --input x.npy --precision int4 --calibration x.npy
fails 2 serve --model_base_path m --precision int8
fails 1 run m --input x.npy --precision int8 --calibration missing.npy
warns 'missing.npy'
fails 1 run m --input x.npy --precision int8 --calibration nothing
warns 'nothing'
fails 1 run m --input x.npy --precision int8 --calibration y.npy
warns 'the calibration: input "image" is'
warns 'expected float32[N,28,28,1]'
fails 1 run m --input x.npy --precision int8 --calibration picture=x.npy
warns 'input "image" of signature tensors is missing; give image=X.npy'
fails 1 run m --input x.npy --signature tensors --precision int8 --calibration 'generated:digits?n=9'
warns 'the signature takes arrays'
python3 - <<'PY'
def header(shape):
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    text += " " * (117 - len(text)) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
open("empty.npy", "wb").write(header((0, 28, 28, 1)))
open("nan.npy", "wb").write(header((1, 28, 28, 1)) + b"\0\0\xc0\x7f" * 784)
PY
fails 1 run m --input x.npy --precision int8 --calibration empty.npy
warns 'the calibration has no examples'
fails 1 run m --input x.npy --precision int8 --calibration nan.npy
warns 'has values that are not finite'
# The only product of a model is quantized.
ok train linear --data 'generated:digits?n=200' --model-dir line --steps 2
ok export line --out lines
ok run lines --input x.npy --precision int8 --calibration x.npy
warns 'int8: 1 of 1 products'
