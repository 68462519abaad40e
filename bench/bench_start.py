"""From exec to the end of the first training step (mnist_cnn, batch 32, 256 drawn digits; a checkpoint
before and after it), beside a Python process that does the same with Keras. Ours is bound by drawing
the data and by planning; Keras by its imports. Goal: less than 100 ms."""
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = int(os.environ.get("ROUNDS", "7"))

KERAS = """
import keras, numpy as np
from keras import layers
model = keras.Sequential([keras.Input((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"),
    layers.MaxPooling2D(2), layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(2),
    layers.Flatten(), layers.Dropout(0.5), layers.Dense(10)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.train_on_batch(np.zeros((32, 28, 28, 1), "float32"), np.zeros(32, "int32"))
"""


def seconds(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def ours():
    with tempfile.TemporaryDirectory() as run:
        return seconds([os.environ["SEXTANT_BIN"], "train", "mnist_cnn", "--data", "generated:digits?n=256",
                        "--max-steps", "1", "--model-dir", run])


pairs = [(ours(), seconds([sys.executable, "-c", KERAS])) for _ in range(ROUNDS)]
mine, theirs = (statistics.median(column) for column in zip(*pairs))
ratio = statistics.median(k / s for s, k in pairs)
print(f"start to first step: {mine * 1e3:.0f} ms, Keras {theirs:.2f} s, ratio {ratio:.0f}x "
      f"(least {min(k / s for s, k in pairs):.0f}x)")
