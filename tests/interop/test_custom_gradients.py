"""Gradients of imported functions that use tf.custom_gradient equal those that TensorFlow computes from the loaded model;
where it has none, because the gradient functions were not saved, they are an error that says so."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf

import gradient_cases

tf.get_logger().setLevel("ERROR")
rng = np.random.default_rng(11)
A, B = (rng.normal(size=(4, 3)).astype(np.float32) for _ in range(2))
BIG = tf.constant(rng.normal(size=(4, 3)).astype(np.float32))
NOT_SAVED = "was not saved; save the model with tf.saved_model.SaveOptions(experimental_custom_gradients=True)"


@tf.custom_gradient
def clip(x):
    return x * x, lambda dy: tf.clip_by_value(dy, -0.1, 0.1) * x


@tf.custom_gradient
def straight_through(x):
    return tf.round(x), lambda dy: dy


@tf.custom_gradient
def reverse(x):
    return tf.identity(x), lambda dy: -3.0 * dy


@tf.custom_gradient
def several(x, y):
    s = tf.sin(x)

    def grad(da, db):
        return da * y + db * s, da - db

    return (x * y, tf.reduce_sum(x + y, axis=1, keepdims=True)), lambda da, db: grad(da, tf.broadcast_to(db, [4, 3]))


@tf.custom_gradient
def of_the_first(x, y):
    return x * y, lambda dy: (dy * 5.0, None)


@tf.custom_gradient
def of_none(x):
    return x * 2.0, lambda dy: None


@tf.custom_gradient
def captures(x):
    s, n = tf.sin(x), tf.cast(tf.size(x), tf.float32)
    return x * BIG, lambda dy: dy * s * n + BIG


@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)
    return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


@tf.custom_gradient
def with_an_index(x, i):
    y = tf.gather(x, i)
    return y, lambda dy: (tf.tensor_scatter_nd_add(tf.zeros_like(x), i[:, None], 2.0 * dy), None)


@tf.custom_gradient
def of_custom(x):
    return x * 3.0, lambda dy: clip(dy) + dy


def outer_tensor(x):
    a = tf.exp(x)

    @tf.custom_gradient
    def inner(v):
        return v * v, lambda dy: dy * a

    return inner(x) * inner(x + 1)


def outer_of_a_function(x):
    a = tf.exp(x)

    @tf.function
    def inner(v):
        @tf.custom_gradient
        def cg(w):
            return w * w, lambda dy: dy * a

        return cg(v) + 1.0

    return inner(x)


@tf.function
def in_a_function(x):
    return clip(x) + captures(x)


def loop(x):
    return tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, reverse(v) * 0.5), (0, x))[1]


def of_another(a):
    """Its gradient reads a tensor of the function around it, which its value does not."""
    @tf.custom_gradient
    def square(v):
        s = tf.sin(v)
        return v * v, lambda dy: tf.clip_by_value(dy, -1.0, 1.0) * s + dy * a

    return square


def loop_of_outer(x):
    a = tf.exp(x * 0.3)
    return tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, of_another(a)(v) * 0.3), (0, x))[1]


def loop_in_loop(x):
    a = tf.exp(x * 0.3)
    inner = lambda v, b: tf.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, of_another(a)(v) * 0.3 + of_another(b)(v) * 0.2), (0, v))[1]
    return tf.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, inner(v, tf.cos(v))), (0, x))[1]


def outer_of_branches(x):
    a = tf.exp(x * 0.3)
    some = lambda v, f: tf.cond(tf.reduce_sum(v * v) >= 0, f, lambda: v * 0.5)
    several = lambda v, f: tf.switch_case(tf.cast(tf.reduce_sum(v * v) >= 0, tf.int32), [lambda: v, f, lambda: v * 0.5])
    y = some(x, lambda: of_another(a)(x) * 0.3) + several(x, lambda: of_another(a)(x + 1.0))
    y = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, some(v, lambda: of_another(a)(v) * 0.3)), (0, y))[1]
    return some(y, lambda: tf.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, of_another(a)(v) * 0.3), (0, y))[1])


def outer_of_branches_that_are_known(x):
    """The same without branches: TensorFlow has no gradients of those."""
    a = tf.exp(x * 0.3)
    y = of_another(a)(x) * 0.3 + of_another(a)(x + 1.0)
    y = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, of_another(a)(v) * 0.3), (0, y))[1]
    return tf.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, of_another(a)(v) * 0.3), (0, y))[1]


class Scale(tf.Module):
    """A custom gradient of a function that reads variables: that of the variable is reversed."""

    def __init__(self):
        self.v = tf.Variable(rng.normal(size=3).astype(np.float32))

    def __call__(self, x):
        @tf.custom_gradient
        def scale(x):
            def grad(dy, variables=None):
                return dy * self.v * 2.0, [-tf.reduce_sum(dy * x, 0) for _ in variables]

            return x * self.v, grad

        return scale(x)


# name -> arguments, the function of them
ROWS = {
    "clip": ((A,), clip), "straight_through": ((A,), straight_through), "reverse": ((A,), reverse), "silu": ((A,), tf.nn.silu),
    "silu_beta": ((A,), lambda x: tf.nn.silu(x, 1.7)), "log1pexp": ((A,), log1pexp), "recompute": ((A,), lambda x: tf.recompute_grad(lambda v: tf.tanh(v) * v)(x)),
    "several": ((A, B), lambda x, y: several(x, y)[0] + several(x, y)[1]), "one_of_several": ((A, B), lambda x, y: several(x, y)[0]),
    "of_the_first": ((A, B), of_the_first), "of_none": ((A,), lambda x: of_none(x) + x), "captures": ((A,), captures),
    "twice": ((A,), lambda x: clip(clip(x))), "of_custom": ((A,), of_custom), "outer_tensor": ((A,), outer_tensor), "outer_of_a_function": ((A,), outer_of_a_function),
    "in_a_function": ((A,), lambda x: in_a_function(in_a_function(x) * 0.1)), "loop": ((A,), loop), "loop_of_outer": ((A,), loop_of_outer), "loop_in_loop": ((A,), loop_in_loop), "outer_of_branches": ((A,), outer_of_branches), "with_an_index": ((A,), lambda x: with_an_index(x, tf.constant([2, 0, 2]))),
    "variable": ((A,), Scale()), "pass_through": ((A,), lambda x: tf.grad_pass_through(tf.sign)(x) * x),
    "ctc": ((rng.normal(size=(5, 2, 4)).astype(np.float32),), lambda x: tf.nn.ctc_loss(tf.constant([[1, 2], [2, 3]]), x, [2, 2], [5, 5])),
}
SAME = {"outer_of_branches": outer_of_branches_that_are_known}
# Of a model saved without gradient functions: TensorFlow refuses all, silu's is known.
KNOWN = {"silu", "silu_beta"}


def signatures(names):
    model = tf.Module()
    model.scale = ROWS["variable"][1] if "variable" in names else None
    model.functions = {name: tf.function((lambda f: lambda *a: {"y": f(*a)})(ROWS[name][1]), autograph=False,
                                         input_signature=[tf.TensorSpec(a.shape, tf.float32, f"x{i}") for i, a in enumerate(ROWS[name][0])])
                       for name in names}
    return model


def check(names, saved, again=False):
    wrong = {}
    batches = [[n] for n in names if n == "variable"]  # a model of its own: the gradients of all variables are compared
    names = [n for n in names if n != "variable"]
    batches += [names[i:i + gradient_cases.BATCH] for i in range(0, len(names), gradient_cases.BATCH)]
    for part in batches:
        wrong |= gradient_cases.check(signatures(part), {name: ROWS[name][0] for name in part}, rng,
                                      lambda theirs, _: 2e-5 * max(1, np.abs(theirs).max()),
                                      options=tf.saved_model.SaveOptions(experimental_custom_gradients=saved),
                                      variables=[ROWS[n][1].v for n in part if n == "variable"], again=again, same=SAME)
    return wrong


def main():
    names = sys.argv[1:] or list(ROWS)
    gradient_cases.report("functions saved with their gradients", names, check(names, True), {})
    again = [n for n in names if n != "variable"]
    gradient_cases.report("functions saved with their gradients, exported and read back", again, check(again, True, True), {})
    gradient_cases.report("functions saved without", names, check(names, False), {name: NOT_SAVED for name in names if name not in KNOWN})


if __name__ == "__main__":
    sys.exit(main())
