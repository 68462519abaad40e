"""ResNet-50's SavedModel, from loading to the first answer at batch 1, beside TensorFlow: ours in a new process
each time, its start included; theirs tf.saved_model.load and a call, TensorFlow being imported already. Times by
the clock and of processors; ratios are TensorFlow's / Sextant's, median (least). Then our first answer beside a
later one. Ours is bound by reading 100 MB of weights and packing filters.

Goals: 10; the first answer at most 1.3 times a later one. DIR=path uses a model that lies there."""
import os
import statistics
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("SEXTANT_TEST_BIN", os.path.join(os.environ["SEXTANT_BUILD"], "tests"))
sys.path.insert(0, os.path.join(os.environ["SEXTANT_SRC"], "tests", "interop"))
import keras
import numpy as np
import resource
import tensorflow as tf

from corpus import check

ROUNDS = int(os.environ.get("ROUNDS", "5"))


def ours(path, feed):
    """(load and first answer by the clock, of processors), (first answer, later answer) by both."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    tool = check.Tool(path, "serve")
    first = tool.time("serving_default", feed, 1)
    clock = time.perf_counter() - start
    answers = [tool.time("serving_default", feed, 1) for _ in range(5)]
    tool.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime - sum(a[1] for a in answers)
    return (clock, cpu), (first, [min(times) for times in zip(*answers)])


def theirs(path, feed):
    start, cpu = time.perf_counter(), time.process_time()
    model = tf.saved_model.load(path)
    for y in model.signatures["serving_default"](**{k: tf.constant(v) for k, v in feed.items()}).values():
        y.numpy()
    return time.perf_counter() - start, time.process_time() - cpu


def main():
    tf.get_logger().setLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        path = os.environ.get("DIR", os.path.join(folder, "resnet50"))
        if not os.path.exists(path):
            keras.applications.ResNet50(weights=None).export(path, verbose=False)
        (name, spec), = tf.saved_model.load(path).signatures["serving_default"].structured_input_signature[1].items()
        feed = {name: np.random.default_rng(1).random((1, *spec.shape[1:]), dtype=np.float32)}
        rounds = [(ours(path, feed), theirs(path, feed)) for _ in range(ROUNDS)]
        for i, what in enumerate(("by the clock", "of processors")):
            ratios = sorted(t[i] / o[0][i] for o, t in rounds)
            print(f"load to the first answer, {what}: {min(o[0][i] for o, _ in rounds) * 1e3:.0f} ms, TensorFlow "
                  f"{min(t[i] for _, t in rounds) * 1e3:.0f} ms; ratio {statistics.median(ratios):.1f} ({ratios[0]:.1f})")
            firsts = sorted(o[1][0][i] / o[1][1][i] for o, _ in rounds)
            print(f"first answer, {what}: {min(o[1][0][i] for o, _ in rounds) * 1e3:.0f} ms, a later one "
                  f"{min(o[1][1][i] for o, _ in rounds) * 1e3:.0f} ms; {statistics.median(firsts):.2f} times ({firsts[0]:.2f})")


if __name__ == "__main__":
    sys.exit(main())
