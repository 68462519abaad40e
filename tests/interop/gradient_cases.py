"""Gradients of imported functions against TensorFlow's (gradient_tool.c), for the scripts that have them in rows."""
import os
import subprocess
import tempfile

import numpy as np
import tensorflow as tf

TOOL = os.path.join(os.environ["SEXTANT_TEST_BIN"], "gradient_tool")
BATCH = 12  # functions of one SavedModel: the tool takes 16


def expected(function, values, dy, variables):
    """The gradients of those of `values` that are floats, and of the variables."""
    with tf.GradientTape() as tape:
        tensors = [tf.constant(v) for v in values]
        floats = [t for t in tensors if t.dtype.is_floating]
        tape.watch(floats)
        y = function(*tensors)["y"]
    gradients = tape.gradient(y, floats + variables, output_gradients=tf.constant(dy), unconnected_gradients="zero")
    return [tf.convert_to_tensor(g).numpy() for g in gradients]


def check(model, values, rng, tolerance, options=None, variables=(), again=False, same={}):
    """model.functions: name -> function of values[name] that gives {"y": ...}. A gradient may be off by
    tolerance(TensorFlow's, all of that function's). `variables`: all of the model, whose gradients are compared, too. `again`: the imported model is exported
    and read back before. `same`: name -> a function with the same gradients, where TensorFlow cannot compute them. Returns what is wrong, by name."""
    wrong, wanted = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        for name, function in model.functions.items():
            dy = rng.normal(size=function(*values[name])["y"].shape).astype(np.float32)
            known = (lambda *a, f=same[name]: {"y": f(*a)}) if name in same else function
            wanted[name] = expected(known, values[name], dy, list(variables))
            for i, v in enumerate([*values[name], dy]):
                np.save(os.path.join(folder, f"{name}.{i}.npy"), v)
        tf.saved_model.save(model, path, signatures=model.functions, options=options)
        done = subprocess.run([TOOL, path, folder, "cpu", "variables" if variables else "again" if again else "first"], capture_output=True, text=True)
        if done.returncode != 0:
            return {name: done.stderr for name in wanted}
        for name, gradients in wanted.items():
            error = os.path.join(folder, f"{name}.error")
            if os.path.exists(error):
                wrong[name] = open(error).read()
                continue
            for i, theirs in enumerate(gradients):
                ours = np.load(os.path.join(folder, f"{name}.first.{i}.npy"))
                off = np.abs(ours - theirs).max() if ours.shape == theirs.shape else np.inf
                if not off <= tolerance(theirs, gradients):
                    wrong[name] = f"gradient {i} is off by {off:.2e}, its largest value {np.abs(theirs).max():.2e}"
    return wrong


def report(what, names, wrong, gaps):
    """Prints what is wrong of `names`, and fails unless that are the listed gaps: name -> text of the error."""
    for name, text in wrong.items():
        print(f"{name}: {'GAP: ' if gaps.get(name, ' none ') in text else ''}{text[:400]}")
    unlisted = [n for n, text in wrong.items() if gaps.get(n, " none ") not in text]
    print(f"{len(names) - len(wrong)} {what} have TensorFlow's gradients; {len(wrong) - len(unlisted)} listed gaps")
    assert not unlisted, unlisted
    closed = [n for n in gaps if n in names and n not in wrong]
    assert not closed, f"no gaps any more, take them from the list: {closed}"
