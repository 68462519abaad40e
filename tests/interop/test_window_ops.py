"""Convolutions, pooling, blocks and gradients of recurrent cells against TensorFlow (function_cases.py), in both layouts, of one, two and three
dimensions; with unknown sizes, and with all sizes known but the batch's."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

import function_cases

raw = tf.raw_ops
rng = np.random.default_rng(5)
CASES, SIZED, STATIC = {}, set(), set()


def data(*shape):
    return rng.normal(size=shape).astype(np.float32)


def case(name, function, *args, sizes=(False, True)):
    """`sizes`: with unknown sizes, with known ones."""
    for known in sizes:
        key = f"{name}_sized" if known else name
        assert key not in CASES, key
        CASES[key] = (function, args)
        if known:
            SIZED.add(key)


IMAGE, FILTER = data(3, 9, 7, 4), data(3, 2, 4, 5)
for padding in ("SAME", "VALID"):
    for stride in (1, 2, 3):
        case(f"conv2d_{padding}_{stride}", lambda x, p=padding, s=stride: tf.nn.conv2d(x, FILTER, s, p), IMAGE)
    case(f"conv2d_uneven_{padding}", lambda x, p=padding: tf.nn.conv2d(x, FILTER, [1, 2, 1, 1], p), IMAGE)
    case(f"conv2d_dilated_node_{padding}", lambda x, p=padding: raw.Conv2D(
        input=x, filter=FILTER, strides=[1, 1, 1, 1], padding=p, dilations=[1, 2, 3, 1]), IMAGE)
    for rate in ([2, 2], [1, 3], [3, 1], [2, 3]):
        key = "_".join(map(str, rate))
        case(f"convolution_{key}_{padding}", lambda x, p=padding, r=rate: tf.nn.convolution(x, FILTER, 1, p, dilations=r), IMAGE)
        case(f"depthwise_{key}_{padding}", lambda x, p=padding, r=rate: tf.nn.depthwise_conv2d(
            x, data_of_depthwise, [1, 1, 1, 1], p, dilations=r), IMAGE)
    case(f"depthwise_strided_{padding}", lambda x, p=padding: tf.nn.depthwise_conv2d(x, data_of_depthwise, [1, 2, 2, 1], p), IMAGE)
    case(f"atrous_{padding}", lambda x, p=padding: tf.nn.atrous_conv2d(x, FILTER, 2, p), IMAGE)
data_of_depthwise = data(3, 3, 4, 2)
case("conv2d_explicit", lambda x: tf.nn.conv2d(x, FILTER, 2, [[0, 0], [2, 1], [0, 3], [0, 0]]), IMAGE)
case("conv2d_groups", lambda x: tf.nn.conv2d(x, FILTER[:, :, :2, :4], 1, "SAME"), IMAGE, sizes=(True,))
case("conv2d_filter_fed", lambda x, f: tf.nn.conv2d(x, f, 1, "SAME"), IMAGE, FILTER)
LINE, LINE_FILTER = data(2, 11, 3), data(3, 3, 4)
for padding in ("SAME", "VALID"):
    for stride, rate in ((1, 1), (2, 1), (1, 2), (1, 4)):
        case(f"conv1d_{padding}_{stride}_{rate}", lambda x, p=padding, s=stride, r=rate: tf.nn.conv1d(x, LINE_FILTER, s, p, dilations=r), LINE)
    case(f"keras_conv1d_{padding}", lambda x, p=padding: tf.keras.ops.conv(x, LINE_FILTER, 1, p.lower(), dilation_rate=2), LINE, sizes=(True,))
case("conv1d_causal", lambda x: tf.nn.conv1d(tf.pad(x, [[0, 0], [4, 0], [0, 0]]), LINE_FILTER, 1, "VALID", dilations=2), LINE)
case("conv1d_transpose", lambda x: tf.nn.conv1d_transpose(
    x, tf.transpose(LINE_FILTER, [0, 1, 2])[:, :, :3], [tf.shape(x)[0], 22, 3], 2), LINE)
for first in (False, True):
    shape = lambda x, first=first: [tf.shape(x)[0], 18, 14, 3]
    case(f"conv2d_transpose_{first}", lambda x, s=shape: tf.nn.conv2d_transpose(x, FILTER[:, :, :3, :4], s(x), 2), IMAGE)
case("conv2d_transpose_computed", lambda x: tf.nn.conv2d_transpose(
    x, FILTER[:, :, :3, :4], tf.stack([tf.shape(x)[0], tf.shape(x)[1] * 2, tf.shape(x)[2] * 2, 3]), 2), IMAGE)

VOLUME, VOLUME_FILTER = data(2, 7, 6, 5, 3), data(3, 2, 3, 3, 4)
for padding in ("SAME", "VALID"):
    for stride in ([1, 1, 1], [2, 2, 2], [3, 1, 2]):
        key = "_".join(map(str, stride))
        case(f"conv3d_{key}_{padding}", lambda x, p=padding, s=stride: tf.nn.conv3d(x, VOLUME_FILTER, [1, *s, 1], p), VOLUME, sizes=(True,))
        out = [(n - 1) * s + k for n, s, k in zip([7, 6, 5], stride, [3, 2, 3])] if padding == "VALID" else [
            n * s for n, s in zip([7, 6, 5], stride)]
        case(f"conv3d_transpose_{key}_{padding}", lambda x, p=padding, s=stride, o=out: tf.nn.conv3d_transpose(
            x, VOLUME_FILTER[..., :2, :3], [tf.shape(x)[0], *o, 2], [1, *s, 1], p), VOLUME, sizes=(True,))
        for name, op in (("max", tf.nn.max_pool3d), ("avg", tf.nn.avg_pool3d)):
            case(f"{name}_pool3d_{key}_{padding}", lambda x, f=op, p=padding, s=stride: f(x, [2, 3, 2], s, p), VOLUME)
    for name, op in (("max", tf.nn.max_pool2d), ("avg", tf.nn.avg_pool2d)):
        case(f"{name}_pool2d_{padding}", lambda x, f=op, p=padding: f(x, [3, 2], [2, 1], p), IMAGE)
    for name, op in (("max", tf.nn.max_pool1d), ("avg", tf.nn.avg_pool1d)):
        case(f"{name}_pool1d_{padding}", lambda x, f=op, p=padding: f(x, 3, 2, p), LINE)
# Of known sizes, TensorFlow gives its signatures one place too few in the second and third results.
for dtype in (np.float32, np.float64, np.int32, np.int64):
    for name, op in (("max", tf.raw_ops.FractionalMaxPool), ("avg", tf.raw_ops.FractionalAvgPool)):
        for k, (ratio, pseudo, overlapping) in enumerate((([1.0, 1.44, 1.73, 1.0], False, False), ([1.0, 1.44, 1.73, 1.0], True, True), ([1.0, 2.3, 1.0, 1.0], True, False), ([1.0, 2.0, 3.1, 1.0], False, True))):
            case(f"fractional_{name}_{np.dtype(dtype).name}_{k}", lambda x, f=op, r=ratio, p=pseudo, o=overlapping: tuple(
                f(value=x, pooling_ratio=r, pseudo_random=p, overlapping=o, deterministic=True, seed=7, seed2=2**33 + 5)), (data(2, 23, 17, 3) * 50).astype(dtype), sizes=(False,))
case("fractional_seeded", lambda x: tuple(tf.nn.fractional_max_pool(x, 1.5, True, True, seed=9)), data(2, 31, 18, 2), sizes=(False,))
case("fractional_bad_small", lambda x: tuple(tf.nn.fractional_max_pool(x, 3.0, True, True, seed=9)), data(2, 2, 18, 2), sizes=(False,))
case("conv3d_transpose_unknown", lambda x: tf.nn.conv3d_transpose(x, VOLUME_FILTER[..., :2, :3], [tf.shape(x)[0], 14, 12, 10, 2], 2, "SAME"), VOLUME)
case("conv3d_pointwise", lambda x: tf.nn.conv3d(x, VOLUME_FILTER[:1, :1, :1], [1, 1, 1, 1, 1], "VALID"), VOLUME, sizes=(True,))
case("max_pool_explicit", lambda x: raw.MaxPool(
    input=x, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 0, 2, 1, 0, 0]), IMAGE - 9)

for groups, filter_of in ((2, VOLUME_FILTER), (3, VOLUME_FILTER[:, :, :, :2, :3])):
    case(f"conv3d_groups_{groups}", tf.function(lambda x, f=filter_of: tf.nn.conv3d(
        tf.concat([x, -x], -1), f, [1, 1, 2, 1, 1], "SAME"), jit_compile=True), VOLUME, sizes=(True,))  # XLA has groups


def gradient(function):
    """With respect to x, weighted by w."""
    def of(x, w):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x, w)
    return of


for size in ([5, 4], [18, 14], [9, 7], [1, 20]):
    key = "x".join(map(str, size))
    for name, rule in (("legacy", {}), ("half", {"half_pixel_centers": True}), ("corners", {"align_corners": True})):
        for op in (raw.ResizeBilinear, raw.ResizeNearestNeighbor):
            case(f"grad_{op.__name__}_{name}_{key}", gradient(lambda x, f=op, s=size, r=rule: f(images=x, size=s, **r)), IMAGE, data(3, *size, 4), sizes=(True,))
for radius in (1, 5):
    case(f"grad_lrn_{radius}", gradient(lambda x, r=radius: raw.LRN(input=x, depth_radius=r, bias=1.5, alpha=0.7, beta=0.6)), data(2, 3, 4, 7), data(2, 3, 4, 7), sizes=(True,))
SLICES = {"steps": lambda x: x[:, 1:8:3, ::-2], "new_axis": lambda x: x[:, tf.newaxis, 2:, ..., 0], "last": lambda x: x[..., -1], "none": lambda x: x[:, 5:5],
          "masks": lambda x: x[1, :, -3:-1]}
for name, cut in SLICES.items():
    case(f"grad_slice_{name}", lambda x, f=cut: gradient(f)(x, tf.sin(f(x))), IMAGE)

BLOCKS = data(3, 4, 6, 2)
case("space_to_batch", lambda x: raw.SpaceToBatchND(input=x, block_shape=[2, 3], paddings=[[0, 0], [1, 2]]), BLOCKS)
case("space_to_batch_v1", lambda x: raw.SpaceToBatch(input=x, block_size=2, paddings=[[1, 1], [0, 2]]), BLOCKS)
case("batch_to_space", lambda x: raw.BatchToSpaceND(input=x, block_shape=[1, 3], crops=[[0, 1], [2, 1]]), BLOCKS)
case("batch_to_space_v1", lambda x: raw.BatchToSpace(input=x, block_size=2, crops=[[1, 0], [0, 1]]), data(8, 3, 3, 1))
case("blocks_and_back", lambda x: raw.BatchToSpaceND(input=tf.tanh(raw.SpaceToBatchND(
    input=x, block_shape=[2, 2], paddings=[[0, 0], [0, 0]])), block_shape=[2, 2], crops=[[0, 1], [0, 0]]), BLOCKS)
case("space_to_batch_misfit", lambda x: raw.SpaceToBatchND(input=x, block_shape=[3, 2], paddings=[[0, 0], [0, 0]]), BLOCKS, sizes=(False,))
case("batch_to_space_misfit", lambda x: raw.BatchToSpaceND(input=x, block_shape=[2, 2], crops=[[0, 0], [0, 0]]), BLOCKS, sizes=(False,))
case("pad_computed", lambda x: tf.pad(x, [[0, 0], [tf.shape(x)[2], 1], [0, tf.shape(x)[1] % 3], [0, 0]]), BLOCKS)
case("pad_fed", lambda x, p: tf.pad(x, p, constant_values=3.0), BLOCKS, np.int32([[0, 0], [1, 2], [0, 0], [3, 0]]))

# --- Patches, dilation, places of maxima ------------------------------------------------------------

GRID = np.arange(2 * 9 * 8 * 3).reshape(2, 9, 8, 3)
for padding in ("SAME", "VALID"):
    for key, (ksizes, strides, rates) in {"dense": ((3, 2), (1, 1), (1, 1)), "strides": ((2, 3), (3, 2), (1, 1)), "rates": ((3, 2), (1, 2), (2, 3)),
                                          "apart": ((1, 1), (4, 3), (1, 1)), "far_apart": ((1, 2), (5, 7), (1, 1)), "whole": ((9, 8), (9, 8), (1, 1)), "tall": ((8, 1), (1, 1), (1, 4))}.items():
        of = lambda x, k=ksizes, s=strides, r=rates, p=padding: tf.image.extract_patches(x, [1, *k, 1], [1, *s, 1], [1, *r, 1], p)
        case(f"patches_{key}_{padding}", of, GRID.astype(np.float32))
    for key, (ksizes, strides) in {"dense": ((2, 3, 2), (1, 1, 1)), "strides": ((3, 1, 2), (2, 3, 2)), "apart": ((1, 1, 1), (5, 3, 4)), "far_apart": ((1, 2, 1), (4, 5, 3)), "whole": ((7, 6, 5), (1, 1, 1))}.items():
        case(f"volume_patches_{key}_{padding}", lambda x, k=ksizes, s=strides, p=padding: tf.extract_volume_patches(x, [1, *k, 1], [1, *s, 1], p), VOLUME, sizes=(True,))
    for dtype in (np.uint8, np.int8, np.int16, np.int32, np.int64, np.float64, np.float16):
        case(f"patches_{np.dtype(dtype).name}_{padding}", lambda x, p=padding: tf.image.extract_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], p), GRID.astype(dtype))
    case(f"any_patches_{padding}", lambda x, p=padding: tf.image.extract_patches(x, [1, 3, 2, 1], [1, 2, 1, 1], [1, 1, 1, 1], p), GRID.astype(np.float32), sizes=(False,))
    case(f"patches_too_large_{padding}", lambda x, p=padding: tf.image.extract_patches(x, [1, 4, 4, 1], [1, 1, 1, 1], [1, 5, 5, 1], p), GRID.astype(np.float32), sizes=(False,))
    case(f"patches_just_too_large_{padding}", lambda x, p=padding: tf.image.extract_patches(x, [1, 10, 4, 1], [1, 3, 1, 1], [1, 1, 1, 1], p), GRID.astype(np.float32), sizes=(False,))
    for shape in ([0, 4, 5, 2], [2, 4, 5, 0]):
        case(f"patches_none_{shape[0]}_{padding}", lambda x, p=padding: tf.image.extract_patches(x, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], p), np.zeros(shape, np.float32), sizes=(False,))
for padding in ("SAME", "VALID"):
    for batch in (False, True):
        pool = lambda x, p=padding, b=batch: tf.nn.max_pool_with_argmax(x, [3, 2], [2, 1], p, include_batch_in_index=b)[0]
        case(f"grad_argmax_pool_{padding}_{batch}", gradient(pool), IMAGE, data(*pool(IMAGE).shape))
STRANGE = data(3, 7, 6, 3)
STRANGE[0, :4, :3] = np.nan
STRANGE[0, 4:, 3:] = -np.inf
STRANGE[1, ::2] = np.nan
STRANGE[1, 1::2] = -np.inf
STRANGE[2, :, ::2] = np.inf
STRANGE[2, 2, 1:4] = [np.nan]
TIES = (np.arange(3 * 7 * 6 * 3) * 7 % 5 - 2).reshape(3, 7, 6, 3)
for padding in ("SAME", "VALID"):
    for key, (window, stride) in {"2_2": ((2, 2), (2, 2)), "3x2_1": ((3, 2), (1, 1)), "2x3_3x1": ((2, 3), (3, 1)), "5_4": ((5, 5), (4, 4)), "1_5": ((1, 1), (5, 4))}.items():
        for batch in (False, True):
            of = lambda x, k=window, s=stride, p=padding, b=batch, t=tf.int64: tuple(raw.MaxPoolWithArgmax(
                input=x, ksize=[1, *k, 1], strides=[1, *s, 1], padding=p, include_batch_in_index=b, Targmax=t))
            for name, x in {"strange": STRANGE, "ties": TIES.astype(np.float32), "int32": TIES.astype(np.int32)}.items():
                case(f"argmax_pool_{name}_{key}_{padding}_{batch}", of, x)
    case(f"argmax_pool_32_bits_{padding}", lambda x, f=of: f(x, t=tf.int32), TIES.astype(np.float32))
    for dtype in (np.float64, np.float16, np.uint8, np.int8, np.int64):
        case(f"argmax_pool_{np.dtype(dtype).name}_{padding}", of, np.abs(TIES).astype(dtype))
    case(f"any_argmax_pool_{padding}", lambda x, p=padding: tf.nn.max_pool_with_argmax(x, 2, 1, p), STRANGE, sizes=(False,))
    case(f"argmax_pool_too_large_{padding}", lambda x, p=padding: tf.nn.max_pool_with_argmax(x, [9, 2], 1, p), STRANGE, sizes=(False,))
    for dtype in (np.float32, np.float64, np.float16):
        for key, (strides, rates) in {"dense": ((1, 1), (1, 1)), "strides": ((2, 3), (1, 1)), "far_apart": ((5, 4), (1, 1)), "rates": ((1, 2), (2, 3))}.items():
            morph = lambda f, p=padding, s=strides, r=rates: lambda x: f(x, FILTER[..., :3, 0].astype(x.dtype.as_numpy_dtype), [1, *s, 1], p, "NHWC", [1, *r, 1])
            case(f"dilation_{key}_{np.dtype(dtype).name}_{padding}", morph(tf.nn.dilation2d), STRANGE.astype(dtype))
            case(f"erosion_{key}_{np.dtype(dtype).name}_{padding}", morph(tf.nn.erosion2d), STRANGE.astype(dtype))
    case(f"any_dilation_{padding}", lambda x, p=padding: tf.nn.dilation2d(x, np.zeros((2, 3, 3), np.float32), [1, 2, 1, 1], p, "NHWC", [1, 1, 1, 1]), STRANGE, sizes=(False,))
    case(f"dilation_many_taps_{padding}", lambda x, p=padding: tf.nn.dilation2d(x, data(40, 50, 3), [1, 1, 1, 1], p, "NHWC", [1, 1, 1, 1]), data(1, 41, 53, 3), sizes=(True,))
    case(f"dilation_too_large_{padding}", lambda x, p=padding: tf.nn.dilation2d(x, np.zeros((9, 1, 3), np.float32), [1, 1, 1, 1], p, "NHWC", [1, 1, 1, 1]), STRANGE, sizes=(False,))

# --- Gradients of pooling and convolution in three dimensions, second gradients, glimpses ------------

VOLUME_TIES = (np.arange(2 * 7 * 6 * 5 * 3) * 7 % 5 - 2).reshape(2, 7, 6, 5, 3).astype(np.float32)
for padding in ("SAME", "VALID"):
    for stride in ([1, 1, 1], [2, 2, 2], [3, 1, 2]):
        key = "_".join(map(str, stride))
        kept = {"ksize": [1, 2, 3, 2, 1], "strides": [1, *stride, 1], "padding": padding}

        def max_grad(x, k=kept):
            y = raw.MaxPool3D(input=x, **k)
            return raw.MaxPool3DGrad(orig_input=x, orig_output=y, grad=tf.sin(y), **k)

        def average_grad(x, k=kept):
            return raw.AvgPool3DGrad(orig_input_shape=tf.shape(x), grad=tf.sin(raw.AvgPool3D(input=x, **k)), **k)

        def filter_grad(x, s=stride, p=padding):
            y = tf.nn.conv3d(x, tf.fill([3, 2, 2, 3, 4], 0.1), [1, *s, 1], p)
            return raw.Conv3DBackpropFilterV2(input=x, filter_sizes=[3, 2, 2, 3, 4], out_backprop=tf.sin(y), strides=[1, *s, 1], padding=p)

        def max_second(x, g, k=kept):
            return raw.MaxPool3DGradGrad(orig_input=x, orig_output=raw.MaxPool3D(input=x, **k), grad=g, **k)

        case(f"grad_max_pool3d_{key}_{padding}", max_grad, VOLUME_TIES)
        case(f"grad_grad_max_pool3d_{key}_{padding}", max_second, VOLUME_TIES, data(2, 7, 6, 5, 3))
        case(f"grad_avg_pool3d_{key}_{padding}", average_grad, VOLUME_TIES)
        case(f"grad_conv3d_filter_{key}_{padding}", filter_grad, VOLUME_TIES)
    for stride in ((2, 2), (3, 1)):
        def second(x, g, s=stride, p=padding):
            return raw.MaxPoolGradGrad(orig_input=x, orig_output=tf.nn.max_pool2d(x, [3, 2], s, p), grad=g, ksize=[1, 3, 2, 1], strides=[1, *s, 1], padding=p)

        def second_v2(x, g, s=stride, p=padding):
            kept = {"ksize": [1, 3, 2, 1], "strides": [1, *s, 1], "padding": p}
            return raw.MaxPoolGradGradV2(orig_input=x, orig_output=raw.MaxPoolV2(input=x, **kept), grad=g, **kept)

        case(f"grad_grad_max_pool_{stride[0]}_{padding}", second, VOLUME_TIES[..., 0], data(2, 7, 6, 5))
        case(f"grad_grad_max_pool_v2_{stride[0]}_{padding}", second_v2, VOLUME_TIES[..., 0], data(2, 7, 6, 5))
        case(f"max_pool_v2_{stride[0]}_{padding}", lambda x, s=stride, p=padding: raw.MaxPoolV2(
            input=x, ksize=[1, 3, 2, 1], strides=[1, *s, 1], padding=p), IMAGE)
AROUND = rng.uniform(-1, 1, (3, 2)).astype(np.float32)
for centered in (True, False):
    for normalized in (True, False):
        for op in (raw.ExtractGlimpse, raw.ExtractGlimpseV2):
            for size in ([3, 4], [4, 3], [12, 4], [3, 9], [11, 10]):  # some larger than the image
                case(f"{op.__name__}_{centered}_{normalized}_{size[0]}x{size[1]}", lambda x, o, f=op, s=size, c=centered, n=normalized: f(
                    input=x, size=s, offsets=o, centered=c, normalized=n, noise="zero", uniform_noise=False), IMAGE, AROUND * (1 if normalized else 6), sizes=(False,))


# --- Fused -------------------------------------------------------------------------------------------

# Of one example: TensorFlow's kernel reads others beside their places, and differs from its own padding and convolution.
FUSED = np.random.default_rng(8)
PICTURES, FILTERS = FUSED.normal(size=(1, 6, 7, 3)).astype(np.float32), FUSED.normal(size=(3, 2, 3, 4)).astype(np.float32)
for mode in ("REFLECT", "SYMMETRIC"):
    for padding in ("SAME", "VALID"):
        for k, pads in enumerate(([[0, 0], [1, 2], [2, 0], [0, 0]], [[0, 0], [0, 0], [0, 0], [0, 0]])):
            case(f"fused_pad_{mode}_{padding}_{k}", lambda x, m=mode, p=padding, pads=pads: raw.FusedPadConv2D(
                input=x, paddings=pads, filter=FILTERS, mode=m, strides=[1, 2, 1, 1], padding=p), PICTURES)
            for align in (True, False):
                for size in ([9, 5],):
                    case(f"fused_resize_{mode}_{padding}_{k}_{align}_{size[0]}", lambda x, m=mode, p=padding, pads=pads, a=align, size=size: raw.FusedResizeAndPadConv2D(
                        input=x, size=size, paddings=pads, filter=FILTERS, resize_align_corners=a, mode=m, strides=[1, 1, 1, 1], padding=p), PICTURES)
case("fused_pad_fed", lambda x, p, f: raw.FusedPadConv2D(input=x, paddings=p, filter=f, mode="REFLECT", strides=[1, 1, 1, 1], padding="VALID"), PICTURES, np.int32(
    [[0, 0], [1, 2], [2, 0], [0, 0]]), FILTERS)
for padding in ("SAME", "VALID"):
    case(f"conv_2d_{padding}", lambda x, p=padding: raw.Conv(input=x, filter=FILTERS, strides=[1, 2, 1, 1], padding=p), PICTURES)
    case(f"conv_3d_{padding}", lambda x, p=padding: raw.Conv(input=x[..., None, :], filter=FILTERS[:, :, None], strides=[1, 1, 1, 1, 1], padding=p), PICTURES)

# --- Gradients of recurrent cells ---------------------------------------------------------------------

CELLS = np.random.default_rng(9)
cell_part = lambda *shape: CELLS.normal(size=shape).astype(np.float32)
for peepholes in (False, True):
    case(f"lstm_grad_{peepholes}", lambda x, c, h, dc, dh, p=peepholes, w=cell_part(7, 12), wc=cell_part(3, 3), b=cell_part(12): tuple(raw.LSTMBlockCellGrad(
        x=x, cs_prev=c, h_prev=h, w=w, wci=wc[0], wcf=wc[1], wco=wc[2], b=b, cs_grad=dc, h_grad=dh, use_peephole=p, **{
            k: getattr(raw.LSTMBlockCell(x=x, cs_prev=c, h_prev=h, w=w, wci=wc[0], wcf=wc[1], wco=wc[2], b=b, use_peephole=p), k) for k in ("i", "cs", "f", "o", "ci", "co")})),
         cell_part(5, 4), cell_part(5, 3), cell_part(5, 3), cell_part(5, 3), cell_part(5, 3), sizes=(True,))
for version in ("", "V2"):
    for peepholes in (False, True):
        for steps in (4, 2):
            def block_grad(x, c, h, dc, dh, v=version, p=peepholes, n=steps, w=cell_part(7, 12), wc=cell_part(3, 3), b=cell_part(12)):
                some = dict(seq_len_max=tf.constant(n, tf.int64), x=x, cs_prev=c, h_prev=h, w=w, wci=wc[0], wcf=wc[1], wco=wc[2], b=b, use_peephole=p)
                made = getattr(raw, f"BlockLSTM{v}")(**some)._asdict()
                return tuple(getattr(raw, f"BlockLSTMGrad{v}")(**some, **made, cs_grad=dc, h_grad=dh))
            case(f"block_lstm_grad{version}_{peepholes}_{steps}", block_grad, cell_part(4, 5, 4), cell_part(5, 3), cell_part(5, 3), cell_part(4, 5, 3), cell_part(4, 5, 3), sizes=(True,))
case("gru_grad", lambda x, h, d, w=cell_part(7, 6), wc=cell_part(7, 3), b=cell_part(6), bc=cell_part(3): tuple(raw.GRUBlockCellGrad(
    x=x, h_prev=h, w_ru=w, w_c=wc, b_ru=b, b_c=bc, d_h=d, **{k: getattr(raw.GRUBlockCell(x=x, h_prev=h, w_ru=w, w_c=wc, b_ru=b, b_c=bc), k) for k in "ruc"})),
     cell_part(5, 4), cell_part(5, 3), cell_part(5, 3), sizes=(True,))


def main():
    return function_cases.main(CASES, 60, lambda cases: function_cases.run(cases, STATIC, SIZED, 1e-5, lambda name, theirs: 1e-5))


if __name__ == "__main__":
    sys.exit(main())
