"""Host kernels against TensorFlow at edge values. Integers and casts, to the bit: extremes of each dtype,
and floats that no integer holds (conversions as x86-64 does them, which is what TensorFlow gives). Floats
within TOLERANCE: infinities, NaN, zeros of both signs, the largest numbers.
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
    "not_equal": (tf.not_equal, np.not_equal), "less_equal": (tf.less_equal, np.less_equal),
    "greater_equal": (tf.greater_equal, np.greater_equal), "bitwise_and": (tf.bitwise.bitwise_and, np.bitwise_and),
    "bitwise_or": (tf.bitwise.bitwise_or, np.bitwise_or), "bitwise_xor": (tf.bitwise.bitwise_xor, np.bitwise_xor),
    "invert": (tf.bitwise.invert, np.invert), "floor_div": (tf.math.floordiv, np.floor_divide),
    "floor_mod": (tf.math.floormod, np.mod), "truncate_div": (tf.truncatediv, lambda x, y: np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))),
    "truncate_mod": (tf.truncatemod, np.fmod),
    "squared_difference": (tf.math.squared_difference, lambda x, y: (x - y) * (x - y)),
    "reduce_min": (tf.reduce_min, np.min), "reduce_prod": (tf.reduce_prod, lambda x: np.multiply.reduce(x, dtype=x.dtype)),
    "cumsum": (tf.cumsum, lambda x: np.cumsum(x, dtype=x.dtype)),
    "cumprod": (lambda x: tf.math.cumprod(x, reverse=True), lambda x: np.cumprod(x[::-1], dtype=x.dtype)[::-1]),
    "argmin": (tf.argmin, np.argmin),
    "reduce_sum": (tf.reduce_sum, lambda x: np.add.reduce(x, dtype=x.dtype)), "reduce_max": (tf.reduce_max, np.max),
    "argmax": (tf.argmax, np.argmax), "top_k": (lambda x: tf.math.top_k(x, 5)[0], lambda x: np.sort(x)[::-1][:5]),
}
FLOAT_OPS = {
    "add": tf.add, "sub": tf.subtract, "mul": tf.multiply, "maximum": tf.maximum, "minimum": tf.minimum,
    "equal": tf.equal, "less": tf.less, "greater": tf.greater, "not_equal": tf.not_equal,
    "less_equal": tf.less_equal, "greater_equal": tf.greater_equal, "neg": tf.negative, "abs": tf.abs, "sign": tf.sign,
    "square": tf.square, "floor_div": tf.math.floordiv, "floor_mod": tf.math.floormod, "truncate_mod": tf.truncatemod,
    "squared_difference": tf.math.squared_difference, "is_nan": tf.math.is_nan, "is_inf": tf.math.is_inf,
    "is_finite": tf.math.is_finite, "ceil": tf.math.ceil, "round": tf.round, "sin": tf.sin, "tan": tf.tan,
    "asin": tf.asin, "acos": tf.acos, "atan": tf.atan, "sinh": tf.sinh, "cosh": tf.cosh, "asinh": tf.asinh,
    "acosh": tf.acosh, "atanh": tf.atanh, "erf": tf.math.erf, "erfc": tf.math.erfc, "expm1": tf.math.expm1,
    "reciprocal": tf.math.reciprocal, "softplus": tf.math.softplus, "selu": tf.nn.selu,
    "div_no_nan": tf.math.divide_no_nan, "mul_no_nan": tf.math.multiply_no_nan, "xdivy": tf.math.xdivy,
    "xlogy": tf.math.xlogy, "xlog1py": tf.math.xlog1py,
}
BINARY = {"add", "sub", "mul", "maximum", "minimum", "equal", "less", "greater", "not_equal", "less_equal",
          "greater_equal", "bitwise_and", "bitwise_or", "bitwise_xor", "floor_div", "floor_mod", "truncate_div",
          "truncate_mod", "squared_difference", "div_no_nan", "mul_no_nan", "xdivy", "xlogy", "xlog1py"}
# Where TensorFlow gives NaN for a limit that there is.
INFINITE = {"erf of float64"}
TOLERANCE = {"float16": 2**-9, "bfloat16": 2**-6, "float32": 2e-6, "float64": 1e-12}
failures = []
by_numpy, by_float64 = set(), set()


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


def near(name, dtype, got, want):
    """Of finite numbers the difference, relative to the greater; else the same."""
    got, want = np.asarray(got), np.asarray(want)
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore"):
        off = np.abs(a - b) / np.maximum(np.maximum(np.abs(a), np.abs(b)), np.finfo(np.float64).tiny)
    bad = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (off <= TOLERANCE[dtype]))
    if got.shape != want.shape or got.dtype != want.dtype or bad.any():
        failures.append(name)
        i = int(np.argmax(bad)) if bad.shape else 0
        print(f"FAIL {name}: element {i} is {got.flat[i]}, TensorFlow's {want.flat[i]} ({int(bad.sum())} differ)")


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
            elif dtype != "bool":
                for op, tf_op in FLOAT_OPS.items():
                    args = (x, y) if op in BINARY else (x,)
                    try:
                        want = tf_op(*(tf.constant(a) for a in args)).numpy()
                    except (tf.errors.NotFoundError, tf.errors.InvalidArgumentError):
                        by_float64.add(f"{op} of {dtype}")
                        want = tf_op(*(tf.constant(a.astype(np.float64)) for a in args)).numpy()
                        want = want if want.dtype == np.bool_ else want.astype(DTYPES[dtype])
                    if f"{op} of {dtype}" in INFINITE:
                        want = np.where(np.isinf(x), np.sign(x), want)
                    near(f"{op} of {dtype}", dtype, load(directory, f"{op}.{dtype}", dtype), want)
            for to in DTYPES:
                if np.dtype(DTYPES[dtype]).kind not in "iub" and np.dtype(DTYPES[to]).kind in "iu":
                    # One by one: over several elements TensorFlow saturates some dtypes and not others.
                    want = np.array([tf.cast(tf.constant(e), to).numpy() for e in x], DTYPES[to])
                else:
                    want = tf.cast(tf.constant(x), to).numpy()
                same(f"cast from {dtype} to {to}", load(directory, f"cast.{dtype}.{to}", to), want)
    print(f"against numpy, where TensorFlow has no kernel: {', '.join(sorted(by_numpy)) or 'none'}")
    print(f"against its kernel of float64: {', '.join(sorted(by_float64)) or 'none'}")
    sys.exit(1 if failures else 0)


main()
