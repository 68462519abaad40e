"""Loops whose state changes its shape, and gradients, of first and higher order, through loops, branches and lists."""
import numpy as np
import tensorflow as tf

from corpus.branches import SIGNED, gradients_of, saved
from corpus.modules import spec, weights
from corpus.rows import add

F32, I32 = tf.float32, tf.int32
ANY = tf.TensorShape([])
raw = tf.raw_ops
v1 = tf.compat.v1


def rows_of(*shape):
    return tf.TensorShape([None, *shape])


def loop(*specs, weighs=(), **options):
    """A row of f(x, w...), with a weight of each shape of `weighs`."""
    def note(f):
        def make(path):
            kept = {f"w{i}": weights(i, *shape) for i, shape in enumerate(weighs)}
            saved(path, lambda *x: f(*x, *kept.values()), *specs, **kept)
        add(f"loop_{f.__name__}", make, **options)
        return f
    return note


def graph(*placeholders, **options):
    """A row of a graph of TensorFlow 1, with its control flow: f(x...) gives the outputs."""
    def note(f):
        def make(path):
            with tf.Graph().as_default(), v1.Session() as session:
                v1.disable_control_flow_v2()
                inputs = {s.name: v1.placeholder(s.dtype, s.shape, s.name) for s in placeholders}
                outputs = f(*inputs.values())
                v1.saved_model.simple_save(session, path, inputs, outputs)
                v1.enable_control_flow_v2()
        add(f"loop_{f.__name__}", make, **options)
        return f
    return note


X = spec("x", F32, None, 4)


# ---- State that grows ----

def grown(x, step, trips=3):
    return tf.while_loop(lambda i, y: i < trips, lambda i, y: (i + 1, step(y)), (0, x), shape_invariants=(ANY, rows_of(4)))[1]


@loop(X, sample=True)
def gradient_of_a_growing_state(x):
    return gradients_of(lambda x: tf.reduce_sum(grown(x, lambda y: tf.concat([y, tf.sin(y[-1:]) * x[:1]], 0)) ** 2))(x)


@loop(X)
def gradient_of_a_doubling_state(x):
    return gradients_of(lambda x: tf.reduce_sum(tf.sin(grown(x, lambda y: tf.concat([y, y * x[:1]], 0), 4))))(x)


@loop(X, weighs=((4, 4),))
def gradient_of_a_growing_state_by_weights(x, w):
    return gradients_of(lambda x: tf.reduce_sum(grown(x, lambda y: tf.concat([y, tf.tanh(y[-1:] @ w)], 0)) ** 2), w)(x)


@loop(X)
def gradients_of_a_growing_state(x):
    """tf.gradients in place of a tape."""
    y = grown(x, lambda y: tf.concat([tf.cos(y), y[:1]], 0))
    return {"y": y, "g": tf.gradients(tf.reduce_sum(y ** 3), x)[0]}


@loop(X)
def gradient_of_a_shrinking_state(x):
    def y(x):
        return tf.while_loop(lambda y: tf.shape(y)[0] > 1, lambda y: [tf.sin(y[1:]) * y[:-1]], [tf.concat([x, x], 0)],
                             shape_invariants=[rows_of(4)])[0]
    return gradients_of(lambda x: tf.reduce_sum(y(x)))(x)


@loop(X, weighs=((4, 4),))
def gradient_of_attention_over_the_past(x, w):
    """A decoder without a cache of fixed length."""
    def y(x):
        keys = tf.concat([x[:1], tf.cos(x[:1])], 0)
        for i in tf.range(4):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(keys, rows_of(4))])
            q = tf.tanh(keys[-1:] @ w)
            a = tf.nn.softmax(q @ tf.transpose(keys))
            keys = tf.concat([keys, a @ keys], 0)
        return tf.reduce_sum(keys ** 2)
    return gradients_of(y, w)(x)


@loop(X)
def gradient_of_growth_in_nested_loops(x):
    def y(x):
        y = x
        for i in tf.range(2):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(y, rows_of(4))])
            for j in tf.range(i + 1):
                tf.autograph.experimental.set_loop_options(shape_invariants=[(y, rows_of(4))])
                y = tf.concat([tf.sin(y), y[:1] * 0.5], 0)
        return tf.reduce_sum(y ** 2)
    return gradients_of(y)(x)


@loop(X, **SIGNED)
def gradient_of_growth_in_a_branch(x):
    def y(x):
        y = x
        for i in tf.range(4):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(y, rows_of(4))])
            if tf.reduce_sum(y) > 0:
                y = tf.concat([tf.sin(y), y[:1] - 1], 0)
            else:
                y = tf.tanh(y) + 0.3
        return tf.reduce_sum(y ** 2)
    return gradients_of(y)(x)


@loop(X)
def gradient_of_growth_twice(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(grown(x, lambda y: tf.concat([y, tf.sin(y[-1:]) * x[:1]], 0)) ** 2)
        g = tape.gradient(y, x)
    return {"y": y, "g": g, "h": outer.gradient(g, x)}


@loop(spec("x", F32, None, None, 2), sizes=((3,), (5,)))
def gradient_of_growth_from_an_unknown_size(x):
    """The size that grows is not known before the loop, either."""
    y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.concat([y, tf.sin(y[:, -1:]) * x[:, :1]], 1)), (0, x),
                      shape_invariants=(ANY, tf.TensorShape([None, None, 2])))[1]
    return {"y": y, "g": tf.gradients(tf.reduce_sum(y ** 2), x)[0]}


# ---- Lists of tensors whose shapes differ ----

@loop(X, batches=(2, 3, 32))
def array_of_shapes(x):
    array = tf.TensorArray(F32, 3, infer_shape=False, clear_after_read=False).write(0, x).write(1, x[:1]).write(2, x[0])
    return {"a": array.read(0), "b": array.read(1), "c": array.read(2), "n": array.size()}


@loop(X, batches=(2, 3, 32))
def array_of_shapes_written_in_a_loop(x):
    array = tf.TensorArray(F32, 0, dynamic_size=True, infer_shape=False, clear_after_read=False)
    _, array, _ = tf.while_loop(lambda i, a, y: i < 3, lambda i, a, y: (i + 1, a.write(i, y), tf.concat([y, x[:1] * 2], 0)), (0, array, x),
                                shape_invariants=(ANY, ANY, rows_of(4)))
    return {"a": array.read(0), "b": array.read(2), "sum": tf.reduce_sum(array.read(1)), "c": array.concat()}


@loop(X)
def list_of_shapes_as_a_stack(x):
    """As many pops as pushes, of what grows and then shrinks."""
    items = raw.EmptyTensorList(element_shape=[-1, 4], max_num_elements=-1, element_dtype=F32)
    _, items, y = tf.while_loop(lambda i, l, y: i < 3, lambda i, l, y: (i + 1, raw.TensorListPushBack(input_handle=l, tensor=y), tf.concat([y, y[:1] * 2], 0)),
                                (0, items, x), shape_invariants=(ANY, ANY, rows_of(4)))

    def pop(i, l, s):
        l, t = raw.TensorListPopBack(input_handle=l, element_shape=[-1, 4], element_dtype=F32)
        return i + 1, l, s * 0.5 + tf.reduce_sum(t, 0)
    _, items, s = tf.while_loop(lambda i, l, s: i < 3, pop, (0, items, tf.zeros([4])))
    return {"y": y, "s": s, "n": raw.TensorListLength(input_handle=items)}


@loop(X, batches=(3, 7, 32))
def list_of_shapes_resized(x):
    items = raw.EmptyTensorList(element_shape=-1, max_num_elements=-1, element_dtype=F32)
    for t in (x, x[:1], x[0]):
        items = raw.TensorListPushBack(input_handle=items, tensor=t)
    longer = raw.TensorListSetItem(input_handle=raw.TensorListResize(input_handle=items, size=5), index=4, item=x[1:])
    return {"n": raw.TensorListLength(input_handle=longer),
            "a": raw.TensorListGetItem(input_handle=longer, index=4, element_shape=[-1, 4], element_dtype=F32),
            "b": raw.TensorListGetItem(input_handle=longer, index=2, element_shape=[4], element_dtype=F32),
            "g": raw.TensorListGather(input_handle=longer, indices=[0, 0], element_shape=[-1, 4], element_dtype=F32)}


@loop(X, **SIGNED)
def list_of_shapes_in_a_branch(x):
    items = raw.EmptyTensorList(element_shape=-1, max_num_elements=-1, element_dtype=F32)
    items = raw.TensorListPushBack(input_handle=items, tensor=x)
    items = tf.cond(tf.reduce_sum(x) > 0, lambda: raw.TensorListPushBack(input_handle=items, tensor=x[0]),
                    lambda: raw.TensorListPushBack(input_handle=items, tensor=x * 2))
    return {"last": raw.TensorListPopBack(input_handle=items, element_shape=-1, element_dtype=F32)[1],
            "first": raw.TensorListGetItem(input_handle=items, index=0, element_shape=[-1, 4], element_dtype=F32)}


@loop(spec("n", I32, None))
def ragged_of_a_loop(n):
    """Rows of ragged tensors that a loop makes, of lengths that the data say."""
    r = tf.map_fn(lambda k: tf.range(k) * k, n, fn_output_signature=tf.RaggedTensorSpec([None], I32))
    f = tf.map_fn(lambda row: tf.reduce_sum(row), r, fn_output_signature=I32)
    t = tf.map_fn(lambda row: tf.concat([row, row[:1]], 0), r, fn_output_signature=tf.RaggedTensorSpec([None], I32))
    return {"y": r.values, "l": r.row_lengths(), "sum": f, "t": t.to_tensor()}


# ---- Jacobians, forward gradients ----

def through_loop_and_branch(x):
    y = x
    for i in tf.range(3):
        if tf.reduce_sum(y) > tf.cast(i, F32) - 1:
            y = tf.sin(y) * x
        else:
            y = tf.tanh(y) + 1
    return y


@loop(X, **SIGNED)
def batch_jacobian(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = through_loop_and_branch(x)
    return {"y": y, "j": tape.batch_jacobian(y, x)}


@loop(X, **SIGNED)
def jacobian(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(through_loop_and_branch(x), 0)
    return {"y": y, "j": tape.jacobian(y, x)}


@loop(X, **SIGNED)
def batch_jacobian_in_a_while(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = through_loop_and_branch(x)
    return {"y": y, "j": tape.batch_jacobian(y, x, experimental_use_pfor=False)}


@loop(X)
def jacobian_of_a_loop(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, tf.sin(y) * x), (0, x))[1]
    return {"y": y, "j": tape.batch_jacobian(y, x)}


@loop(X, **SIGNED)
def jacobian_of_a_branch(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x) * x, lambda: tf.exp(-x))
    return {"y": y, "j": tape.batch_jacobian(y, x)}



@loop(X, **SIGNED)
def forward_gradient_of_a_branch(x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as acc:
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x) * x, lambda: tf.exp(-x))
    return {"y": y, "j": acc.jvp(y)}


@loop(X)
def forward_gradient_of_a_loop(x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as acc:
        y = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, tf.sin(y) * x), (0, x))[1]
    return {"y": y, "j": acc.jvp(y)}


# ---- TensorFlow 1 ----

@graph(X, **SIGNED)
def v1_gradient_of_a_branch(x):
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x) * x, lambda: tf.exp(-x))
    return {"y": y, "g": tf.gradients(tf.reduce_sum(y ** 2), x)[0]}


# ---- Smaller things ----

@loop(spec("x", F32, None), feed=lambda rng, n: {"x": np.arange(n)}, batches=(3, 1, 32), wrong=(1,))
def where_of_a_scalar(x):
    """An error, but only of those who ask for it."""
    return {"n": tf.cond(tf.reduce_sum(x) > 0, lambda: tf.shape(tf.where(x)), lambda: tf.shape(tf.where(x[0] >= 0)))}


@loop(spec("x", F32, None, 1, 4), batches=(1, 3, 2))
def split_of_what_was_squeezed(x):
    y = tf.squeeze(x)
    a, b = tf.split(y, [1, 3], -1)
    c, d = tf.split(y, [-1, 2], -1)
    return {"a": a, "b": b, "c": c, "d": d}


@loop(spec("x", F32, None, 4, 6, 2), spec("b", I32, 2), spec("p", I32, 2, 2),
      feed=lambda rng, n: {"x": rng.normal(size=(n, 4, 6, 2)), "b": [2, 3] if n != 3 else [4, 1], "p": np.array([[0, 0], [1, 2]] if n != 3 else [[0, 0], [0, 0]])})
def space_to_batch_of_computed_sizes(x, b, p):
    y = tf.space_to_batch(x, b, p)
    return {"y": y, "z": tf.batch_to_space(y, b, p), "f": tf.space_to_batch(x, [2, 2], p * 2), "g": tf.space_to_batch(x, b, [[0, 0], [0, 0]])}
