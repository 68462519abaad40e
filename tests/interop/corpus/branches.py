"""Gradients that TensorFlow wrote through branches: what a branch computed reaches its gradient as an optional, through
loops in lists of optionals."""
import keras
import tensorflow as tf

from corpus.modules import fixed, spec, weights
from corpus.rows import DEEP, row

F32, I32, I64 = tf.float32, tf.int32, tf.int64
X = spec("x", F32, None, 4)
CALLS = (4, 4, 1, 7)
raw = tf.raw_ops


def saved(path, f, *specs, **kept):
    m = tf.Module()
    for name, value in kept.items():
        setattr(m, name, value)
    m.f = tf.function(f, input_signature=specs or [X])
    tf.saved_model.save(m, path, signatures=m.f)


def gradients_of(y, *of):
    """A tape's function of x with y's gradients by x, and by more variables."""
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = y(x)
        return {"y": total, **{f"g{i}": g for i, g in enumerate(tape.gradient(total, [x, *of]))}}
    return f


SIGNED = dict(feed=lambda rng, n: {"x": rng.normal(size=(n, 4)) * (1 if n % 2 else -1) + (n % 3) - 1}, batches=(1, 2, 3, 4, 8))


@row(sample=True, **SIGNED)
def branch_gradient(path):
    def y(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.reduce_sum(tf.exp(tf.sin(x)) * x), lambda: tf.reduce_sum(tf.tanh(x @ w) ** 2))
    w = weights(1, 4, 3)
    saved(path, gradients_of(y, w), w=w)


@row(**SIGNED)
def branch_gradient_of_shapes(path):
    """What the branches keep differs in number, dtype and rank."""
    def yes(x):
        order = tf.argsort(x, 1)
        y = tf.gather(tf.square(x), order, batch_dims=1)
        return tf.reduce_sum(tf.sigmoid(y) * tf.cast(order, F32))

    def no(x):
        y = tf.reshape(tf.einsum("bi,bj->bij", tf.sin(x), tf.cos(x)), [-1, 16])
        return tf.reduce_logsumexp(y * tf.reduce_max(x))
    saved(path, gradients_of(lambda x: tf.cond(tf.reduce_mean(x) > 0, lambda: yes(x), lambda: no(x))))


@row(sample=True, **SIGNED)
def branch_gradient_nested(path):
    def inner(x, s):
        return tf.cond(s > 1, lambda: tf.exp(-tf.square(x)), lambda: tf.sin(x) * tf.cos(x))

    def y(x):
        s = tf.reduce_sum(x)
        return tf.reduce_sum(tf.cond(s > 0, lambda: tf.tanh(inner(x * 2, s)) * inner(x, s - 1), lambda: tf.sigmoid(inner(x + 1, s + 3)) ** 2))
    saved(path, gradients_of(y))


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 4)), "k": n % 5}, batches=(1, 2, 3, 4, 5, 6))
def branch_gradient_switch_case(path):
    def f(x, k):
        branches = [lambda: tf.exp(tf.sin(x)), lambda: tf.tanh(x @ w) @ tf.transpose(w), lambda: x ** 3 / (1 + x ** 2), lambda: x]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.switch_case(k, branches, default=lambda: tf.nn.softplus(x) * x))
        return dict(zip(("gx", "gw"), tape.gradient(y, [x, w], unconnected_gradients="zero")), y=y)
    w = weights(1, 4, 3)
    saved(path, f, X, spec("k", I32), w=w)


@row(sample=True, **SIGNED)
def branch_gradient_autograph(path):
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            if tf.reduce_sum(x) > 0:
                y = tf.exp(y * 0.5)
                if tf.reduce_max(x) > 2:
                    y = tf.sin(y) * y
            elif tf.reduce_min(x) < -2:
                y = tf.square(tf.tanh(y))
            loss = tf.reduce_sum(y)
        return {"y": y, "g": tape.gradient(loss, x)}
    saved(path, f)


@row(sample=True, **SIGNED)
def branch_gradient_in_a_loop(path):
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for i in tf.range(5):
                if tf.reduce_sum(y) > tf.cast(i, F32) - 2:
                    y = tf.sin(y) * x
                else:
                    y = tf.tanh(y @ w) @ tf.transpose(w) + 1
            loss = tf.reduce_sum(y ** 2)
        g = tape.gradient(loss, [x, w])
        return {"y": y, "gx": g[0], "gw": g[1]}
    w = weights(1, 4, 3)
    saved(path, f, w=w)


@row(**SIGNED)
def branch_gradient_of_a_loop(path):
    """A loop in a branch: its lists are what the branch keeps."""
    def yes(x):
        return tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, tf.sin(y) * x), (0, x))[1]

    def no(x):
        return tf.while_loop(lambda y: tf.reduce_sum(tf.abs(y)) > 0.5, lambda y: [tf.square(tf.tanh(y * 0.7))], [x])[0]
    saved(path, gradients_of(lambda x: tf.reduce_sum(tf.cond(tf.reduce_sum(x) > 0, lambda: yes(x), lambda: no(x)))))


@row(**SIGNED)
def branch_gradient_in_nested_loops(path):
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for i in tf.range(3):
                for j in tf.range(i + 1):
                    if (i + j) % 2 == 0:
                        y = tf.sin(y) + x * tf.cast(j, F32)
                    else:
                        y = tf.square(y) * 0.3
            loss = tf.reduce_sum(y)
        return {"y": y, "g": tape.gradient(loss, x)}
    saved(path, f)


@row(**SIGNED)
def loop_gradient_in_a_loop(path):
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for i in tf.range(3):
                for _ in tf.range(i + 1):
                    y = tf.sin(y) + x
                y = tf.tanh(y)
            loss = tf.reduce_sum(y)
        return {"y": y, "g": tape.gradient(loss, x)}
    saved(path, f)


@row(**SIGNED)
def branch_gradient_persistent(path):
    def f(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            a, b = tf.cond(tf.reduce_sum(x) > 0, lambda: (tf.exp(tf.sin(x)), tf.square(x)), lambda: (tf.tanh(x) * x, tf.sigmoid(x)))
            c = a * b
        return {"a": tape.gradient(a, x), "b": tape.gradient(b, x), "c": tape.gradient(c, x)}
    saved(path, f)


@row(sample=True, **SIGNED)
def branch_gradient_twice(path):
    def f(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.reduce_sum(tf.exp(tf.sin(x)) * x), lambda: tf.reduce_sum(tf.tanh(x) ** 3))
            g = tape.gradient(y, x)
        return {"y": y, "g": g, "h": outer.gradient(g, x)}
    saved(path, f)


@row(**SIGNED)
def branch_gradient_custom(path):
    @tf.custom_gradient
    def clipped(x):
        return tf.exp(x), lambda dy: tf.clip_by_value(dy * tf.exp(x), -1., 1.)
    saved(path, gradients_of(lambda x: tf.reduce_sum(tf.cond(tf.reduce_sum(x) > 0, lambda: clipped(tf.sin(x) * 2), lambda: tf.square(clipped(x))))))


@row(**SIGNED)
def branch_gradient_rectangles(path):
    """Of a matrix of any width, in float64 and as complex numbers."""
    def f(x):
        x = tf.cast(x, tf.float64)
        part = x[:, :tf.shape(x)[0] % 4 + 1]
        with tf.GradientTape() as tape:
            tape.watch(part)
            z = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.math.real(tf.exp(tf.complex(part, part * 2)) * tf.complex(part, 1 - part)),
                        lambda: tf.math.log1p(tf.square(part)))
            loss = tf.reduce_sum(z)
        return {"y": z, "g": tape.gradient(loss, part)}
    saved(path, f)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 4)), "y": rng.normal(size=n)}, batches=CALLS, tolerance=DEEP, sample=True)
def train_through_a_branch(path):
    """A step whose branch depends on what was learned; each call goes on from the last."""
    def step(x, y):
        with tf.GradientTape() as tape:
            h = tf.cond(tf.reduce_mean(x @ v) > 0.1, lambda: tf.nn.relu(x @ w + b), lambda: tf.tanh(x @ w) * b)
            loss = tf.reduce_mean(tf.square(tf.squeeze(h @ v3, 1) - y))
        for p, g in zip((w, b, v3), tape.gradient(loss, [w, b, v3])):
            p.assign_sub(0.1 * g)
        v.assign_add(0.1 * w[:, :1])
        return {"loss": loss, "w": w.read_value(), "b": b.read_value()}
    w, b, v, v3 = weights(1, 4, 6), weights(2, 6), weights(3, 4, 1), weights(4, 6, 1)
    saved(path, step, X, spec("y", F32, None), w=w, b=b, v=v, v3=v3)


@row(batches=CALLS)
def branch_whose_cases_assign(path):
    """Variables are assigned in a case of a branch, and nowhere else."""
    def f(x):
        def case(k):
            def assigns():
                v.assign_add(k * tf.reduce_sum(x, 0))
                return k * x
            return assigns
        y = tf.cond(tf.reduce_sum(x) > -1000, lambda: tf.switch_case(tf.shape(x)[0] % 3, [case(1.0), case(2.0), lambda: x + v]), lambda: x * v)
        return {"y": y, "v": v.read_value()}
    v = weights(1, 4)
    saved(path, f, v=v)


@keras.saving.register_keras_serializable()
class Gated(keras.layers.Layer):
    """A layer that runs one of two networks, by the data; training with noise."""

    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1], 5), name="w")
        self.u = self.add_weight(shape=(shape[-1], 5), name="u")

    def call(self, x, training=False):
        y = tf.cond(tf.reduce_mean(x) > 0, lambda: tf.nn.gelu(x @ self.w), lambda: tf.nn.relu(x @ self.u) * tf.sigmoid(x @ self.w))
        return y if not training else tf.cond(tf.reduce_max(y) > 1, lambda: y / tf.reduce_max(y), lambda: y)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 4)), "y": rng.integers(0, 3, n)}, batches=CALLS, tolerance=DEEP, sample=True)
def train_branches_keras(path):
    from corpus.training import SPARSE, trained
    model = keras.Sequential([keras.Input((4,)), Gated(), keras.layers.Dense(6, "tanh"), Gated(), keras.layers.Dense(3)])
    trained(path, model, keras.optimizers.Adam(0.05), SPARSE, X, spec("y", I64, None))


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 4)), "steps": 1 + n % 5}, batches=CALLS, tolerance=DEEP)
def train_branches_in_a_loop(path):
    """Steps in a loop of unknown length, each with a branch; the tape is inside."""
    def fit(x, steps):
        losses = tf.TensorArray(F32, 0, dynamic_size=True)
        for i in tf.range(steps):
            with tf.GradientTape() as tape:
                if i % 2 == 0:
                    loss = tf.reduce_mean(tf.square(tf.tanh(x @ w)))
                else:
                    loss = tf.reduce_mean(tf.abs(x @ w - 1))
            w.assign_sub(0.3 * tape.gradient(loss, w))
            losses = losses.write(i, loss)
        return {"losses": losses.stack(), "w": w.read_value()}
    w = weights(1, 4, 3)
    saved(path, fit, X, spec("steps", I32), w=w)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 4)), "steps": n % 5}, batches=(5, 1, 2, 3, 4, 9), sample=True)
def optionals(path):
    """Optionals by themselves: of several tensors, in branches that give none, in lists."""
    def f(x, steps):
        def some(*of):
            return raw.OptionalFromValue(components=of)

        def get(o, dtypes, shapes):
            return raw.OptionalGetValue(optional=o, output_types=dtypes, output_shapes=shapes)
        pair = some(x, steps)
        maybe = tf.cond(steps > 2, lambda: some(x * 2), lambda: raw.OptionalNone())
        nested = some(pair)
        value, number = get(get(nested, [tf.variant], [[]])[0], [F32, I32], [[None, 4], []])
        items = raw.EmptyTensorList(element_shape=tf.constant([], I32), max_num_elements=-1, element_dtype=tf.variant)
        _, items = tf.while_loop(lambda i, l: i <= steps, lambda i, l: (i + 1, raw.TensorListPushBack(input_handle=l, tensor=tf.cond(
            i % 2 == 0, lambda: some(tf.cast(i, F32) * x), lambda: raw.OptionalNone()))), (0, items))
        _, last = raw.TensorListPopBack(input_handle=items, element_shape=tf.constant([], I32), element_dtype=tf.variant)
        first = raw.TensorListGetItem(input_handle=items, index=0, element_shape=tf.constant([], I32), element_dtype=tf.variant)
        either = tf.switch_case(steps, [lambda: some(x[:1] + tf.zeros([3, 4])), lambda: raw.OptionalNone()], lambda: some(tf.ones([5, 4]) * x[0]))
        return {"value": value, "number": number, "either": tf.cond(raw.OptionalHasValue(optional=either), lambda: get(either, [F32], [[None, 4]])[0], lambda: x),
                "has": raw.OptionalHasValue(optional=maybe), "none": raw.OptionalHasValue(optional=raw.OptionalNone()),
                "maybe": tf.cond(raw.OptionalHasValue(optional=maybe), lambda: get(maybe, [F32], [[None, 4]])[0], lambda: x),
                "last": raw.OptionalHasValue(optional=last), "first": get(first, [F32], [[None, 4]])[0], "n": raw.TensorListLength(input_handle=items)}
    saved(path, f, X, spec("steps", I32))


@row(**SIGNED)
def branch_gradient_of_calls(path):
    """Functions of their own, whose gradients take what the forward calls return."""
    @tf.function
    def gate(x, s):
        if s > 0:
            return tf.exp(tf.sin(x)) * x
        return tf.tanh(x) * 0.5

    @tf.function
    def twice(x):
        return gate(gate(x, tf.reduce_sum(x)) + 1, tf.reduce_mean(x) - 0.5)
    saved(path, gradients_of(lambda x: tf.reduce_sum(twice(x) + gate(x * 2, -tf.reduce_sum(x)))))


@row(sizes=[(3,), (5,)], feed=None, batches=(1, 2, 4))
def branch_gradient_of_any_size(path):
    """Neither the batch nor the width is known: the lists of what the loop kept are of unequal tensors."""
    def f(x, z):
        with tf.GradientTape() as tape:
            tape.watch([x, z])
            y = x
            for i in tf.range(4):
                if tf.reduce_sum(y) > tf.cast(i, F32) * tf.reduce_sum(z):
                    y = tf.sin(y) * x + tf.reduce_mean(z)
                else:
                    y = tf.concat([y[:, 1:], tf.square(y[:, :1])], 1) * 0.7
            loss = tf.reduce_sum(y * y)
        return dict(zip(("gx", "gz"), tape.gradient(loss, [x, z])), y=y)
    saved(path, f, spec("x", F32, None, None), spec("z", F32, None))


@row(**SIGNED)
def branch_gradient_loop_in_branch_in_loop(path):
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for i in tf.range(4):
                if tf.reduce_sum(y) > 0:
                    for _ in tf.range(i + 1):
                        y = tf.sin(y) * x - 0.2
                else:
                    y = tf.sigmoid(y) + x
            loss = tf.reduce_sum(y)
        return {"y": y, "g": tape.gradient(loss, x)}
    saved(path, f)


@row(**SIGNED)
def branch_gradient_twice_in_a_loop(path):
    def f(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x
                for i in tf.range(3):
                    y = tf.cond(tf.reduce_sum(y) > 0, lambda: tf.sin(y) * x, lambda: tf.exp(-y * y))
                loss = tf.reduce_sum(y)
            g = tape.gradient(loss, x)
        return {"g": g, "h": outer.gradient(g, x)}
    saved(path, f)


@row(**SIGNED)
def branch_gradient_switch_case_in_a_loop(path):
    """With a gradient of its own in one branch, and complex numbers in another."""
    @tf.custom_gradient
    def halved(x):
        return tf.exp(x * 0.5), lambda dy: dy * tf.exp(x * 0.5) * 0.25

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for i in tf.range(6):
                y = tf.switch_case(i % 4, [lambda: halved(tf.sin(y)), lambda: tf.math.real(tf.exp(tf.complex(y * 0.1, x)) * tf.complex(x, y)),
                                           lambda: y, lambda: tf.tanh(y @ w) @ tf.transpose(w)])
            loss = tf.reduce_sum(y ** 2)
        return dict(zip(("gx", "gw"), tape.gradient(loss, [x, w])), y=y)
    w = weights(1, 4, 3)
    saved(path, f, w=w)


@row(batches=(1, 3, 5))
def branch_gradient_of_each_row(path):
    """A branch in the body of map_fn and of a scan."""
    def y(x):
        rows = tf.map_fn(lambda r: tf.cond(tf.reduce_sum(r) > 0, lambda: tf.exp(r * w), lambda: tf.square(r) - w), x)
        total = tf.scan(lambda a, r: tf.cond(tf.reduce_max(r) > 1, lambda: a * 0.5 + tf.sin(r), lambda: a + r * r), rows, tf.zeros([4]))
        return tf.reduce_sum(total[-1])
    w = weights(1, 4)
    saved(path, gradients_of(y, w), w=w)


@row(**SIGNED)
def branch_gradient_with_dropout(path):
    """Random numbers of a branch are what its gradient reads, not drawn again."""
    def yes(x):
        return x * tf.cast(tf.random.stateless_uniform(tf.shape(x), [3, tf.cast(tf.shape(x)[0], I32)]) > 0.4, F32) * tf.exp(x)
    saved(path, gradients_of(lambda x: tf.reduce_sum(tf.cond(tf.reduce_sum(x) > 0, lambda: yes(x), lambda: tf.sin(x) * x))))


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 8, 8, 2)), "y": rng.integers(0, 3, n)}, batches=CALLS, tolerance=DEEP)
def train_branches_convolutions(path):
    """Stochastic depth: blocks of convolutions and normalization that a step may skip."""
    def step(x, y):
        with tf.GradientTape() as tape:
            h = tf.nn.conv2d(x, k1, 1, "SAME")
            for i in range(2):
                h = tf.cond((count.read_value() + i) % 2 == 0, lambda: h + tf.nn.relu(tf.compat.v1.nn.fused_batch_norm(tf.nn.conv2d(h, k2, 1, "SAME"), s, o)[0]), lambda: h)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, tf.reduce_mean(h, [1, 2])[:, :3]))
        grads = tape.gradient(loss, [k1, k2, s, o])
        for p, g in zip((k1, k2, s, o), grads):
            p.assign_sub(0.1 * g)
        count.assign_add(1)
        return {"loss": loss, "k2": k2.read_value(), "s": s.read_value()}
    k1, k2, s, o = weights(1, 3, 3, 2, 4), weights(2, 3, 3, 4, 4), tf.Variable(tf.ones([4])), tf.Variable(tf.zeros([4]))
    count = tf.Variable(0)
    saved(path, step, spec("x", F32, None, 8, 8, 2), spec("y", I64, None), k1=k1, k2=k2, s=s, o=o, count=count)
