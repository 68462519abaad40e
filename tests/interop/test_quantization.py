"""Quantization, bitcasts and reversed sequences against TensorFlow: forward, and the gradient nodes that functions
contain. An integer or a step of the grid that differs is a failure.

Each row of CASES is a function and its arguments (function_cases.py)."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # its kernels round otherwise than TensorFlow's own
import numpy as np
import tensorflow as tf

import function_cases

raw = tf.raw_ops
CASES = {}
RNG = np.random.default_rng(5)
f32 = np.float32


def case(name, function, *args):
    assert name not in CASES, name
    CASES[name] = (function, args)


def gradients(function, n):
    """The function, and its gradients with respect to the first n arguments, weighted by the last argument."""
    def both(*args):
        xs, w = args[:-1], args[-1]
        with tf.GradientTape() as tape:
            tape.watch(xs[:n])
            y = function(*xs)
        return [y, *(tf.zeros_like(x) if d is None else d for x, d in zip(xs, tape.gradient(y, xs[:n], w)))]
    return both


# --- Fake quantization -------------------------------------------------------------------------------

X = np.concatenate([RNG.normal(size=41) * 2, [0, -0.0, 1e-30, np.inf, -np.inf, 0.5, -0.5]]).astype(f32).reshape(6, 2, 4)
W = RNG.normal(size=X.shape).astype(f32)
RANGES = [(-6, 6), (-1.1, 1.3), (0, 2), (-2, 0), (0.3, 1.5), (-3, -1), (-1e-3, 1e-3), (-0.3, 1000)]
for bits in (2, 8, 16):
    for narrow in (False, True):
        options = {"num_bits": bits, "narrow_range": narrow}
        for k, (low, high) in enumerate(RANGES):
            name = f"{bits}_{narrow}_{k}"
            fake = lambda x, a, b, o=options: raw.FakeQuantWithMinMaxVars(inputs=x, min=a, max=b, **o)
            case(f"fake_vars_{name}", gradients(fake, 3), X, f32(low), f32(high), W)
            if low <= 0 <= high and low < high:
                args = lambda x, l=low, h=high, o=options: raw.FakeQuantWithMinMaxArgs(inputs=x, min=l, max=h, **o)
                case(f"fake_args_{name}", gradients(args, 1), X, W)
        lows, highs = f32([-1, -0.3, 0, -2]), f32([1, 0.8, 2, 0])
        channel = lambda x, a, b, o=options: raw.FakeQuantWithMinMaxVarsPerChannel(inputs=x, min=a, max=b, **o)
        for shape in ((24,), (12, 4), (2, 3, 2, 4)):
            x, w = X.reshape(-1)[:48 if len(shape) > 1 else 4].reshape(shape if len(shape) > 1 else (4,)), None
            w = RNG.normal(size=x.shape).astype(f32)
            case(f"fake_channels_{bits}_{narrow}_{len(shape)}", gradients(channel, 3), x, lows, highs, w)
fake = lambda x, a, b: raw.FakeQuantWithMinMaxVars(inputs=x, min=a, max=b)
case("fake_zero", gradients(fake, 3), np.nan_to_num(X), f32(0), f32(0), W)
case("fake_nan", fake, f32([np.nan, 1]), f32(-1), f32(1))
case("fake_none", gradients(fake, 3), np.zeros((0, 3), f32), f32(-1), f32(1), np.zeros((0, 3), f32))

# --- To integers and back ----------------------------------------------------------------------------

finite = lambda x: np.nan_to_num(x, posinf=9, neginf=-9)
for dtype in (np.float32, np.float64):
    x, w = finite(X).astype(dtype), W.astype(dtype)
    halves = (np.arange(-20, 20) / 2).astype(dtype).reshape(10, 4)
    for mode in ("HALF_TO_EVEN", "HALF_UP"):
        for bits, signed, narrow in ((8, True, False), (4, True, True), (8, False, False), (2, True, False), (16, True, False)):
            name = f"{np.dtype(dtype).name}_{mode}_{bits}_{signed}_{narrow}"
            options = {"signed_input": signed, "range_given": True, "round_mode": mode, "narrow_range": narrow}
            for k, (low, high) in enumerate([(-1.1, 1.3), (-0.2, 3), (0, 2), (0, 0), (-128, 127)]):
                v4 = lambda x, a, b, o=options, n=bits: raw.QuantizeAndDequantizeV4(input=x, input_min=a, input_max=b, num_bits=n, **o)
                case(f"there_v4_{name}_{k}", gradients(v4, 3), halves if k == 4 else x, dtype(low), dtype(high), np.ones_like(halves) if k == 4 else w)
            own = options | {"range_given": False}
            for version, data in (("own", x), ("positive", np.abs(x))):
                v2 = lambda x, o=own, n=bits: raw.QuantizeAndDequantizeV2(input=x, input_min=tf.cast(0, x.dtype), input_max=tf.cast(0, x.dtype), num_bits=n, **o)
                case(f"there_v2_{version}_{name}", gradients(v2, 1), data, w)
    v3 = lambda x, a, b: raw.QuantizeAndDequantizeV3(input=x, input_min=a, input_max=b, num_bits=6)
    case(f"there_v3_{np.dtype(dtype).name}", gradients(v3, 1), x, dtype(-1), dtype(1), w)
    for axis, lows, highs in ((2, [-1, -0.3, 0, -2], [1, 0.8, 2, 0.5]), (1, [-1, -0.5], [0.5, 3]), (0, [-1] * 6, [1, 2, 3, 4, 5, 6])):
        # a given range along an axis TensorFlow's kernel refuses
        own = lambda x, k=axis, n=len(lows): tf.quantization.quantize_and_dequantize_v2(
            x, tf.zeros([n], x.dtype), tf.zeros([n], x.dtype), range_given=False, axis=k)
        case(f"there_own_axis_{np.dtype(dtype).name}_{axis}", own, x)

# --- Integers ----------------------------------------------------------------------------------------

PLAIN = {tf.qint8: tf.int8, tf.quint8: tf.uint8, tf.qint16: tf.int16, tf.quint16: tf.uint16, tf.qint32: tf.int32}
HALVES = (np.arange(-24, 24) / 2 + 1e-3).astype(f32).reshape(6, 2, 4)


def integers(dtype, **options):
    def function(x, low, high):
        q, a, b = raw.QuantizeV2(input=x, min_range=low, max_range=high, T=dtype, **options)
        return tf.bitcast(q, PLAIN[dtype]), a, b
    return function


for dtype in (tf.qint8, tf.quint8, tf.qint16, tf.quint16):
    for k, (low, high) in enumerate([(-6, 6), (-1.1, 1.3), (0, 2), (-2, 0), (0.3, 1.5), (-1e-3, 1e-3), (-100, 0.1)]):
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            case(f"to_{dtype.name}_{mode}_{k}", integers(dtype, mode=mode), finite(X), f32(low), f32(high))
        case(f"to_{dtype.name}_even_{k}", integers(dtype, mode="SCALED", round_mode="HALF_TO_EVEN", narrow_range=True), HALVES, f32(low), f32(high))
    case(f"to_{dtype.name}_halves", integers(dtype, mode="SCALED"), HALVES, f32(-127), f32(127))
    case(f"to_{dtype.name}_narrowest", integers(dtype, ensure_minimum_range=0.5), finite(X), f32(0), f32(0.1))
    for axis, lows, highs in ((2, [-1, -0.3, 0, -2], [1, 0.8, 2, 0.5]), (1, [-1, -0.5], [0.5, 3]), (0, [-1] * 6, [1, 2, 3, 4, 5, 6])):
        for mode in ("MIN_COMBINED", "SCALED"):
            case(f"to_{dtype.name}_{mode}_axis{axis}", integers(dtype, mode=mode, axis=axis), finite(X), f32(lows), f32(highs))
case("to_none", integers(tf.quint8), np.zeros((0, 3), f32), f32(-1), f32(1))


def numbers(of, **options):
    return lambda q, low, high: raw.Dequantize(input=tf.bitcast(q, of), min_range=low, max_range=high, **options)


for dtype, plain in PLAIN.items():
    info = np.iinfo(plain.as_numpy_dtype)
    q = np.concatenate([[info.min, info.max, 0, 1, info.max // 2, info.min // 2], RNG.integers(info.min, info.max, 18)]).astype(plain.as_numpy_dtype).reshape(6, 2, 2)
    if dtype == tf.qint32:  # TensorFlow converts the largest to float32 as the least
        q[q > info.max - 2**10] = info.max - 2**20
    for k, (low, high) in enumerate([(-6, 6), (-1.1, 1.3), (0, 2), (0.5, 0.5)]):
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            case(f"from_{dtype.name}_{mode}_{k}", numbers(dtype, mode=mode), q, f32(low), f32(high))
    case(f"from_{dtype.name}_narrow", numbers(dtype, mode="SCALED", narrow_range=True), q, f32(-3), f32(2))
    case(f"from_{dtype.name}_bfloat16", lambda q, a, b, d=dtype: tf.cast(numbers(d, dtype=tf.bfloat16)(q, a, b), tf.float32), q, f32(-3), f32(2))
    for mode in ("MIN_COMBINED", "SCALED"):
        case(f"from_{dtype.name}_{mode}_axis", numbers(dtype, mode=mode, axis=1), q, f32([-1, -2]), f32([1, 0.5]))
case("both_ways", lambda x: tf.quantization.dequantize(*tf.quantization.quantize(x, -3.0, 3.0, tf.qint8, mode="SCALED"), mode="SCALED"), finite(X))
TOTAL = RNG.integers(-2**31, 2**31 - 1, (6, 4)).astype(np.int32)
SMALL = RNG.integers(-3000, 90000, (6, 4)).astype(np.int32)
for k, total in enumerate((TOTAL, SMALL)):
    wide = lambda q: tf.bitcast(q, tf.qint32)
    case(f"range_{k}", lambda q, a, b: raw.RequantizationRange(input=wide(q), input_min=a, input_max=b), total, f32(-900), f32(700))
    for dtype in (tf.quint8, tf.qint8):
        if dtype == tf.quint8:
            def shrink(q, a, b):
                y, low, high = raw.QuantizeDownAndShrinkRange(input=wide(q), input_min=a, input_max=b, out_type=tf.quint8)
                return tf.bitcast(y, tf.uint8), low, high
            case(f"shrink_{k}", shrink, total, f32(-900), f32(700))

        def again(q, a, b, c, d, dtype=dtype):
            y, low, high = raw.Requantize(input=wide(q), input_min=a, input_max=b, requested_output_min=c, requested_output_max=d, out_type=dtype)
            return tf.bitcast(y, PLAIN[dtype]), low, high
        case(f"again_{dtype.name}_{k}", again, total, f32(-900), f32(700), f32(-100), f32(120))

# --- Arithmetic of integers --------------------------------------------------------------------------

U8, I8 = (lambda q: tf.bitcast(q, tf.quint8)), (lambda q: tf.bitcast(q, tf.qint8))
bare = lambda y, *rest: (tf.bitcast(y, PLAIN[y.dtype]), *rest)
BYTES = np.random.default_rng(6)
byte = lambda *shape: BYTES.integers(0, 256, shape, np.uint8)
RANGE_A, RANGE_B = (f32(-1.25), f32(3.5)), (f32(-6.1), f32(2.2))
for ta in (False, True):
    for tb in (False, True):
        case(f"int_matmul_{ta}_{tb}", lambda a, b, *r, ta=ta, tb=tb: bare(*raw.QuantizedMatMul(
            a=U8(a), b=U8(b), min_a=r[0], max_a=r[1], min_b=r[2], max_b=r[3], transpose_a=ta, transpose_b=tb)),
             byte(*((7, 5) if ta else (5, 7))), byte(*((3, 7) if tb else (7, 3))), *RANGE_A, *RANGE_B)
case("int_matmul_long", lambda a, b, *r: bare(*raw.QuantizedMatMul(a=U8(a), b=U8(b), min_a=r[0], max_a=r[1], min_b=r[2], max_b=r[3])),
     np.full((2, 3000), 255, np.uint8), np.full((3000, 2), 255, np.uint8), *RANGE_A, *RANGE_B)
PICTURE, KERNEL = byte(2, 7, 6, 3), byte(3, 2, 3, 4)
for padding in ("SAME", "VALID"):
    for stride in (1, 2):
        case(f"int_conv_{padding}_{stride}", lambda x, f, *r, p=padding, s=stride: bare(*raw.QuantizedConv2D(
            input=U8(x), filter=U8(f), min_input=r[0], max_input=r[1], min_filter=r[2], max_filter=r[3], strides=[1, s, s, 1], padding=p)),
             PICTURE, KERNEL, *RANGE_A, *RANGE_B)
    for pool in ("Max", "Avg"):
        case(f"int_{pool}_{padding}", lambda x, a, b, f=getattr(raw, f"Quantized{pool}Pool"), p=padding: bare(*f(
            input=U8(x), min_input=a, max_input=b, ksize=[1, 3, 2, 1], strides=[1, 2, 1, 1], padding=p)), PICTURE, *RANGE_A)
for key, dims in {"channels": (2, 3, 8), "matrix": (5, 16)}.items():
    case(f"int_bias_{key}", lambda x, b, *r: bare(*raw.QuantizedBiasAdd(input=U8(x), bias=U8(b), min_input=r[0], max_input=r[1], min_bias=r[2], max_bias=r[3], out_type=tf.qint32)),
         byte(*dims), byte(dims[-1]), *RANGE_A, *RANGE_B)
case("int_bias_signed", lambda x, b, *r: bare(*raw.QuantizedBiasAdd(input=I8(x), bias=I8(b), min_input=r[0], max_input=r[1], min_bias=r[2], max_bias=r[3], out_type=tf.qint32)),
     byte(4, 16).view(np.int8), byte(16).view(np.int8), *RANGE_A, *RANGE_B)
for key, (x, y) in {"same": (byte(3, 16), byte(3, 16)), "scalar": (byte(3, 16), byte(1)), "vector": (byte(4, 16), byte(16))}.items():
    case(f"int_mul_{key}", lambda x, y, *r: bare(*raw.QuantizedMul(x=U8(x), y=U8(y), min_x=r[0], max_x=r[1], min_y=r[2], max_y=r[3])), x, y, *RANGE_A, *RANGE_B)
for key, (x, y) in {"same": (byte(3, 16), byte(3, 16)), "scalar": (byte(3, 16), byte(1)), "scalar_first": (byte(1), byte(5)), "vector": (byte(4, 16), byte(16)), "vector_first": (byte(16), byte(4, 16))}.items():
    for k, (of_x, of_y) in enumerate(((RANGE_A, RANGE_B), ((f32(-0.3), f32(900)), (f32(-1e-3), f32(0.2))))):
        case(f"int_add_{key}_{k}", lambda x, y, *r: bare(*raw.QuantizedAdd(x=U8(x), y=U8(y), min_x=r[0], max_x=r[1], min_y=r[2], max_y=r[3])), x, y, *of_x, *of_y)
for k, (low, high) in enumerate([(-6, 6), (0, 3), (-10, 20), (1, 2), (-3, -1)]):
    for op in ("Relu", "Relu6"):
        case(f"int_{op}_{k}", lambda x, a, b, f=getattr(raw, f"Quantized{op}"): bare(*f(features=U8(x), min_features=a, max_features=b)), PICTURE, f32(low), f32(high))
case("int_relu_wide", lambda x, a, b: bare(*raw.QuantizedRelu(features=wide(x), min_features=a, max_features=b, out_type=tf.qint32)), TOTAL, f32(-900), f32(700))
case("int_reshape", lambda x, a, b: bare(*raw.QuantizedReshape(tensor=U8(x), shape=[-1, 9], input_min=a, input_max=b)), PICTURE, *RANGE_A)
for key, ranges in {"same": [RANGE_A] * 3, "other": [RANGE_A, RANGE_B, (f32(0.5), f32(2))]}.items():
    case(f"int_concat_{key}", lambda x, y, z, *r: bare(*raw.QuantizedConcat(
        concat_dim=1, values=[U8(x), U8(y), U8(z)], input_mins=[*r[:3]], input_maxes=[*r[3:]])),
         byte(2, 4), byte(2, 3), byte(2, 1), *(low for low, _ in ranges), *(high for _, high in ranges))

# --- Bytes, sequences --------------------------------------------------------------------------------

SIZES = {1: (np.int8, np.uint8), 2: (np.int16, np.uint16, np.float16), 4: (np.int32, np.uint32, np.float32), 8: (np.int64, np.uint64, np.float64)}
for size, dtypes in SIZES.items():
    for to_size, to_dtypes in SIZES.items():
        data = RNG.integers(0, 127, 48 * 8, np.uint8)
        shape = (2, 3, to_size // size) if to_size > size else (2, 3)
        for dtype, to in {(dtypes[0], to_dtypes[-1]), (dtypes[-1], to_dtypes[0])}:
            x = data[: int(np.prod(shape)) * size].view(dtype).reshape(shape)
            case(f"bytes_{np.dtype(dtype).name}_{np.dtype(to).name}", lambda x, to=to: tf.bitcast(x, to), x)
case("bytes_bfloat16", lambda x: tf.bitcast(tf.cast(x, tf.bfloat16), tf.int16), X)
case("bytes_from_bfloat16", lambda x: tf.cast(tf.bitcast(x, tf.bfloat16), tf.float32), RNG.integers(0, 2**14, (2, 3)).astype(np.int16))
case("bytes_edges", lambda x: tf.bitcast(x, tf.int32), f32([0, -0.0, np.inf, -np.inf, 1e-45, np.nan]))
ALL = np.arange(2**16, dtype=np.uint16)
case("bytes_all_float16", lambda x: tf.bitcast(x, tf.uint16), ALL.view(np.float16))
case("bytes_all_float16_there", lambda x: tf.bitcast(tf.reverse(tf.bitcast(x, tf.float16), [0]), tf.uint16), ALL)
case("bytes_all_bfloat16_there", lambda x: tf.bitcast(tf.reverse(tf.bitcast(x, tf.bfloat16), [0]), tf.uint16), ALL)
case("bytes_none", lambda x: tf.bitcast(x, tf.uint8), np.zeros((0, 3), f32))


def keras_argmax(axis):
    import keras
    return lambda x: keras.ops.argmax(x, axis)


for axis in (-1, 0, 1, None):
    case(f"bytes_argmax_{axis}", keras_argmax(axis), f32([[1, 3, 2, 3], [-0.0, 0.0, -1, -0.0], [-np.inf, -5, -2, -3]]))
STEPS = RNG.normal(size=(4, 5, 3)).astype(f32)
for lengths in (np.int32, np.int64):
    for dtype in (np.float32, np.int32, np.bool_):
        name = f"{np.dtype(lengths).name}_{np.dtype(dtype).name}"
        case(f"sequence_{name}", lambda x, n: tf.reverse_sequence(x, n, 1, 0), STEPS.astype(dtype), np.array([0, 5, 3, 1], lengths))
for k, (seq, batch, n) in enumerate([(1, 0, 4), (0, 1, 5), (2, 0, 4), (0, 2, 3), (2, 1, 5)]):
    turn = lambda x, n, s=seq, b=batch: tf.reverse_sequence(x, n, s, b)
    args = STEPS, RNG.integers(0, STEPS.shape[seq] + 1, n).astype(np.int32)
    w = RNG.normal(size=STEPS.shape).astype(f32)
    case(f"sequence_axes_{k}", lambda x, n, w, f=turn: gradients(lambda x: f(x, n), 1)(x, w), *args, w)
case("sequence_none", lambda x, n: tf.reverse_sequence(x, n, 1, 0), np.zeros((0, 3), f32), np.zeros(0, np.int32))

# --- Uniform quantization ----------------------------------------------------------------------------

EIGHT = {"quantization_min_val": -128, "quantization_max_val": 127}
for scale, zero, axis in ((f32(0.1), 3, -1), (f32(0.37), -7, -1), (f32([0.1, 0.02, 1.7]), np.int32([3, -2, 100]), 2)):
    for name, x in (("normal", RNG.normal(size=(4, 2, 3)).astype(f32)), ("edges", f32([[[0.05, 0.15, -0.05], [-0.25, 100, -100], [1e6, -1e6, 0]]]))):
        key = f"{name}_{zero if axis < 0 else 'axis'}"
        to_int = lambda x, s=scale, z=zero, a=axis: raw.UniformQuantize(input=x, scales=s, zero_points=z, quantization_axis=a, Tout=tf.qint8, **EIGHT)
        case(f"uniform_{key}", lambda x, f=to_int: tf.cast(f(x), tf.int32), x)
        case(f"uniform_and_back_{key}", lambda x, f=to_int, s=scale, z=zero, a=axis: raw.UniformDequantize(
            input=f(x), scales=s, zero_points=z, quantization_axis=a, Tout=tf.float32, **EIGHT), x)

BOUNDS = {8: (-128, 127), 32: (-(2**31), 2**31 - 1)}


def bounds(**bits):
    """The attributes of tensors by name: the least and most of their integers."""
    return {f"{name}_quantization_{end}_val": BOUNDS[n][k] for name, n in bits.items() for k, end in enumerate(("min", "max"))}


def scales(axis, n):
    """A scale and a zero, or n of them along an axis."""
    size = () if axis < 0 else n
    return RNG.uniform(1e-3, 2, size).astype(f32), RNG.integers(-128, 128, size).astype(np.int32)


W32 = lambda q: tf.bitcast(q, tf.qint32)
for k in range(6):
    signed = byte(6, 5).view(np.int8)
    (s, z), (t, zt) = scales(-1, 5), scales(-1, 5)
    case(f"uniform_again_{k}", lambda q, s=s, z=z, t=t, zt=zt: bare(raw.UniformRequantize(
        input=I8(q), input_scales=s, input_zero_points=z, output_scales=t, output_zero_points=zt, Tout=tf.qint8, **bounds(input=8, output=8)))[0], signed)
    for axis, to_axis in ((-1, -1), (1, -1), (-1, 1), (0, 0)):
        (s, z), (t, zt) = scales(axis, (6, 4)[axis]), scales(to_axis, (6, 4)[to_axis])
        case(f"uniform_again_wide_{k}_{axis}_{to_axis}", lambda q, s=s * f32(10.0 ** -(k + 4)), z=z, t=t, zt=zt, a=axis, b=to_axis: bare(raw.UniformRequantize(
            input=W32(q), input_scales=s, input_zero_points=z, output_scales=t, output_zero_points=zt, input_quantization_axis=a, output_quantization_axis=b,
            Tout=tf.qint8, **bounds(input=32, output=8)))[0], TOTAL)
    for axis, to_axis in ((-1, -1), (1, -1), (1, 1)):
        (s, z), (t, zt), (u, zu) = scales(-1, 3), scales(axis, 3), scales(to_axis, 3)
        case(f"uniform_dot_{k}_{axis}_{to_axis}", lambda a, b, s=s, z=z, t=t, zt=zt, u=u, zu=zu, c=axis, d=to_axis: bare(raw.UniformQuantizedDot(
            lhs=I8(a), rhs=I8(b), lhs_scales=s, lhs_zero_points=z, rhs_scales=t, rhs_zero_points=zt, output_scales=u, output_zero_points=zu, Tout=tf.qint32,
            rhs_quantization_axis=c, output_quantization_axis=d, **bounds(lhs=8, rhs=8, output=32)))[0], byte(5, 7).view(np.int8), byte(7, 3).view(np.int8))
    for axis in (-1, 1):
        t, zt = scales(axis, 3)
        rows = RNG.normal(size=(5, 7)).astype(f32) * f32([[1e-5], [0], [1], [30], [-1]])
        case(f"uniform_hybrid_{k}_{axis}", lambda a, b, t=t, zt=zt, c=axis: raw.UniformQuantizedDotHybrid(
            lhs=a, rhs=I8(b), rhs_scales=t, rhs_zero_points=zt, Tout=tf.float32, rhs_quantization_axis=c, **bounds(rhs=8)), np.abs(rows) if k == 2 else rows, byte(7, 3).view(np.int8))
# Convolutions: with batch and features first, or last as the message of dimension_numbers says.
LAST = bytes([8, 0, 16, 3, 26, 2, 1, 2, 32, 2, 40, 3, 50, 2, 0, 1, 56, 0, 64, 3, 74, 2, 1, 2])
for name, order, image, filters, out_axis in (("first", b"", (2, 4, 6, 5), (6, 4, 3, 2), 1), ("last", LAST, (2, 6, 5, 4), (3, 2, 4, 6), 3)):
    for k, (padding, more) in enumerate([("SAME", {}), ("VALID", {"window_strides": [2, 1]}), ("EXPLICIT", {"explicit_padding": [1, 0, 2, 1], "rhs_dilation": [1, 2]}),
                                         ("SAME", {"feature_group_count": 2})]):
        groups = more.get("feature_group_count", 1)
        shape = list(filters)
        shape[1 if name == "first" else 2] //= groups
        for axis, to_axis in ((-1, -1), (0 if name == "first" else 3, -1), (0 if name == "first" else 3, out_axis)):
            (s, z), (t, zt), (u, zu) = scales(-1, 6), scales(axis, 6), scales(to_axis, 6)
            case(f"uniform_conv_{name}_{k}_{axis}_{to_axis}", lambda a, b, s=s, z=z, t=t, zt=zt, u=u, zu=zu, c=axis, d=to_axis, p=padding, m=more, o=order: bare(
                raw.UniformQuantizedConvolution(lhs=I8(a), rhs=I8(b), lhs_scales=s, lhs_zero_points=z, rhs_scales=t, rhs_zero_points=zt, output_scales=u, output_zero_points=zu,
                                                Tout=tf.qint32, padding=p, dimension_numbers=o, rhs_quantization_axis=c, output_quantization_axis=d, **m,
                                                **bounds(lhs=8, rhs=8, output=32)))[0], byte(*image).view(np.int8), byte(*shape).view(np.int8))
            if to_axis < 0:
                case(f"uniform_conv_hybrid_{name}_{k}_{axis}", lambda a, b, t=t, zt=zt, c=axis, p=padding, m=more, o=order: raw.UniformQuantizedConvolutionHybrid(
                    lhs=a, rhs=I8(b), rhs_scales=t, rhs_zero_points=zt, Tout=tf.float32, padding=p, dimension_numbers=o, rhs_quantization_axis=c, **m, **bounds(rhs=8)),
                     RNG.normal(size=image).astype(f32) * f32(1 + np.arange(2) * 9)[:, None, None, None], byte(*shape).view(np.int8))
for k, (shape, other, axis) in enumerate([((5, 3), (5, 3), -1), ((5, 3), (3,), 1), ((2, 5, 3), (1, 3), 2), ((2, 1, 3), (2, 5, 1), -1), ((), (2, 3), -1), ((5, 3), (5, 3), 0)]):
    (s, z), (t, zt), (u, zu) = (scales(axis, (5, 3, 3)[axis]) for _ in range(3))
    case(f"uniform_add_{k}", lambda a, b, s=s, z=z, t=t, zt=zt, u=u, zu=zu, c=axis, d=axis - (len(shape) - len(other) if axis >= 0 else 0): bare(raw.UniformQuantizedAdd(
        lhs=W32(a), rhs=W32(b), lhs_scales=s, lhs_zero_points=z, rhs_scales=t, rhs_zero_points=zt, output_scales=u, output_zero_points=zu, lhs_quantization_axis=c,
        rhs_quantization_axis=d, output_quantization_axis=c, **bounds(lhs=32, rhs=32, output=32)))[0],
         RNG.integers(-9000, 9000, shape).astype(np.int32), RNG.integers(-9000, 9000, other).astype(np.int32))
for axis in (-1, 1):
    low, high = (np.int32(-50), np.int32(70)) if axis < 0 else (np.int32([-50, -5, 0, -9]), np.int32([3, 900, 0, 80]))
    s, z = scales(axis, 4)
    case(f"uniform_clip_{axis}", lambda q, low=low, high=high, s=s, z=z, a=axis: bare(raw.UniformQuantizedClipByValue(
        operand=W32(q), min=W32(low), max=W32(high), scales=s, zero_points=z, quantization_axis=a, **{"quantization_min_val": BOUNDS[32][0], "quantization_max_val": BOUNDS[32][1]}))[0],
         RNG.integers(-900, 900, (6, 4)).astype(np.int32))

STATIC = set()
UNKNOWN_RANK = ["fake_vars_8_False_1", "to_quint8_SCALED_1", "from_quint8_MIN_FIRST_1", "sequence_int32_float32", "bytes_edges"]


def main():
    atol = lambda name, theirs: 1e-6 * np.abs(theirs[np.isfinite(theirs)]).max(initial=0) if theirs.dtype.kind == "f" else 0
    return function_cases.main(CASES, 300, lambda cases: function_cases.run(cases, STATIC, rtol=3e-6, atol=atol), UNKNOWN_RANK)


if __name__ == "__main__":
    sys.exit(main())
