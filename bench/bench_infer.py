"""Inference beside TensorFlow, at batch 1: models of keras.applications with random weights, an LSTM,
a GRU and a transformer, each exported as a SavedModel that both sides load. Rounds alternate; of each
side the least time of a run is reported, by the clock and of processors, which a busy machine hurts
least, and the median of the rounds' ratios. All processors, or THREADS. MODELS="MobileNetV2 lstm" runs those alone.

Bound by the convolutions (see bench/README.md); goal: 1.0 of TensorFlow's speed for each."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import keras
import numpy as np
import tensorflow as tf

ROUNDS = int(os.environ.get("ROUNDS", "7"))
SECONDS = 0.5  # of a round, for each side
layers = keras.layers


def recurrent(kind):
    x = inputs = keras.Input((32, 64))
    x = kind(128, return_sequences=True)(x)
    return keras.Model(inputs, layers.Dense(10, activation="softmax")(kind(128)(x)))


def transformer():
    x = inputs = keras.Input((128, 256))
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(8, 32)(x, x))
        hidden = layers.Dense(1024, activation="gelu")(x)
        x = layers.LayerNormalization()(x + layers.Dense(256)(hidden))
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))


def application(name):
    return lambda: getattr(keras.applications, name)(weights=None)


MODELS = {name: application(name)
          for name in ("MobileNetV2", "EfficientNetB0", "ResNet50", "DenseNet121", "InceptionV3",
                       "Xception", "NASNetMobile")}
MODELS.update(lstm=lambda: recurrent(layers.LSTM), gru=lambda: recurrent(layers.GRU),
              transformer=transformer)


class Ours:
    def __init__(self, path):
        program = os.path.join(os.environ["SEXTANT_BUILD"], "bench", "bench_infer")
        self.process = subprocess.Popen([program, path, "1", "--serve"], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n"
        self.runs = 1  # at a time: as many as take 30 ms, so that each finds the last one's caches
        self.runs = max(1, int(0.03 / min(self.run()[0] for _ in range(3))))

    def run(self):
        self.process.stdin.write(f"{self.runs}\n")
        self.process.stdin.flush()
        return [float(x) / self.runs for x in self.process.stdout.readline().split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Peer:
    def __init__(self, path):
        self.model = tf.saved_model.load(path)
        self.signature = self.model.signatures["serving_default"]
        (name, spec), = self.signature.structured_input_signature[1].items()
        self.feeds = {name: tf.constant(np.random.rand(1, *spec.shape[1:]).astype("float32"))}
        self.run()

    def run(self):
        start, cpu = time.perf_counter(), time.process_time()
        for output in self.signature(**self.feeds).values():
            output.numpy()
        return time.perf_counter() - start, time.process_time() - cpu


def measure(side):
    times, end = [], time.perf_counter() + SECONDS
    while len(times) < 3 or time.perf_counter() < end:
        times.append(side.run())
    return min(t for t, _ in times), min(cpu for _, cpu in times)


def main():
    threads = int(os.environ.get("THREADS", "0"))
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    wanted = os.environ.get("MODELS", " ".join(MODELS)).split()
    with tempfile.TemporaryDirectory() as directory:
        for name in wanted:
            path = os.path.join(directory, name)
            MODELS[name]().export(path, verbose=False)
            keras.backend.clear_session()
            ours, peer, rounds = Ours(path), Peer(path), []
            for _ in range(ROUNDS):
                rounds.append((measure(ours), measure(peer)))
            ours.close()
            for i, what in enumerate(("by the clock", "of processors")):
                ratios = sorted(b[i] / a[i] for a, b in rounds)
                print(f"infer {name:<14} {what:<13} {min(a[i] for a, _ in rounds) * 1e3:8.2f} ms, "
                      f"TensorFlow {min(b[i] for _, b in rounds) * 1e3:8.2f} ms; ratio "
                      f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} … {ratios[-1]:.2f})",
                      flush=True)


if __name__ == "__main__":
    sys.exit(main())
