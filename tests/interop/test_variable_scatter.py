"""Scattering into variables and gathering from them, of both kinds, against TensorFlow: a model's calls, one after
another, which each change its variables; and random numbers, whose state each call leaves behind for the next."""
import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # TensorFlow's own kernels
import numpy as np
import tensorflow as tf

from corpus.check import Refused, Tool

raw = tf.raw_ops
ROWS = tf.TensorSpec([None, 3], tf.float32, "u")


class Scattering(tf.Module):
    def __init__(self, how, slices):
        super().__init__()
        self.v = tf.Variable(np.arange(15, dtype=np.float32).reshape(5, 3))
        self.op = getattr(raw, f"ResourceScatter{'Nd' if slices else ''}{how}")
        self.slices = slices

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, "i"), ROWS])
    def f(self, i, u):
        if self.slices:
            self.op(ref=self.v.handle, indices=i[:, tf.newaxis], updates=u)
        else:
            self.op(resource=self.v.handle, indices=i, updates=u)
            self.op(resource=self.v.handle, indices=i[:1], updates=3.5)
        return {"v": self.v.read_value(), "g": raw.ResourceGatherNd(resource=self.v.handle, indices=i[:, tf.newaxis], dtype=tf.float32)}


class Drawing(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, "i"), ROWS])
    def f(self, i, u):
        return {"a": tf.random.uniform([3], seed=1), "b": raw.RandomStandardNormal(shape=tf.shape(u), dtype=tf.float32, seed=5, seed2=6),
                "c": raw.RandomShuffle(value=u, seed=7, seed2=8), "d": u + tf.cast(i[:, tf.newaxis], tf.float32)}


class Steps(tf.Module):
    """A sparse step, in which TensorFlow updates a row twice that occurs twice; Sextant refuses that."""

    def __init__(self):
        super().__init__()
        self.v = tf.Variable(np.arange(15, dtype=np.float32).reshape(5, 3))
        self.a = tf.Variable(np.ones((5, 3), np.float32))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, "i"), ROWS])
    def f(self, i, u):
        raw.ResourceSparseApplyAdagrad(var=self.v.handle, accum=self.a.handle, lr=0.1, grad=u, indices=i)
        return {"v": self.v.read_value(), "a": self.a.read_value()}


def check(name, module, feeds, failures, refused_feeds=()):
    with tempfile.TemporaryDirectory(prefix="sextant-scatter-") as tmp:
        tf.random.set_seed(3)
        tf.saved_model.save(module, tmp, signatures=module.f)
        theirs, ours = tf.saved_model.load(tmp).signatures["serving_default"], Tool(tmp, "serve")
        for k, (i, u) in enumerate(feeds):
            i, u = np.int32(i), np.float32(u)
            try:
                expected = {key: y.numpy() for key, y in theirs(i=tf.constant(i), u=tf.constant(u)).items()}
            except tf.errors.InvalidArgumentError:
                expected = None
            try:
                got = ours.run("serving_default", {"i": i, "u": u})
            except Refused as refused:
                if expected is not None:
                    failures.append(f"{name}, call {k}: {refused}")
                continue
            if expected is None:
                failures.append(f"{name}, call {k}: TensorFlow refuses it")
                continue
            for key, y in expected.items():
                if not np.allclose(got[key], y, 1e-6, 1e-6):
                    failures.append(f"{name}, call {k}, {key}: {got[key]}, TensorFlow {y}")
        for i, u, why in refused_feeds:
            try:
                ours.run("serving_default", {"i": np.int32(i), "u": np.float32(u)})
                failures.append(f"{name}: {i} is not refused")
            except Refused as refused:
                if why not in str(refused):
                    failures.append(f"{name}: {i} is refused with {refused}, expected {why}")


def main():
    failures = []
    rng = np.random.default_rng(1)
    feeds = [([0, 2], rng.normal(size=(2, 3))), ([4, 4, 1], rng.normal(size=(3, 3))), ([3], rng.normal(size=(1, 3)))]
    for slices in (False, True):
        for how in ("Update", "Add", "Sub", "Min", "Max") + (() if slices else ("Mul", "Div")):
            check(f"{how}{' of slices' if slices else ''}", Scattering(how, slices), feeds, failures)
    check("outside", Scattering("Add", False), [*feeds, ([5], np.ones((1, 3)))], failures)
    check("sparse step", Steps(), [([0, 2], np.ones((2, 3))), ([], np.ones((0, 3))), ([4, 1, 0], np.ones((3, 3))), ([5], np.ones((1, 3)))],
          failures, [([1, 1], np.ones((2, 3)), "an index occurs more than once"), ([5], np.ones((1, 3)), "5")])
    check("random numbers", Drawing(), feeds, failures)
    for failure in failures:
        print(f"FAIL {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
