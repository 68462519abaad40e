"""Image data sets between `sextant data` and tf.data: what one writes, the other reads.

Ours: class folders become TFRecords whose features, bytes and labels tf.data sees as the files are.
Theirs: records in TensorFlow's usual forms (TPU-style with labels from 1, flowers-on-TPU with keys of
their own, MNIST's raw pixels), plain, GZIP and ZLIB, are opened by `sextant data take`, whose .npy
files NumPy reads. Preprocessed pixels are within 1/255 of tf.image's.
"""
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf

SEXTANT = os.environ["SEXTANT_BIN"]
DIR = tempfile.mkdtemp(prefix="sextant-data-")
RANDOM = np.random.default_rng(5)
CLASSES = ["asters", "lilies", "poppies"]
failures = []


def path(name):
    return os.path.join(DIR, name)


def check(name, ok, detail=""):
    print(f"{'ok  ' if ok else 'FAIL'} {name} {detail}")
    if not ok:
        failures.append(name)


def sextant(*words):
    done = subprocess.run([SEXTANT, "data", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout


def smooth(height, width):
    """A picture that JPEG keeps well."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [np.sin(x / RANDOM.uniform(5, 20) + y / RANDOM.uniform(5, 20)) for _ in range(3)]
    return ((np.stack(waves, -1) + 1) * 127).astype(np.uint8)


def write_photos():
    """{basename: (bytes, class)} of files in class folders, JPEG and PNG by turns."""
    files = {}
    for label, name in enumerate(CLASSES):
        os.makedirs(path(f"photos/{name}"))
        for i in range(10):
            image = smooth(20 + i, 30 + label)
            data = (tf.io.encode_jpeg(image) if i % 2 else tf.io.encode_png(image)).numpy()
            base = f"{name}{i}.{'jpg' if i % 2 else 'png'}"
            with open(path(f"photos/{name}/{base}"), "wb") as file:
                file.write(data)
            files[base] = (data, label, image.shape)
    return files


def parse(record):
    fixed = lambda kind: tf.io.FixedLenFeature([], kind)
    return tf.io.parse_single_example(
        record,
        {
            "image/encoded": fixed(tf.string),
            "image/format": fixed(tf.string),
            "image/height": fixed(tf.int64),
            "image/width": fixed(tf.int64),
            "image/class/label": fixed(tf.int64),
            "image/class/text": fixed(tf.string),
            "image/filename": fixed(tf.string),
        },
    )


def ours_by_tensorflow(files):
    sextant("from-images", path("photos"), "--out", path("data"), "--split", "train=.7,val=.3",
            "--shards", "3", "--label-base", "1")
    counts, seen, equal = {}, {}, True
    for split in ["train", "val"]:
        names = sorted(glob.glob(path(f"data/{split}-*")))
        for e in tf.data.TFRecordDataset(names).map(parse).as_numpy_iterator():
            base = e["image/filename"].decode()
            data, label, shape = files[base]
            equal &= e["image/encoded"] == data and e["image/class/label"] == label + 1
            equal &= e["image/class/text"].decode() == CLASSES[label]
            equal &= (e["image/height"], e["image/width"]) == shape[:2]
            equal &= e["image/format"] == (b"JPEG" if base.endswith("jpg") else b"PNG")
            seen[base] = seen.get(base, 0) + 1
            counts[split] = counts.get(split, 0) + 1
    check("tf.data reads our features as the files are", equal)
    check("every file once", seen == {base: 1 for base in files})
    check("exact proportions", counts == {"train": 21, "val": 9}, counts)


def feature(value):
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def write_records(name, examples, compression):
    with tf.io.TFRecordWriter(path(name), compression) as writer:
        for example in examples:
            features = {key: feature(value) for key, value in example.items()}
            message = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(message.SerializeToString())


def check_take(name, records, images, labels, *words):
    sextant("take", path(records), "--count", str(len(images)), "--out", path("x.npy"), "--labels",
            path("y.npy"), *words)
    x, y = np.load(path("x.npy")), np.load(path("y.npy"))
    check(name, x.dtype == np.uint8 and np.array_equal(x, images) and np.array_equal(y, labels),
          f"{x.shape} {y}")


def theirs_by_us():
    images = np.stack([smooth(24, 32) for _ in range(6)])
    encoded = [tf.io.encode_png(image).numpy() for image in images]
    labels = np.array([0, 1, 2, 2, 1, 0])
    tpu = [{"image/encoded": e, "image/class/label": int(l) + 1, "image/class/text": b"x",
            "image/colorspace": b"RGB"} for e, l in zip(encoded, labels)]
    flowers = [{"image": e, "class": int(l)} for e, l in zip(encoded, labels)]
    odd = [{"picture": e, "kind": int(l)} for e, l in zip(encoded, labels)]
    for compression in ["", "GZIP", "ZLIB"]:
        kind = compression or "plain"
        write_records(f"tpu-{kind}", tpu, compression)
        check_take(f"labels from 1, {kind}", f"tpu-{kind}", images, labels, "--label-base", "1")
        write_records(f"flowers-{kind}.tfrec", flowers, compression)
        check_take(f"image and class, {kind}", f"flowers-{kind}.tfrec", images, labels)
    write_records("odd", odd, "")
    check_take("keys as told", "odd", images, labels, "--feature", "image=picture",
               "--feature", "label=kind")
    gray = RANDOM.integers(0, 256, (6, 28, 28, 1), dtype=np.uint8)
    write_records("raw", [{"image_raw": g.tobytes(), "label": int(l), "height": 28, "width": 28,
                           "depth": 1} for g, l in zip(gray, labels)], "")
    check_take("raw pixels", "raw", gray, labels)


def preprocessed():
    files = sorted(glob.glob(path("photos/*/*.jpg")))
    sextant("take", path("photos"), "--count", "30", "--size", "16", "--out", path("z.npy"))
    ours = np.load(path("z.npy"))
    names = sorted(glob.glob(path("photos/*/*")))
    worst = 0.0
    low, high = ours.min(), ours.max()
    for i, name in enumerate(names):
        if name not in files:
            continue
        image = tf.io.decode_jpeg(tf.io.read_file(name), channels=3)
        image = tf.image.resize(image, [16, 16]).numpy() / 255.0
        unit = (ours[i] + 1) / 2 if low < 0 else ours[i] if high <= 1 else ours[i] / 255
        worst = np.maximum(worst, np.abs(unit - image).max())
    check("decoded and resized as tf.image does", worst <= 1 / 255, f"largest difference {worst:.5f}")


def main():
    files = write_photos()
    ours_by_tensorflow(files)
    theirs_by_us()
    preprocessed()
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
