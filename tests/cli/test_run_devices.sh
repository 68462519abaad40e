#!/usr/bin/env bash
# run and serve compute on any device that train takes, under the same names: over XLA's CPU plugin.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/pjrt.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
. "$SEXTANT_SRC/tests/cli/server.sh"
photos 3
ok train mnist_cnn --data photos --model-dir run --steps 2 -- --num_classes 3
ok export run --out models/m
ok data take photos --size 28 --channels 1 --count 5 --out x.npy
ok run models/m/1 --signature tensors --input x.npy --json --device host
mv out expected
close() { # FILE: the predictions in it are those of the host's kernels
    python3 - "$1" <<'PY' || fail 'devices differ'
import json, sys
rows = [json.load(open(name))["predictions"] for name in ("expected", sys.argv[1])]
for a, b in zip(*rows, strict=True):
    assert a["classid"] == b["classid"]
    for p, q in zip(a["probabilities"], b["probabilities"]):
        assert abs(p - q) < 1e-5
PY
}
for device in pjrt:cpu pjrt:cpu:1 /cpu:0; do
    ok run models/m/1 --signature tensors --input x.npy --json --device "$device"
    close out
done
(
    unset PJRT_NAMES_AND_LIBRARY_PATHS VIRTUAL_ENV
    ok run models/m/1 --signature tensors --input x.npy --json --device pjrt --pjrt-plugin "$SEXTANT_PJRT_PLUGIN"
)
close out
# Pieces of a batch, of 64 examples, are divided among several devices, with the bits of one and in
# order; XLA's CPU has as many threads as devices, four. Virtual devices of cpu are its threads.
ok data take 'generated:digits?n=200' --size 28 --channels 1 --count 200 --out many.npy
ok run models/m/1 --signature tensors --input many.npy --json --device pjrt:cpu
mv out one
for words in '--devices cpu:3,cpu:1,cpu:0' '--replicas 4'; do
    ok run models/m/1 --signature tensors --input many.npy --json --device pjrt:cpu $words
    cmp out one || fail "$words changes answers"
done
ok run models/m/1 --signature tensors --input many.npy --json --device cpu
mv out one
for words in '--virtual-devices 4' '--devices cpu:0,cpu:1,cpu:2'; do
    ok run models/m/1 --signature tensors --input many.npy --json --device cpu $words
    cmp out one || fail "$words changes answers"
done
start m --model_name=m --model_base_path="$PWD/models/m" --device pjrt:cpu:4
for n in 1 2; do
    ok query "$url" --signature tensors --input x.npy --json
    close out
done
stop
for devices in pjrt:cpu cpu,cpu; do # on a list, all of a model that names no device is on the first
    start m --model_name=m --model_base_path="$PWD/models/m" --device "$devices"
    ok query "$url" --signature tensors --input x.npy --json
    close out
    stop
done

fails 1 run models/m/1 --input x.npy --device pjrt:cpu:2 --replicas 3
warns 'but the number of devices in its name is 2'
fails 2 run models/m/1 --input x.npy --device pjrtcpu
warns 'unknown device "pjrtcpu"'
fails 2 serve --model_name=m --model_base_path="$PWD/models/m" --device cup
warns 'did you mean "cpu"?'
fails 6 run models/m/1 --input x.npy --device cuda
warns 'pip install jax-cuda13-pjrt'
fails 1 run models/m/1 --input x.npy --pjrt-plugin "$SEXTANT_PJRT_PLUGIN" --device cpu
warns 'is only for PJRT devices'
