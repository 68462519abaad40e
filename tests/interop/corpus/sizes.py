"""Signatures of several inputs that each have a number of rows of their own, and batches without rows."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers

from corpus.functions import function, spec
from corpus.rows import row

PAIRS = [(0, 0), (0, 3), (3, 0), (1, 1), (1, 3), (3, 1), (3, 3), (5, 3)]
I32, I64 = tf.int32, tf.int64


def pair(make_x, make_y):
    """Feeds x and y of each pair of sizes in turn."""
    def feed(rng, i):
        m, n = PAIRS[i]
        return {"x": make_x(rng, m), "y": make_y(rng, n)}
    return {"feed": feed, "batches": tuple(range(len(PAIRS)))}


def vectors(rng, n):
    return rng.normal(size=(n, 8))


def scores(q, k):
    return {"y": tf.matmul(q, k, transpose_b=True), "best": tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 2.0)}


def joined(x, y):
    return {"y": tf.concat([x, y], 0), "n": tf.shape(x)[0] + tf.shape(y)[0], "tanh": tf.tanh(tf.concat([y, x], 0))}


def distances(x, y):
    d = tf.reduce_sum(tf.math.squared_difference(x[:, None, :], y[None, :, :]), -1)
    return {"d": d, "nearest": tf.reduce_min(d, 1), "mean": tf.reduce_sum(d, 0)}


def each_alone(x, y):
    """Results of one input each: neither has the rows of the other."""
    return {"x": tf.nn.relu(x) * 2.0, "y": tf.reduce_sum(y, 1)}


def attended(x, y):
    """Attention of x to y."""
    weights = tf.nn.softmax(tf.einsum("qd,kd->qk", x, y))
    return {"y": tf.einsum("qk,kd->qd", weights, y) + x}


def segments(x, ids):
    return {"sum": tf.math.unsorted_segment_sum(x, ids, 4), "max": tf.math.unsorted_segment_max(x, ids, 4),
            "mean": tf.math.segment_mean(x, tf.sort(ids))}


def taken(x, ids):
    return {"rows": tf.gather(x, ids), "one_hot": tf.one_hot(ids, 3), "twice": tf.gather(x, ids) * 2.0 + 1.0}


def ragged(values, row_splits):
    r = tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)
    return {"dense": r.to_tensor(), "sums": tf.reduce_sum(r, 1), "lengths": r.row_lengths()}


def split_values(rng, i):
    rows = [[], [0], [3], [2, 0, 4], [1, 1, 1, 1, 1], [7]][i]
    return {"x": rng.normal(size=sum(rows)), "y": np.cumsum([0] + rows)}


def ids_of(rng, i):
    """Ids of all rows but the last."""
    n = [1, 2, 4, 9][i]
    return {"x": rng.normal(size=(n, 3)), "y": rng.integers(0, n, n + 2)}


function("sizes_scores", scores, spec(None, 8), spec(None, 8), sample=True, **pair(vectors, vectors))
function("sizes_joined", joined, spec(None, 8), spec(None, 8), sample=True, **pair(vectors, vectors))
function("sizes_distances", distances, spec(None, 8), spec(None, 8), sample=True, **pair(vectors, vectors))
function("sizes_alone", each_alone, spec(None, 8), spec(None, 8), **pair(vectors, vectors))
function("sizes_attended", attended, spec(None, 8), spec(None, 8),
         **{**pair(vectors, vectors), "batches": (3, 4, 5, 6, 7)})
function("sizes_segments", segments, spec(None, 2), spec(None, dtype=I32), batches=(0, 1, 3, 32), sample=True,
         feed=lambda rng, n: {"x": rng.normal(size=(n, 2)), "y": np.sort(rng.integers(0, 4, n))})
function("sizes_taken", taken, spec(None, 3), spec(None, dtype=I64), batches=(0, 1, 2, 3), feed=ids_of)
function("sizes_ragged", ragged, spec(None), spec(None, dtype=I64), batches=(0, 1, 2, 3, 4, 5), sample=True,
         feed=split_values)
def padded_shape(x, y):
    """A shape that is padded with ones, and with sizes of its own."""
    return {"x": tf.reshape(x, tf.pad(tf.shape(x), [[0, 1]], constant_values=1)),
            "y": tf.reshape(tf.tile(y, [1, 3]), tf.pad(tf.shape(y), [[0, 1]], constant_values=3))}


function("sizes_padded", padded_shape, spec(None, 8), spec(None, 8), sample=True, **pair(vectors, vectors))
function("sizes_squeezed", lambda x: {"y": tf.squeeze(x[:, None, :, None])}, spec(None, None), batches=(1, 3), sizes=[(4,), (1,)],
         sample=True)
function("sizes_broadcast", lambda x, y: {"y": x + y, "less": x < y}, spec(None, 8), spec(None, 8),
         **{**pair(vectors, vectors), "batches": (0, 3, 4, 5, 6)})
function("sizes_of_four", lambda x, y, z, u: {"y": tf.matmul(x, y, transpose_b=True), "z": z + u},
         *[spec(None, 4)] * 4, batches=(1, 2, 5),
         feed=lambda rng, n: {"x": rng.normal(size=(n, 4)), "y": rng.normal(size=(2 * n, 4)),
                              "z": rng.normal(size=(n, 4)), "u": rng.normal(size=(n, 4))})


# ---- No rows ----

def no_rows(x):
    """Shapes and reductions of a batch that may have no rows."""
    n = tf.shape(x)[0]
    return {"pairs": tf.reshape(x, [2 * n, 2]), "column": tf.reshape(x[:, 0], [n, 1]), "flat": tf.reshape(x, [-1]),
            "sum": tf.reduce_sum(x), "max": tf.reduce_max(x, 0), "mean": tf.reduce_mean(x, 1),
            "product": tf.matmul(x, x, transpose_a=True), "padded": tf.pad(x, [[1, 1], [0, 0]]), "n": n,
            "softmax": tf.nn.softmax(x), "sorted": tf.sort(x, axis=1), "best": tf.argmax(x, 1),
            "tiled": tf.tile(x, [2, 1]), "reversed": tf.reverse(x, [0]), "cumsum": tf.cumsum(x, 0)}


function("no_rows", no_rows, spec(None, 4), batches=(0, 1, 3), sample=True)
function("no_rows_by_example", lambda x: {"y": tf.nn.softmax(tf.matmul(x, tf.ones([4, 3]))), "c": tf.constant([1.0, 2.0])},
         spec(None, 4), batches=(0, 1, 3), sample=True)
function("no_rows_branch", lambda x: {"y": tf.cond(tf.shape(x)[0] > 0, lambda: tf.reduce_mean(x, 0), lambda: tf.zeros([4]))},
         spec(None, 4), batches=(0, 1, 3))
function("no_rows_loop", lambda x: {"y": tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.concat([y, x], 0)), (0, x),
                                                       shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 4])))[1]},
         spec(None, 4), batches=(0, 1, 3))
function("no_rows_map", lambda x: {"y": tf.map_fn(lambda r: tf.foldl(lambda a, v: tf.cond(v > 0, lambda: a + v, lambda: a * 0.5), r, 0.0), x)},
         spec(None, 4), batches=(0, 1, 3), sample=True)
function("no_rows_wrong_branch", lambda x: {"y": tf.cond(tf.reduce_sum(x) > 0, lambda: x[0], lambda: tf.zeros([4]))},
         spec(None, 4), batches=(0, 3))
function("no_rows_strings", lambda x: {"y": tf.strings.lower(x), "n": tf.strings.length(x), "s": tf.reduce_sum(tf.strings.length(x))},
         spec(None, dtype=tf.string), batches=(0, 1, 3))


@row(batches=(0, 1, 3))
def no_rows_convolutions(path):
    x = keras.Input((8, 8, 3))
    y = layers.MaxPooling2D()(layers.BatchNormalization()(layers.Conv2D(4, 3, activation="relu")(x)))
    y = layers.GlobalAveragePooling2D()(layers.DepthwiseConv2D(3)(y))
    keras.Model(x, layers.Dense(2, activation="softmax")(y)).export(path, verbose=False)


@row(batches=(0, 1, 3))
def no_rows_sequences(path):
    x = keras.Input((None, 4))
    y = layers.LSTM(5, return_sequences=True)(x)
    y = layers.LayerNormalization()(layers.MultiHeadAttention(2, 3)(y, y))
    keras.Model(x, layers.Bidirectional(layers.GRU(3))(y)).export(path, verbose=False)


@row(sizes=((5, 7),), batches=(1, 3))
def two_named_inputs(path):
    """The usual case: both have the rows of one batch."""
    a, b = keras.Input((4,), name="a"), keras.Input((3,), name="b")
    keras.Model([a, b], layers.Dense(2)(layers.Concatenate()([a, layers.Dense(4)(b)]))).export(path, verbose=False)
