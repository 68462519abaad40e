"""Named inputs and example weights against Keras and TensorFlow: examples/reviews.c, on the records
of its generator. From the same initial weights and batches, one epoch of SGD gives Keras' losses,
metrics and weights; the SavedModel gives TensorFlow the predictions that ours gives."""
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
BATCH, T = 32, 12
keras = tf.keras


def read(path):
    spec = {"age": tf.io.FixedLenFeature([], tf.float32), "product": tf.io.FixedLenFeature([], tf.int64),
            "words": tf.io.RaggedFeature(tf.int64), "recommends": tf.io.FixedLenFeature([], tf.int64),
            "weight": tf.io.FixedLenFeature([], tf.float32)}
    rows = [tf.io.parse_single_example(r, spec) for r in tf.data.TFRecordDataset(path)]
    words = np.zeros((len(rows), T), np.int32)
    mask = np.zeros((len(rows), T), bool)
    for i, row in enumerate(rows):
        ids = row["words"].numpy()[:T]
        words[i, : len(ids)], mask[i, : len(ids)] = ids, True
    column = lambda name, dtype: np.array([r[name].numpy() for r in rows], dtype)
    return ({"age": column("age", np.float32), "product": column("product", np.int32),
             "words": words, "words_mask": mask}, column("recommends", np.int32), column("weight", np.float32))


def keras_model():
    age = keras.Input((), name="age")
    product = keras.Input((), dtype="int32", name="product")
    words = keras.Input((T,), dtype="int32", name="words")
    mask = keras.Input((T,), dtype="bool", name="words_mask")
    there = keras.ops.cast(mask, "float32")
    vectors = keras.layers.Embedding(50, 8, name="words_table")(words)
    text = keras.ops.sum(vectors * there[..., None], 1) / keras.ops.maximum(
        keras.ops.sum(there, 1, keepdims=True), 1)
    x = keras.ops.concatenate(
        [keras.ops.reshape(age, (-1, 1)), keras.layers.Embedding(10, 8, name="product_table")(product), text], 1)
    x = keras.layers.Dense(16, "relu", name="dense")(x)
    model = keras.Model([age, product, words, mask], keras.layers.Dense(2, name="dense_1")(x))
    model.compile(
        keras.optimizers.SGD(0.5),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="mean_with_sample_weight"))
    return model


NAMES = {"words/embeddings": ("words_table", 0), "product/embeddings": ("product_table", 0),
         "dense/kernel": ("dense", 0), "dense/bias": ("dense", 1),
         "dense_1/kernel": ("dense_1", 0), "dense_1/bias": ("dense_1", 1)}


def weights_of(model, prefix):
    """Our checkpoint's variables, in the order of the model's."""
    reader = tf.train.load_checkpoint(prefix)
    by_keras = {v: reader.get_tensor(k) for k, v in NAMES.items()}
    return [by_keras[layer.name, i] for layer in model.layers for i in range(len(layer.weights))]


def weighted_mean(values, weights):
    return float(np.sum(values * weights, dtype=np.float64) / np.sum(weights, dtype=np.float64))


def main():
    with tempfile.TemporaryDirectory() as here:
        os.chdir(here)
        os.environ["XDG_CACHE_HOME"] = here
        subprocess.run([sys.executable, f"{SOURCE}/examples/reviews_records.py", "data"], check=True)
        log = sextant("train", f"{SOURCE}/examples/reviews.c", "--data", "data/train", "--eval-data", "data/val",
                      "--model-dir", "run", "--epochs", "1", "--batch-size", str(BATCH), "--optimizer", "sgd",
                      "--learning-rate", "0.5", "--no-shuffle", "--seed", "3", "--json-log")
        events = [json.loads(line) for line in log.splitlines()]
        features, labels, weights = read("data/train")
        steps = -(-len(labels) // BATCH)

        model = keras_model()
        model.set_weights(weights_of(model, "run/model.ckpt-0"))
        losses, sums = [], []
        for i in range(0, len(labels), BATCH):
            batch = {k: v[i : i + BATCH] for k, v in features.items()}
            w = weights[i : i + BATCH]
            losses.append(float(model.train_on_batch(batch, labels[i : i + BATCH], sample_weight=w)))
            sums.append(w.sum())
            model.reset_metrics()
        epoch = [e for e in events if e["event"] == "epoch"][-1]
        expected = weighted_mean(np.array(losses), np.array(sums))
        assert abs(epoch["metrics"]["loss"] - expected) < 1e-4, (epoch, expected)
        for ours, theirs in zip(weights_of(model, f"run/model.ckpt-{steps}"), model.get_weights()):
            np.testing.assert_allclose(ours, theirs, atol=1e-4)

        features, labels, weights = read("data/val")
        logits = model.predict(features, verbose=0)
        each = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True).numpy()
        ours = json.loads(sextant("evaluate", "run", "--data", "data/val", "--json"))
        assert abs(ours["loss"] - weighted_mean(each, weights)) < 1e-4, ours
        assert abs(ours["accuracy"] - weighted_mean(logits.argmax(1) == labels, weights)) < 1e-2, ours
        assert ours["accuracy"] > 0.8, ours

        sextant("export", "run", "--out", "model")
        served = tf.saved_model.load("model/1").signatures["serving_default"]
        out = served(**{k: tf.constant(v) for k, v in features.items()})
        for name, array in features.items():
            np.save(name, array)
        mine = json.loads(sextant("run", "model/1", "--json", "--input", *[f"{k}={k}.npy" for k in features]))
        rows = np.array([p["probabilities"] for p in mine["predictions"]])
        np.testing.assert_allclose(out["probabilities"].numpy(), rows, atol=1e-6)
        np.testing.assert_allclose(out["probabilities"].numpy(), tf.nn.softmax(logits).numpy(), atol=1e-4)
        shapes = {k: (v.dtype.name, v.shape.as_list()) for k, v in served.structured_input_signature[1].items()}
        assert shapes == {"age": ("float32", [None]), "product": ("int32", [None]),
                          "words": ("int32", [None, T]), "words_mask": ("bool", [None, T])}, shapes
        print(f"{steps} steps: epoch loss {epoch['metrics']['loss']:.6f}, Keras' {expected:.6f}; accuracy {ours['accuracy']:.3f}")


main()
