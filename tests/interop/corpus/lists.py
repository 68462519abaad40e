"""Lists of tensors whose shapes differ: split by lengths, written and pushed piece by piece, concatenated."""
import tensorflow as tf

from corpus.modules import spec
from corpus.rows import add

raw = tf.raw_ops
F32, I32 = tf.float32, tf.int32


def function(*specs):
    def note(f):
        def make(path):
            m = tf.Module()
            m.f = tf.function(f, input_signature=specs)
            tf.saved_model.save(m, path, signatures=m.f)
        add(f"lists_{f.__name__}", make, batches=(1, 3, 7), sample=f.__name__ in ("split", "written_in_a_loop"))
        return f
    return note


@function(spec("x", F32, None, 3))
def split(x):
    n = tf.shape(x)[0]
    lengths = tf.stack([n // 2, 0, n - n // 2])
    array = tf.TensorArray(F32, 3, infer_shape=False).split(x, lengths)
    items = raw.TensorListSplit(tensor=x, element_shape=[-1, 3], lengths=tf.cast(lengths, tf.int64))
    return {"a": array.read(0), "b": array.read(2) * 2, "c": array.concat(), "n": array.size(),
            "d": raw.TensorListGetItem(input_handle=items, index=1, element_shape=[-1, 3], element_dtype=F32),
            "e": raw.TensorListConcatV2(input_handle=items, element_shape=[-1, 3], leading_dims=tf.zeros([0], tf.int64), element_dtype=F32)[1]}


@function(spec("x", F32, None, 3))
def of_two_lists(x):
    """Two lists as one, whose tensors are then concatenated, or stacked."""
    def list_of(*tensors):
        y = raw.EmptyTensorList(element_shape=tf.constant([-1, 3]), max_num_elements=-1, element_dtype=F32)
        for t in tensors:
            y = raw.TensorListPushBack(input_handle=y, tensor=t)
        return y
    both = raw.TensorListConcatLists(input_a=list_of(x, x * 2), input_b=list_of(x[1:]), element_dtype=F32)
    alike = raw.TensorListConcatLists(input_a=list_of(x, x * 2), input_b=list_of(-x), element_dtype=F32)
    return {"all": raw.TensorListConcatV2(input_handle=both, element_shape=[-1, 3], leading_dims=tf.zeros([0], tf.int64), element_dtype=F32)[0],
            "stacked": raw.TensorListStack(input_handle=alike, element_shape=[-1, 3], element_dtype=F32)}


@function(spec("x", F32, 6, 3))
def split_even(x):
    array = tf.TensorArray(F32, 3).split(x, [2, 2, 2])
    items = raw.TensorListSplit(tensor=x, element_shape=[3, 3], lengths=tf.constant([3, 3], tf.int64))
    return {"a": array.read(1), "b": array.concat(), "c": raw.TensorListStack(input_handle=items, element_shape=[3, 3], element_dtype=F32)}


@function(spec("x", I32, None))
def written_in_a_loop(x):
    n = tf.shape(x)[0]
    array = tf.TensorArray(I32, n, infer_shape=False, element_shape=[None])
    _, array = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, tf.fill([i + 1], x[i]))), (0, array))
    return {"y": array.concat(), "n": array.size()}


@function(spec("x", tf.string, None))
def strings_in_a_loop(x):
    n = tf.shape(x)[0]
    array = tf.TensorArray(tf.string, 0, dynamic_size=True, infer_shape=False, element_shape=[None])
    _, array = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, tf.strings.bytes_split(x[i]))), (0, array))
    return {"y": array.concat()}


@function(spec("x", F32, None, 2))
def pushed(x):
    items = raw.EmptyTensorList(element_shape=[-1, 2], max_num_elements=-1, element_dtype=F32)
    for k in (1, 2, 1):
        items = raw.TensorListPushBack(input_handle=items, tensor=x[:k])
    items = raw.TensorListSetItem(input_handle=items, index=2, item=x[1:])
    rest, last = raw.TensorListPopBack(input_handle=items, element_shape=[-1, 2], element_dtype=F32)
    y, lengths = raw.TensorListConcatV2(input_handle=rest, element_shape=[-1, 2], leading_dims=tf.zeros([0], tf.int64), element_dtype=F32)
    old, _ = raw.TensorListConcat(input_handle=items, element_dtype=F32, element_shape=[None, 2])
    return {"y": y, "lengths": lengths, "last": last, "all": old, "n": raw.TensorListLength(input_handle=rest)}


@function(spec("x", F32, None, 2), spec("yes", tf.bool, None))
def in_a_branch(x, yes):
    array = tf.TensorArray(F32, 2, infer_shape=False, element_shape=[None, 2]).write(0, x)
    array = tf.cond(yes[0], lambda: array.write(1, x[:1]), lambda: array.write(1, x[1:]))
    return {"y": array.concat()}


@function(spec("x", F32, None, 2))
def scattered(x):
    fresh = raw.TensorListScatter(tensor=x[:1], indices=[0], element_shape=[2])
    into = raw.TensorListScatterIntoExistingList(input_handle=fresh, tensor=x[:1] * 2, indices=[1])
    return {"y": raw.TensorListStack(input_handle=into, element_shape=[2], element_dtype=F32),
            "n": raw.TensorListLength(input_handle=into), "s": raw.TensorListElementShape(input_handle=fresh, shape_type=I32)}


def arrays_of_tensorflow_1(path):
    """TensorArrayV3: a split, a loop that writes pieces, both concatenated."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        v1.disable_control_flow_v2()
        x = v1.placeholder(F32, [None, 3], "x")
        n = tf.shape(x)[0]
        split_ = tf.TensorArray(F32, 2, infer_shape=False, clear_after_read=False).split(x, tf.stack([1, n - 1]))
        array = tf.TensorArray(F32, n, infer_shape=False)
        _, array = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, x[:i + 1])), (0, array))
        outputs = {"a": split_.read(1), "b": split_.concat(), "c": array.concat()}
        v1.saved_model.simple_save(session, path, {"x": x}, outputs)
        v1.enable_control_flow_v2()


add("lists_arrays_of_tensorflow_1", arrays_of_tensorflow_1, batches=(1, 3, 7), sample=True)


@function(spec("x", F32, None, 3))
def scattered_in_part(x):
    """The first places of longer lists: of computed length, and as many as a batch has."""
    n = tf.shape(x)[0]
    computed = tf.TensorArray(F32, n + 3, element_shape=[3]).scatter([0, 1], tf.stack([x[0], x[0] * 2]))
    known = tf.TensorArray(F32, 40, element_shape=[3]).scatter(tf.range(n), x)
    return {"a": computed.stack(), "b": known.stack()}
