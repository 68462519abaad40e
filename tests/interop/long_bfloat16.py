"""Accuracy under the bfloat16 policy: mnist_cnn, three seeds, within 0.3 points of float32's mean.

Real digits where SEXTANT_DATA has them, else drawn ones.
"""
import json
import os
import subprocess
import tempfile

SEXTANT, DATA = os.environ["SEXTANT_BIN"], os.environ.get("SEXTANT_DATA")
EPOCHS, SEEDS, POINTS = 4, (1, 2, 3), 0.003


def data(part, drawn):
    if DATA is None:
        return [drawn]
    names = (f"{part}-images-idx3-ubyte.gz", f"{part}-labels-idx1-ubyte.gz")
    return [os.path.join(DATA, "mnist", name) for name in names]


TRAIN, TEST = data("train", "generated:digits?n=20000"), data("t10k", "generated:digits?n=5000&seed=9")


def sextant(*words):
    return subprocess.run([SEXTANT, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def score(precision, seed):
    with tempfile.TemporaryDirectory() as run:
        sextant("train", "mnist_cnn", "--data", *TRAIN, "--model-dir", run, "--epochs", str(EPOCHS),
                "--batch-size", "128", "--seed", str(seed), "--precision", precision)
        return json.loads(sextant("evaluate", run, "--data", *TEST, "--json"))["accuracy"]


means = {}
for precision in ("float32", "bfloat16"):
    scores = [score(precision, seed) for seed in SEEDS]
    means[precision] = sum(scores) / len(scores)
    print(f"{precision}: {' '.join(f'{s:.4f}' for s in scores)}  mean {means[precision]:.4f}", flush=True)
assert abs(means["float32"] - means["bfloat16"]) <= POINTS, means
