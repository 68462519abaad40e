"""Keras' accuracy on the project's two photograph sets, recorded in keras_accuracy.json for
long_accuracy.py: the same networks, data, preprocessing, epochs and batch size, five seeds each.

usage: python keras_accuracy.py DATA_DIR [flowers|catsdogs ...]      (hours on two cores)
"""
import json
import os
import sys
import tarfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf
from keras import layers

HERE = os.path.dirname(os.path.abspath(__file__))
SEEDS = range(1, 6)


def flowers_cnn(classes):
    model = [keras.Input((128, 128, 3))]
    for filters in (32, 64, 128):
        model += [layers.Conv2D(filters, 3, padding="same", activation="relu"), layers.MaxPooling2D(2)]
    model += [layers.Flatten(), layers.Dense(256, activation="relu"), layers.Dropout(0.4), layers.Dense(classes)]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return keras.Sequential(model), keras.optimizers.Adam(1e-3), loss, "accuracy"


def catsdogs_cnn(_classes):
    model = [keras.Input((150, 150, 3))]
    for filters in (32, 32, 64):
        model += [layers.Conv2D(filters, 3, activation="relu", kernel_initializer="he_uniform"),
                  layers.MaxPooling2D(2)]
    model += [layers.Flatten(), layers.Dense(64, activation="relu", kernel_initializer="he_uniform"),
              layers.Dropout(0.5), layers.Dense(1)]
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    accuracy = keras.metrics.BinaryAccuracy(name="accuracy", threshold=0.0)
    return keras.Sequential(model), keras.optimizers.RMSprop(1e-3), loss, accuracy


# name -> model, side, scale and offset of the pixels, epochs
TASKS = {
    "flowers": (flowers_cnn, 128, 1 / 127.5, -1.0, 20),
    "catsdogs": (catsdogs_cnn, 150, 1 / 255, 0.0, 20),
}


def read_tar(path, side, scale, offset):
    """Every image of a tar of class folders, as the evaluation form of our preprocessing makes it."""
    names, images, labels = [], [], []
    with tarfile.open(path) as tar:
        members = sorted((m for m in tar if m.isfile()), key=lambda m: m.name)
        for member in members:
            data = tar.extractfile(member).read()
            if not data.startswith(b"\xff\xd8"):
                continue
            pixels = tf.io.decode_jpeg(data, channels=3)
            images.append(tf.image.resize(pixels, (side, side)).numpy() * scale + offset)
            names.append(os.path.basename(os.path.dirname(member.name)))
    classes = sorted(set(names))
    return np.stack(images).astype(np.float32), np.array([classes.index(n) for n in names]), len(classes)


def run(task, data_dir, seed):
    build, side, scale, offset, epochs = TASKS[task]
    x, y, classes = read_tar(os.path.join(data_dir, task, "train.tar"), side, scale, offset)
    test_x, test_y, _ = read_tar(os.path.join(data_dir, task, "val.tar"), side, scale, offset)
    keras.utils.set_random_seed(seed)
    model, optimizer, loss, accuracy = build(classes)
    model.compile(optimizer=optimizer, loss=loss, metrics=[accuracy])
    flip = lambda image, label: (tf.image.random_flip_left_right(image, seed=seed), label)
    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=seed).map(flip).batch(32).prefetch(2)
    model.fit(data, epochs=epochs, verbose=2)
    return float(model.evaluate(test_x, test_y, verbose=0)[1])


def main():
    data_dir, tasks = sys.argv[1], sys.argv[2:] or list(TASKS)
    path = os.path.join(HERE, "keras_accuracy.json")
    recorded = json.load(open(path)) if os.path.exists(path) else {}
    for task in tasks:
        for seed in SEEDS:
            scores = recorded.setdefault(task, {"epochs": TASKS[task][4], "accuracy": {}})["accuracy"]
            if str(seed) in scores:
                continue
            scores[str(seed)] = run(task, data_dir, seed)
            print(task, seed, scores[str(seed)], flush=True)
            recorded["versions"] = {"keras": keras.__version__, "tensorflow": tf.__version__}
            with open(path, "w") as out:
                json.dump(recorded, out, indent=1, sort_keys=True)
                out.write("\n")


main()
