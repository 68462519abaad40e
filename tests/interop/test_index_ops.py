"""Gathering, scattering, segments, bands, rolls and shifts against TensorFlow (function_cases.py)."""
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
gather = lambda x, i: raw.GatherNd(params=x, indices=i)
PLACES = i32([[3, 2], [0, 0], [3, 2], [1, 1]])
for dtype in (np.float32, np.float16, np.float64, i64, np.uint8):
    case(f"gather_{np.dtype(dtype).name}", gather, numbers(dtype, 4, 3, 2), PLACES)
case("gather_rows", gather, TABLE, i64([[[3], [1]], [[0], [0]]]))
case("gather_elements", gather, TABLE, i64([[3, 2, 1], [0, 0, 0]]))
case("gather_whole", gather, TABLE, np.zeros((2, 0), i32))
case("gather_nothing", gather, TABLE, np.zeros((0, 2), i32))
case("gather_bools", gather, TABLE > 0, PLACES)
case("gather_strings", gather, np.array([[b"a", b""], [b"ccc", b"d"]], object), i32([[1, 0], [0, 1]]))
for key, place in {"above": [[4, 0]], "below": [[0, -1]], "second": [[0, 3]]}.items():
    case(f"gather_{key}", gather, TABLE, i32(place))
    case(f"scatter_{key}", lambda i, u: raw.ScatterNd(indices=i, updates=u, shape=[4, 3]), i32(place), np.float32([1]))
case("gather_batch_dims", lambda x, i: tf.gather_nd(x, i, batch_dims=1), TABLE, i32([[1], [2], [0], [0]]))
for dtype in (np.float32, np.float64, i32, i64):
    name = np.dtype(dtype).name
    x, u = numbers(dtype, 4, 3, 2), numbers(dtype, 4, 2)
    for how in ("Add", "Sub", "Min", "Max"):
        case(f"scatter_{how}_{name}", lambda x, i, u, f=getattr(raw, f"TensorScatter{how}"): f(tensor=x, indices=i, updates=u), x, PLACES, u)
    case(f"scatter_Update_{name}", lambda x, i, u: raw.TensorScatterUpdate(tensor=x, indices=i, updates=u), x, PLACES[:2], u[:2])
    case(f"scatter_nd_{name}", lambda i, u: raw.ScatterNd(indices=i, updates=u, shape=[5, 3, 2]), PLACES, u)
case("scatter_bools", lambda x, i, u: raw.TensorScatterUpdate(tensor=x, indices=i, updates=u), TABLE > 0, PLACES[:2], np.array([[True, False], [False, True]]))
case("scatter_wrap", lambda x, i, u: raw.TensorScatterAdd(tensor=x, indices=i, updates=u), i32([2**31 - 1, -2**31]), i32([[0], [1]]), i32([1, -1]))
case("scatter_shape_fed", lambda i, u, s: raw.ScatterNd(indices=i, updates=u, shape=s), PLACES, numbers(np.float32, 4, 2), i32([5, 3, 2]))
case("scatter_nothing", lambda i, u: raw.ScatterNd(indices=i, updates=u, shape=[4, 3]), np.zeros((0, 1), i32), np.zeros((0, 3), np.float32))

ROWS, SORTED, MIXED = numbers(np.float32, 6, 3), i32([0, 0, 2, 2, 2, 5]), i32([3, 0, -1, 3, 0, 1])
for how in ("Sum", "Mean", "SqrtN"):
    f = lambda d, i, s, n, f=getattr(raw, f"SparseSegment{how}Grad"): f(grad=d, indices=i, segment_ids=s, output_dim0=n)
    case(f"segment_grad_{how}", f, numbers(np.float32, 3, 2), i32([4, 0, 4, 1]), i32([0, 0, 1, 2]), i32(6))
    case(f"segment_grad_{how}_deep", f, numbers(np.float64, 2, 2, 3), i64([1, 1, 2]), i64([0, 1, 1]), i32(3))
    case(f"segment_grad_{how}_above", f, numbers(np.float32, 1, 2), i32([6]), i32([0]), i32(6))
case("scatter_beside", lambda x, i, u: raw.ScatterNdNonAliasingAdd(input=x, indices=i, updates=u), TABLE, PLACES, numbers(np.float32, 4, 2))
for how in ("Sum", "Mean", "Prod", "Min", "Max"):
    f = lambda x, i, f=getattr(raw, f"Segment{how}"): f(data=x, segment_ids=i)
    case(f"segment_{how}", f, ROWS, SORTED)
    case(f"segment_{how}_int", f, numbers(i32, 6, 2), SORTED.astype(i64))
    case(f"segment_{how}_descends", f, ROWS[:2], i32([1, 0]))
    case(f"segment_{how}_negative", f, ROWS[:2], i32([-1, 0]))
    if how != "Mean":
        f = lambda x, i, n, f=getattr(raw, f"UnsortedSegment{how}"): f(data=x, segment_ids=i, num_segments=n)
        for dtype in (np.float32, np.float64, np.float16, i32, i64):
            case(f"unsorted_{how}_{np.dtype(dtype).name}", f, numbers(dtype, 6, 3), MIXED, i32(5))
        case(f"unsorted_{how}_grid", f, numbers(np.float32, 2, 3, 4), MIXED.reshape(2, 3), i64(4))
        case(f"unsorted_{how}_above", f, ROWS, MIXED, i32(3))

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
for mode in ("REFLECT", "SYMMETRIC"):
    for k, pads in enumerate(([[0, 0], [2, 3], [1, 0]], [[1, 2], [0, 0], [2, 2]], [[0, 0], [0, 0], [0, 0]])):
        case(f"grad_mirror_pad_{mode}_{k}", lambda x, m=mode, p=pads: raw.MirrorPadGrad(input=tf.sin(tf.pad(x, p, m)), paddings=p, mode=m), numbers(np.float32, 4, 5, 4))
    case(f"grad_mirror_pad_{mode}_fed", lambda x, p, m=mode: raw.MirrorPadGrad(input=x, paddings=p, mode=m), numbers(np.float32, 6, 5), i32([[1, 2], [0, 1]]))


def main():
    atol = lambda name, theirs: 1e-2 if theirs.dtype == np.float16 else 1e-6
    return function_cases.main(CASES, 100, lambda cases: function_cases.run(cases, sized=SIZED, rtol=1e-6, atol=atol))


if __name__ == "__main__":
    sys.exit(main())
