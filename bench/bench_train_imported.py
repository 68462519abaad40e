"""Training steps of networks that Keras describes, beside Keras on TensorFlow: an LSTM and a GRU classifier of
sequences, a small transformer, an embedding, MobileNetV2 and EfficientNetB0 at 224x224. Keras' loss is exported as a function of inputs and weights; Sextant
imports that (bench_train saved:DIR), differentiates it and updates the weights with Adam. Keras is taken at its best of train steps as
a tf.function, with and without XLA. Rounds alternate; ratios are Keras' time / Sextant's, median (least).

    bench_train_imported.py [NAME...]     THREADS=1 for one thread a side; BATCH=1; KEEP=DIR keeps the models

Goal: 1.0 by the clock and of processors."""
import os
import statistics
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import keras
import numpy as np
import tensorflow as tf

import networks
import sides

ROUNDS = int(os.environ.get("ROUNDS", "5"))
SECONDS = float(os.environ.get("SECONDS", "0.5"))
BATCH = int(os.environ.get("BATCH", "32"))
layers = keras.layers
MODELS = {"lstm": lambda: networks.recurrent(layers.LSTM), "gru": lambda: networks.recurrent(layers.GRU),
          "transformer": lambda: networks.transformer(128, 4, 64), "embedding": networks.bag_of_words,
          "mobilenetv2": lambda: keras.applications.MobileNetV2(weights=None, classifier_activation=None),
          "efficientnetb0": lambda: keras.applications.EfficientNetB0(weights=None, classifier_activation=None)}


def loss_of(model, x, y, weights, rest):
    logits, _ = model.stateless_call(weights, rest, x, training=True)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)


def export(model, path):
    weights, rest = model.trainable_variables, [tf.constant(v) for v in model.non_trainable_variables]
    specs = [tf.TensorSpec((None, *model.input_shape[1:]), tf.float32, "x"), tf.TensorSpec((None,), tf.int32, "y"),
             *(tf.TensorSpec(w.shape, tf.float32, f"w{i:03}") for i, w in enumerate(weights))]
    module = tf.Module()
    module.loss = tf.function(lambda x, y, *w: {"loss": loss_of(model, x, y, list(w), rest)}, input_signature=specs)
    tf.saved_model.save(module, path, signatures={"loss": module.loss})


class Theirs:
    def __init__(self, model, jit):
        rng = np.random.default_rng(1)
        x = tf.constant(rng.random((BATCH, *model.input_shape[1:]), dtype=np.float32))
        y = tf.constant(rng.integers(0, 10, BATCH).astype(np.int32))
        optimizer = keras.optimizers.Adam()
        optimizer.build(model.trainable_variables)

        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x, training=True)))
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss

        self.call = tf.function(step, jit_compile=jit)

    def seconds(self, steps):
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(steps):
            loss = self.call()
        loss.numpy()
        return time.perf_counter() - start, time.process_time() - cpu


def compare(name, folder):
    keras.utils.set_random_seed(1)
    path = os.path.join(folder, f"train_{name}")
    model = MODELS[name]()
    if not os.path.exists(path):
        export(model, path)
    ours, ways = sides.ours("bench_train", f"saved:{path}", BATCH, "--serve"), {}
    for jit in (False, True):
        try:
            theirs = Theirs(model, jit)
            theirs.seconds(2)
            ways["XLA" if jit else "tf.function"] = theirs
        except Exception as error:  # XLA cannot compile every network
            print(f"    Keras with XLA: {str(error)[:100]}")
    times = {way: min(theirs.seconds(2)[0] for _ in range(3)) for way, theirs in ways.items()}
    way = min(times, key=times.get)
    ours.seconds(3)
    steps = max(1, int(SECONDS / (ours.seconds(2)[0] / 2)))
    steps_there = max(1, int(SECONDS / (times[way] / 2)))
    rounds = [([t / steps for t in ours.seconds(steps)], [t / steps_there for t in ways[way].seconds(steps_there)])
              for _ in range(ROUNDS)]
    ours.close()
    for i, what in enumerate(("by the clock", "of processors")):
        ratios = sorted(b[i] / a[i] for a, b in rounds)
        print(f"train {name:<12} {what:<13} {min(a[i] for a, _ in rounds) * 1e3:8.2f} ms, Keras ({way}) "
              f"{min(b[i] for _, b in rounds) * 1e3:8.2f} ms; ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f})", flush=True)


def main():
    if threads := int(os.environ.get("THREADS", "0")):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or MODELS:
            compare(name, os.environ.get("KEEP", folder))


if __name__ == "__main__":
    sys.exit(main())
