"""Functions whose shapes only fit some numbers of rows, and sizes, steps, axes and paddings that are inputs: at each
number TensorFlow's answer, or an error where TensorFlow has one (`wrong`)."""
import numpy as np
import tensorflow as tf

from corpus.functions import function, spec

F32, I32, I64 = tf.float32, tf.int32, tf.int64


# ---- Numbers of rows that a shape asks for ----

def fits(name, body, *specs, batches, wrong=(), **options):
    function("fits_" + name, body, *specs, batches=batches, wrong=wrong, **options)


def normal(*shape):
    return lambda rng, n: rng.normal(size=[n if d is None else d for d in shape])


def stddev(x, group=4):
    """StyleGAN's minibatch stddev."""
    n, (h, w, c) = tf.shape(x)[0], x.shape[1:]
    g = tf.minimum(group, n)
    y = tf.reshape(x, [g, -1, h, w, c])
    y -= tf.reduce_mean(y, 0, keepdims=True)
    y = tf.sqrt(tf.reduce_mean(tf.square(y), 0) + 1e-8)
    y = tf.reduce_mean(y, [1, 2, 3], keepdims=True)
    return {"y": tf.concat([x, tf.tile(y, [g, h, w, 1])], 3)}


def stddev_fixed(x):
    y = tf.reshape(x, [4, -1, 2, 2, 3])
    y = tf.sqrt(tf.math.reduce_variance(y, 0) + 1e-8)
    return {"y": tf.concat([x, tf.tile(tf.reduce_mean(y, [1, 2, 3], keepdims=True), [4, 2, 2, 1])], 3)}


fits("triples", lambda x: {"y": tf.reshape(x, [-1, 3]) * 2.0}, spec(None), batches=(3, 6, 0, 4, 12), wrong=(4,), sample=True)
fits("image", lambda x: {"y": tf.reshape(x, [1, 28, 28, 1]) + 1.0}, spec(None, 784), batches=(1, 2, 0), wrong=(0, 2), sample=True)
fits("halves", lambda x: {"a": tf.split(x, 2)[0], "b": tf.tanh(tf.split(x, 2)[1])}, spec(None, 4), batches=(2, 3, 8, 0), wrong=(3,), sample=True)
fits("groups", lambda x: {"y": tf.reduce_sum(tf.reshape(x, [-1, 8, 4]), 1)}, spec(None, 4), batches=(8, 16, 3), wrong=(3,), sample=True)
fits("squeezed", lambda x: {"y": tf.squeeze(x * 2.0, 0)}, spec(None, 4), batches=(1, 2), wrong=(2,), sample=True)
fits("squeezed_all", lambda x: {"y": tf.squeeze(x) + 1.0}, spec(None), batches=(1, 2, 0), sample=True)
fits("squeezed_ones", lambda x: {"y": tf.squeeze(x) + 1.0, "z": tf.squeeze(x * 3.0, 1)}, spec(None, 1), batches=(2, 1, 5))
fits("squeezed_dense", lambda x: {"y": tf.squeeze(tf.matmul(x, tf.ones([4, 1])))}, spec(None, 4), batches=(2, 1, 5), sample=True)
SQUEEZED_THEN = {
    "softmax": tf.nn.softmax, "argmax": lambda y: tf.argmax(y, -1), "expanded": lambda y: tf.expand_dims(y, -1), "new_axis": lambda y: y[..., None],
    "new_first": lambda y: y[None], "summed": lambda y: tf.reduce_sum(y, -1), "stacked": lambda y: tf.stack([y, y * 2.0], -1), "top": lambda y: tf.math.top_k(y, 2)[0],
    "gathered": lambda y: tf.gather(y, [0, 2], axis=-1), "sliced": lambda y: y[..., 1:3], "sorted": lambda y: tf.sort(y), "joined": lambda y: tf.concat([y, y], -1),
    "normalized": lambda y: tf.math.l2_normalize(y, -1), "split": lambda y: tf.split(y, 2, -1)[1], "flat": lambda y: tf.reshape(y, [-1]), "cumulated": lambda y: tf.cumsum(y, -1),
    "padded": lambda y: tf.pad(tf.reshape(y, [-1, 4]), [[0, 0], [1, 1]]), "rows": lambda y: tf.matmul(tf.reshape(y, [-1, 4]), tf.ones([4, 2])), "whole": lambda y: tf.reduce_max(y),
    "dense": lambda y: tf.tensordot(y, tf.ones([4, 2]), 1), "logsumexp": lambda y: tf.reduce_logsumexp(y, -1), "one_hot": lambda y: tf.one_hot(tf.argmax(y, -1), 4)}
for _name, _then in SQUEEZED_THEN.items():
    fits("squeezed_then_" + _name, lambda x, then=_then: {"y": then(tf.squeeze(x * 2.0))}, spec(None, 1, 1, 4), batches=(3, 1))
fits("unstacked", lambda x: {"y": tf.unstack(x, num=3)[1] * tf.unstack(x, num=3)[2]}, spec(None, 4), batches=(3, 2), wrong=(2,), sample=True)
fits("minibatch_stddev", stddev, spec(None, 2, 2, 3), batches=(1, 2, 4, 8, 5), wrong=(5,), sample=True)
fits("minibatch_stddev_fixed", stddev_fixed, spec(None, 2, 2, 3), batches=(4, 8, 6), wrong=(6,))
fits("two_rows", lambda x: {"y": tf.reshape(x, [2, -1])}, spec(None, 4), batches=(1, 2, 3), sample=True)
fits("two_rows_flat", lambda x: {"y": tf.reshape(x, [2, -1])}, spec(None), batches=(2, 3, 4), wrong=(3,))
fits("gram", lambda x: {"y": tf.matmul(x, x, transpose_a=True), "z": tf.matmul(x, x, transpose_b=True)}, spec(None, 4), batches=(1, 3, 7))
fits("weights_of_rows", lambda x: {"y": tf.matmul(tf.ones([2, 5]), x)}, spec(None, 4), batches=(5, 4), wrong=(4,), sample=True)
fits("definite", lambda x: {"y": tf.ensure_shape(x, [6, 4]) * 2.0}, spec(None, 4), batches=(6, 5), wrong=(5,))
fits("added", lambda x: {"y": x + tf.constant(np.arange(20, dtype=np.float32).reshape(5, 4))}, spec(None, 4), batches=(5, 1, 4), wrong=(4,), sample=True)
fits("joined_columns", lambda x: {"y": tf.concat([x, tf.ones([3, 2])], 1)}, spec(None, 4), batches=(3, 2), wrong=(2,))
fits("flattened", lambda x: {"y": tf.reshape(x, [16])}, spec(None, 4), batches=(4, 3), wrong=(3,), sample=True)
fits("stacked", lambda x: {"y": tf.stack([x, tf.ones([2, 4])])}, spec(None, 4), batches=(2, 1), wrong=(1,))
fits("blocks", lambda x: {"y": tf.batch_to_space(x, [2, 2], [[0, 0], [0, 0]])}, spec(None, 3, 3, 1), batches=(4, 8, 6), wrong=(6,))
fits("pairs", lambda x: {"y": tf.reshape(tf.transpose(x), [2, -1, 2])}, spec(None, 4), batches=(1, 2, 3))
fits("selected", lambda x: {"y": x[3], "z": x[-2]}, spec(None, 4), batches=(4, 6, 2), wrong=(2,))
fits("sliced", lambda x: {"y": tf.slice(x, [1, 0], [2, 4]) * 2.0}, spec(None, 4), batches=(3, 5, 2), wrong=(2,))
fits("best_rows", lambda x: {"y": tf.math.top_k(tf.transpose(x), 3)[0]}, spec(None, 4), batches=(3, 9, 2), wrong=(2,))
fits("diagonal", lambda x: {"y": tf.linalg.diag_part(x), "t": tf.linalg.trace(x)}, spec(None, 4), batches=(4, 2, 9))
fits("inverted", lambda x: {"y": tf.linalg.det(x)}, spec(None, 4), batches=(4, 3), wrong=(3,))
fits("weighed", lambda x: {"y": tf.nn.conv1d(tf.reshape(x, [1, -1, 4]), tf.ones([3, 4, 2]), 1, "VALID")}, spec(None, 4), batches=(3, 8))
fits("convolution_of_rows", lambda x: {"y": tf.nn.conv2d(tf.reshape(x, [1, 6, 6, -1]), tf.ones([3, 3, 2, 1]), 1, "SAME")}, spec(None), batches=(72, 36), wrong=(36,))
fits("einsum_of_rows", lambda x: {"y": tf.einsum("ij,ki->kj", x, tf.ones([2, 5]))}, spec(None, 4), batches=(5, 3), wrong=(3,))
fits("set_rows", lambda x: {"y": tf.tensor_scatter_nd_update(x, [[0], [2]], tf.zeros([2, 4]))}, spec(None, 4), batches=(3, 5, 2), wrong=(2,))
fits("after_dense", lambda x: {"y": tf.matmul(tf.reshape(tf.nn.relu(tf.matmul(x, tf.ones([4, 6]))), [-1, 9]), tf.ones([9, 2])), "x": x * 2.0},
     spec(None, 4), batches=(3, 6, 2), wrong=(2,))
fits("in_branch", lambda x: {"y": tf.cond(tf.reduce_sum(x) > 1e6, lambda: tf.reshape(x, [-1, 3]), lambda: tf.zeros([1, 3]))}, spec(None), batches=(3, 4))
fits("in_loop", lambda x: {"y": tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.reshape(tf.transpose(tf.reshape(y, [-1, 3])), [-1])), (0, x),
                                              shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])))[1]}, spec(None), batches=(3, 6, 4), wrong=(4,))
fits("strings", lambda x: {"y": tf.strings.reduce_join(tf.reshape(x, [-1, 2]), 1)}, spec(None, dtype=tf.string), batches=(2, 6, 3), wrong=(3,), sample=True)
fits("two_inputs", lambda x, y: {"y": tf.reshape(x, [-1, 8]) + tf.reshape(y, [-1, 8])}, spec(None, 4), spec(None, 2), batches=(4, 8),
     feed=lambda rng, n: {"x": rng.normal(size=(n, 4)), "y": rng.normal(size=(2 * n, 2))})
fits("gradient", lambda x: {"y": tf.gradients(tf.reduce_sum(tf.reshape(x, [-1, 3]) ** 3), x)[0]}, spec(None), batches=(3, 6, 4), wrong=(4,))


# ---- Sizes, steps, axes and paddings that are inputs ----

def given(name, body, dtypes, values, *, wrong=(), x=spec(None, 4), rows=3, **options):
    """x and numbers: case i feeds values[i], each list as long as dtypes; a number is a scalar, a list a vector."""
    first = values[0]
    specs = [tf.TensorSpec(np.shape(v), t) if np.ndim(v) == 0 else tf.TensorSpec([None] * np.ndim(v), t) for v, t in zip(first, dtypes)]
    shape = tuple(rows if d is None else d for d in x.shape)
    whole = x.dtype.is_integer

    def feed(rng, i):
        numbers = {n: np.array(v) for n, v in zip("yzuvw", values[i])}
        return {"x": rng.integers(0, 5, shape) if whole else rng.normal(size=shape), **numbers}
    function("given_" + name, body, x, *specs, feed=feed, batches=tuple(range(len(values))), wrong=wrong, **options)


given("one_hot", lambda x, y: {"y": tf.one_hot(x, y)}, [I32], [[5], [2], [0], [-1]], x=spec(None, dtype=I32), wrong=(3,), sample=True)
given("one_hot_axis", lambda x, y: {"y": tf.one_hot(x, y, 2.0, -1.0, axis=0)}, [I32], [[5], [1]], x=spec(None, dtype=I32))
given("strided", lambda x, y: {"y": x[::y]}, [I32], [[1], [2], [5], [-1], [0]], wrong=(4,), sample=True)
given("strided_both", lambda x, y, z: {"y": x[y::z, ::-1]}, [I32, I32], [[0, 1], [1, 2], [-1, -1], [7, 1]])
given("strided_columns", lambda x, y, z, u: {"y": x[:, y:z:u]}, [I32] * 3, [[0, 4, 1], [3, 0, -1], [-3, 9, 2], [2, 1, 1], [0, 1, 0]], wrong=(4,))
given("row", lambda x, y: {"y": x[y]}, [I32], [[0], [2], [-1], [3], [-4]], wrong=(3, 4), sample=True)
given("range", lambda x, y, z, u: {"y": tf.range(y, z, u)}, [F32] * 3, [[0, 5, 1], [0, 2e30, 1], [1, 0, 0.5], [1, 0, -0.25], [0, 1, 0]],
      wrong=(1, 2, 4), sample=True)
given("range_int", lambda x, y, z, u: {"y": tf.range(y, z, u)}, [I32] * 3, [[0, 5, 1], [5, 0, -2], [1, 0, 1], [0, 1, 0]], wrong=(2, 3))
given("linspace", lambda x, y: {"y": tf.linspace(x[0, 0], x[0, 1], y)}, [I32], [[3], [1], [0], [-1]], wrong=(3,), sample=True)
given("linspace_rows", lambda x, y: {"y": tf.linspace(x[0], x[1], y)}, [I32], [[3], [1], [-1]], wrong=(2,))
given("lin_space", lambda x, y: {"y": tf.raw_ops.LinSpace(start=x[0, 0], stop=x[0, 1], num=y), "five": tf.raw_ops.LinSpace(start=x[0, 0], stop=2.0, num=5)},
      [I32], [[3], [1], [0], [-1]], wrong=(2, 3), sample=True)
given("reverse_sequence", lambda x, y: {"y": tf.reverse_sequence(x, y, 1, 0)}, [I32], [[[1, 2, 4]], [[0, 0, 1]], [[1, 2, 5]], [[1, -1, 2]], [[1, 2]]],
      wrong=(2, 3, 4), sample=True)
given("transposed", lambda x, y: {"y": tf.transpose(x, y)}, [I32], [[[0, 1]], [[1, 0]], [[1, 1]], [[0, 2]], [[-1, 0]], [[0]]], wrong=(2, 3, 5))
given("padded", lambda x, y: {"y": tf.pad(x, y, constant_values=2.0)}, [I32], [[[[0, 1], [2, 0]]], [[[0, 0], [0, 0]]], [[[0, -1], [0, 0]]], [[[1, 1]]]],
      wrong=(2, 3))
given("mirrored", lambda x, y: {"y": tf.pad(x, y, "REFLECT"), "z": tf.pad(x, y, "SYMMETRIC")}, [I32], [[[[0, 1], [2, 0]]], [[[0, 3], [0, 0]]], [[[0, -1], [0, 0]]]],
      wrong=(1, 2))
given("tiled", lambda x, y: {"y": tf.tile(x, y)}, [I32], [[[2, 1]], [[0, 3]], [[-1, 1]], [[2]]], wrong=(2, 3))
given("repeated", lambda x, y: {"y": tf.repeat(x, y, axis=0)}, [I32], [[2], [0], [-1]], wrong=(2,))
given("repeated_each", lambda x, y: {"y": tf.repeat(x, y, axis=0)}, [I32], [[[1, 0, 3]], [[1, 2]]], wrong=(1,))
given("reversed", lambda x, y: {"y": tf.reverse(x, y)}, [I32], [[[0]], [[1, 0]], [[-1]], [[2]], [[0, 0]]], wrong=(3, 4))
given("rolled", lambda x, y, z: {"y": tf.roll(x, y, z)}, [I32, I32], [[1, 0], [-2, 1], [7, -1], [1, 2]], wrong=(3,))
given("summed", lambda x, y: {"y": tf.reduce_sum(x, y)}, [I32], [[0], [1], [-1], [2], [-3]], wrong=(3, 4))
given("cumulated", lambda x, y: {"y": tf.cumsum(x, y)}, [I32], [[0], [1], [-1], [2]], wrong=(3,))
given("argmax", lambda x, y: {"y": tf.argmax(x, y)}, [I32], [[0], [1], [-1], [2]], wrong=(3,))
given("gathered", lambda x, y, z: {"y": tf.gather(x, y, axis=z)}, [I32, I32], [[[0, 2], 0], [[3, 1], 1], [[0], 2]], wrong=(2,))
given("expanded", lambda x, y: {"y": tf.expand_dims(x, y)}, [I32], [[0], [2], [-1], [-3], [3]], wrong=(4,))
given("joined", lambda x, y: {"y": tf.raw_ops.ConcatV2(values=[x, x], axis=y)}, [I32], [[0], [1], [-1], [2]], wrong=(3,))
given("top_k", lambda x, y: {"y": tf.math.top_k(x, y)[0], "i": tf.math.top_k(x, y)[1]}, [I32], [[1], [4], [0], [5], [-1]], wrong=(3, 4), sample=True)
given("nth", lambda x, y: {"y": tf.raw_ops.NthElement(input=x, n=y)}, [I32], [[0], [3], [4], [-1]], wrong=(2, 3))
given("histogram", lambda x, y: {"y": tf.histogram_fixed_width(x, [-1.0, 1.0], y)}, [I32], [[5], [1], [0], [-1]], wrong=(2, 3), sample=True)
given("bins", lambda x, y: {"y": tf.raw_ops.Bincount(arr=x, size=y, weights=tf.zeros([0], I32))}, [I32], [[5], [9], [-1]], x=spec(None, dtype=I32), wrong=(2,))
given("counted", lambda x, y: {"y": tf.raw_ops.DenseBincount(input=x, size=y, weights=tf.zeros([0], I32))}, [I32], [[5], [2], [-1]],
      x=spec(None, dtype=I32), wrong=(2,))
given("segments", lambda x, y, z: {"y": tf.math.unsorted_segment_sum(x, y, z)}, [I32, I32], [[[0, 1, 0], 2], [[0, -1, 4], 5], [[0, 1, 2], 2], [[0, 0, 0], -1]],
      wrong=(2, 3))
given("filled", lambda x, y: {"y": tf.fill(y, 2.0), "z": tf.zeros(y)}, [I32], [[[2, 3]], [[0, 2]], [[]], [[-1, 2]]], wrong=(3,), sample=True)
given("broadcast", lambda x, y: {"y": tf.broadcast_to(x[:1], y)}, [I32], [[[5, 4]], [[2, 1, 4]], [[0, 4]], [[2, 3]], [[-1, 4]], [[4]]], wrong=(3, 4, 5), sample=True)
given("reshaped", lambda x, y: {"y": tf.reshape(x, y)}, [I32], [[[4, 3]], [[-1]], [[2, -1, 3]], [[5, -1]], [[-1, -1]], [[-2, 6]], [[0, -1]]],
      wrong=(3, 4, 5, 6), sample=True)
given("sliced", lambda x, y, z: {"y": tf.slice(x, y, z)}, [I32, I32], [[[0, 0], [2, 2]], [[1, 1], [-1, -1]], [[3, 4], [0, 0]], [[1, 0], [3, 1]], [[-1, 0], [1, 1]],
                                                              [[0, 0], [-2, 1]], [[0], [1]]], wrong=(3, 4, 5, 6))
given("resized", lambda x, y: {"y": tf.image.resize(x, y)}, [I32], [[[3, 5]], [[1, 1]], [[0, 2]], [[-1, 2]], [[2]]], x=spec(None, 4, 4, 1), wrong=(2, 3, 4))
given("split", lambda x, y: dict(zip("ab", tf.split(x, y, axis=1, num=2))), [I32], [[[1, 3]], [[4, 0]], [[-1, 1]], [[2, 3]], [[-1, -1]], [[5, -1]], [[-2, 6]]],
      wrong=(3, 4, 5, 6), sample=True)
given("split_rows", lambda x, y: dict(zip("ab", tf.split(x, y, num=2))), [I32], [[[1, 2]], [[3, 0]], [[-1, 1]], [[2, 3]]], wrong=(3,), sample=True)
given("split_axis", lambda x, y: dict(zip("ab", tf.split(x, 2, axis=y))), [I32], [[1], [-1], [0], [2]], wrong=(2, 3))
given("diagonals", lambda x, y: {"y": tf.linalg.diag(x, k=y)}, [I32], [[0], [1], [-2]])
given("diagonals_of", lambda x, y: {"y": tf.linalg.diag_part(x, k=y)}, [I32], [[0], [1], [-2], [4], [-3]], wrong=(3, 4))
given("band", lambda x, y, z: {"y": tf.linalg.band_part(x, y, z)}, [I32, I32], [[0, 0], [-1, 1], [2, 3], [4, 0], [0, 5]], wrong=(3, 4))
given("eye", lambda x, y, z: {"y": tf.eye(y, z)}, [I32, I32], [[2, 3], [3, 1], [0, 2], [-1, 2]], wrong=(3,))
given("mask", lambda x, y, z: {"y": tf.sequence_mask(y, z)}, [I32, I32], [[[1, 0, 3], 4], [[5, 2], 3], [[], 2], [[1], 0], [[1], -1]], wrong=(4,))
given("indices", lambda x, y, z: {"y": tf.unravel_index(y, z)}, [I32, I32], [[[5, 3], [2, 3]], [[0], [1]], [[6], [2, 3]]], wrong=(2,))
given("scattered", lambda x, y, z: {"y": tf.scatter_nd(y, x[:, 0], z)}, [I32, I32], [[[[0], [2], [1]], [4]], [[[0], [0], [1]], [2]], [[[0], [2], [1]], [2]], [[[0], [-1], [1]], [2]],
                                                                          [[[0], [0], [0]], [-1]]], wrong=(2, 3, 4))
given("dense", lambda x, y, z: {"y": tf.sparse.to_dense(tf.SparseTensor(y, x[:, 0], z))}, [I64, I64],
      [[[[0, 1], [1, 0], [2, 2]], [3, 3]], [[[0, 1], [1, 0], [2, 2]], [2, 3]], [[[1, 0], [0, 1], [2, 2]], [3, 3]], [[[0, 1], [0, 1], [2, 2]], [3, 3]]], wrong=(1, 2, 3))
given("random", lambda x, y: {"y": tf.shape(tf.random.uniform(y)), "z": tf.random.stateless_normal(y, [1, 2])}, [I32], [[[2, 3]], [[0, 2]], [[]], [[-1, 2]]], wrong=(3,))
given("matrix_power", lambda x, y: {"y": tf.tensordot(x, x, [[0], [0]]) * tf.cast(y, F32)}, [I32], [[2], [0]])
given("fourier", lambda x, y: {"y": tf.abs(tf.signal.rfft(x, y))}, [I32], [[[4]], [[6]], [[2]]])
given("frames", lambda x, y, z: {"y": tf.signal.frame(x, y, z)}, [I32, I32], [[2, 1], [3, 2], [5, 1]])
given("pages", lambda x, y: {"y": tf.gather(x, y, batch_dims=1)}, [I32], [[[[0], [1], [3]]], [[[0, 3], [1, 1], [3, 0]]], [[[0], [1]]]], wrong=(2,))
given("in_top", lambda x, y, z: {"y": tf.math.in_top_k(y, x, z)}, [I32, I32], [[[0, 1, 2], 1], [[0, 1, 2], 4], [[0, 9, 2], 2], [[0, 1], 2]], wrong=(3,))


# ---- Algorithms of random numbers ----

def drawn(name, body, **options):
    """From a key and a counter, with 3, the algorithm that the processor chooses; TensorFlow's processors have Philox."""
    function("drawn_" + name, body, spec(None, 3), batches=(1, 2), **options)


KEY, COUNTER = tf.constant([7], tf.uint64), tf.constant([1, 2], tf.uint64)
for _alg, _wrong in ((1, ()), (2, (1, 2)), (3, ())):
    _given = {"key": KEY, "counter": COUNTER, "alg": _alg}
    drawn(f"uniform_{_alg}", lambda x, g=_given: {"y": tf.raw_ops.StatelessRandomUniformV2(shape=tf.shape(x), **g)}, wrong=_wrong)
    drawn(f"normal_{_alg}", lambda x, g=_given: {"y": tf.raw_ops.StatelessRandomNormalV2(shape=tf.shape(x), **g)}, wrong=_wrong)
    drawn(f"bits_{_alg}", lambda x, g=_given: {"y": tf.raw_ops.StatelessRandomUniformFullIntV2(shape=tf.shape(x), dtype=tf.int64, **g)}, wrong=_wrong)
    drawn(f"integers_{_alg}", lambda x, g=_given: {"y": tf.raw_ops.StatelessRandomUniformIntV2(shape=tf.shape(x), minval=0, maxval=99, **g)}, wrong=_wrong)
    drawn(f"shuffled_{_alg}", lambda x, g=_given: {"y": tf.raw_ops.StatelessShuffle(value=x, **g)}, wrong=_wrong)


def clock(x):
    """The time is no constant, and goes on."""
    begin = tf.timestamp()
    with tf.control_dependencies([begin]):
        end = tf.timestamp()
    return {"y": tf.reduce_sum(x), "goes_on": end >= begin, "now": begin > 1.7e9}


function("timestamp", clock, spec(None, 3), batches=(1, 2))
