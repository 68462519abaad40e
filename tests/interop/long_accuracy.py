"""Accuracy of what `sextant train` trains, on real data (SEXTANT_DATA).

    mnist      mean of 3 seeds after 12 epochs: at least 99.0 % of the 10,000 test digits
    flowers    mean of 5 seeds: not below Keras' mean by more than two standard errors
    catsdogs   the same; Keras' scores are in keras_accuracy.json, made by keras_accuracy.py

usage: long_accuracy.py [mnist|flowers|catsdogs ...]
"""
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SEXTANT, DATA = os.environ["SEXTANT_BIN"], os.environ.get("SEXTANT_DATA")
SKIPPED = 77


def sextant(*words):
    return subprocess.run([SEXTANT, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def score(model, train, test, epochs, batch, seed):
    with tempfile.TemporaryDirectory() as run:
        sextant("train", model, "--data", *train, "--model-dir", run, "--epochs", str(epochs),
                "--batch-size", str(batch), "--seed", str(seed), "--save-checkpoints-secs", "3600")
        return json.loads(sextant("evaluate", run, "--data", *test, "--json"))["accuracy"]


def mean_and_error(scores):
    mean = sum(scores) / len(scores)
    spread = math.sqrt(sum((s - mean) ** 2 for s in scores) / (len(scores) - 1))
    return mean, spread / math.sqrt(len(scores))


def report(task, scores):
    mean, error = mean_and_error(scores)
    print(f"{task}: {' '.join(f'{s:.4f}' for s in scores)}  mean {mean:.4f}, standard error {error:.4f}",
          flush=True)
    return mean, error


def mnist():
    folder = os.path.join(DATA, "mnist")
    pair = lambda part: [os.path.join(folder, f"{part}-images-idx3-ubyte.gz"),
                         os.path.join(folder, f"{part}-labels-idx1-ubyte.gz")]
    scores = [score("mnist_cnn", pair("train"), pair("t10k"), 12, 128, seed) for seed in (1, 2, 3)]
    mean, _ = report("mnist", scores)
    assert mean >= 0.990, mean


def photographs(task, model):
    recorded = json.load(open(os.path.join(HERE, "keras_accuracy.json")))[task]
    keras_mean, keras_error = mean_and_error(list(recorded["accuracy"].values()))
    folder = os.path.join(DATA, task)
    scores = [score(model, [os.path.join(folder, "train.tar")], [os.path.join(folder, "val.tar")],
                    recorded["epochs"], 32, seed) for seed in range(1, 6)]
    mean, error = report(task, scores)
    print(f"{task}: Keras' mean {keras_mean:.4f}, standard error {keras_error:.4f}", flush=True)
    assert mean >= keras_mean - 2 * math.hypot(error, keras_error), (mean, keras_mean)


TASKS = {
    "mnist": mnist,
    "flowers": lambda: photographs("flowers", "flowers_cnn"),
    "catsdogs": lambda: photographs("catsdogs", "catsdogs_cnn"),
}

if DATA is None:
    print("SKIP: SEXTANT_DATA is not set: accuracy is measured on real data")
    sys.exit(SKIPPED)
for name in sys.argv[1:] or TASKS:
    TASKS[name]()
