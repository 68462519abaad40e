"""Bands of matrices, rolls and shifts against TensorFlow (function_cases.py)."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

import function_cases

raw = tf.raw_ops
rng = np.random.default_rng(5)
CASES, SIZED = {}, set()
i32, i64 = np.int32, np.int64


def case(name, function, *args):
    for known in (False, True):  # with unknown sizes, with known ones
        key = f"{name}_sized" if known else name
        assert key not in CASES, key
        CASES[key] = (function, args)
        if known:
            SIZED.add(key)


def numbers(dtype, *shape):
    return rng.integers(0, 100, shape).astype(dtype) if np.dtype(dtype).kind in "iu" else rng.normal(size=shape).astype(dtype)


TABLE = numbers(np.float32, 4, 3, 2)
band = lambda x, a, b: tf.linalg.band_part(x, a, b)
for low, high in ((0, 0), (-1, 0), (0, -1), (1, 2), (-1, -1), (2, 0)):
    key = f"{low}_{high}".replace("-", "m")
    case(f"band_{key}", lambda x, a=low, b=high: band(x, a, b), numbers(np.float32, 2, 4, 5))
    case(f"band_fed_{key}", band, numbers(i32, 4, 3), i64(low), i64(high))
case("band_causal", lambda x: band(tf.ones([1, tf.shape(x)[1], tf.shape(x)[1]], tf.bool), -1, 0), numbers(np.float32, 2, 4))
case("roll", lambda x, s: tf.roll(x, s, 1), TABLE, i32(2))
case("roll_axes", lambda x: tf.roll(x, [1, -4, 3], [0, 1, -1]), TABLE)
case("roll_twice", lambda x: tf.roll(x, [1, 1], [1, 1]), TABLE)
case("roll_empty", lambda x: tf.roll(x, 1, 1), TABLE[:, :0])
for dtype in (np.int8, np.uint8, np.int16, i32, i64, np.uint32, np.uint64):
    name, bits = np.dtype(dtype).name, np.dtype(dtype).itemsize * 8
    limits = np.iinfo(dtype)
    x = np.array([0, 1, 2, 3, limits.max, limits.min, limits.max // 3, limits.max // 2 + 1], dtype)
    by = np.array([0, 1, 2, bits // 2, bits - 2, bits - 1], dtype)
    for how in ("LeftShift", "RightShift"):
        case(f"{how}_{name}", lambda x, y, f=getattr(raw, how): f(x=x, y=y), x[:, None], by)


def main():
    only = sys.argv[1:]
    cases = {k: v for k, v in CASES.items() if not only or any(o in k for o in only)}
    failures = function_cases.run(
        cases, sized=SIZED, rtol=1e-6, atol=lambda name, theirs: 1e-2 if theirs.dtype == np.float16 else 1e-6)
    for failure in failures:
        print(f"FAIL {failure}")
    print(f"{len(cases)} cases, {len(failures)} failures")
    return 1 if failures or (not only and len(cases) < 50) else 0


if __name__ == "__main__":
    sys.exit(main())
