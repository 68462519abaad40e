"""SavedModels that train: a signature computes gradients and assigns variables and an optimizer's slots. Each call goes
on from where the last one stopped, in TensorFlow and here."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

from corpus.modules import spec, weights
from corpus.rows import DEEP, row

F32, I32, I64, STRING = tf.float32, tf.int32, tf.int64, tf.string
CALLS = (4, 4, 1, 7)


class Trained(tf.Module):
    """A model of Keras with its optimizer: `train` is a step, `predict` what it learned; they share the variables."""

    def __init__(self, model, optimizer, loss, x, y):
        super().__init__()
        self.model, self.optimizer, self.loss = model, optimizer, loss
        self.kept = [v.value for v in model.variables]  # seeds of dropout too, which nothing else tracks
        optimizer.build(model.trainable_variables)
        self.steps = tf.Variable(0, dtype=I64)
        self.train = tf.function(self.step, input_signature=[x, y])
        self.predict = tf.function(lambda x: {"y": self.model(x, training=False)}, input_signature=[x])
        self.state = tf.function(lambda: {f"v{i}": tf.identity(v.value) for i, v in enumerate(self.model.variables)}, input_signature=[])

    def step(self, x, y):
        with tf.GradientTape() as tape:
            predicted = self.model(x, training=True)
            loss = tf.reduce_mean(self.loss(y, predicted)) + tf.add_n(self.model.losses + [0.])
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        self.steps.assign_add(1)
        return {"loss": loss, "norm": tf.linalg.global_norm(grads), "steps": self.steps.read_value()}


def trained(path, model, optimizer, loss, x, y):
    m = Trained(model, optimizer, loss, x, y)
    tf.saved_model.save(m, path, signatures={"serving_default": m.train, "predict": m.predict, "variables": m.state})


def stirred(*of):
    return keras.Sequential(list(of))


def vectors(classes=3):
    return lambda rng, n: {"x": rng.normal(size=(n, 6)), "y": rng.integers(0, classes, n)}


SPARSE = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
X, Y = spec("x", F32, None, 6), spec("y", I64, None)


@row(feed=vectors(), batches=CALLS, tolerance=DEEP, sample=True)
def train_dense_adam(path):
    trained(path, stirred(keras.Input((6,)), L.Dense(8, "tanh", kernel_regularizer="l2"), L.BatchNormalization(), L.Dense(3)),
            keras.optimizers.Adam(0.05, clipnorm=1.0), SPARSE, X, Y)


@row(feed=vectors(), batches=CALLS, tolerance=DEEP)
def train_dense_momentum(path):
    trained(path, stirred(keras.Input((6,)), L.Dense(8, "swish"), L.LayerNormalization(), L.Dense(3)),
            keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.1, 10), 0.9, True, weight_decay=0.01), SPARSE, X, Y)


@row(feed=vectors(), batches=CALLS, tolerance=DEEP, sample=True)
def train_dense_averaged(path):
    trained(path, stirred(keras.Input((6,)), L.Dense(8, "gelu"), L.Dense(3)), keras.optimizers.AdamW(0.01, use_ema=True, ema_overwrite_frequency=2), SPARSE, X, Y)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 10, 10, 2)), "y": rng.integers(0, 3, n)}, batches=CALLS, tolerance=DEEP, sample=True)
def train_convolutions(path):
    trained(path, stirred(keras.Input((10, 10, 2)), L.Conv2D(6, 3, 2, "same", activation="relu"), L.BatchNormalization(), L.DepthwiseConv2D(3, activation="elu"),
                          L.MaxPooling2D(), L.Flatten(), L.Dense(3)), keras.optimizers.RMSprop(0.01, centered=True, momentum=0.5), SPARSE,
            spec("x", F32, None, 10, 10, 2), Y)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 8, 8, 3)), "y": rng.integers(0, 3, n)}, batches=CALLS, tolerance=DEEP, sample=True)
def train_squeeze_excite(path):
    """A block of EfficientNet: swish behind batch norms, a gate of the channels, a residual sum."""
    x = keras.Input((8, 8, 3))
    begin = L.Activation("swish")(L.BatchNormalization()(L.Conv2D(4, 3, padding="same", use_bias=False)(x)))
    y = L.Activation("swish")(L.BatchNormalization()(L.Conv2D(12, 1, use_bias=False)(begin)))
    y = L.Activation("swish")(L.BatchNormalization()(L.DepthwiseConv2D(3, padding="same", use_bias=False)(y)))
    gate = L.Conv2D(3, 1, activation="swish")(L.GlobalAveragePooling2D(keepdims=True)(y))
    y = L.Multiply()([y, L.Conv2D(12, 1, activation="sigmoid")(gate)])
    y = L.Add()([L.BatchNormalization()(L.Conv2D(4, 1, use_bias=False)(y)), begin])
    trained(path, keras.Model(x, L.Dense(3)(L.GlobalAveragePooling2D()(y))), keras.optimizers.SGD(0.1), SPARSE, spec("x", F32, None, 8, 8, 3), Y)


@row(feed=lambda rng, n: {"x": rng.integers(0, 12, (n, 7)), "y": rng.integers(0, 3, n)}, batches=CALLS, tolerance=DEEP, sample=True)
def train_embedding_lstm(path):
    trained(path, stirred(keras.Input((None,), dtype="int32"), L.Embedding(12, 5, mask_zero=True), L.LSTM(6), L.Dense(3)), keras.optimizers.Adagrad(0.1), SPARSE,
            spec("x", I32, None, None), Y)


@row(feed=lambda rng, n: {"x": rng.integers(1, 12, (n, 7)), "y": rng.integers(0, 12, (n, 7))}, batches=CALLS, tolerance=DEEP, sample=True)
def train_transformer(path):
    x = keras.Input((7,), dtype="int32")
    y = L.Embedding(12, 8)(x)
    y = L.Add()([y, L.MultiHeadAttention(2, 4, use_bias=False)(y, y, use_causal_mask=True)])
    y = L.LayerNormalization()(y)
    y = L.Add()([y, L.Dense(8)(L.Dense(16, "gelu")(y))])
    trained(path, keras.Model(x, L.Dense(12)(y)), keras.optimizers.Nadam(0.01), SPARSE, spec("x", I32, None, 7), spec("y", I64, None, 7))


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 9, 4)), "y": rng.normal(size=(n, 2))}, batches=CALLS, tolerance=DEEP, sample=True)
def train_gru_regression(path):
    trained(path, stirred(keras.Input((9, 4)), L.Conv1D(6, 3, padding="causal", activation="relu"), L.Bidirectional(L.GRU(4)), L.Dense(2)),
            keras.optimizers.Ftrl(0.1, l1_regularization_strength=0.01), keras.losses.Huber(reduction="none"), spec("x", F32, None, 9, 4), spec("y", F32, None, 2))


class Written(tf.Module):
    """A step written by hand, without an optimizer: a loop of steps in one call, an early end, gradient clipping."""

    def __init__(self):
        super().__init__()
        self.w, self.b = weights(1, 6, 3), tf.Variable(tf.zeros([3]))
        self.best = tf.Variable(float("inf"))

    @tf.function(input_signature=[X, Y, spec("rate", F32), spec("steps", I32)])
    def fit(self, x, y, rate, steps):
        losses = tf.TensorArray(F32, 0, dynamic_size=True)
        done = tf.constant(0)
        for i in tf.range(steps):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, x @ self.w + self.b))
            (gw, gb), _ = tf.clip_by_global_norm(tape.gradient(loss, [self.w, self.b]), 0.5)
            self.w.assign_sub(rate * gw)
            self.b.assign_sub(rate * gb)
            losses = losses.write(i, loss)
            done += 1
            if loss < 0.5:
                break
        last = losses.stack()
        if tf.reduce_min(last) < self.best:
            self.best.assign(tf.reduce_min(last))
        return {"losses": last, "steps": done, "best": self.best.read_value(), "w": self.w.read_value()}

    @tf.function(input_signature=[X])
    def jacobian(self, x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(tf.nn.softplus(x @ self.w + self.b) ** 2)
            g = tape.gradient(y, x)
        return {"gradient": g, "product": outer.gradient(g, x, output_gradients=tf.ones_like(g))}


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 6)), "y": rng.integers(0, 3, n), "rate": 0.5, "steps": 3 + n % 3}, batches=CALLS, tolerance=DEEP)
def train_in_a_loop(path):
    m = Written()
    tf.saved_model.save(m, path, signatures={"serving_default": m.fit, "jacobian": m.jacobian})


class Factors(tf.Module):
    """Factors of users and items learn by sparse gradients: only rows that were looked up change."""

    def __init__(self):
        super().__init__()
        self.user, self.item, self.bias = weights(1, 10, 4), weights(2, 12, 4), tf.Variable(tf.zeros([12]))
        self.seen = tf.Variable(tf.zeros([10], I32))

    @tf.function(input_signature=[spec("user", I64, None), spec("item", I64, None), spec("rating", F32, None)])
    def learn(self, user, item, rating):
        with tf.GradientTape() as tape:
            u, v = tf.nn.embedding_lookup(self.user, user), tf.nn.embedding_lookup(self.item, item)
            error = rating - tf.reduce_sum(u * v, 1) - tf.gather(self.bias, item)
            loss = tf.reduce_sum(error ** 2)
        for variable, g in zip((self.user, self.item, self.bias), tape.gradient(loss, [self.user, self.item, self.bias])):
            variable.scatter_sub(tf.IndexedSlices(0.05 * g.values, g.indices))
        self.seen.scatter_add(tf.IndexedSlices(tf.ones_like(user, I32), user))
        return {"error": error, "seen": self.seen.read_value(), "user": self.user.read_value()}


@row(feed=lambda rng, n: {"user": rng.integers(0, 10, n), "item": rng.integers(0, 12, n), "rating": rng.normal(size=n)}, batches=CALLS)
def train_factors_sparsely(path):
    m = Factors()
    tf.saved_model.save(m, path, signatures=m.learn)


class Adversarial(tf.Module):
    """Two networks and two optimizers in one step; the generator's noise comes from a counter."""

    def __init__(self):
        super().__init__()
        self.g, self.d = stirred(keras.Input((3,)), L.Dense(8, "leaky_relu"), L.Dense(6)), stirred(keras.Input((6,)), L.Dense(8, "leaky_relu"), L.Dense(1))
        self.og, self.od = keras.optimizers.Adam(0.01, 0.5), keras.optimizers.Adam(0.01, 0.5)
        self.og.build(self.g.trainable_variables), self.od.build(self.d.trainable_variables)
        self.count = tf.Variable(0)

    @tf.function(input_signature=[X])
    def step(self, x):
        z = tf.random.stateless_normal([tf.shape(x)[0], 3], tf.stack([self.count.read_value(), 1]))
        with tf.GradientTape(persistent=True) as tape:
            fake = self.g(z)
            real_score, fake_score = self.d(x), self.d(fake)
            mix = (x + fake) / 2
            with tf.GradientTape() as inner:
                inner.watch(mix)
                mixed = self.d(mix)
            penalty = tf.reduce_mean((tf.norm(inner.gradient(mixed, mix) + 1e-6, axis=1) - 1) ** 2)
            d_loss = tf.reduce_mean(fake_score - real_score) + 10 * penalty
            g_loss = -tf.reduce_mean(fake_score)
        self.od.apply_gradients(zip(tape.gradient(d_loss, self.d.trainable_variables), self.d.trainable_variables))
        self.og.apply_gradients(zip(tape.gradient(g_loss, self.g.trainable_variables), self.g.trainable_variables))
        self.count.assign_add(1)
        return {"d_loss": d_loss, "g_loss": g_loss, "penalty": penalty}


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 6))}, batches=CALLS, tolerance=DEEP, sample=True)
def train_adversarial(path):
    m = Adversarial()
    tf.saved_model.save(m, path, signatures=m.step)


class Online(tf.Module):
    """Logistic regression over hashed words with a mutable table of counts, as streams are learned."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.zeros([64]))
        self.squares = tf.Variable(tf.fill([64], 0.1))
        self.counts = tf.lookup.experimental.MutableHashTable(STRING, I64, 0)

    @tf.function(input_signature=[spec("text", STRING, None), spec("label", F32, None)])
    def learn(self, text, label):
        words = tf.strings.split(text)
        flat, _, counts = tf.unique_with_counts(words.flat_values, I64)
        self.counts.insert(flat, self.counts.lookup(flat) + counts)
        ids = tf.strings.to_hash_bucket_fast(words.flat_values, 64)
        rows = words.value_rowids()
        p = tf.sigmoid(tf.math.segment_sum(tf.gather(self.w, ids), rows))
        error = p - label[:tf.shape(p)[0]]
        g = tf.math.unsorted_segment_sum(tf.gather(error, rows), ids, 64)
        self.squares.assign_add(g * g)
        self.w.assign_sub(0.5 * g * tf.math.rsqrt(self.squares))
        return {"p": p, "known": self.counts.size(), "count": self.counts.lookup(flat), "w": self.w.read_value()}


@row(feed=lambda rng, n: {"text": rng.choice([b"good film", b"bad bad film", b"fine", b"a good dog"], n), "label": rng.integers(0, 2, n)}, batches=CALLS)
def train_online_words(path):
    m = Online()
    tf.saved_model.save(m, path, signatures=m.learn)


class Recurrent(tf.Module):
    """Policy gradients through a scan, with a running baseline and entropy."""

    def __init__(self):
        super().__init__()
        self.w, self.v = weights(1, 6, 3), weights(2, 3, 3)
        self.baseline = tf.Variable(0.)
        self.m = [tf.Variable(tf.zeros_like(p)) for p in (self.w, self.v)]

    @tf.function(input_signature=[spec("x", F32, None, 5, 6), spec("action", I32, None, 5), spec("reward", F32, None, 5)])
    def step(self, x, action, reward):
        returns = tf.transpose(tf.scan(lambda a, r: 0.9 * a + r, tf.transpose(reward), reverse=True))
        with tf.GradientTape() as tape:
            h = tf.zeros([tf.shape(x)[0], 3])
            total = entropy = 0.
            for t in tf.range(5):
                h = tf.tanh(x[:, t] @ self.w + h @ self.v)
                log_p = tf.nn.log_softmax(h)
                total -= tf.reduce_mean(tf.gather(log_p, action[:, t], batch_dims=1) * (returns[:, t] - self.baseline))
                entropy -= tf.reduce_mean(tf.reduce_sum(tf.exp(log_p) * log_p, 1))
            loss = total - 0.01 * entropy
        for p, m, g in zip((self.w, self.v), self.m, tape.gradient(loss, [self.w, self.v])):
            m.assign(0.9 * m + g)
            p.assign_sub(0.05 * m)
        self.baseline.assign(0.9 * self.baseline + 0.1 * tf.reduce_mean(returns))
        return {"loss": loss, "baseline": self.baseline.read_value(), "w": self.w.read_value(), "v": self.v.read_value()}


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 5, 6)), "action": rng.integers(0, 3, (n, 5)), "reward": rng.normal(size=(n, 5))}, batches=CALLS, tolerance=DEEP)
def train_policy_by_a_loop(path):
    m = Recurrent()
    tf.saved_model.save(m, path, signatures=m.step)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 9, 8, 2))}, batches=CALLS)
def train_morphology(path):
    """Dilation and erosion whose structuring elements are learned: TensorFlow's operators of their gradients."""
    m = tf.Module()
    m.wide, m.narrow = weights(1, 3, 3, 2), weights(2, 2, 3, 2)

    @tf.function(input_signature=[spec("x", F32, None, 9, 8, 2)])
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.dilation2d(x, m.wide, [1, 1, 1, 1], "SAME", "NHWC", [1, 2, 1, 1])
            y = tf.nn.erosion2d(y, m.narrow, [1, 2, 2, 1], "VALID", "NHWC", [1, 1, 1, 1])
            loss = tf.reduce_mean(tf.square(y - 0.1))
        dx, *gradients = tape.gradient(loss, [x, m.wide, m.narrow])
        for w, g in zip((m.wide, m.narrow), gradients):
            w.assign_sub(0.1 * g)
        return {"loss": loss, "dx": dx, "wide": m.wide.read_value(), "narrow": m.narrow.read_value()}
    m.step = step
    tf.saved_model.save(m, path, signatures=step)


@row(feed=lambda rng, n: {"x": rng.normal(size=(5, 4)), "steps": n}, batches=(0, 1, 3), tolerance=DEEP, sample=True)
def train_through_steps_inside(path):
    """MAML: the gradient of what as many steps of gradient descent as the request says end with."""
    m = tf.Module()
    m.w = weights(1, 4, 2)

    @tf.function(input_signature=[spec("x", F32, None, 4), spec("steps", I32)])
    def step(x, steps):
        with tf.GradientTape() as outer:
            w = m.w.read_value()
            for _ in tf.range(steps):
                with tf.GradientTape() as inner:
                    inner.watch(w)
                    loss = tf.reduce_mean(tf.square(x @ w - 1.0))
                w -= 0.1 * inner.gradient(loss, w)
            loss = tf.reduce_mean(tf.square(tf.sin(x) @ w))
        gradient = outer.gradient(loss, m.w)
        m.w.assign_sub(0.1 * gradient)
        return {"loss": loss, "gradient": gradient}
    m.step = step
    tf.saved_model.save(m, path, signatures=step)
