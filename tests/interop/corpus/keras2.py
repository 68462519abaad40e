"""What TensorFlow 2.15 writes: Keras 2 and tf.estimator, made by keras2_models.py in the venv of `tools/peers keras2`."""
import os
import shutil
import subprocess
import tempfile

import numpy as np

from corpus import keras2_models
from corpus.rows import DEEP, add

made = None


def take(name, path):
    """All are made at once: the start of TensorFlow takes longer than a model."""
    global made
    if made is None:
        made = tempfile.TemporaryDirectory()
        tools = os.path.join(os.environ["SEXTANT_SRC"], "tools")
        python = subprocess.run([os.path.join(tools, "peers"), "keras2"], check=True, capture_output=True, text=True).stdout.strip()
        subprocess.run([python, keras2_models.__file__, made.name], check=True, capture_output=True)
    shutil.copytree(os.path.join(made.name, name), path)


def columns(rng, n):
    from tensorflow import train
    out = []
    for _ in range(n):
        e = train.Example()
        e.features.feature["age"].float_list.value.append(rng.normal(40, 10))
        e.features.feature["hours"].float_list.value.append(rng.normal(40, 5))
        e.features.feature["job"].bytes_list.value.append(rng.choice([b"a", b"b", b"c", b"zz"]))
        e.features.feature["city"].bytes_list.value.append(rng.choice([b"x", b"y"]))
        out.append(e.SerializeToString())
    return np.array(out, object)


def raw(rng, n):
    return {"age": rng.normal(40, 10, (n, 1)), "hours": rng.normal(40, 5, (n, 1)), "job": rng.choice([b"a", b"b", b"zz"], (n, 1)),
            "city": rng.choice([b"x", b"y"], (n, 1))}


for name, model in keras2_models.MODELS.items():
    feed = {"estimator_raw": raw, "estimator_keras": raw}.get(name, columns if name.startswith("estimator") else getattr(model, "feed", None))
    add(name, lambda path, n=name: take(n, path), feed=feed, **getattr(model, "options", {}))
