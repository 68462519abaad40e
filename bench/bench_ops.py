"""Operators alone beside TensorFlow: a SavedModel of each, on numbers of ordinary size. Rounds alternate; of
each side the least processor time of a run is taken, and the median of the rounds' ratios (TensorFlow's time /
Sextant's). Goal: 0.5 for each.

    bench_ops.py [--only REGEX] [--below RATIO]

THREADS=1 (the default) is the number of threads a side."""
import argparse
import os
import re
import statistics
import tempfile

os.environ.setdefault("THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", os.environ["THREADS"])
import bench_corpus  # sets what TensorFlow reads when it is loaded
import numpy as np
import tensorflow as tf
from corpus import check

RNG = np.random.default_rng(7)
MATRIX = (1024, 512)
F16, BF16, F32, F64, I32, I64, U8 = tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64, tf.uint8


def normal(dtype=F32, shape=MATRIX):
    return RNG.normal(size=shape).astype(dtype.as_numpy_dtype)


def uniform(low, high, dtype=F32, shape=MATRIX):
    return RNG.uniform(low, high, shape).astype(dtype.as_numpy_dtype)


def integers(low, high, dtype=I32, shape=MATRIX):
    return RNG.integers(low, high, shape).astype(dtype.as_numpy_dtype)


def casts():
    for a, b in [(F64, F16), (F64, BF16), (F16, F64), (BF16, F64), (F16, I32), (BF16, I32), (F16, I64), (F16, U8), (BF16, U8), (F16, BF16), (BF16, F16),
                 (F32, F16), (F32, BF16), (F16, F32), (I32, F16), (I32, BF16), (I64, F16), (U8, F16), (U8, BF16), (F32, I32), (F64, I32), (F64, I64),
                 (F32, U8), (F32, tf.uint32), (F32, tf.uint64), (F64, tf.uint32), (F64, F32), (I64, I32), (I32, F32), (I64, F64), (F32, tf.bool), (F16, tf.bool),
                 (tf.bool, F16), (tf.bool, F32)]:
        x = uniform(0, 100, a) if a.is_floating else integers(0, 2 if a == tf.bool else 100, a)
        yield f"cast_{a.name}_{b.name}", lambda x, b=b: tf.cast(x, b), [x]


def shifts():
    for t in (U8, tf.int16, I32, I64, tf.uint32):
        yield f"left_shift_{t.name}", tf.bitwise.left_shift, [integers(0, 100, t), integers(0, 8, t)]
        yield f"right_shift_{t.name}", tf.bitwise.right_shift, [integers(0, 100, t), integers(0, 8, t)]
        yield f"population_count_{t.name}", lambda x: tf.raw_ops.PopulationCount(x=x), [integers(0, 100, t)]
        yield f"bitwise_and_{t.name}", tf.bitwise.bitwise_and, [integers(0, 100, t), integers(0, 8, t)]
    yield "left_shift_by_3", lambda x: tf.bitwise.left_shift(x, 3), [integers(0, 100)]


def moves():
    for name, shape, shift, axis in [("rows", MATRIX, 3, 0), ("columns", MATRIX, 3, 1), ("both", MATRIX, [3, 5], [0, 1]), ("line", (500000,), 100, 0),
                                     ("image", (8, 128, 128, 3), [5, -5], [1, 2])]:
        yield f"roll_{name}", lambda x, s=shift, a=axis: tf.roll(x, s, a), [normal(shape=shape)]
    yield "roll_by", lambda x, s: tf.roll(x, s, 0), [normal(), np.int32(3)]
    for name, n, item in [("rows", 16384, (16,)), ("numbers", 200000, ())]:
        at = RNG.permutation(2 * n).astype(np.int32)
        yield f"dynamic_stitch_{name}", lambda i, j, x, y: tf.dynamic_stitch([i, j], [x, y]), [at[:n], at[n:], normal(shape=(n, *item)), normal(shape=(n, *item))]
    yield "dynamic_partition", lambda x, i: tf.dynamic_partition(x, i, 2), [normal(shape=(65536,)), integers(0, 2, shape=(65536,))]
    for t in (I32, I64, F32):
        yield f"list_diff_{t.name}", lambda x, y: tuple(tf.raw_ops.ListDiff(x=x, y=y)), [integers(0, 60000, t, (50000,)), integers(0, 60000, t, (20000,))]
    for t in (F32, F64, I32):
        yield f"histogram_{t.name}", lambda x, t=t: tf.histogram_fixed_width(x, tf.constant([0, 100], t), 100), [integers(-5, 110, t)]


def functions():
    for t in (F32, F64):
        small, positive = uniform(-0.95, 0.95, t), uniform(0.1, 10, t)
        for name, f, x in [("atanh", tf.atanh, small), ("asinh", tf.asinh, normal(t)), ("acosh", tf.acosh, 1 + positive), ("sinh", tf.sinh, normal(t)),
                           ("cosh", tf.cosh, normal(t)), ("tan", tf.tan, normal(t)), ("atan", tf.atan, normal(t)), ("log1p", tf.math.log1p, positive),
                           ("expm1", tf.math.expm1, normal(t)), ("erf", tf.math.erf, normal(t)), ("erfc", tf.math.erfc, normal(t)), ("exp", tf.exp, normal(t)), ("log", tf.math.log, positive),
                           ("tanh", tf.tanh, normal(t)), ("sigmoid", tf.sigmoid, normal(t)), ("sin", tf.sin, normal(t)), ("rsqrt", tf.math.rsqrt, positive)]:
            yield f"{name}_{t.name}", f, [x]
        for name, f in [("atan2", tf.atan2), ("pow", tf.pow), ("xlog1py", tf.math.xlog1py), ("xlogy", tf.math.xlogy), ("floor_mod", tf.math.floormod),
                        ("floor_div", tf.math.floordiv), ("truncate_mod", tf.truncatemod)]:
            yield f"{name}_{t.name}", f, [positive, uniform(0.1, 10, t)]
        for name in ("dawsn", "expint", "fresnel_cos", "fresnel_sin", "spence", "bessel_j0", "bessel_i0e", "bessel_k0"):
            yield f"{name}_{t.name}", getattr(tf.math.special, name), [uniform(0.1, 10, t, (256, 256))]
        for name in ("lgamma", "digamma", "erfinv", "ndtri"):
            yield f"{name}_{t.name}", getattr(tf.math, name), [uniform(0.05, 0.95, t, (256, 256))]
    for t in (tf.complex64, tf.complex128):
        x = (RNG.normal(size=MATRIX) + 1j * RNG.normal(size=MATRIX)).astype(t.as_numpy_dtype)
        for name, f in [("exp", tf.exp), ("log", tf.math.log), ("sqrt", tf.sqrt), ("square", tf.square), ("abs", tf.abs), ("angle", tf.math.angle), ("tanh", tf.tanh)]:
            yield f"{name}_{t.name}", f, [x]
    for n in (128, 256, 512):
        x = RNG.normal(size=(n, n)).astype(np.float32)
        yield f"fft2d_{n}", lambda x: tf.signal.fft2d(tf.cast(x, tf.complex64)), [x]
    for name, f in [("hsv_to_rgb", tf.image.hsv_to_rgb), ("rgb_to_hsv", tf.image.rgb_to_hsv)]:
        yield name, f, [uniform(0, 1, shape=(4, 128, 128, 3))]


def training():
    for t in (F32, F64):
        x, s, w = normal(t, (8, 32, 32, 32)), uniform(0.5, 1.5, t, (32,)), normal(t, (3, 3, 32, 32))
        yield f"moments_{t.name}", lambda x: tuple(tf.nn.moments(x, [0, 1, 2])), [x]
        yield f"moments_rows_{t.name}", lambda x: tuple(tf.nn.moments(x, [1])), [normal(t)]
        yield f"batch_norm_{t.name}", lambda x, m, v, o, s: tf.nn.batch_normalization(x, m, v, o, s, 1e-3), [x, s, s, s, s]
        yield f"conv2d_{t.name}", lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), [x, w]
        yield f"conv2d_grad_input_{t.name}", lambda w, y: tf.raw_ops.Conv2DBackpropInput(input_sizes=[8, 32, 32, 32], filter=w, out_backprop=y, strides=[1, 1, 1, 1], padding="SAME"), [w, x]
        yield f"conv2d_grad_filter_{t.name}", lambda x, y: tf.raw_ops.Conv2DBackpropFilter(input=x, filter_sizes=[3, 3, 32, 32], out_backprop=y, strides=[1, 1, 1, 1], padding="SAME"), [x, x]
        yield f"unsorted_segment_sum_{t.name}", lambda x, i: tf.math.unsorted_segment_sum(x, i, 100), [normal(t, (4096, 16)), integers(0, 100, shape=(4096,))]


GROUPS = (casts, shifts, moves, functions, training)


def compare(name, function, feed, folder):
    """Seconds of processors of a run, ours and theirs, and the median of the rounds' ratios."""
    names = [f"x{i}" for i in range(len(feed))]
    specs = [tf.TensorSpec(x.shape, x.dtype, n) for x, n in zip(feed, names)]
    module, path = tf.Module(), os.path.join(folder, name)

    def call(*args):
        found = function(*args)
        return {f"y{i}": y for i, y in enumerate(found if isinstance(found, (tuple, list)) else [found])}

    module.f = tf.function(call, input_signature=specs)
    tf.saved_model.save(module, path, signatures={"serving_default": module.f.get_concrete_function()})
    signature = tf.saved_model.load(path).signatures["serving_default"]
    fed = dict(zip(names, feed))
    constants = {k: tf.constant(v) for k, v in fed.items()}

    def theirs(runs):
        start, cpu = bench_corpus.time.perf_counter(), bench_corpus.time.process_time()
        for _ in range(runs):
            for output in signature(**constants).values():
                output.numpy()
        return bench_corpus.time.perf_counter() - start, bench_corpus.time.process_time() - cpu

    tool = check.Tool(path, "serve")
    try:
        tool.run("serving_default", fed)
        signature(**constants)
        rounds = [(bench_corpus.least(lambda n: tool.time("serving_default", fed, n))[1], bench_corpus.least(theirs)[1]) for _ in range(bench_corpus.ROUNDS)]
    finally:
        host = tool.close()
    ours, their = (min(side) for side in zip(*rounds))
    return ours, their, statistics.median(b / a for a, b in rounds), host


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--below", type=float, default=float("inf"))
    args = parser.parse_args()
    threads = int(os.environ["THREADS"])
    tf.get_logger().setLevel("ERROR")
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        for name, function, feed in (case for group in GROUPS for case in group()):
            if not re.search(args.only, name):
                continue
            try:
                ours, their, ratio, host = compare(name, function, feed, folder)
            except (check.Refused, tf.errors.OpError, ValueError, TypeError) as e:
                print(f"{name}: {str(e)[:150]!r}", flush=True)
                continue
            if ratio < args.below:
                print(f"{name:<32} ratio {ratio:6.2f}; {ours * 1e6:9.1f} us, TensorFlow {their * 1e6:9.1f} us{'  host kernel: ' + ', '.join(host) if host else ''}", flush=True)


if __name__ == "__main__":
    main()
