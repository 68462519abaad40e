"""An epoch of cats and dogs from JPEG files beside Keras on TensorFlow: the same network (`catsdogs_cnn`, 150x150,
batch 32, RMSprop), decoding, resizing, flip and zoom in every epoch on both sides, all processors. Rounds alternate;
the figures are medians of the rounds' ratios, of wall time and of processor time.

Keras is taken at its best of: XLA or not. Its pipeline is tf.data with AUTOTUNE everywhere: tf.io.decode_jpeg, resize,
and its layers RandomFlip and RandomZoom on whole batches. Sextant's epoch is the difference between runs of 3 epochs
and of 1, so that starting, which Keras does before it is measured, is in neither. Needs $SEXTANT_DATA/catsdogs.
Bounds: the convolutions, then Huffman decoding."""

import glob
import os
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import keras
import tensorflow as tf
from keras import layers

ROUNDS = int(os.environ.get("ROUNDS", "3"))
AUTO = tf.data.AUTOTUNE


def run_ours(folder, scratch, epochs, augment):
    """Seconds of a training run, by the clock and of processors."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryDirectory(dir=scratch) as run:
        subprocess.run([os.environ["SEXTANT_BIN"], "train", "catsdogs_cnn", "--data", folder, "--model-dir",
                        os.path.join(run, "run"), "--epochs", str(epochs), "--batch-size", "32", "--augment", augment],
                       check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return [time.perf_counter() - begin,
            after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime]


def ours(folder, scratch, augment):
    one, three = (run_ours(folder, scratch, epochs, augment) for epochs in (1, 3))
    return [(b - a) / 2 for a, b in zip(one, three)]


def network(jit):
    keras.utils.set_random_seed(1)
    model = [keras.Input((150, 150, 3))]
    for filters in (32, 32, 64):
        model += [layers.Conv2D(filters, 3, activation="relu", kernel_initializer="he_uniform"),
                  layers.MaxPooling2D(2)]
    model += [layers.Flatten(), layers.Dense(64, activation="relu", kernel_initializer="he_uniform"),
              layers.Dropout(0.5), layers.Dense(1)]
    model = keras.Sequential(model)
    model.compile(optimizer=keras.optimizers.RMSprop(1e-3), loss=keras.losses.BinaryCrossentropy(from_logits=True),
                  metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)], jit_compile=jit)
    return model


def batches(folder):
    files = sorted(glob.glob(os.path.join(folder, "*", "*.jpg")))
    classes = sorted({os.path.dirname(f) for f in files})
    labels = [float(classes.index(os.path.dirname(f))) for f in files]
    flip, zoom = layers.RandomFlip("horizontal"), layers.RandomZoom((-0.2, 0.2), (-0.2, 0.2), fill_mode="nearest")

    def read(file, label):
        image = tf.io.decode_jpeg(tf.io.read_file(file), channels=3)
        return tf.image.resize(image, [150, 150]) / 255, label

    def augment(images, labels):
        return zoom(flip(images, training=True), training=True), labels

    data = tf.data.Dataset.from_tensor_slices((files, labels)).shuffle(len(files))
    return data.map(read, num_parallel_calls=AUTO).batch(32).map(augment, num_parallel_calls=AUTO).prefetch(AUTO)


def theirs(model, data):
    begin, cpu = time.perf_counter(), time.process_time()
    model.fit(data, epochs=1, verbose=0)
    return [time.perf_counter() - begin, time.process_time() - cpu]


def main():
    archive = os.path.join(os.environ.get("SEXTANT_DATA", ""), "catsdogs/train.tar")
    if not os.path.exists(archive):
        print("SKIP: no catsdogs/train.tar in $SEXTANT_DATA")
        return 77
    print(f"tensorflow {tf.__version__}, keras {keras.__version__}, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "photos")
        with tarfile.open(archive) as tar:
            tar.extractall(folder)
        data, ways = batches(folder), {}
        for jit in (False, True):
            model = network(jit)
            theirs(model, data)  # traced and warm
            ways[jit] = (theirs(model, data), model)
            print(f"    keras{', XLA' if jit else ''}: {ways[jit][0][0]:.2f} s an epoch, processors {ways[jit][0][1]:.2f}",
                  flush=True)
        model = min(ways.values(), key=lambda way: way[0][1])[1]
        for augment in ("flip_left_right,zoom=0.2", "flip_left_right,zoom=0.2,scaled_decode"):
            rounds = [(ours(folder, scratch, augment), theirs(model, data)) for _ in range(ROUNDS)]
            print(f"an epoch of catsdogs_cnn, {augment}")
            for k, what in enumerate(("by the clock", "of processor time")):
                ratios = sorted(b[k] / a[k] for a, b in rounds)
                print(f"    {what}: {statistics.median(a[k] for a, _ in rounds):.2f} s, keras"
                      f" {statistics.median(b[k] for _, b in rounds):.2f}; ratio: median"
                      f" {statistics.median(ratios):.2f}, least {ratios[0]:.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
