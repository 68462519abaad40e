"""Graphs of TensorFlow 1: control flow v1, variables by reference and in parts, tables, several graphs in a file."""
import os

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function

from corpus.rows import add

v1 = tf.compat.v1


def graph(name, build, control_v2=False, tags=("serve",), resource=False, others=(), **options):
    """build() returns ({name: input}, {name: output}); `others` are tag sets of further graphs in the file."""
    def make(path):
        was = v1.control_flow_v2_enabled()
        (v1.enable_control_flow_v2 if control_v2 else v1.disable_control_flow_v2)()
        try:
            with tf.Graph().as_default(), v1.Session() as session, v1.variable_scope("", use_resource=resource):
                v1.set_random_seed(3)
                inputs, outputs = build()
                session.run([v1.global_variables_initializer(), v1.tables_initializer()])
                signature = v1.saved_model.predict_signature_def(inputs, outputs)
                builder = v1.saved_model.Builder(path)
                init = v1.tables_initializer()
                builder.add_meta_graph_and_variables(
                    session, list(tags), {"serving_default": signature}, assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
                    main_op=init)
                for other in others:
                    builder.add_meta_graph(list(other), {"serving_default": signature})
                builder.save()
        finally:
            (v1.enable_control_flow_v2 if was else v1.disable_control_flow_v2)()
    add(name, make, tags=tags, **options)


def rows(width=4):
    return v1.placeholder(tf.float32, [None, width], name="x")


def dense(x, units, name, **options):
    w = v1.get_variable(f"{name}/w", [x.shape[-1], units], initializer=v1.random_normal_initializer(seed=1), **options)
    return tf.matmul(x, w) + v1.get_variable(f"{name}/b", [units], initializer=v1.random_normal_initializer(seed=2))


def perceptron():
    x = rows()
    return {"x": x}, {"y": tf.nn.softmax(dense(tf.nn.relu(dense(x, 5, "a")), 3, "b"))}


def branches():
    x = rows()
    return {"x": x}, {"y": tf.cond(tf.reduce_sum(x) > 0, lambda: dense(x, 4, "a"), lambda: x - 1),
                      "z": tf.case([(tf.reduce_sum(x) > 1, lambda: x + 1), (tf.reduce_sum(x) < -1, lambda: x - 1)], lambda: x * 2)}


def loops():
    x = rows()
    w = v1.get_variable("w", [4, 4], initializer=v1.random_normal_initializer(seed=1))
    y = tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w))), (0, x))[1]
    z = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.cond(i > 1, lambda: y + 1, lambda: tf.matmul(y, w))), (0, x))[1]
    return {"x": x}, {"y": y, "z": z, "m": tf.map_fn(lambda r: r * tf.reduce_sum(r), x), "s": tf.scan(lambda a, r: a / 2 + r, x)}


def dynamic_rnn():
    """The loop of tf.nn.dynamic_rnn, with lengths, as it was written out by hand."""
    x = v1.placeholder(tf.float32, [None, 6, 4], name="x")
    n = v1.placeholder(tf.int32, [None], name="n")
    w = v1.get_variable("kernel", [4 + 5, 20], initializer=v1.random_normal_initializer(stddev=0.3, seed=1))
    inputs = tf.TensorArray(tf.float32, 6).unstack(tf.transpose(x, [1, 0, 2]))

    def body(t, out, h, c):
        i, j, f, o = tf.split(tf.matmul(tf.concat([inputs.read(t), h], 1), w), 4, 1)
        new_c = tf.sigmoid(f + 1) * c + tf.sigmoid(i) * tf.tanh(j)
        new_h = tf.sigmoid(o) * tf.tanh(new_c)
        run = (t < n)[:, tf.newaxis]
        return t + 1, out.write(t, tf.where(run, new_h, tf.zeros_like(h))), tf.where(run, new_h, h), tf.where(run, new_c, c)

    zeros = tf.zeros([tf.shape(x)[0], 5])
    _, out, h, _ = tf.while_loop(lambda t, *_: t < tf.reduce_max(n), body, (0, tf.TensorArray(tf.float32, 6), zeros, zeros))
    return {"x": x, "n": n}, {"h": h}


def partitioned():
    x = rows()
    part = v1.get_variable("parts", [4, 6], partitioner=v1.fixed_size_partitioner(2, axis=1),
                           initializer=v1.random_normal_initializer(seed=1))
    table = v1.get_variable("table", [7, 4], partitioner=v1.fixed_size_partitioner(3), initializer=v1.random_normal_initializer(seed=1))
    ids = v1.placeholder(tf.int64, [None], name="ids")
    return {"x": x, "ids": ids}, {"y": tf.matmul(x, tf.convert_to_tensor(part)), "e": v1.nn.embedding_lookup(table, ids % 7, partition_strategy="div"),
                                  "m": v1.nn.embedding_lookup(list(table), ids % 6)}


def convolution():
    x = v1.placeholder(tf.float32, [None, 12, 12, 3], name="x")
    w = v1.get_variable("w", [3, 3, 3, 8], initializer=v1.random_normal_initializer(stddev=0.2, seed=1))
    y = tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), tf.ones([8]))
    y, _, _ = v1.nn.fused_batch_norm(y, tf.ones([8]), tf.zeros([8]), tf.ones([8]) * 0.1, tf.ones([8]) * 2, is_training=False)
    y = tf.nn.lrn(tf.nn.max_pool2d(tf.nn.relu6(y), 2, 2, "VALID"), 2)
    y = tf.reshape(y, [-1, 6 * 6 * 8])
    return {"x": x}, {"y": v1.nn.dropout(dense(y, 3, "d"), rate=v1.placeholder_with_default(0.0, []))}


def placeholder_default():
    x = rows()
    training = v1.placeholder_with_default(False, [], name="training")
    y = dense(x, 4, "a")
    return {"x": x}, {"y": tf.cond(training, lambda: y * 0, lambda: y), "k": v1.placeholder_with_default(tf.constant([1, 2]), [2]) * 3}


def strings():
    x = v1.placeholder(tf.string, [None], name="x")
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)), -1)
    embedding = v1.get_variable("e", [4, 3], initializer=v1.random_normal_initializer(seed=1))
    return {"x": x}, {"y": tf.gather(embedding, table.lookup(x) + 1), "s": tf.strings.join([x, "!"])}


def examples():
    x = v1.placeholder(tf.string, [None], name="input_example_tensor")
    p = v1.parse_example(x, {"a": v1.FixedLenFeature([3], tf.float32), "b": v1.VarLenFeature(tf.int64),
                             "c": v1.FixedLenFeature([], tf.string, b"none")})
    return {"examples": x}, {"y": dense(p["a"], 2, "d"), "b": v1.sparse_tensor_to_dense(p["b"]), "c": p["c"]}


def old_operators():
    x = rows()
    y = tf.raw_ops.BatchMatMul(x=x[:, None], y=x[:, :, None])
    return {"x": x}, {"a": y, "b": tf.raw_ops.Pack(values=[x, x], axis=1), "c": tf.raw_ops.Unpack(value=x, num=4, axis=1)[2],
                      "d": tf.raw_ops.Concat(concat_dim=1, values=[x, x]), "e": tf.raw_ops.Select(condition=x[:, 0] > 0, x=x, y=-x),
                      "f": v1.div(x, 2.0), "g": tf.raw_ops.Mul(x=x, y=x), "h": v1.squeeze(x[:, :1], [1]), "i": v1.to_int32(x),
                      "j": tf.raw_ops.Fill(dims=[2], value=1.0), "k": tf.raw_ops.Sub(x=x, y=1.0), "l": tf.raw_ops.RealDiv(x=x, y=3.0),
                      "m": tf.raw_ops.Inv(x=x + 10), "n": tf.raw_ops.ListDiff(x=[1, 2, 3], y=[2])[0],
                      "o": tf.raw_ops.Where(condition=x > 0), "p": tf.raw_ops.ArgMax(input=x, dimension=1)}


def moving_averages():
    """Batch normalisation as a known answer writes it: a branch updates the averages, the other reads them."""
    x = rows()
    training = v1.placeholder_with_default(False, [], name="training")
    h = dense(x, 5, "a")
    mean, variance = tf.nn.moments(h, [0])
    averages = tf.train.ExponentialMovingAverage(0.5)

    def update():
        with tf.control_dependencies([averages.apply([mean, variance])]):
            return tf.identity(mean), tf.identity(variance)

    m, v = tf.cond(training, update, lambda: (averages.average(mean), averages.average(variance)))
    return {"x": x, "training": training}, {"y": tf.nn.batch_normalization(h, m, v, tf.zeros([5]), tf.ones([5]), 1e-3)}


def assigned_in_branch():
    """The results of assignments are what a branch gives."""
    x = v1.placeholder(tf.float32, [None, 8, 8, 3], name="x")
    training = v1.placeholder(tf.bool, [], name="training")
    mean = v1.get_variable("mean", [3], initializer=v1.zeros_initializer())
    variance = v1.get_variable("variance", [3], initializer=v1.ones_initializer())

    def train():
        y, m, v = v1.nn.fused_batch_norm(x, tf.ones([3]), tf.zeros([3]), is_training=True)
        with tf.control_dependencies([v1.assign(mean, mean * 0.9 + m * 0.1), v1.assign_sub(variance, (variance - v) * 0.1)]):
            return tf.identity(y)

    y = tf.cond(training, train, lambda: v1.nn.fused_batch_norm(x, tf.ones([3]), tf.zeros([3]), mean, variance, is_training=False)[0])
    with tf.control_dependencies([y]):
        n = v1.get_variable("n", [], tf.int32, initializer=v1.zeros_initializer())
        steps = tf.cond(training, lambda: v1.assign_add(n, 1), lambda: n) * 1
    return {"x": x, "training": training}, {"y": y, "steps": steps}


def counted_loop():
    x = rows()
    c = v1.get_variable("c", [], tf.int32, initializer=v1.zeros_initializer())
    kept = v1.get_variable("kept", [5, 4], initializer=v1.zeros_initializer())

    def body(i, s):
        with tf.control_dependencies([v1.assign_add(c, 1)]):
            return i + 1, s + tf.cast(i, tf.float32)

    s = tf.while_loop(lambda i, s: i < 3, body, (0, x))[1]
    with tf.control_dependencies([s]):
        n = c.read_value() + 0
    with tf.control_dependencies([v1.scatter_update(kept, [n % 5], x[:1])]):
        rows_kept = kept.read_value() + 0
    with tf.control_dependencies([rows_kept]):
        part = kept[1:3].assign(x[:1] * tf.ones([2, 1]))
    return {"x": x}, {"s": s, "n": n, "rows": rows_kept, "part": part + 0}


SOMETIMES = {"feed": lambda rng, n: {"x": rng.normal(size=(n, 4)), "training": n == 3}, "batches": (1, 3, 4, 3, 5)}
LETTERS = {"feed": lambda rng, n: rng.choice([b"a", b"b", b"c"], n)}
graph("v1_perceptron", perceptron, sample=True)
graph("v1_perceptron_resource", perceptron, resource=True)
graph("v1_branches", branches)
graph("v1_branches_resource", branches, resource=True)
graph("v1_branches_v2", branches, control_v2=True, resource=True)
graph("v1_loops", loops, sample=True)
graph("v1_loops_v2", loops, control_v2=True, resource=True)
graph("v1_dynamic_rnn", dynamic_rnn, feed=lambda rng, n: {"x": rng.normal(size=(n, 6, 4)), "n": rng.integers(1, 7, n)})
graph("v1_partitioned", partitioned)
graph("v1_partitioned_resource", partitioned, resource=True)
graph("v1_convolution", convolution)
graph("v1_placeholder_default", placeholder_default)
graph("v1_strings", strings, **LETTERS)
graph("v1_old_operators", old_operators)
graph("v1_moving_averages", moving_averages, sample=True, **SOMETIMES)
graph("v1_moving_averages_resource", moving_averages, sample=True, resource=True, **SOMETIMES)
graph("v1_assigned_in_branch", assigned_in_branch, batches=(1, 3, 4, 3, 5),
      feed=lambda rng, n: {"x": rng.normal(size=(n, 8, 8, 3)), "training": n == 3})
graph("v1_counted_loop", counted_loop)
graph("v1_counted_loop_resource", counted_loop, resource=True)
graph("v1_tags_gpu", perceptron, sample=True, tags=("serve", "gpu"), others=[("train",)])
graph("v1_tags_several", perceptron, others=[("train",), ("serve", "tpu")])
graph("v1_tags_train", perceptron, tags=("train",))


def v1_examples_feed(rng, n):
    from corpus.tables import examples as make
    return make(rng, n)


graph("v1_examples", examples, feed=v1_examples_feed)


def frozen(path):
    """Variables as constants, as convert_variables_to_constants wrote, in a SavedModel."""
    with tf.Graph().as_default() as g, v1.Session() as session:
        v1.disable_control_flow_v2()
        inputs, outputs = perceptron()
        session.run(v1.global_variables_initializer())
        names = [y.op.name for y in outputs.values()]
        constant = v1.graph_util.convert_variables_to_constants(session, g.as_graph_def(), names)
    with tf.Graph().as_default(), v1.Session() as session:
        tf.import_graph_def(constant, name="")
        get = session.graph.get_tensor_by_name
        v1.saved_model.simple_save(session, path, {k: get(t.name) for k, t in inputs.items()},
                                   {k: get(t.name) for k, t in outputs.items()})
    v1.enable_control_flow_v2()


add("v1_frozen", frozen)


def control_in_function():
    """Switch, Merge and Enter inside a FunctionDef, called by its name."""
    @function.Defun(tf.float32, tf.float32)
    def steps(x, k):
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: x + k, lambda: x * 2)
        z = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.cond(i > 1, lambda: y * k, lambda: y + x)), (0, x))[1]
        values, ids = tf.math.top_k(tf.where(tf.reduce_sum(z) > 0, z, y), 2)
        return y, z, tf.cond(k > 0, lambda: tf.cast(ids, tf.float32), lambda: values)

    x = rows()
    y, z, w = steps(x, tf.constant(3.0))
    for v in y, z, w:
        v.set_shape([None, None])
    return {"x": x}, {"y": y, "z": z, "w": w}


graph("v1_control_in_function", control_in_function)


def average_of_an_update():
    """Of a variable after it changed, and of a tensor without the bias of its start."""
    x = rows()
    w, n = v1.get_variable("w", initializer=tf.ones([4])), v1.get_variable("n", initializer=0.0)
    mean = tf.reduce_mean(x, 0)
    changed = v1.assign_add(w, mean)
    average, unbiased = v1.train.ExponentialMovingAverage(0.9), v1.train.ExponentialMovingAverage(0.9, n, zero_debias=True, name="b")
    with tf.control_dependencies([changed]):
        applied = tf.group(average.apply([w]), unbiased.apply([mean]))
    with tf.control_dependencies([applied]):
        y, z = tf.identity(average.average(w)) + 0, unbiased.average(mean) * 1
        count = v1.assign_add(n, 1)
    with tf.control_dependencies([count]):
        other = v1.assign_sub(w, z) * 2
    return {"x": x}, {"mean": mean, "y": y, "z": z, "n": count + 0, "other": other}


graph("v1_average_of_an_update", average_of_an_update, batches=(2, 3, 1, 4), sample=True)


def average_of_a_step():
    """As models are trained: a step of an optimizer, then the averages, then what the server reads."""
    x = rows()
    w, b = v1.get_variable("w", initializer=tf.ones([4, 1])), v1.get_variable("b", initializer=tf.zeros([1]))
    step = v1.train.get_or_create_global_step()
    loss = tf.reduce_mean((tf.matmul(x, w) + b - tf.reduce_sum(x, 1, keepdims=True) ** 2) ** 2)
    trained = v1.train.MomentumOptimizer(0.01, 0.9).minimize(loss, global_step=step)
    average = v1.train.ExponentialMovingAverage(0.8, step)
    with tf.control_dependencies([trained]):
        applied = average.apply([w, b])
    with tf.control_dependencies([applied]):
        return {"x": x}, {"w": average.average(w) + 0, "b": average.average(b) + 0, "loss": tf.identity(loss), "step": step.read_value(), "new": w.read_value()}


graph("v1_average_of_a_step", average_of_a_step, batches=(2, 3, 1, 4))


def shared_memory():
    """What reads a variable's tensor after an assignment sees what that left there, however long ago Identity ran."""
    x = rows()
    w, u = v1.get_variable("w", initializer=tf.ones([4])), v1.get_variable("u", initializer=tf.ones([4]))
    before = tf.identity(w)
    kept, handle = before * 3, v1.raw_ops.RefIdentity(input=w._ref())
    with tf.control_dependencies([kept]):
        added = v1.assign_add(w, tf.reduce_sum(x, 0))
    with tf.control_dependencies([added]):
        a, b, c, d = before + 0, w * x, w.read_value(), tf.identity(handle) * 1
    with tf.control_dependencies([u + kept]):
        set_ = v1.assign_add(v1.assign(u, tf.reduce_mean(x, 0)), tf.ones([4]))
    with tf.control_dependencies([set_ * 2]):
        e = u * 1
    return {"x": x}, {"kept": kept, "a": a, "b": b, "c": c, "d": d, "e": e}


graph("v1_shared_memory", shared_memory, batches=(2, 3, 1, 4), sample=True)


def legacy_init(path):
    """legacy_init_op instead of main_op, a table of a file of assets."""
    names = path + ".names.txt"
    with open(names, "w") as f:
        f.write("x\ny\nz\n")
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.int64, [None], name="x")
        table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
            names, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE), "?")
        y = table.lookup(x)
        session.run(v1.tables_initializer())
        builder = v1.saved_model.Builder(path)
        builder.add_meta_graph_and_variables(
            session, ["serve"], {"serving_default": v1.saved_model.predict_signature_def({"x": x}, {"y": y})},
            assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS), legacy_init_op=v1.tables_initializer())
        builder.save()


add("v1_legacy_init", legacy_init)
