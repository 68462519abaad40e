"""Gradients of imported functions of one tensor, a row each, equal those of tf.GradientTape: what TensorFlow writes for
its own functions, beside Keras' layers (test_layer_gradients.py)."""
import os
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import ops as ops_module

import gradient_cases

rng = np.random.default_rng(31)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


def positive(*shape):
    return rng.uniform(0.2, 2, shape).astype(np.float32)


M, C, V, B, P, Q = normal(4, 6), normal(2, 5, 4), normal(7), normal(2, 8, 6, 3), positive(4, 6), normal(3, 4, 4)
SPD = (Q @ Q.transpose(0, 2, 1) + 3 * np.eye(4)).astype(np.float32)
U = rng.uniform(-0.9, 0.9, (4, 6)).astype(np.float32)
W, R = tf.constant(normal(4, 6)), tf.constant(positive(4, 6))
IDS = tf.constant([2, 0, 2, 1])
L, N, T, S, I = tf.linalg, tf.nn, tf.math, tf.signal, tf.image


@tf.custom_gradient
def clipped(x):
    return x * x, lambda dy: tf.clip_by_value(dy, -0.1, 0.1) * x


def penalty(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.tanh(x @ tf.transpose(W)))
    return tf.norm(tape.gradient(y, x), axis=1)


def power_iteration(w):
    u = tf.stop_gradient(T.l2_normalize(tf.ones([1, 4]) @ w))
    return w / (tf.ones([1, 4]) @ w @ tf.transpose(u))


BOXES = np.array([[.1, .2, .8, .9], [.9, .1, .3, .7], [-.4, .3, .6, 1.3]], np.float32)


def places(values, shift=0):
    """A sparse matrix [4,6] of 7 values, a row of them empty."""
    return tf.SparseTensor([[0, 1 + shift], [0, 3], [1, 0 + shift], [1, 2], [1, 4 + shift], [3, 1], [3, 3 + shift]], values, [4, 6])


def rows(x):
    return tf.RaggedTensor.from_row_lengths(x, [1, 0, 3])


def partitioned(x):
    parts = tf.dynamic_partition(x, tf.cast(x[:, 0] > 0, tf.int32), 2)
    at = tf.dynamic_partition(tf.range(4), tf.cast(x[:, 0] > 0, tf.int32), 2)
    return tf.dynamic_stitch(at, [tf.sin(parts[0]), parts[1] ** 2])


def slope(f):
    """The gradient of a function's squared sines, whose own gradient is a second derivative."""
    def g(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.sin(f(x)) ** 2)
        return tape.gradient(y, x)
    return g


def batch_norm(x):
    return tf.compat.v1.nn.fused_batch_norm(x, x[0, 0, 0] + 1.5, x[0, 0, 1], is_training=True)[0]


def masked_twice(x):
    y = tf.boolean_mask(tf.sin(x), x[:, 0] > x[:, 1])
    y = tf.boolean_mask(y * y, y[:, 2] > tf.reduce_mean(y[:, 2]))
    return tf.reduce_sum(y, 0) * x


# name -> x, the function of it
ROWS = {
    # of each element
    **{f.__name__: (M, f) for f in (
        T.abs, T.asinh, T.atan, T.cos, T.cosh, T.erf, T.erfc, T.exp, T.expm1, T.negative, T.sigmoid, T.sign, T.sin, T.sinh,
        T.softplus, T.softsign, T.square, T.tan, T.tanh, T.floor, T.ceil, T.rint, N.elu, N.relu, N.relu6, N.selu, N.silu, N.gelu, N.leaky_relu)},
    **{f.__name__: (P, f) for f in (T.log, T.log1p, T.rsqrt, T.sqrt, T.reciprocal, T.lgamma, T.digamma, T.ndtri, T.erfcinv, T.bessel_i0e, T.bessel_i1e)
       if f.__name__ not in ("ndtri", "erfcinv")},
    **{f.__name__: (U, f) for f in (T.acos, T.asin, T.atanh, T.erfinv)},
    "acosh": (P + 1, T.acosh), "log_sigmoid": (M, T.log_sigmoid), "stop": (M, lambda x: x * tf.stop_gradient(x)),
    "add": (M, lambda x: x + W[0]), "sub": (M, lambda x: W[:, :1] - x), "mul": (M, lambda x: x * W * x), "div": (P, lambda x: W / x),
    "pow": (P, lambda x: x ** R), "pow_of": (P, lambda x: R ** x), "atan2": (M, lambda x: T.atan2(x, R)), "maximum": (M, lambda x: T.maximum(x, W)),
    "minimum": (M, lambda x: T.minimum(W, x)), "floormod": (M, lambda x: T.floormod(x, R)), "floordiv": (M, lambda x: T.floordiv(x, R)),
    "squared_difference": (M, lambda x: T.squared_difference(x, W)), "divide_no_nan": (M, lambda x: T.divide_no_nan(x, R)),
    "multiply_no_nan": (M, lambda x: T.multiply_no_nan(x, R)), "xlogy": (P, lambda x: T.xlogy(R, x)), "xlog1py": (P, lambda x: T.xlog1py(R, x)),
    "xdivy": (P, lambda x: T.xdivy(W, x)), "clip": (M, lambda x: tf.clip_by_value(x, -0.5, 0.7)), "clip_norm": (M, lambda x: tf.clip_by_norm(x, 1.5)),
    "where": (M, lambda x: tf.where(x > 0.3, x * 2, tf.sin(x))), "cast": (M, lambda x: tf.cast(tf.cast(x, tf.float64) ** 2, tf.float32)),
    # reductions and scans
    **{f.__name__: (C, lambda x, f=f: f(x, axis=[0, 2])) for f in (
        T.reduce_sum, T.reduce_mean, T.reduce_max, T.reduce_min, T.reduce_prod, T.reduce_logsumexp, T.reduce_variance, T.reduce_std, T.reduce_euclidean_norm)},
    "norm_1": (M, lambda x: tf.norm(x, 1, axis=1)), "norm_inf": (M, lambda x: tf.norm(x, np.inf, axis=0)),
    "cumsum": (C, lambda x: T.cumsum(x, 1, exclusive=True)), "cumsum_back": (C, lambda x: T.cumsum(x, 2, reverse=True)),
    "cumprod": (C, lambda x: T.cumprod(x, 1)), "cumulative_logsumexp": (C, lambda x: T.cumulative_logsumexp(x, 1)),
    "top_k": (M, lambda x: T.top_k(x, 3)[0]), "sort": (M, lambda x: tf.sort(x, direction="DESCENDING")), "sort_axis": (C, lambda x: tf.sort(x, axis=1)),
    "top_k_gate": (M, lambda x: tf.reduce_sum(N.softmax(T.top_k(x, 2)[0])[..., None] * tf.gather(W, T.top_k(x, 2)[1], axis=1, batch_dims=1)[..., None], 1)),
    "segment_sum": (C, lambda x: T.segment_sum(x, [0, 1])), "segment_mean": (M, lambda x: T.segment_mean(x, [0, 0, 1, 3])),
    "segment_max": (M, lambda x: T.segment_max(x, [0, 0, 1, 1])), "segment_min": (M, lambda x: T.segment_min(x, [0, 0, 1, 1])),
    "unsorted_segment_sum": (M, lambda x: T.unsorted_segment_sum(x, IDS, 3)), "unsorted_segment_mean": (M, lambda x: T.unsorted_segment_mean(x, IDS, 4)),
    "unsorted_segment_max": (M, lambda x: T.unsorted_segment_max(x, IDS, 3)), "unsorted_segment_prod": (M, lambda x: T.unsorted_segment_prod(x, IDS, 3)),
    "unsorted_segment_sqrt_n": (M, lambda x: T.unsorted_segment_sqrt_n(x, IDS, 3)),
    # places
    "gather": (M, lambda x: tf.gather(x, [[3, 0], [0, 1]])), "gather_axis": (C, lambda x: tf.gather(x, [2, 2, 0], axis=1)),
    "gather_batch": (M, lambda x: tf.gather(x, tf.constant([[0, 1], [5, 5], [2, 3], [4, 0]]), batch_dims=1)),
    "gather_nd": (C, lambda x: tf.gather_nd(x, [[1, 2], [0, 4], [1, 2]])), "embedding_lookup": (M, lambda x: N.embedding_lookup(x, [[3, 3], [0, 2]])),
    "scatter_nd": (M, lambda x: tf.scatter_nd([[5], [1], [5], [2]], x, [6, 6])), "tensor_update": (M, lambda x: tf.tensor_scatter_nd_update(x * 2, [[1], [3]], x[:2])),
    "tensor_add": (M, lambda x: tf.tensor_scatter_nd_add(W, [[1], [1], [0], [3]], x)), "boolean_mask_known": (M, lambda x: x * tf.cast(x > 0, tf.float32)),
    "slice": (C, lambda x: x[:, 1:4:2, ::-1]), "new_axis": (C, lambda x: x[..., tf.newaxis, 2]), "tile": (M, lambda x: tf.tile(x, [2, 3])),
    "repeat": (M, lambda x: tf.repeat(x, 3, axis=1)), "pad": (M, lambda x: tf.pad(x, [[1, 2], [0, 3]])), "reflect": (M, lambda x: tf.pad(x, [[1, 2], [0, 3]], "REFLECT")),
    "symmetric": (M, lambda x: tf.pad(x, [[1, 2], [0, 3]], "SYMMETRIC")), "roll": (M, lambda x: tf.roll(x, [1, -2], [0, 1])), "reverse": (C, lambda x: tf.reverse(x, [1, 2])),
    "reverse_sequence": (C, lambda x: tf.reverse_sequence(x, [3, 5], seq_axis=1)), "transpose": (C, lambda x: tf.transpose(x, [2, 0, 1])),
    "stack": (M, lambda x: tf.stack([x, x * x], 1)), "unstack": (M, lambda x: tf.add_n(tf.unstack(x, axis=1))), "split": (M, lambda x: tf.split(x, [1, 2, 3], 1)[1] ** 2),
    "concat": (M, lambda x: tf.concat([x, W, x * x], 1)), "broadcast_to": (V, lambda x: tf.broadcast_to(x, [3, 7])), "meshgrid": (V, lambda x: T.multiply(*tf.meshgrid(x, x))),
    "depth_to_space": (normal(2, 3, 2, 8), lambda x: N.depth_to_space(x, 2)), "space_to_depth": (B, lambda x: N.space_to_depth(x, 2)),
    "space_to_batch": (B, lambda x: tf.space_to_batch(x, [2, 3], [[0, 2], [1, 2]])), "band_part": (Q, lambda x: L.band_part(x, 1, 0)),
    "extract_patches": (B, lambda x: I.extract_patches(x, [1, 3, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")),
    # products, linear algebra
    "matmul": (Q, lambda x: tf.matmul(x, x, transpose_b=True)), "einsum": (C, lambda x: tf.einsum("abc,abd->acd", x, x)), "tensordot": (M, lambda x: tf.tensordot(x, W, [[0], [0]])),
    "cross": (normal(4, 3), lambda x: L.cross(x, x[:, ::-1] * 2)), "matvec": (Q, lambda x: L.matvec(x, x[:, 0])), "trace": (Q, L.trace), "diag_part": (Q, L.diag_part),
    "diag": (M, L.diag), "set_diag": (Q, lambda x: L.set_diag(x, x[:, 1])), "det": (Q, L.det), "slogdet": (SPD, lambda x: L.slogdet(x)[1]), "inv": (SPD, L.inv),
    "cholesky": (SPD, L.cholesky), "solve": (SPD, lambda x: L.solve(x, x[..., :2] * 2)), "triangular_solve": (SPD, lambda x: L.triangular_solve(x, x[..., :2])),
    "eigh": (SPD, lambda x: L.eigh(x)[0]), "qr": (normal(3, 3), lambda x: L.qr(x)[1]), "svd": (normal(4, 3), lambda x: L.svd(x, compute_uv=False)),
    "expm": (Q / 4, L.expm), "logdet": (SPD, L.logdet),
    # nn
    "softmax": (M, N.softmax), "log_softmax": (C, lambda x: N.log_softmax(x, 1)), "l2_normalize": (M, lambda x: T.l2_normalize(x, 1)), "lrn": (B, lambda x: N.local_response_normalization(x, 2)),
    "moments": (B, lambda x: tf.concat(N.moments(x, [0, 1, 2]), 0)), "sparse_xent": (M, lambda x: N.sparse_softmax_cross_entropy_with_logits(IDS, x)),
    "xent": (M, lambda x: N.softmax_cross_entropy_with_logits(N.softmax(W), x)), "sigmoid_xent": (M, lambda x: N.sigmoid_cross_entropy_with_logits(tf.sigmoid(W), x)),
    "weighted_xent": (M, lambda x: N.weighted_cross_entropy_with_logits(tf.sigmoid(W), x, 2.0)), "l2_loss": (M, N.l2_loss), "log_poisson": (M, lambda x: N.log_poisson_loss(R, x)),
    "bias_add": (V, lambda x: N.bias_add(tf.ones([2, 3, 7]), x)), "conv": (B, lambda x: N.conv2d(x, tf.reshape(x[0, :6, :2, :], [2, 2, 3, 3]), 1, "SAME")),
    "dilated": (B, lambda x: N.atrous_conv2d(x, tf.ones([2, 2, 3, 2]), 2, "VALID")), "max_pool": (B, lambda x: N.max_pool2d(x, 3, 2, "SAME")), "avg_pool": (B, lambda x: N.avg_pool2d(x, 2, 2, "VALID")),
    "crelu": (M, N.crelu), "batch_normalization": (B, lambda x: N.batch_normalization(x, *N.moments(x, [0]), None, None, 1e-3)),
    # images and signals
    "resize_bilinear": (B, lambda x: I.resize(x, [5, 9])), "resize_nearest": (B, lambda x: I.resize(x, [5, 9], "nearest")), "brightness": (B, lambda x: I.adjust_brightness(x, 0.2)),
    "standardize": (B, I.per_image_standardization), "central_crop": (B, lambda x: I.central_crop(x, 0.5)), "flip": (B, I.flip_left_right), "rot90": (B, lambda x: I.rot90(x, 1)),
    "grayscale": (B, I.rgb_to_grayscale), "total_variation": (B, I.total_variation), "ssim": (np.abs(normal(1, 16, 16, 1)), lambda x: I.ssim(x, x * x, 1.0, filter_size=5)),
    "fft": (V, lambda x: tf.abs(S.fft(tf.complex(x, x * x)))), "rfft": (M, lambda x: T.real(S.rfft(x)) * T.imag(S.rfft(x))), "stft": (normal(40), lambda x: tf.abs(S.stft(x, 16, 8))),
    "dct": (M, S.dct), "irfft": (V, lambda x: S.irfft(tf.complex(x, -x))), "frame": (normal(20), lambda x: S.frame(x, 6, 3)), "overlap": (M, lambda x: S.overlap_and_add(x, 3)),
    "angle": (V, lambda x: T.angle(tf.complex(x, x * x + 1))), "complex_mul": (V, lambda x: T.imag(tf.complex(x, x * x) ** 2)),
    # special functions
    "polygamma": (P, lambda x: T.polygamma(tf.constant(2.0), x)), "zeta": (P, lambda x: T.zeta(R + 1.5, x)), "igamma": (P, lambda x: T.igamma(R, x)),
    "igammac": (P, lambda x: T.igammac(R, x)), "igamma_a": (P, lambda x: T.igamma(x, R)), "betainc": (P / 3, lambda x: T.betainc(R, R + 1, x)), "lbeta": (P, T.lbeta),
    "lgamma_negative": (-P - 0.3, T.lgamma), "ndtri": (P / 3, T.ndtri), "erfcinv": (P / 3, T.erfcinv),
    **{f.__name__: (P, f) for f in (T.special.bessel_j0, T.special.bessel_k0, T.special.bessel_y1, T.special.dawsn, T.special.expint, T.special.fresnel_cos, T.special.spence)},
    # more of nn and images
    "conv3d": (normal(1, 4, 5, 5, 2), lambda x: N.conv3d(x, tf.ones([2, 2, 2, 2, 3]), [1, 1, 1, 1, 1], "SAME")), "softmax_axis": (C, lambda x: N.softmax(x, 0)),
    "conv1d_transpose": (C, lambda x: N.conv1d_transpose(x, tf.ones([3, 2, 4]), [2, 10, 2], 2)),
    "depthwise": (B, lambda x: N.depthwise_conv2d(x, tf.ones([3, 3, 3, 2]), [1, 1, 1, 1], "SAME", dilations=[2, 2])),
    "separable": (B, lambda x: N.separable_conv2d(x, tf.ones([3, 3, 3, 2]), tf.ones([1, 1, 6, 2]), [1, 1, 1, 1], "VALID")),
    "erosion": (B, lambda x: N.erosion2d(x, tf.zeros([2, 2, 3]), [1, 1, 1, 1], "VALID", "NHWC", [1, 1, 1, 1])), "pool": (B, lambda x: N.pool(x, [2, 2], "AVG", padding="SAME", strides=[1, 2])),
    "stateless_dropout": (M, lambda x: N.experimental.stateless_dropout(x, 0.3, seed=[1, 2])), "stateless_normal": (M, lambda x: x * tf.random.stateless_normal([4, 6], [3, 4])),
    "ctc": (normal(5, 2, 4), lambda x: N.ctc_loss(tf.constant([[1, 2], [2, 3]]), x, [2, 2], [5, 5])), "crop_and_resize": (B, lambda x: I.crop_and_resize(x, [[0, 0, .5, .7]], [0], [3, 4])),
    "sobel": (B, I.sobel_edges), "psnr": (B, lambda x: I.psnr(x, x * x, 1.0)), "yuv": (B, I.rgb_to_yuv), "gamma": (np.abs(B), lambda x: I.adjust_gamma(x, 1.5)), "hsv": (np.abs(B) / 4, I.rgb_to_hsv),
    "sparse_matmul": (M, lambda x: tf.sparse.sparse_dense_matmul(tf.sparse.from_dense(tf.eye(4)), x)), "ragged_mean": (M, lambda x: tf.reduce_mean(tf.RaggedTensor.from_row_lengths(x, [1, 3]), axis=1)),
    "dynamic_stitch": (M, lambda x: tf.dynamic_stitch([[0, 2], [1, 3]], [x[:2], x[2:]])), "boolean_mask": (M, lambda x: tf.boolean_mask(x * 2, [True, False, True, True])),
    "pinv": (SPD, L.pinv), "lstsq": (normal(5, 3), lambda x: L.lstsq(x, tf.ones([5, 2]))), "frobenius": (Q, lambda x: tf.norm(x, "fro", axis=[1, 2])),
    "global_norm": (M, lambda x: L.global_norm([x, x * 2])), "clip_global": (M, lambda x: tf.clip_by_global_norm([x], 1.0)[0][0]),
    # images whose sizes are operands
    **{f"resize_{m}_{n}": (B, lambda x, m=m, n=n: I.resize(x, [n, 9], m)) for m in ("bicubic", "lanczos3", "mitchellcubic", "gaussian") for n in (5, 11)},
    "antialias": (B, lambda x: I.resize(x, [3, 4], "bicubic", antialias=True)), "scale_and_translate": (B, lambda x: tf.raw_ops.ScaleAndTranslate(
        images=x, size=[5, 7], scale=[0.7, 1.4], translation=[0.3, -1.0], kernel_type="triangle", antialias=True)),
    **{f"legacy_bicubic_{a}": (B, lambda x, a=a: tf.raw_ops.ResizeBicubic(images=x, size=[5, 9], align_corners=a)) for a in (False, True)},
    "crop_nearest": (B, lambda x: I.crop_and_resize(x, [[.1, .2, .9, .8], [1.2, -.3, .2, .5]], [1, 0], [3, 4], "nearest", -1.0)),
    "crop_boxes": (BOXES, lambda x: I.crop_and_resize(tf.constant(B), x, [0, 1, 1], [3, 4])), "crop_one": (BOXES, lambda x: I.crop_and_resize(tf.constant(B), x, [0, 1, 1], [1, 1])),
    "crop_both": (BOXES, lambda x: I.crop_and_resize(tf.tile(x[None, :, :, None], [2, 3, 2, 1]), x, [0, 1, 1], [2, 5])),
    "projective": (B, lambda x: tf.raw_ops.ImageProjectiveTransformV3(images=x, transforms=[[.9, .2, -1, -.1, 1.1, .5, .01, -.02]], output_shape=[7, 5],
                                                                      fill_value=1.0, interpolation="BILINEAR", fill_mode="REFLECT")),
    "fractional_max": (B, lambda x: N.fractional_max_pool(x, 1.6, overlapping=True, seed=5)[0]), "fractional_avg": (B, lambda x: N.fractional_avg_pool(x, [1, 1.4, 1.4, 1], True, True, seed=7)[0]),
    "fractional_ties": (np.ones_like(B), lambda x: N.fractional_max_pool(x, 1.6, seed=5)[0]), "dilation": (B, lambda x: N.dilation2d(x, tf.ones([2, 2, 3]), [1, 1, 1, 1], "SAME", "NHWC", [1, 2, 2, 1])),
    # sparse and ragged tensors
    "sparse_values": (V, lambda x: tf.sparse.sparse_dense_matmul(places(x), P.T)), "sparse_adjoint": (M, lambda x: tf.sparse.sparse_dense_matmul(places(x[0, 0] + V), x, adjoint_a=True)),
    "sparse_adjoint_b": (normal(3, 6), lambda x: tf.sparse.sparse_dense_matmul(places(V * x[0, 0]), x, adjoint_b=True)), "sparse_to_dense": (V, lambda x: tf.sparse.to_dense(places(x), default_value=2.0)),
    "sparse_default": (V, lambda x: tf.sparse.to_dense(places(x), default_value=x[0])), "sparse_add": (V, lambda x: tf.sparse.to_dense(tf.sparse.add(places(x), places(x[::-1] ** 2, 1)))),
    "sparse_sum": (V, lambda x: tf.sparse.reduce_sum(places(x), 1)), "sparse_sum_keep": (V, lambda x: tf.sparse.reduce_sum(places(x), [-2], keepdims=True)), "sparse_sum_all": (V, lambda x: tf.sparse.reduce_sum(places(x))),
    "sparse_softmax": (V, lambda x: tf.sparse.softmax(places(x)).values), "sparse_reorder": (V, lambda x: tf.sparse.reorder(tf.SparseTensor(places(x).indices[::-1], x, [4, 6])).values),
    "sparse_slice": (V, lambda x: tf.sparse.slice(places(x), [0, 1], [3, 4]).values), "sparse_empty_rows": (V, lambda x: tf.sparse.fill_empty_rows(places(x), x[1])[0].values),
    "sparse_reshape": (V, lambda x: tf.sparse.to_dense(tf.sparse.reshape(places(x), [3, 8]))), "sparse_transpose": (V, lambda x: tf.sparse.to_dense(tf.sparse.transpose(places(x)))),
    "sparse_mul": (V, lambda x: (places(x) * W).values), "sparse_map": (V, lambda x: tf.sparse.map_values(tf.tanh, places(x)).values), "sparse_from_dense": (M, lambda x: tf.sparse.reduce_sum(tf.sparse.from_dense(x), 1)),
    **{f"embedding_{c}": (M, lambda x, c=c: N.embedding_lookup_sparse(x, tf.SparseTensor([[0, 0], [0, 1], [2, 0], [2, 1], [2, 2]], tf.constant([3, 1, 0, 0, 2], tf.int64), [4, 3]), None, combiner=c)) for c in ("sum", "mean", "sqrtn")},
    "safe_embedding": (M, lambda x: N.safe_embedding_lookup_sparse(x, tf.SparseTensor([[0, 0], [2, 1]], tf.constant([3, 1], tf.int64), [4, 3]))),
    **{f.__name__: (M, lambda x, f=f: f(x, tf.constant([3, 0, 0, 2, 1]), tf.constant([0, 0, 2, 2, 2]))) for f in (tf.sparse.segment_sum, tf.sparse.segment_mean, tf.sparse.segment_sqrt_n)},
    "segment_count": (M, lambda x: tf.sparse.segment_mean(x, tf.constant([3, 0, 0, 2, 1]), tf.constant([0, 0, 2, 2, 2]), 5)),
    "ragged_to_tensor": (M, lambda x: rows(x).to_tensor()), "ragged_default": (M, lambda x: rows(x[:, 0]).to_tensor(default_value=x[0, 1])), "ragged_cut": (M, lambda x: rows(x).to_tensor(shape=[4, 2, 6], default_value=1.0)),
    "ragged_gather": (M, lambda x: tf.gather(rows(x), [2, 0, 2]).values), "ragged_sum": (M, lambda x: tf.reduce_sum(rows(x), axis=1)), "ragged_max": (M, lambda x: tf.reduce_max(rows(x), axis=1)),
    "ragged_to_sparse": (M, lambda x: tf.sparse.to_dense(rows(x[:, 1]).to_sparse())), "ragged_softmax": (M, lambda x: tf.map_fn(N.softmax, rows(x[:, 2]), fn_output_signature=tf.RaggedTensorSpec([None], tf.float32)).to_tensor()),
    "ragged_concat": (M, lambda x: tf.concat([rows(x), rows(x * x)], axis=1).values), "ragged_values": (M, lambda x: tf.ragged.map_flat_values(tf.matmul, rows(x), tf.transpose(W)).values),
    "dynamic_partition": (M, lambda x: tf.concat([p * (i + 1.0) for i, p in enumerate(tf.dynamic_partition(x, [1, 0, 1, 2], 4))], 0)),
    "parallel_stitch": (M, lambda x: tf.raw_ops.ParallelDynamicStitch(indices=[[0, 3], [[1, 5]]], data=[x[:2], x[None, 2:]])), "stitch_twice": (M, lambda x: tf.dynamic_stitch([[0, 2], [2, 3]], [x[:2], x[2:] * x[2:]])),
    # shapes that data decide
    "mask_of_data": (M, lambda x: tf.reduce_sum(tf.boolean_mask(x * x, x[:, 0] > x[:, 1]), 0) * x), "where_of_data": (M, lambda x: tf.scatter_nd(tf.where(x > 0), tf.gather_nd(tf.sin(x), tf.where(x > 0)) ** 2, [4, 6])),
    "partition_of_data": (M, lambda x: partitioned(x)), "unique_of_data": (M, lambda x: tf.gather(x, tf.unique(tf.cast(x[:, 0] > 0, tf.int32))[0]) [:1] * x),
    "mask_twice": (M, lambda x: masked_twice(x)), "none_masked": (M, lambda x: tf.reduce_sum(tf.boolean_mask(x * x, x[:, 0] > 1e6)) + x), "nonzero_sum": (M, lambda x: tf.reduce_sum(tf.sparse.from_dense(N.relu(x)).values ** 2) * x),
    # more of linear algebra, colors, and what is random
    "sqrtm": (SPD, L.sqrtm), "lstsq_wide": (normal(3, 5), lambda x: L.lstsq(x, tf.ones([3, 2]), l2_regularizer=0.1)), "tridiagonal": (normal(3, 5) + np.array([[0], [4], [0]], np.float32), lambda x: L.tridiagonal_solve(x, tf.reshape(x[:, :4], [6, 2])[:5] + x[0, 1], "compact")),
    **{f"banded_{lower}_{adjoint}": (normal(3, 5) + np.float32(3), (lambda lower, adjoint: lambda x: L.banded_triangular_solve(x, tf.reshape(x[:2], [5, 2]), lower=lower, adjoint=adjoint))(lower, adjoint))
       for lower in (True, False) for adjoint in (True, False)},
    "banded_one_matrix": (normal(2, 4), lambda x: L.banded_triangular_solve(tf.abs(x) + 1, tf.reshape(x, [2, 4, 1]))),
    "quantized_in_range": (M, lambda x: tf.quantization.quantize_and_dequantize_v2(x, -0.7, 0.9)), "quantized_in_given_range": (M, lambda x: tf.quantization.quantize_and_dequantize_v2(x, -0.7, 0.9, range_given=True)),
    "quantized_in_ranges": (M, lambda x: tf.quantization.quantize_and_dequantize_v2(x, [-0.5, -0.6, -1.0, -2.0], [0.5, 0.7, 0.2, 1.0], axis=0)),
    "isotonic": (M, lambda x: N.isotonic_regression(x)[0]) , "gamma_draws": (P, lambda x: tf.random.stateless_gamma([3, 4, 6], [1, 2], x)),
    "cumulative_logsumexp_back": (C, lambda x: T.cumulative_logsumexp(x, 1, reverse=True, exclusive=True)),
    # second derivatives
    **{f"slope_{name}": (x, slope(f)) for name, x, f in (
        ("max_pool", B, lambda x: N.max_pool2d(x, 3, 2, "SAME")), ("max_pool_valid", B, lambda x: N.max_pool2d(x, 2, 1, "VALID")), ("max_pool_ties", np.round(B), lambda x: N.max_pool2d(x, 3, 2, "SAME")), ("avg_pool", B, lambda x: N.avg_pool2d(x, 3, 2, "SAME")),
        ("batch_norm", B, batch_norm), ("cholesky", SPD, L.cholesky), ("conv", B, lambda x: N.conv2d(x, tf.reshape(x[0, :6, :2, :], [2, 2, 3, 3]), 2, "SAME")),
        ("gelu", M, N.gelu), ("layer_norm", M, lambda x: T.l2_normalize(x - tf.reduce_mean(x, 1, keepdims=True), 1)),
        ("segment", M, lambda x: T.unsorted_segment_sum(x * x, IDS, 3)), ("gather", M, lambda x: tf.gather(x * x, [3, 0, 0])), ("softmax", M, N.softmax), ("sparse", V, lambda x: tf.sparse.sparse_dense_matmul(places(x), P.T * x[0])), ("partition", M, lambda x: tf.dynamic_partition(x ** 3, [1, 0, 1, 2], 3)[1]))},
    # control
    "cond": (M, lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x * x, lambda: tf.exp(x))), "case": (M, lambda x: tf.switch_case(tf.constant(1), [lambda: x, lambda: x ** 3])),
    "while": (M, lambda x: tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, tf.tanh(y) + x), (0, x))[1]), "map_fn": (M, lambda x: tf.map_fn(lambda r: r * tf.reduce_sum(r), x)),
    "scan": (M, lambda x: tf.scan(lambda a, r: a * 0.5 + tf.sin(r), x)), "foldl": (M, lambda x: tf.foldl(lambda a, r: a * r, x)), "vectorized_map": (M, lambda x: tf.vectorized_map(lambda r: tf.cumsum(r), x)),
    "strings": (M, lambda x: x * tf.gather(x, tf.strings.to_hash_bucket_fast(tf.strings.as_string(tf.cast(x[:, 0] > 0, tf.int32)), 4))),
    "custom": (M, clipped), "penalty": (M, penalty), "power_iteration": (normal(4, 6), power_iteration), "recompute": (M, lambda x: tf.recompute_grad(lambda v: tf.tanh(v) * v)(x)),
}
# What cannot be differentiated yet, by the text of the error: a listed gap, which must go from here when it is closed.
GAPS = {"ragged_softmax": 'while "map/while/while" assigns a variable, or has regions that only the host runs'}


def signatures(names):
    model = tf.Module()
    model.functions = {name: tf.function((lambda f: lambda x: {"y": f(x)})(ROWS[name][1]),
                                         autograph=False, input_signature=[tf.TensorSpec(ROWS[name][0].shape, tf.float32, "x")]) for name in names}
    return model


def check_zeros():
    """Where an operator says that its gradient is zero, TensorFlow's is, or there is none."""
    zero = {"argmax", "argmin", "ceil", "floor", "floor_div", "round", "sign", "truncate_div"}  # functions that give None
    table = subprocess.run([os.environ["SEXTANT_BIN"], "ops"], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split() for line in table[1:] if line[:1].isalpha()]
    rows = [(row[0], [op.strip(",") for op in row[6:]]) for row in rows if row[4:5] == ["zero"] and row[0] not in zero]
    assert len(rows) > 50, table[:3]
    for name, ops in rows:
        for op in ops:
            try:
                gradient = ops_module.gradient_registry.lookup(op)
            except LookupError:
                continue
            assert gradient is None, f"the gradient of {name} is said to be zero; TensorFlow's of {op} is {gradient.__name__}"


def main():
    check_zeros()
    names, wrong = sys.argv[1:] or list(ROWS), {}
    for i in range(0, len(names), gradient_cases.BATCH):
        part = names[i:i + gradient_cases.BATCH]
        wrong |= gradient_cases.check(signatures(part), {name: [ROWS[name][0]] for name in part}, rng,
                                      lambda theirs, _: 2e-5 * max(1, np.abs(theirs).max()),
                                      options=tf.saved_model.SaveOptions(experimental_custom_gradients=True))
    gradient_cases.report("functions", names, wrong, GAPS)


if __name__ == "__main__":
    sys.exit(main())
