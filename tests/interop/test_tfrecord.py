"""TFRecords, Examples and .npy against TensorFlow and NumPy, through tfrecord_tool.c.

Records: ours read by tf.data byte for byte, and the reverse, in every compression; plain files are
the same bytes. Examples: parsed and written again by us they are equal to the original message, and
equal in bytes to TensorFlow's deterministic serialization. Damage: both refuse the same files.
"""
import gzip
import io
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import tensorflow as tf

TOOL = os.path.join(os.environ["SEXTANT_TEST_BIN"], "tfrecord_tool")
DIR = tempfile.mkdtemp(prefix="sextant-tfrecord-")
RANDOM = random.Random(11)
failures = []


def path(name):
    return os.path.join(DIR, name)


def check(name, ok, detail=""):
    print(f"{'ok  ' if ok else 'FAIL'} {name} {detail}")
    if not ok:
        failures.append(name)


def tool(*words):
    """None, or the tool's error."""
    done = subprocess.run([TOOL, *words], capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr.strip() or f"exit {done.returncode}"


def pack(records):
    with open(path("records"), "wb") as file:
        for record in records:
            file.write(struct.pack("<I", len(record)) + record)
    return path("records")


def unpack(name):
    data, at, records = open(name, "rb").read(), 0, []
    while at < len(data):
        size = struct.unpack_from("<I", data, at)[0]
        records.append(data[at + 4:at + 4 + size])
        at += 4 + size
    return records


def tf_read(name, codec):
    return [r.numpy() for r in tf.data.TFRecordDataset(name, compression_type=codec)]


def tf_write(name, codec, records):
    with tf.io.TFRecordWriter(name, tf.io.TFRecordOptions(compression_type=codec)) as writer:
        for record in records:
            writer.write(record)
    return name


def noise(size):
    return RANDOM.randbytes(size)


SETS = {
    "none": [],
    "one empty": [b""],
    "small": [b"hello", b"", b"x" * 300, b"\0\xff"],
    "sizes": [noise(n) for n in [1, 127, 128, 4095, 4096, 65535, 65536, 262143, 262145, 0, 3]],
    "large": [noise(5 << 20), b"after"],
    "compressible": [b"abc" * 500000, b"0" * 2000000],
    "many": [noise(RANDOM.randrange(60)) for _ in range(5000)],
}


def records():
    for name, want in SETS.items():
        for codec in ["", "GZIP", "ZLIB"]:
            label = f"{name} {codec or 'plain'}"
            error = tool("write", codec or "none", pack(want), path("ours"))
            check(f"tf.data reads ours: {label}", not error and tf_read(path("ours"), codec) == want,
                  error or "")
            tf_write(path("theirs"), codec, want)
            if not codec:
                same = open(path("ours"), "rb").read() == open(path("theirs"), "rb").read()
                check(f"the same bytes: {label}", same)
                error = tool("index", path("theirs"), path("back"))
                check(f"by number: {label}", not error and unpack(path("back")) == want, error or "")
            for told in [codec or "none", "auto"]:
                error = tool("read", told, path("theirs"), path("back"))
                check(f"we read theirs ({told}): {label}",
                      not error and unpack(path("back")) == want, error or "")


def damage():
    """Every single-byte flip and cut of a plain file: refused by both, or by neither. But a cut
    inside a record's header TensorFlow takes for the end of the file, and we do not."""
    good = open(tf_write(path("good"), "", [b"alpha", b"", b"gamma"]), "rb").read()
    cases = [good[:cut] for cut in range(len(good))]
    cases += [good[:i] + bytes([good[i] ^ 1 << i % 8]) + good[i + 1:] for i in range(len(good))]
    headers = {at + i for at in [0, 21, 37] for i in range(1, 12)}
    differ = 0
    for case in cases:
        with open(path("bad"), "wb") as file:
            file.write(case)
        try:
            theirs = tf_read(path("bad"), "")
        except tf.errors.DataLossError:
            theirs = None
        error = tool("read", "none", path("bad"), path("back"))
        ours = unpack(path("back")) if not error else None
        differ += ours != (None if len(case) in headers else theirs)
    check("damage is seen as TensorFlow sees it", differ == 0, f"{len(cases)} files, {differ} differ")


def feature(kind, values):
    return {
        "bytes": lambda: tf.train.Feature(bytes_list=tf.train.BytesList(value=values)),
        "float": lambda: tf.train.Feature(float_list=tf.train.FloatList(value=values)),
        "int": lambda: tf.train.Feature(int64_list=tf.train.Int64List(value=values)),
    }[kind]()


def random_value(kind):
    return {
        "bytes": lambda: noise(RANDOM.choice([0, 1, 5, 127, 128, 1000])),
        "float": lambda: struct.unpack("<f", struct.pack("<I", RANDOM.randrange(0x7F800000)))[0],
        "int": lambda: RANDOM.choice([0, 1, -1, 127, 128, 2**63 - 1, -2**63, RANDOM.randrange(2**40)]),
    }[kind]()


def random_example():
    # No key is another's beginning: Python's protobuf sorts those the other way round than C++.
    example = tf.train.Example()
    example.features.SetInParent()
    for _ in range(RANDOM.randrange(12)):
        kind = RANDOM.choice(["bytes", "float", "int"])
        name = RANDOM.choice(["image/encoded", "label", "é", f"k{RANDOM.randrange(99):02}"])
        values = [random_value(kind) for _ in range(RANDOM.choice([0, 1, 1, 2, 50]))]
        example.features.feature[name].CopyFrom(feature(kind, values))
    return example


def examples():
    want = [random_example() for _ in range(400)]
    tf_write(path("examples"), "", [e.SerializeToString() for e in want])
    error = tool("examples", path("examples"), path("copies"))
    copies = tf_read(path("copies"), "") if not error else []
    check("examples are equal messages",
          [tf.train.Example.FromString(c) for c in copies] == want, error or f"{len(copies)}")
    check("examples are TensorFlow's bytes",
          copies == [e.SerializeToString(deterministic=True) for e in want])
    spec = {"image/encoded": tf.io.FixedLenFeature([], tf.string),
            "label": tf.io.FixedLenFeature([], tf.int64)}
    image = tf.train.Example()
    image.features.feature["label"].CopyFrom(feature("int", [3]))
    image.features.feature["image/encoded"].CopyFrom(feature("bytes", [b"\xff\xd8"]))
    tf_write(path("examples"), "GZIP", [image.SerializeToString()])
    error = tool("examples", path("examples"), path("copies"))
    parsed = tf.io.parse_single_example(tf_read(path("copies"), "")[0], spec)
    check("tf.io.parse_single_example reads ours",
          parsed["label"].numpy() == 3 and parsed["image/encoded"].numpy() == b"\xff\xd8")


def arrays():
    rows = [np.zeros((0, 3), "f4"), np.float64(2.5), np.arange(24, dtype="i2").reshape(2, 3, 4),
            np.array([True, False]), np.ones((1, 2, 1, 3), "f2"), np.arange(7, dtype="u1"),
            np.arange(3, dtype="i8"), np.arange(100000, dtype="u4"), np.arange(5, dtype="i1"),
            np.ones((12345, 2), "u2"), np.full((3,), 7, "u8"), np.full((3,), -7, "i4")]
    for row in rows:
        want = io.BytesIO()
        np.save(want, row)
        for order, swapped in [(row, "native"), (row.copy(order="F"), "columns"),
                               (row.astype(row.dtype.newbyteorder(">")), "big-endian")]:
            np.save(path("in.npy"), order)
            error = tool("npy", path("in.npy"), path("out.npy"))
            same = not error and open(path("out.npy"), "rb").read() == want.getvalue()
            check(f"npy {row.dtype} {row.shape} {swapped}", same, error or "")
    np.save(path("in.npy"), np.array([{}], dtype=object), allow_pickle=True)
    error = tool("npy", path("in.npy"), path("out.npy"))
    check("npy objects are refused", error is not None and "Python objects" in error, error or "")


def streams():
    data = b"abc" * 100000 + noise(100000)
    for name, packed in [("gzip", gzip.compress(data)), ("zlib", zlib.compress(data)),
                         ("two gzip members", gzip.compress(data[:99]) + gzip.compress(data[99:]))]:
        with open(path("packed"), "wb") as file:
            file.write(packed)
        error = tool("inflate", path("packed"), path("plain"))
        check(f"inflate {name}", not error and open(path("plain"), "rb").read() == data, error or "")


try:
    records()
    damage()
    examples()
    arrays()
    streams()
finally:
    shutil.rmtree(DIR)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
