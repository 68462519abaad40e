"""examples/census.c: strings in, the same probabilities from TensorFlow, from our evaluation and from our
predictor; hashes, cases of letters and defaults of empty fields included."""
import csv
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf

from program import sextant

SOURCE = os.environ["SEXTANT_SRC"]


def main():
    with tempfile.TemporaryDirectory() as here:
        os.chdir(here)
        os.environ["XDG_CACHE_HOME"] = here
        subprocess.run([sys.executable, f"{SOURCE}/examples/census_csv.py", "data"], check=True)
        sextant("train", f"{SOURCE}/examples/census.c", "--data", "data/train.csv", "--model-dir", "run",
                "--epochs", "2", "--seed", "3")
        sextant("export", "run", "--out", "model")
        rows = list(csv.DictReader(open("data/val.csv")))
        floats = lambda key, otherwise=None: np.array([float(r[key] or otherwise) for r in rows], np.float32)
        features = {"age": floats("age"), "gain": floats("gain", 0), "hours": floats("hours", 40),
                    "education": np.array([r["education"].encode() for r in rows]),
                    "job": np.array([(r["job"] or "unknown").encode() for r in rows])}
        labels, weights = floats("rich").astype(int), floats("weight").astype(np.float64)
        served = tf.saved_model.load("model/1").signatures["serving_default"]
        theirs = served(**{k: tf.constant(v) for k, v in features.items()})["probabilities"].numpy()
        each = -np.log(theirs[np.arange(len(rows)), labels].astype(np.float64))
        ours = json.loads(sextant("evaluate", "run", "--data", "data/val.csv", "--json"))
        loss = np.sum(each * weights) / np.sum(weights)
        assert abs(ours["loss"] - loss) < 1e-5, (ours, loss)
        assert ours["accuracy"] > 0.7, ours
        shapes = {k: (v.dtype.name, v.shape.as_list()) for k, v in served.structured_input_signature[1].items()}
        assert shapes["education"] == ("string", [None]) and shapes["age"] == ("float32", [None]), shapes
        print(f"loss {ours['loss']:.6f}, TensorFlow's {loss:.6f}; accuracy {ours['accuracy']:.3f}")


main()
