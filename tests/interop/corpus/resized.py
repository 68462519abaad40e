"""Variables of unknown dimensions, to which functions assign values of another size: caches that grow, state of each
batch, variables without a value in the checkpoint. Their state goes from call to call."""
import numpy as np
import tensorflow as tf
import keras

from corpus.modules import fixed, spec, weights
from corpus.rows import add, row
from corpus.tasks import only

F32, I32, I64, STRING, BOOL = tf.float32, tf.int32, tf.int64, tf.string, tf.bool
v1 = tf.compat.v1


def any_shape(value):
    return tf.Variable(value, shape=tf.TensorShape(None))


def steps(*shape):
    """Calls with other numbers each, of one size but for the first dimension."""
    return lambda rng, n: {"x": rng.normal(size=(n, *shape))}


class Attention(tf.Module):
    """A step of attention whose keys and values grow by concat."""

    def __init__(self):
        super().__init__()
        self.k, self.v = [tf.Variable(tf.zeros([2, 0, 4]), shape=[2, None, 4], trainable=False) for _ in range(2)]
        self.w = weights(1, 4, 12)

    @tf.function(input_signature=[spec("x", F32, 2, 4), spec("reset", BOOL)])
    def f(self, x, reset):
        if reset:
            self.k.assign(tf.zeros([2, 0, 4]))
            self.v.assign(tf.zeros([2, 0, 4]))
        q, k, v = tf.split(x @ self.w, 3, -1)
        self.k.assign(tf.concat([self.k, k[:, None]], 1))
        self.v.assign(tf.concat([self.v, v[:, None]], 1))
        scores = tf.nn.softmax(tf.einsum("bd,btd->bt", q, self.k) / 2.0)
        return {"y": tf.einsum("bt,btd->bd", scores, self.v), "k": self.k.read_value()}


@row(feed=lambda rng, n: {"x": rng.normal(size=(2, 4)), "reset": n == 4}, batches=tuple(range(8)), sample=True)
def resized_attention_cache(path):
    m = Attention()
    tf.saved_model.save(m, path, signatures=m.f)


@row(feed=steps(3), batches=(1, 3, 2, 5))
def resized_rows_kept(path):
    """The rows of all calls; what a second signature would read is read before the write, too."""
    m = tf.Module()
    m.rows = tf.Variable(fixed(1, 2, 3), shape=[None, 3])

    @tf.function(input_signature=[spec("x", F32, None, 3)])
    def f(x):
        before = m.rows.read_value()
        m.rows.assign(tf.concat([m.rows, x], 0))
        return {"before": before, "mean": tf.reduce_mean(m.rows, 0), "rows": m.rows.read_value()}
    only(path, m, f)


@row(feed=steps(3), batches=(1, 3, 2))
def resized_other_signature(path):
    """One signature writes, others read and forget."""
    m = tf.Module()
    m.rows = tf.Variable(tf.zeros([0, 3]), shape=[None, 3])

    @tf.function(input_signature=[spec("x", F32, None, 3)])
    def write(x):
        m.rows.assign(tf.concat([m.rows, x], 0))
        return {"n": tf.shape(m.rows)[0]}

    @tf.function(input_signature=[spec("x", F32, None, 3)])
    def read(x):
        return {"y": tf.matmul(x, m.rows, transpose_b=True)}

    @tf.function(input_signature=[spec("x", F32, None, 3)])
    def forget(x):
        m.rows.assign(x[:1])
        return {"rows": m.rows.read_value()}
    tf.saved_model.save(m, path, signatures={"serving_default": write, "read": read, "zforget": forget})


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 2, 3)[:1 + n % 3] if n % 3 else (n, 3))}, batches=(1, 2, 3, 4))
def resized_any_rank(path):
    """shape=None: the rank changes from call to call."""
    m = tf.Module()
    m.last = any_shape(tf.zeros([]))

    @tf.function(input_signature=[tf.TensorSpec(None, F32, "x")])
    def f(x):
        before = m.last.read_value()
        m.last.assign(x * 2)
        return {"before": tf.shape(before), "sum": tf.reduce_sum(before), "rank": tf.rank(m.last), "now": m.last.read_value()}
    only(path, m, f)


@row(feed=steps(4), batches=(2, 2, 3, 3), sample=True)
def resized_recurrent_state(path):
    """The state of a cell for each example of the batch, which begins anew where the batch has another size."""
    m = tf.Module()
    m.state, m.w, m.u = tf.Variable(tf.zeros([0, 5]), shape=[None, 5], trainable=False), weights(1, 4, 5), weights(2, 5, 5)

    @tf.function(input_signature=[spec("x", F32, None, 4)])
    def f(x):
        if tf.shape(m.state)[0] != tf.shape(x)[0]:
            m.state.assign(tf.zeros([tf.shape(x)[0], 5]))
        m.state.assign(tf.tanh(x @ m.w + m.state @ m.u))
        return {"y": m.state.read_value()}
    only(path, m, f)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 3)), "i": rng.integers(0, n, 2)}, batches=(2, 3, 4, 2))
def resized_scattered(path):
    """Rows of the value are changed and gathered; it is added to, and its slices are assigned."""
    m = tf.Module()
    m.v, m.n = tf.Variable(tf.zeros([1, 3]), shape=[None, 3]), tf.Variable(tf.zeros([2], I64), shape=[None])

    @tf.function(input_signature=[spec("x", F32, None, 3), spec("i", I32, 2)])
    def f(x, i):
        m.v.assign(x)
        m.v.assign_add(tf.ones_like(x))
        m.v.assign_sub(x * 0.5)
        m.v.scatter_add(tf.IndexedSlices(x[:2], i))
        m.v.scatter_nd_update([[1, 2], [0, 0]], [7.0, 8.0])
        m.v[0, 1:].assign([1.0, -1.0])
        m.v[1].assign(tf.reduce_sum(m.v, 0))
        m.n.assign(tf.concat([m.n[1:], tf.cast(i, I64)], 0))
        m.n.scatter_update(tf.IndexedSlices(tf.constant([9], I64), [0]))
        return {"v": m.v.read_value(), "rows": tf.gather(m.v, i), "g": m.v.sparse_read(i), "nd": m.v.gather_nd(i[:, None]), "n": m.n.read_value(),
                "shape": tf.raw_ops.VariableShape(input=m.v.handle), "is": tf.raw_ops.VarIsInitializedOp(resource=m.v.handle)}
    only(path, m, f)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 2)), "keep": n % 2 == 0}, batches=(1, 2, 3, 4))
def resized_in_branches_and_loops(path):
    m = tf.Module()
    m.v, m.calls = tf.Variable(tf.zeros([1, 2]), shape=[None, 2]), tf.Variable(0)

    @tf.function
    def push(row):
        m.v.assign(tf.concat([m.v, row[None]], 0))
        return tf.shape(m.v)[0]

    @tf.function(input_signature=[spec("x", F32, None, 2), spec("keep", BOOL)])
    def f(x, keep):
        n = 0
        for i in tf.range(tf.shape(x)[0]):
            n = push(x[i] * tf.cast(i + 1, F32))
        if keep:
            m.calls.assign_add(1)
        else:
            m.v.assign(m.v[-2:])
        return {"n": n, "v": m.v.read_value(), "calls": m.calls.read_value()}
    only(path, m, f)


@row(feed=lambda rng, n: {"x": np.array([b"word %d" % i for i in range(n)], object)}, batches=(1, 3, 2))
def resized_strings(path):
    """The words of all calls, and how often each came."""
    m = tf.Module()
    m.words, m.counts = tf.Variable(tf.constant([], STRING), shape=[None]), tf.Variable(tf.zeros([0], I64), shape=[None])

    @tf.function(input_signature=[spec("x", STRING, None)])
    def f(x):
        words, ids, counts = tf.unique_with_counts(tf.concat([m.words, x], 0), I64)
        m.counts.assign(tf.tensor_scatter_nd_add(tf.zeros(tf.shape(words), I64), ids[:, None], tf.concat([m.counts, tf.ones(tf.shape(x), I64)], 0)))
        m.words.assign(words)
        return {"words": m.words.read_value(), "counts": m.counts.read_value()}
    only(path, m, f)


@row(feed=steps(3), batches=(2, 3, 3, 1))
def resized_trained(path):
    """A signature that trains weights with a gradient through the value that is kept."""
    m = tf.Module()
    m.w, m.last = tf.Variable(fixed(1, 3, 2)), tf.Variable(tf.ones([1, 2]), shape=[None, 2], trainable=False)
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build([m.w])
    m.optimizer = optimizer

    @tf.function(input_signature=[spec("x", F32, None, 3)])
    def f(x):
        with tf.GradientTape() as tape:
            y = x @ m.w
            loss = tf.reduce_mean(tf.square(y)) + tf.reduce_sum(tf.reduce_mean(y, 0) * tf.reduce_mean(m.last, 0))
        optimizer.apply([tape.gradient(loss, m.w)], [m.w])
        m.last.assign(y)
        return {"loss": loss, "w": m.w.read_value()}
    only(path, m, f)


@row(feed=steps(3), batches=(2, 3, 3))
def resized_gradient_of_variable(path):
    """The variable of unknown size is what is trained."""
    m = tf.Module()
    m.v = tf.Variable(tf.ones([2, 3]), shape=[None, 3])

    @tf.function(input_signature=[spec("x", F32, None, 3)])
    def f(x):
        m.v.assign(tf.concat([m.v[-1:], x], 0))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(m.v)) + tf.reduce_sum(tf.gather(m.v, [0, 0]))
        g = tf.convert_to_tensor(tape.gradient(loss, m.v))
        m.v.assign_sub(0.1 * g)
        return {"g": g, "v": m.v.read_value()}
    only(path, m, f)


class Histogram(keras.layers.Layer):
    """A layer of Keras with a variable of its own that grows."""

    def __init__(self):
        super().__init__()
        self.seen = tf.Variable(tf.zeros([0, 4]), shape=[None, 4], trainable=False, name="seen")

    def call(self, x):
        self.seen.assign(tf.concat([self.seen, x], 0)[-6:])
        return x - tf.reduce_mean(self.seen, 0)


@row(feed=steps(4), batches=(2, 3, 3))
def resized_in_keras_layer(path):
    layer = Histogram()
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4), layer])
    m = tf.Module()
    m.model, m.layer = model, layer
    only(path, m, tf.function(lambda x: {"y": model(x)}, input_signature=[spec("x", F32, None, 4)]))


@row(feed=steps(3), batches=(2, 3))
def resized_never(path):
    """Declared without dimensions, and never assigned: as any other."""
    m = tf.Module()
    m.w, m.b = any_shape(fixed(1, 3, 2)), tf.Variable(tf.zeros([2]), shape=[None])
    only(path, m, tf.function(lambda x: {"y": x @ m.w + m.b}, input_signature=[spec("x", F32, None, 3)]))


# ---- TensorFlow 1 ----


def graph(name, resource, **options):
    """Variables with validate_shape=False, and one that the checkpoint lacks."""
    def make(path):
        with tf.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(F32, [None, 3], name="x")
            kept = v1.Variable(np.ones([1, 3], np.float32), validate_shape=False, use_resource=resource, name="kept", shape=tf.TensorShape(None) if resource else None)
            late = v1.Variable(np.zeros([2], np.float32), use_resource=resource, name="late")
            loose = v1.Variable(np.zeros([2, 3], np.float32), validate_shape=False, use_resource=resource, name="loose", shape=tf.TensorShape(None) if resource else None)
            old = tf.reshape(kept, [-1, 3]) + 0
            with tf.control_dependencies([old]):
                new = v1.assign(kept, tf.concat([old, x], 0), validate_shape=False)
                ready = v1.is_variable_initialized(late) if not resource else tf.raw_ops.VarIsInitializedOp(resource=late.handle)
            now = tf.reshape(new, [-1, 3]) + 0
            with tf.control_dependencies([now, ready]):
                first = v1.assign(late, x[0, :2])
            with tf.control_dependencies([first]):
                sum_ = v1.assign_add(late, [1.0, 2.0])
                loose_now = v1.assign(loose, x[:1] * 2, validate_shape=False)
            out = {"old": old, "now": now, "ready": ready, "late": sum_ + 0, "loose": loose_now * 1}
            session.run(v1.global_variables_initializer())
            builder = v1.saved_model.Builder(path)
            builder.add_meta_graph_and_variables(
                session, ["serve"], {"serving_default": v1.saved_model.predict_signature_def({"x": x}, out)}, saver=v1.train.Saver([kept, loose]))
            builder.save()
    add(name, make, feed=steps(3), batches=(1, 2, 3), **options)


graph("resized_v1_resource", True)
graph("resized_v1_reference", False, sample=True)
