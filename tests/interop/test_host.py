"""Host kernels of integers and casts against TensorFlow, to the bit: extremes of each dtype, and
floats that no integer holds (conversions as x86-64 does them, which is what TensorFlow gives).
Subnormal floats are left out: TensorFlow's threads flush them to zero."""
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import tensorflow as tf

DTYPES = {
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64,
    "bool": np.bool_,
}
# TensorFlow's function, and numpy's for dtypes that TensorFlow's CPU has no kernel of
OPS = {
    "add": (tf.add, np.add), "sub": (tf.subtract, np.subtract), "mul": (tf.multiply, np.multiply),
    "maximum": (tf.maximum, np.maximum), "minimum": (tf.minimum, np.minimum),
    "equal": (tf.equal, np.equal), "less": (tf.less, np.less), "greater": (tf.greater, np.greater),
    "neg": (tf.negative, np.negative), "abs": (tf.abs, np.abs), "sign": (tf.sign, np.sign),
    "square": (tf.square, np.square),
    "reduce_sum": (tf.reduce_sum, lambda x: np.add.reduce(x, dtype=x.dtype)), "reduce_max": (tf.reduce_max, np.max),
    "argmax": (tf.argmax, np.argmax), "top_k": (lambda x: tf.math.top_k(x, 5)[0], lambda x: np.sort(x)[::-1][:5]),
}
BINARY = {"add", "sub", "mul", "maximum", "minimum", "equal", "less", "greater"}
failures = []
by_numpy = set()


def load(directory, name, dtype):
    a = np.load(directory / f"{name}.npy")
    return a.view(DTYPES[dtype]) if a.dtype.kind == "V" else a


def same(name, got, want):
    got, want = np.asarray(got), np.asarray(want)
    if got.tobytes() == want.astype(got.dtype).tobytes() and got.shape == want.shape:
        return
    bad = [i for i in range(got.size) if got.flat[i].tobytes() != want.flat[i].tobytes()]
    if got.dtype.kind not in "iub" and all(np.isnan(got.flat[i]) and np.isnan(want.flat[i]) for i in bad):
        return
    failures.append(name)
    print(f"FAIL {name}: element {bad[0]} is {got.flat[bad[0]]}, TensorFlow's {want.flat[bad[0]]} ({len(bad)} differ)")


def main():
    if platform.machine() != "x86_64":
        print("SKIP: conversions out of range are x86-64's")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as tmp:
        directory = Path(tmp)
        subprocess.run([os.path.join(os.environ["SEXTANT_TEST_BIN"], "host_tool"), tmp], check=True)
        for dtype in DTYPES:
            x, y = (load(directory, f"{k}.{dtype}", dtype) for k in "xy")
            if np.dtype(DTYPES[dtype]).kind in "iu":
                for op, (tf_op, np_op) in OPS.items():
                    args = (x, y) if op in BINARY else (x,)
                    try:
                        want = tf_op(*(tf.constant(a) for a in args)).numpy()
                    except (tf.errors.NotFoundError, tf.errors.InvalidArgumentError, tf.errors.UnimplementedError, TypeError):
                        by_numpy.add(f"{op} of {dtype}")
                        want = np_op(*args)
                    same(f"{op} of {dtype}", load(directory, f"{op}.{dtype}", dtype), want)
            for to in DTYPES:
                if np.dtype(DTYPES[dtype]).kind not in "iub" and np.dtype(DTYPES[to]).kind in "iu":
                    # One by one: over several elements TensorFlow saturates some dtypes and not others.
                    want = np.array([tf.cast(tf.constant(e), to).numpy() for e in x], DTYPES[to])
                else:
                    want = tf.cast(tf.constant(x), to).numpy()
                same(f"cast from {dtype} to {to}", load(directory, f"cast.{dtype}.{to}", to), want)
    print(f"against numpy, where TensorFlow has no kernel: {', '.join(sorted(by_numpy)) or 'none'}")
    sys.exit(1 if failures else 0)


main()
