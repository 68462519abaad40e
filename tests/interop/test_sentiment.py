"""examples/sentiment.c: from sentences to classes by a vocabulary, labels by name. TensorFlow runs the exported
model on strings and gives what our evaluation and our predictor give; without the vocabulary's first file."""
import csv
import json
import os
import shutil
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
        subprocess.run([sys.executable, f"{SOURCE}/examples/sentiment_csv.py", "data"], check=True)
        train = ["train", f"{SOURCE}/examples/sentiment.c", "--data", "data/train.csv", "--model-dir"]
        sextant(*train, "run", "--epochs", "4", "--seed", "3", "--", "--vocabulary", "data/words.txt")
        os.rename("data/words.txt", "words.moved")  # it is part of the run
        ours = json.loads(sextant("evaluate", "run", "--data", "data/val.csv", "--json"))
        assert ours["accuracy"] > 0.95, ours

        sextant("export", "run", "--out", "model")
        assets = os.listdir("model/1/assets")
        assert len(assets) == 1, assets  # the labels' names are not served
        assert open(f"model/1/assets/{assets[0]}").read() == open("words.moved").read()
        shutil.move("model/1", "elsewhere")  # assets are found beside the model
        rows = list(csv.DictReader(open("data/val.csv")))
        texts = [r["text"] for r in rows] + ["", "   ", "ZANZIBAR", "good " * 20]
        loaded = tf.saved_model.load("elsewhere")
        served = loaded.signatures["serving_default"]
        assert served.structured_input_signature[1]["text"].dtype == tf.string
        theirs = {k: v.numpy() for k, v in served(text=tf.constant(texts)).items()}
        labels = np.array([["bad", "good"].index(r["mood"]) for r in rows])
        each = -np.log(theirs["probabilities"][np.arange(len(rows)), labels].astype(np.float64))
        assert abs(ours["loss"] - each.mean()) < 1e-5, (ours, each.mean())
        assert (theirs["classid"][: len(rows)] == labels).mean() > 0.95

        # TensorFlow 1's loader runs the initialization, too
        with tf.compat.v1.Session(graph=tf.Graph()) as session:
            meta = tf.compat.v1.saved_model.load(session, ["serve"], "elsewhere")
            s = meta.signature_def["serving_default"]
            again = session.run(s.outputs["probabilities"].name, {s.inputs["text"].name: texts})
        np.testing.assert_array_equal(again, theirs["probabilities"])

        # our predictor: the same from the exported model
        np.savez("in.npz", text=np.array([t.encode() for t in texts]))
        sextant("run", "elsewhere", "--inputs", "text=in.npz[text]", "--outdir", "out")
        np.testing.assert_allclose(np.load("out/probabilities.npy"), theirs["probabilities"], atol=1e-6)
        np.testing.assert_array_equal(np.load("out/classid.npy"), theirs["classid"])

        # a label that no class has is refused by its number
        with open("odd.csv", "w") as f:
            f.write("text,mood\nfine,neither\n")
        done = subprocess.run([os.environ["SEXTANT_BIN"], "evaluate", "run", "--data", "odd.csv"],
                              capture_output=True, text=True)
        assert done.returncode != 0 and "-1" in done.stderr, done.stderr
        print(f"loss {ours['loss']:.6f}, TensorFlow's {each.mean():.6f}; accuracy {ours['accuracy']:.3f}")


main()
