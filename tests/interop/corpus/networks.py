"""Whole networks of Keras 3: recommenders, translators, generators, detectors, forecasts, graphs, audio."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from keras import ops

from corpus.keras_layers import HALF, LENGTHS, save
from corpus.keras_sequences import Positions, block
from corpus.rows import DEEP, add, row

IMAGES = [(32, 32), (48, 64)]


def ids(rng, n, *shape, below=10):
    return rng.integers(0, below, (n, *shape))


def serve(path, f, kept, **inputs):
    """The only signature is f; `kept` holds the variables that f uses."""
    module = tf.Module()
    module.kept = kept
    module.f = tf.function(f, input_signature=[tf.TensorSpec(shape, dtype, name) for name, (dtype, *shape) in inputs.items()])
    tf.saved_model.save(module, path, signatures=module.f)


# ---- Recommenders and tables of features ----

@row(feed=lambda rng, n: {"numbers": rng.normal(size=(n, 8)), "wide": ids(rng, n, 3), "user": ids(rng, n), "item": ids(rng, n)})
def net_wide_and_deep(path):
    dense, wide = keras.Input((8,), name="numbers"), keras.Input((3,), name="wide", dtype="int32")
    user, item = keras.Input((), name="user", dtype="int64"), keras.Input((), name="item", dtype="int64")
    deep = L.Concatenate()([L.Embedding(10, 4)(user), L.Embedding(10, 6)(item), dense])
    for units in 16, 8:
        deep = L.BatchNormalization()(L.Dense(units, "relu")(deep))
    crossed = L.CategoryEncoding(10, "multi_hot")(wide)
    y = L.Dense(1)(L.Concatenate()([deep, crossed]))
    save(keras.Model([dense, wide, user, item], {"logit": y, "probability": L.Activation("sigmoid")(y)}), path)


@row(feed=lambda rng, n: {"numbers": rng.normal(size=(n, 5)), "sparse": ids(rng, n, 4, 3)})
def net_dlrm(path):
    """Bags of embeddings of several tables, and their products in pairs."""
    dense, sparse = keras.Input((5,), name="numbers"), keras.Input((4, 3), name="sparse", dtype="int32")
    bags = [ops.sum(L.Embedding(10, 6)(sparse[:, k]), axis=1) for k in range(4)]
    bottom = L.Dense(6, "relu")(L.Dense(12, "relu")(dense))
    z = ops.stack([bottom, *bags], axis=1)
    pairs = ops.matmul(z, ops.transpose(z, (0, 2, 1)))
    at = np.stack(np.tril_indices(5, -1), -1)
    pairs = L.Lambda(lambda p: tf.gather(tf.reshape(p, [-1, 25]), at[:, 0] * 5 + at[:, 1], axis=1))(pairs)
    save(keras.Model([dense, sparse], L.Dense(1, "sigmoid")(L.Dense(8, "relu")(L.Concatenate()([bottom, pairs])))), path)


@row(feed=lambda rng, n: {"user": rng.choice([b"u1", b"u2", b"u9"], n)})
def net_two_towers(path):
    """The best items of a user, by their names, from all items' vectors."""
    user = keras.Sequential([L.StringLookup(vocabulary=["u1", "u2", "u3"]), L.Embedding(4, 8), L.Dense(8)])
    user(tf.constant(["u1"]))
    items = tf.Variable(np.random.default_rng(1).normal(size=(20, 8)).astype(np.float32))
    names = tf.Variable([f"item {i}" for i in range(20)])

    def f(user_ids):
        scores, at = tf.math.top_k(tf.matmul(user(user_ids), items, transpose_b=True), 5)
        return {"scores": scores, "items": tf.gather(names, at)}

    serve(path, f, [user, items, names], user=(tf.string, None))


@row()
def net_deep_and_cross(path):
    x = keras.Input((12,))
    y = x
    for _ in range(3):
        y = x * L.Dense(12)(y) + y
    save(keras.Model(x, L.Dense(1)(L.Concatenate()([y, L.Dense(6, "selu")(x)]))), path)


class Factors(L.Layer):
    """The products of all pairs of features, by vectors of four."""

    def build(self, shape):
        self.v = self.add_weight(shape=(shape[-1], 4), initializer="glorot_uniform")

    def call(self, x):
        return 0.5 * ops.sum(ops.square(ops.matmul(x, self.v)) - ops.matmul(ops.square(x), ops.square(self.v)), -1, keepdims=True)


@row()
def net_factorization_machine(path):
    x = keras.Input((12,))
    save(keras.Model(x, L.Activation("sigmoid")(L.Dense(1)(x) + Factors()(x))), path)


@row(feed=lambda rng, n: {"history": ids(rng, n, 6), "candidate": ids(rng, n)})
def net_interest(path):
    """Attention of a candidate over what was seen before (DIN), zeros masked."""
    history, candidate = keras.Input((6,), name="history", dtype="int32"), keras.Input((), name="candidate", dtype="int32")
    table = L.Embedding(10, 5)
    h, c = table(history), ops.expand_dims(table(candidate), 1)
    c = ops.repeat(c, 6, axis=1)
    scores = L.Dense(1)(L.Dense(8, "sigmoid")(ops.concatenate([h, c, h - c, h * c], -1)))
    scores = ops.where(ops.expand_dims(history, -1) > 0, scores, -1e9)
    save(keras.Model([history, candidate], L.Dense(1)(ops.sum(ops.softmax(scores, axis=1) * h, axis=1))), path)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 6))})
def net_mixture_of_experts(path):
    x = keras.Input((6,), name="x")
    experts = ops.stack([L.Dense(4, "relu")(x) for _ in range(4)], axis=1)
    gate = L.Dense(4)(x)
    best = ops.top_k(gate, 2)
    sparse = ops.sum(ops.one_hot(best[1], 4) * ops.expand_dims(ops.softmax(best[0]), -1), axis=1)
    tasks = {k: L.Dense(1, name=k)(ops.einsum("ne,neh->nh", sparse, experts)) for k in ("click", "buy")}
    save(keras.Model(x, tasks), path)


# ---- Several inputs, outputs, layers of one's own ----

@row(feed=lambda rng, n: {"image": rng.normal(size=(n, 16, 16, 3)), "text": ids(rng, n, 5), "meta": rng.normal(size=(n, 2))})
def net_inputs_outputs(path):
    image, text, meta = keras.Input((16, 16, 3), name="image"), keras.Input((5,), name="text", dtype="int32"), keras.Input((2,), name="meta")
    a = L.GlobalAveragePooling2D()(L.Conv2D(6, 3, activation="relu")(image))
    b = L.GRU(5)(L.Embedding(10, 4)(text))
    y = L.Concatenate()([a, b, L.Normalization(mean=1.0, variance=2.0)(meta)])
    save(keras.Model([image, text, meta], {"class": L.Dense(4, "softmax", name="class")(y), "box": L.Dense(4, name="box")(y),
                                           "hash": ops.argmax(y, -1)}), path)


class Mahalanobis(L.Layer):
    """add_weight, build, several steps with ops."""

    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1], shape[-1]), initializer="glorot_uniform")
        self.m = self.add_weight(shape=(shape[-1],), initializer="ones", trainable=False)

    def call(self, x):
        d = x - self.m
        return ops.sqrt(ops.einsum("ni,ij,nj->n", d, ops.matmul(self.w, ops.transpose(self.w)), d) + 1e-3)


@row()
def net_custom_layer(path):
    save(keras.Sequential([keras.Input((5,)), L.Dense(4, "tanh"), Mahalanobis()]), path)


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder = [L.Dense(8, "relu"), L.Dense(3)]
        self.decoder = keras.Sequential([L.Dense(8, "relu"), L.Dense(6)])

    def encode(self, x):
        for layer in self.encoder:
            x = layer(x)
        return x

    def call(self, x, training=False):
        return self.decoder(self.encode(x))


@row()
def net_subclassed_signatures(path):
    m = Subclassed()
    m(tf.zeros([1, 6]))
    spec = lambda k, name: [tf.TensorSpec([None, k], tf.float32, name)]
    archive = keras.export.ExportArchive()
    archive.track(m)
    archive.add_endpoint("serve", lambda x: m(x, training=False), spec(6, "x"))
    archive.add_endpoint("encode", lambda x: {"code": m.encode(x)}, spec(6, "x"))
    archive.add_endpoint("decode", lambda code: {"x": m.decoder(code), "loss": tf.reduce_sum(m.decoder(code) ** 2)}, spec(3, "code"))
    archive.write_out(path, verbose=False)


@row()
def net_nested_outputs(path):
    x = keras.Input((4,), name="x")
    model = keras.Model({"x": x}, {"a": {"b": L.Dense(2)(x), "c": [L.Dense(3)(x), x]}, "d": (x + 1, x * 2)})
    serve(path, lambda x: tf.nest.flatten(model({"x": x})), model, x=(tf.float32, None, 4))


@row()
def net_siamese(path):
    a, b = keras.Input((10, 10, 1), name="a"), keras.Input((10, 10, 1), name="b")
    tower = keras.Sequential([L.Conv2D(4, 3, activation="relu"), L.MaxPooling2D(), L.Flatten(), L.Dense(5), L.UnitNormalization()])
    u, v = tower(a), tower(b)
    save(keras.Model([a, b], {"cosine": L.Dot(1)([u, v]), "distance": ops.norm(u - v, axis=1), "code": u}), path)


@row(batches=(0, 1, 3, 32))
def net_empty_batch(path):
    x = keras.Input((8, 8, 2))
    y = L.GlobalMaxPooling2D()(L.BatchNormalization()(L.Conv2D(4, 3, padding="same")(x)))
    save(keras.Model(x, L.Dense(3, "softmax")(y)), path)


@row(tolerance=HALF)
def net_mixed_float16(path):
    keras.config.set_dtype_policy("mixed_float16")
    try:
        x = keras.Input((10, 6), dtype="float32")
        y = L.LayerNormalization()(L.Dense(8, "gelu")(x))
        y = L.MultiHeadAttention(2, 4)(y, y)
        save(keras.Model(x, L.Dense(3, "softmax", dtype="float32")(L.GlobalAveragePooling1D()(y))), path)
    finally:
        keras.config.set_dtype_policy("float32")


@row(tolerance=HALF, sample=True)
def net_bfloat16_lstm(path):
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        x = keras.Input((6, 4), dtype="float32")
        save(keras.Model(x, L.Dense(2, dtype="float32")(L.LSTM(5)(x))), path)
    finally:
        keras.config.set_dtype_policy("float32")


# ---- Text ----

def bert_feed(rng, n):
    lengths = rng.integers(3, 10, n)[:, None]
    at = np.arange(10)
    return {"ids": np.where(at < lengths, rng.integers(1, 30, (n, 10)), 0), "mask": at < lengths, "types": (at >= lengths // 2) & (at < lengths)}


@row(feed=bert_feed, tolerance=DEEP)
def net_bert(path):
    """Embeddings of three kinds, masked attention, pooled and predicted words with a tied table."""
    tokens, mask, types = [keras.Input((None,), name=k, dtype="int32") for k in ("ids", "mask", "types")]
    table = L.Embedding(30, 16)
    y = table(tokens) + L.Embedding(2, 16)(types)
    y = L.LayerNormalization(epsilon=1e-12)(Positions(16, 16)(y))
    allowed = ops.expand_dims(ops.cast(mask, "bool"), 1)
    for _ in range(2):
        y = L.LayerNormalization(epsilon=1e-12)(y + L.MultiHeadAttention(4, 4)(y, y, attention_mask=allowed))
        y = L.LayerNormalization(epsilon=1e-12)(y + L.Dense(16)(L.Dense(32, keras.activations.gelu)(y)))
    words = L.Lambda(lambda h: tf.matmul(h, tf.convert_to_tensor(table.embeddings), transpose_b=True))(L.Dense(16, "gelu")(y))
    save(keras.Model([tokens, mask, types], {"pooled": L.Dense(16, "tanh")(y[:, 0]), "words": words}), path)


def rotate(x):
    """Rotary positions."""
    half = x.shape[-1] // 2
    t = tf.cast(tf.range(tf.shape(x)[1]), tf.float32)[:, None] * 10000.0 ** (-tf.range(half, dtype=tf.float32) / half)
    cos, sin = tf.cos(t)[None, :, None], tf.sin(t)[None, :, None]
    a, b = tf.split(x, 2, -1)
    return tf.concat([a * cos - b * sin, a * sin + b * cos], -1)


class Llama(tf.Module):
    """Pre-norm decoder with rotary positions, grouped keys, a gated layer, a cache of keys and values."""

    def __init__(self, width=16, heads=4, keys=2, words=20, most=12):
        super().__init__()
        rng = np.random.default_rng(3)
        v = lambda *s: tf.Variable((rng.normal(size=s) / np.sqrt(s[0])).astype(np.float32))
        self.heads, self.keys, self.width, self.most = heads, keys, width // heads, most
        self.table, self.q, self.o = v(words, width), v(width, width), v(width, width)
        self.k, self.v = v(width, keys * self.width), v(width, keys * self.width)
        self.gate, self.up, self.down = v(width, 32), v(width, 32), v(32, width)
        self.norms = [tf.Variable(np.ones(width, np.float32)) for _ in range(3)]

    def norm(self, x, k):
        return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-6) * self.norms[k]

    def logits(self, ids):
        n, t = tf.shape(ids)[0], tf.shape(ids)[1]
        x = tf.gather(self.table, ids)
        h = self.norm(x, 0)
        split = lambda y, heads: tf.reshape(y, [n, t, heads, self.width])
        q, k = rotate(split(h @ self.q, self.heads)), rotate(split(h @ self.k, self.keys))
        v = split(h @ self.v, self.keys)
        k, v = [tf.repeat(y, self.heads // self.keys, 2) for y in (k, v)]
        s = tf.einsum("nqhd,nkhd->nhqk", q, k) / float(self.width) ** 0.5
        s += (1.0 - tf.linalg.band_part(tf.ones([t, t]), -1, 0)) * -1e9
        x += tf.reshape(tf.einsum("nhqk,nkhd->nqhd", tf.nn.softmax(s), v), [n, t, -1]) @ self.o
        h = self.norm(x, 1)
        x += (tf.nn.silu(h @ self.gate) * (h @ self.up)) @ self.down
        return tf.matmul(self.norm(x, 2), self.table, transpose_b=True)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, "ids")])
    def score(self, ids):
        logp = tf.nn.log_softmax(self.logits(ids)[:, :-1])
        return {"logp": tf.gather(logp, ids[:, 1:], batch_dims=2), "perplexity": tf.exp(-tf.reduce_mean(tf.gather(logp, ids[:, 1:], batch_dims=2)))}

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, "prompt"), tf.TensorSpec([], tf.int32, "steps")])
    def generate(self, prompt, steps):
        ids = prompt
        for _ in tf.range(steps):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(ids, tf.TensorShape([None, None]))])
            ids = tf.concat([ids, tf.argmax(self.logits(ids)[:, -1:], -1, tf.int32)], 1)
        return {"ids": ids}


def llama_feed(rng, n):
    prompt = rng.integers(1, 20, (n, 4))
    return {"ids": prompt, "prompt": prompt, "steps": 5}


@row(feed=llama_feed, tolerance=DEEP)
def net_llama(path):
    m = Llama()
    tf.saved_model.save(m, path, signatures={"serving_default": m.score, "generate": m.generate})


class Translator(tf.Module):
    """Encoder and decoder with attention; greedy translation writes an array until all have ended."""

    def __init__(self):
        super().__init__()
        self.source, self.target = L.Embedding(12, 6, mask_zero=True), L.Embedding(12, 6)
        self.encoder, self.cell = L.Bidirectional(L.GRU(4, return_sequences=True)), L.GRUCell(8)
        self.attention, self.out = L.AdditiveAttention(), L.Dense(12)
        self.step(self.encode(tf.ones([1, 3], tf.int32)), tf.ones([1, 3], tf.bool), tf.zeros([1, 8]), tf.ones([1], tf.int32))

    def encode(self, ids):
        x = self.source(ids)
        return self.encoder(x, mask=self.source.compute_mask(ids))

    def step(self, memory, mask, state, token):
        context = self.attention([state[:, None], memory], mask=[None, mask])[:, 0]
        y, state = self.cell(tf.concat([self.target(token), context], -1), state)
        return self.out(y), state[0] if isinstance(state, (list, tuple)) else state

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, "ids")])
    def greedy(self, ids):
        n = tf.shape(ids)[0]
        memory, mask = self.encode(ids), ids > 0
        state, token, done = tf.zeros([n, 8]), tf.ones([n], tf.int32), tf.zeros([n], tf.bool)
        out = tf.TensorArray(tf.int32, 0, dynamic_size=True, element_shape=[None])
        t = 0
        while t < 9 and not tf.reduce_all(done):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(state, tf.TensorShape([None, 8]))])
            logits, state = self.step(memory, mask, state, token)
            token = tf.where(done, 0, tf.argmax(logits, -1, tf.int32))
            done = done | (token == 2)
            out = out.write(t, token)
            t += 1
        return {"ids": tf.transpose(out.stack()), "steps": t}


def sources(rng, n):
    lengths = rng.integers(1, 8, n)
    return np.where(np.arange(7) < lengths[:, None], rng.integers(1, 12, (n, 7)), 0)


@row(feed=sources)
def net_translator(path):
    m = Translator()
    tf.saved_model.save(m, path, signatures=m.greedy)


class Beams(Translator):
    """Beam search with scores by length, parents gathered back."""

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, "ids")])
    def beams(self, ids):
        k, words = 3, 12
        n = tf.shape(ids)[0]
        memory, mask = tf.repeat(self.encode(ids), k, 0), tf.repeat(ids > 0, k, 0)
        state = tf.zeros([n * k, 8])
        scores = tf.tile([[0.0, -1e9, -1e9]], [n, 1])
        done = tf.zeros([n, k], tf.bool)
        token = tf.ones([n * k], tf.int32)
        tokens, parents = tf.TensorArray(tf.int32, 5, element_shape=[None, k]), tf.TensorArray(tf.int32, 5, element_shape=[None, k])
        for t in tf.range(5):
            tf.autograph.experimental.set_loop_options(shape_invariants=[
                (state, tf.TensorShape([None, 8])), (scores, tf.TensorShape([None, k])), (done, tf.TensorShape([None, k])),
                (token, tf.TensorShape([None]))])
            logits, state = self.step(memory, mask, state, token)
            logp = tf.reshape(tf.nn.log_softmax(logits), [n, k, words])
            only_end = tf.concat([[0.0], tf.fill([words - 1], -1e9)], 0)
            logp = tf.where(done[:, :, None], only_end, logp)
            scores, at = tf.math.top_k(tf.reshape(scores[:, :, None] + logp, [n, -1]), k)
            parent, word = at // words, at % words
            flat = tf.reshape(parent + tf.range(n)[:, None] * k, [-1])
            state, done = tf.gather(state, flat), tf.gather(done, parent, batch_dims=1) | (word == 2)
            token = tf.reshape(word, [-1])
            tokens, parents = tokens.write(t, word), parents.write(t, parent)
        words_, parents_ = tokens.stack(), parents.stack()
        at = tf.tile(tf.range(k)[None], [n, 1])
        back = tf.TensorArray(tf.int32, 5, element_shape=[None, k])
        for t in tf.range(4, -1, -1):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(at, tf.TensorShape([None, k]))])
            back = back.write(t, tf.gather(words_[t], at, batch_dims=1))
            at = tf.gather(parents_[t], at, batch_dims=1)
        return {"ids": tf.transpose(back.stack(), [1, 2, 0]), "scores": scores / 5.0 ** 0.6}


@row(feed=sources)
def net_translator_beams(path):
    m = Beams()
    tf.saved_model.save(m, path, signatures=m.beams)


@row(feed=lambda rng, n: {"source": sources(rng, n), "target": sources(rng, n)}, tolerance=DEEP)
def net_transformer_seq2seq(path):
    """Cross attention with masks of both sides."""
    a, b = keras.Input((None,), name="source", dtype="int32"), keras.Input((None,), name="target", dtype="int32")
    x = Positions(16, 12)(L.Embedding(12, 12)(a))
    keep = ops.expand_dims(a > 0, 1)
    x = L.LayerNormalization()(x + L.MultiHeadAttention(3, 4)(x, x, attention_mask=keep))
    y = Positions(16, 12)(L.Embedding(12, 12)(b))
    y = L.LayerNormalization()(y + L.MultiHeadAttention(3, 4)(y, y, use_causal_mask=True))
    y = L.LayerNormalization()(y + L.MultiHeadAttention(3, 4)(y, x, attention_mask=keep))
    save(keras.Model([a, b], L.Dense(12)(y + L.Dense(12)(L.Dense(24, "silu")(y)))), path)


def crf_feed(rng, n):
    return {"ids": rng.integers(0, 10, (n, 6)), "lengths": rng.integers(1, 7, n)}


@row(feed=crf_feed)
def net_crf(path):
    """The best score of tags, by a loop over the steps."""
    body = keras.Sequential([keras.Input((None,), dtype="int32"), L.Embedding(10, 5), L.Bidirectional(L.LSTM(4, return_sequences=True)), L.Dense(4)])
    between = tf.Variable(np.random.default_rng(3).normal(size=(4, 4)).astype(np.float32))

    def f(ids, lengths):
        x = body(ids)
        def step(score, y):
            t, emit = y
            best = score[:, :, None] + between
            new = tf.reduce_max(best, 1) + emit
            keep = (t < lengths)[:, None]
            return tf.where(keep, new, score)
        at = tf.range(1, tf.shape(x)[1])
        score = tf.foldl(step, (at, tf.transpose(x[:, 1:], [1, 0, 2])), initializer=x[:, 0])
        return {"last": tf.argmax(score, -1), "score": tf.reduce_max(score, -1),
                "log_z": tf.reduce_logsumexp(score, -1)}

    serve(path, f, [body, between], ids=(tf.int32, None, None), lengths=(tf.int32, None))


def sentence(rng, n):
    return rng.choice([b"a good film", b"bad", b"", b"Not GOOD, not bad!", b"the the film film"], n)


def text_modes(**options):
    def build(path):
        x = keras.Input((), dtype="string", name="text")
        v = L.TextVectorization(**options)
        if "vocabulary" not in options:
            v.adapt(["a good film", "the bad film", "not good not bad", "the film was not good at all"])
        y = v(x)
        save(keras.Model(x, {"ids": y, "class": L.Dense(2)(ops.cast(y, "float32")) if y.shape[-1] else y}), path)
    return build


for name, options in {
    "tf_idf_bigrams": dict(output_mode="tf_idf", ngrams=2, max_tokens=15, pad_to_max_tokens=True),
    "multi_hot_trigrams": dict(output_mode="multi_hot", ngrams=(1, 3)),
    "characters_padded": dict(split="character", output_sequence_length=9, standardize="lower_and_strip_punctuation"),
    "not_standardized": dict(standardize=None, output_sequence_length=4, max_tokens=8),
    "count_unpadded": dict(output_mode="count", ngrams=2),
    "given_vocabulary": dict(vocabulary=["film", "good", "bad"], output_sequence_length=5),
}.items():
    add(f"net_text_{name}", text_modes(**options), feed=sentence)


# ---- Images ----

def swap(x, groups):
    n, h, w, c = x.shape
    return ops.reshape(ops.transpose(ops.reshape(x, (-1, h, w, groups, c // groups)), (0, 1, 2, 4, 3)), (-1, h, w, c))


@row(tolerance=DEEP)
def net_shufflenet(path):
    x = keras.Input((32, 32, 3))
    y = L.MaxPooling2D(2)(L.Conv2D(8, 3, 2, "same", activation="relu")(x))
    for _ in range(2):
        a, b = ops.split(y, 2, axis=-1)
        b = L.Conv2D(4, 1, activation="relu")(L.BatchNormalization()(L.DepthwiseConv2D(3, padding="same")(L.Conv2D(4, 1, activation="relu")(b))))
        y = swap(ops.concatenate([a, b], -1), 2)
    save(keras.Model(x, L.Dense(5)(L.GlobalAveragePooling2D()(y))), path)


@row(tolerance=DEEP)
def net_squeeze_excite(path):
    x = keras.Input((24, 24, 3))
    y = L.Conv2D(8, 3, activation="swish")(x)
    s = L.GlobalAveragePooling2D(keepdims=True)(y)
    y = y * L.Conv2D(8, 1, activation="hard_sigmoid")(L.Conv2D(2, 1, activation="relu")(s))
    y = L.Concatenate()([y, L.AveragePooling2D(3, 1, "same")(y), L.MaxPooling2D(3, 1, "same")(y)])
    save(keras.Model(x, L.Dense(4)(L.Flatten()(L.Conv2D(2, 3, 3)(y)))), path)


@row(sizes=IMAGES, tolerance=DEEP)
def net_deeplab(path):
    """Dilated branches, a branch of the whole image, resized to the input."""
    x = keras.Input((None, None, 3))
    y = L.Conv2D(8, 3, 2, "same", activation="relu")(x)
    size = ops.shape(y)[1:3]
    whole = L.GlobalAveragePooling2D(keepdims=True)(y)
    whole = L.Lambda(lambda t: tf.image.resize(t[0], tf.shape(t[1])[1:3]))([L.Conv2D(4, 1)(whole), y])
    branches = [L.Conv2D(4, 3, dilation_rate=d, padding="same", activation="relu")(y) for d in (1, 2, 4)]
    y = L.Conv2D(5, 1)(L.Concatenate()(branches + [whole]))
    y = L.Lambda(lambda t: tf.image.resize(t[0], tf.shape(t[1])[1:3]))([y, x])
    save(keras.Model(x, {"labels": ops.argmax(y, -1), "scores": ops.softmax(y)}), path)


@row(sizes=IMAGES, tolerance=DEEP)
def net_pyramid(path):
    """Features of three scales, added top down, one head for all (RetinaNet)."""
    x = keras.Input((None, None, 3))
    c, y = [], x
    for width in 6, 8, 10:
        y = L.ReLU()(L.GroupNormalization(2)(L.Conv2D(width, 3, 2, "same")(y)))
        c.append(L.Conv2D(8, 1)(y))
    p = [c[2], c[1] + L.UpSampling2D(2)(c[2])]
    p.append(c[0] + L.UpSampling2D(2)(p[1]))
    head = keras.Sequential([L.Conv2D(8, 3, padding="same", activation="relu"), L.Conv2D(6 * 3, 3, padding="same")])
    save(keras.Model(x, L.Concatenate(1)([L.Reshape((-1, 6))(head(f)) for f in p])), path)


@row(batches=(1, 3), tolerance=DEEP)
def net_ssd(path):
    """Anchors of two maps, decoded, suppressed in each class, from uint8 pixels of any size."""
    x = keras.Input((64, 64, 3))
    a = L.Conv2D(8, 3, 4, "same", activation="relu")(x)
    b = L.Conv2D(8, 3, 2, "same", activation="relu")(a)
    outs = [(L.Reshape((-1, 4))(L.Conv2D(2 * 4, 3, padding="same")(f)), L.Reshape((-1, 4))(L.Conv2D(2 * 4, 3, padding="same")(f))) for f in (a, b)]
    model = keras.Model(x, [L.Concatenate(1)([o[k] for o in outs]) for k in (0, 1)])
    anchors = np.concatenate([np.concatenate([np.repeat((np.stack(np.meshgrid(np.arange(g), np.arange(g), indexing="ij"), -1).reshape(-1, 1, 2) + 0.5) / g, 2, 1),
                                              np.broadcast_to(np.array([[s, s], [s * 1.4, s / 1.4]]), (g * g, 2, 2))], -1).reshape(-1, 4)
                              for g, s in ((16, 0.1), (8, 0.3))]).astype(np.float32)

    def f(image):
        pixels = tf.image.resize(tf.cast(image, tf.float32), [64, 64]) / 127.5 - 1
        deltas, logits = model(pixels)
        centers = anchors[:, :2] + 0.1 * tf.tanh(deltas[..., :2]) * anchors[:, 2:]
        sizes = anchors[:, 2:] * tf.exp(0.2 * tf.tanh(deltas[..., 2:]))
        boxes = tf.clip_by_value(tf.concat([centers - sizes / 2, centers + sizes / 2], -1), 0.0, 1.0)
        scores = tf.nn.softmax(logits)[..., 1:]
        b, s, c, n = tf.image.combined_non_max_suppression(boxes[:, :, None], scores, 8, 12, 0.5, 0.3)
        return {"detection_boxes": b, "detection_scores": s, "detection_classes": c + 1, "num_detections": tf.cast(n, tf.float32),
                "raw_detection_boxes": boxes}

    serve(path, f, model, image=(tf.uint8, None, None, None, 3))


@row(batches=(1, 3), tolerance=DEEP, sample=True)
def net_center_points(path):
    """Peaks of a heat map by max pooling, their boxes gathered (CenterNet)."""
    x = keras.Input((32, 32, 3))
    y = L.Conv2D(8, 3, 2, "same", activation="relu")(x)
    model = keras.Model(x, [L.Conv2D(3, 1, activation="sigmoid")(y), L.Conv2D(4, 1)(y)])

    def f(image):
        heat, size = model(image)
        n = tf.shape(heat)[0]
        heat = tf.where(tf.equal(tf.nn.max_pool2d(heat, 3, 1, "SAME"), heat), heat, 0.0)
        scores, at = tf.math.top_k(tf.reshape(heat, [n, -1]), 6)
        cell, kind = at // 3, at % 3
        yx = tf.transpose(tf.unravel_index(tf.reshape(cell, [-1]), [16, 16]))
        boxes = tf.gather(tf.reshape(size, [n, -1, 4]), cell, batch_dims=1)
        return {"scores": scores, "classes": kind, "centers": tf.reshape(yx, [n, 6, 2]), "boxes": boxes}

    serve(path, f, model, image=(tf.float32, None, 32, 32, 3))


@row(tolerance=DEEP)
def net_generator(path):
    """DCGAN's generator."""
    z = keras.Input((10,), name="z")
    y = L.Reshape((4, 4, 8))(L.Dense(128, use_bias=False)(z))
    for width in 8, 4:
        y = L.LeakyReLU(negative_slope=0.2)(L.BatchNormalization()(L.Conv2DTranspose(width, 5, 2, "same", use_bias=False)(y)))
    save(keras.Model(z, L.Conv2DTranspose(3, 5, 2, "same", activation="tanh")(y)), path)


@row(tolerance=DEEP)
def net_discriminator(path):
    x = keras.Input((32, 32, 3))
    y = L.Dropout(0.3)(L.LeakyReLU(negative_slope=0.2)(L.SpectralNormalization(L.Conv2D(8, 5, 2, "same"))(x)))
    save(keras.Model(x, L.Dense(1)(L.Flatten()(L.LeakyReLU()(L.Conv2D(8, 5, 2, "same")(y))))), path)


@row(tolerance=DEEP)
def net_variational(path):
    """Encoder, a sample with fixed seeds, decoder: three outputs."""
    x = keras.Input((16, 16, 1))
    h = L.Dense(12, "relu")(L.Flatten()(L.Conv2D(4, 3, 2, activation="relu")(x)))
    mean, log_var = L.Dense(3)(h), L.Dense(3)(h)
    z = L.Lambda(lambda t: t[0] + tf.exp(0.5 * t[1]) * tf.random.stateless_normal(tf.shape(t[0]), [1, 2]))([mean, log_var])
    y = L.Reshape((8, 8, 2))(L.Dense(128, "relu")(z))
    save(keras.Model(x, {"mean": mean, "log_var": log_var, "image": L.Conv2DTranspose(1, 3, 2, "same", activation="sigmoid")(y)}), path)


@row(tolerance=DEEP)
def net_vector_quantized(path):
    x = keras.Input((8, 8, 3))
    z = L.Conv2D(4, 3, 2, "same")(x)
    book = np.random.default_rng(3).normal(size=(4, 10)).astype(np.float32)

    def nearest(z):
        flat = tf.reshape(z, [-1, 4])
        d = tf.reduce_sum(flat ** 2, 1, keepdims=True) + tf.reduce_sum(book ** 2, 0) - 2 * tf.matmul(flat, book)
        at = tf.argmin(d, 1)
        return z + tf.stop_gradient(tf.reshape(tf.matmul(tf.one_hot(at, 10), book, transpose_b=True), tf.shape(z)) - z)

    save(keras.Model(x, L.Conv2DTranspose(3, 3, 2, "same")(L.Lambda(nearest)(z))), path)


@row(feed=lambda rng, n: {"image": rng.normal(size=(n, 16, 16, 3)), "time": rng.integers(0, 100, n)}, tolerance=DEEP)
def net_diffusion(path):
    """A denoiser with sinusoidal embeddings of the step, skips, attention in the middle."""
    x, t = keras.Input((16, 16, 3), name="image"), keras.Input((), name="time", dtype="int32")
    f = np.exp(-np.log(10000) * np.arange(8) / 8).astype(np.float32)
    e = L.Lambda(lambda t: tf.concat([tf.sin(tf.cast(t, tf.float32)[:, None] * f), tf.cos(tf.cast(t, tf.float32)[:, None] * f)], -1))(t)
    e = L.Dense(8, "silu")(e)
    a = L.GroupNormalization(4)(L.Conv2D(8, 3, padding="same")(x)) + L.Reshape((1, 1, 8))(e)
    m = L.AveragePooling2D(2)(L.Activation("silu")(a))
    flat = L.Reshape((64, 8))(m)
    m = m + L.Reshape((8, 8, 8))(L.MultiHeadAttention(2, 4)(flat, flat))
    save(keras.Model([x, t], L.Conv2D(3, 3, padding="same")(L.Concatenate()([L.UpSampling2D(interpolation="bilinear")(m), a]))), path)


@row(tolerance=DEEP)
def net_super_resolution(path):
    x = keras.Input((12, 10, 3))
    y = L.Conv2D(12, 3, padding="same", activation="relu")(x)
    for _ in range(2):
        y = y + 0.1 * L.Conv2D(12, 3, padding="same")(L.Conv2D(12, 3, padding="same", activation="relu")(y))
    y = L.Lambda(lambda t: tf.nn.depth_to_space(t, 2))(L.Conv2D(12, 3, padding="same")(y))
    save(keras.Model(x, L.Lambda(lambda t: tf.clip_by_value(t[0] + tf.image.resize(t[1], [24, 20], "bicubic"), 0.0, 255.0))([y, x])), path)


@row(tolerance=DEEP)
def net_mixer(path):
    x = keras.Input((16, 16, 3))
    y = L.Reshape((16, 8))(L.Conv2D(8, 4, 4)(x))
    for _ in range(2):
        z = L.Permute((2, 1))(L.LayerNormalization()(y))
        y = y + L.Permute((2, 1))(L.Dense(16)(L.Dense(12, "gelu")(z)))
        y = y + L.Dense(8)(L.Dense(12, "gelu")(L.LayerNormalization()(y)))
    save(keras.Model(x, L.Dense(3)(L.GlobalAveragePooling1D()(y))), path)


@row(tolerance=DEEP)
def net_windows(path):
    """Swin: attention in windows that are shifted by roll."""
    x = keras.Input((16, 16, 3))
    y = L.Conv2D(8, 2, 2)(x)
    for shift in 0, 2:
        z = L.LayerNormalization()(y)
        z = L.Lambda(lambda t, s=shift: tf.reshape(tf.transpose(tf.reshape(tf.roll(t, [-s, -s], [1, 2]), [-1, 2, 4, 2, 4, 8]), [0, 1, 3, 2, 4, 5]), [-1, 16, 8]))(z)
        z = L.MultiHeadAttention(2, 4)(z, z)
        z = L.Lambda(lambda t, s=shift: tf.roll(tf.reshape(tf.transpose(tf.reshape(t, [-1, 2, 2, 4, 4, 8]), [0, 1, 3, 2, 4, 5]), [-1, 8, 8, 8]), [s, s], [1, 2]))(z)
        y = y + z
    save(keras.Model(x, L.Dense(3)(L.GlobalAveragePooling2D()(y))), path)


@row(tolerance=DEEP)
def net_convnext(path):
    x = keras.Input((24, 24, 3))
    y = L.LayerNormalization()(L.Conv2D(8, 4, 4)(x))
    z = L.LayerNormalization()(L.DepthwiseConv2D(7, padding="same")(y))
    scale = L.Lambda(lambda t: t * tf.fill([8], 0.1))
    save(keras.Model(x, L.Dense(3)(L.GlobalAveragePooling2D()(y + scale(L.Dense(8)(L.Dense(32, "gelu")(z)))))), path)


@row(tolerance=DEEP)
def net_capsules(path):
    """Routing by agreement."""
    x = keras.Input((12, 12, 1))
    u = L.Reshape((-1, 4))(L.Conv2D(8, 5, 2)(x))
    w = np.random.default_rng(3).normal(size=(32, 3, 4, 5)).astype(np.float32) * 0.2

    def route(u):
        squash = lambda s: s * tf.norm(s, axis=-1, keepdims=True) / (1 + tf.reduce_sum(s ** 2, -1, keepdims=True))
        hat = tf.einsum("nid,ijdk->nijk", u, w)
        b = tf.zeros_like(hat[..., 0])
        for _ in range(3):
            v = squash(tf.reduce_sum(tf.nn.softmax(b, 2)[..., None] * hat, 1))
            b += tf.einsum("nijk,njk->nij", hat, v)
        return tf.norm(v, axis=-1)

    save(keras.Model(x, L.Lambda(route)(u)), path)


@row(tolerance=DEEP)
def net_spatial_transformer(path):
    """A grid from an affine map, sampled with bilinear weights by gather_nd."""
    x = keras.Input((10, 10, 2))
    theta = L.Reshape((2, 3))(L.Dense(6)(L.Flatten()(x)))

    def sample(inputs):
        image, theta = inputs
        n = tf.shape(image)[0]
        ys, xs = tf.meshgrid(tf.linspace(-1.0, 1.0, 8), tf.linspace(-1.0, 1.0, 8), indexing="ij")
        grid = tf.stack([tf.reshape(xs, [-1]), tf.reshape(ys, [-1]), tf.ones([64])])
        at = (tf.tanh(tf.matmul(theta, tf.tile(grid[None], [n, 1, 1]))) + 1) * 4.5
        px, py = at[:, 0], at[:, 1]
        x0, y0 = tf.floor(px), tf.floor(py)
        out = 0.0
        for dx in 0, 1:
            for dy in 0, 1:
                weight = (1 - tf.abs(px - x0 - dx)) * (1 - tf.abs(py - y0 - dy))
                i = tf.cast(tf.clip_by_value(tf.stack([y0 + dy, x0 + dx], -1), 0, 9), tf.int32)
                out += weight[..., None] * tf.gather_nd(image, i, batch_dims=1)
        return tf.reshape(out, [-1, 8, 8, 2])

    save(keras.Model([x], L.Lambda(sample)([x, theta])), path)


# ---- Sequences of numbers, audio, graphs ----

@row()
def net_nbeats(path):
    x = keras.Input((12,))
    rest, forecast = x, 0
    for _ in range(3):
        h = L.Dense(10, "relu")(L.Dense(10, "relu")(rest))
        rest = rest - L.Dense(12)(L.Dense(4)(h))
        forecast = forecast + L.Dense(5)(L.Dense(4)(h))
    save(keras.Model(x, {"forecast": forecast, "rest": rest}), path)


@row(sizes=LENGTHS)
def net_reversible_instance(path):
    """Each series is scaled by its own moments, and back."""
    x = keras.Input((None, 4))
    mean = ops.mean(x, axis=1, keepdims=True)
    std = ops.sqrt(ops.var(x, axis=1, keepdims=True) + 1e-5)
    y = L.Conv1D(4, 3, padding="causal", activation="gelu")((x - mean) / std)
    y = L.GRU(6, return_sequences=True)(y)
    save(keras.Model(x, L.Dense(4)(y)[:, -1] * std[:, 0] + mean[:, 0]), path)


@row(sizes=[(20,), (33,)], tolerance=DEEP)
def net_tcn(path):
    x = keras.Input((None, 2))
    y = x
    for d in 1, 2, 4, 8:
        z = y
        for _ in range(2):
            z = L.SpatialDropout1D(0.1)(L.ReLU()(L.BatchNormalization()(L.Conv1D(6, 3, padding="causal", dilation_rate=d)(z))))
        y = L.ReLU()(z + L.Conv1D(6, 1)(y))
    save(keras.Model(x, L.Dense(2)(y[:, -1, :])), path)


@row(sizes=[(16,), (25,)])
def net_seq_to_point(path):
    x = keras.Input((None, 3))
    y = L.Conv1D(6, 5, strides=2, padding="same", activation="elu")(x)
    y = L.MaxPooling1D(2, padding="same")(y)
    w = L.Softmax(axis=1)(L.Dense(1)(y))
    save(keras.Model(x, {"y": L.Dense(1)(ops.sum(w * y, axis=1)), "w": w}), path)


@row(sizes=[(600,), (1025,)], tolerance=DEEP)
def net_keyword_audio(path):
    """Waveform to words: int16 samples, STFT, mel bands, a small convolution."""
    model = keras.Sequential([keras.Input((None, 16, 1)), L.Conv2D(6, 3, padding="same", activation="relu"), L.MaxPooling2D((1, 2)),
                              L.GlobalAveragePooling2D(), L.Dense(4)])

    def f(samples):
        wave = tf.cast(samples * 1000, tf.float32) / 32768.0
        s = tf.abs(tf.signal.stft(wave, 128, 64, 128, window_fn=tf.signal.hamming_window))
        mel = tf.tensordot(s ** 2, tf.signal.linear_to_mel_weight_matrix(16, 65, 16000, 60.0, 7600.0), 1)
        logits = model(tf.math.log(mel + 1e-6)[..., None])
        return {"words": tf.gather(["yes", "no", "up", "down"], tf.argmax(logits, -1)), "scores": tf.nn.softmax(logits)}

    serve(path, f, model, samples=(tf.int16, None, None))


@row(sizes=[(512,), (700,)], tolerance=DEEP)
def net_denoise_audio(path):
    """A mask on a complex spectrogram, and back to the waveform."""
    model = keras.Sequential([keras.Input((None, 33)), L.Dense(16, "relu"), L.Dense(33, "sigmoid")])

    def f(wave):
        s = tf.signal.stft(wave, 64, 32, 64)
        mask = model(tf.abs(s))
        return {"wave": tf.signal.inverse_stft(s * tf.cast(mask, tf.complex64), 64, 32, 64,
                                               window_fn=tf.signal.inverse_stft_window_fn(32)),
                "phase": tf.abs(tf.math.angle(s * tf.cast(mask, tf.complex64)))[:, :, 1:-1] * 0 + mask[:, :, 1:-1]}

    serve(path, f, model, wave=(tf.float32, None, None))


@row(sizes=[(260,), (400,)], tolerance=DEEP)
def net_raw_audio(path):
    x = keras.Input((None,))
    y = ops.expand_dims(x, -1)
    for width in 4, 8, 8:
        y = L.MaxPooling1D(2)(L.ReLU()(L.BatchNormalization()(L.Conv1D(width, 9, strides=2)(y))))
    save(keras.Model(x, L.Dense(3)(L.GlobalMaxPooling1D()(y))), path)


def graph_feed(rng, n):
    return {"nodes": rng.normal(size=(n + 3, 4)), "source": rng.integers(0, n + 3, 2 * n + 4), "target": rng.integers(0, n + 3, 2 * n + 4)}


class GraphNet(tf.Module):
    """Messages along edges, summed or attended at their targets."""

    def __init__(self):
        super().__init__()
        self.m, self.u, self.a = [tf.Variable(np.random.default_rng(k).normal(size=s).astype(np.float32) * 0.3)
                                  for k, s in enumerate([(8, 6), (10, 5), (8, 1)])]

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, "nodes"), tf.TensorSpec([None], tf.int32, "source"),
                                  tf.TensorSpec([None], tf.int32, "target")])
    def f(self, nodes, source, target):
        n = tf.shape(nodes)[0]
        pair = tf.concat([tf.gather(nodes, source), tf.gather(nodes, target)], 1)
        score = tf.nn.leaky_relu(tf.matmul(pair, self.a))[:, 0]
        score = tf.exp(score - tf.gather(tf.math.unsorted_segment_max(score, target, n), target))
        weight = score / tf.gather(tf.math.unsorted_segment_sum(score, target, n), target)
        message = tf.nn.relu(tf.matmul(pair, self.m))
        seen = tf.math.unsorted_segment_sum(weight[:, None] * message, target, n)
        degree = tf.math.bincount(target, minlength=n, maxlength=n, dtype=tf.float32)
        new = tf.tanh(tf.matmul(tf.concat([nodes, seen], 1), self.u))
        return {"nodes": new, "graph": tf.reduce_mean(new, 0), "degree": degree,
                "mean": tf.math.unsorted_segment_mean(message, target, n), "sqrt": tf.math.unsorted_segment_sqrt_n(message, target, n),
                "min": tf.math.unsorted_segment_min(message, target, n)}


@row(feed=graph_feed)
def net_graph_messages(path):
    m = GraphNet()
    tf.saved_model.save(m, path, signatures=m.f)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 5, 4)), "adjacency": rng.random((n, 5, 5)) > 0.5})
def net_graph_convolution(path):
    x, a = keras.Input((5, 4), name="x"), keras.Input((5, 5), name="adjacency", dtype="bool")
    m = ops.cast(a, "float32") + ops.eye(5)
    d = ops.rsqrt(ops.sum(m, -1, keepdims=True))
    m = m * d * ops.transpose(d, (0, 2, 1))
    y = ops.relu(L.Dense(6)(ops.matmul(m, x)))
    save(keras.Model([x, a], L.Dense(3)(L.GlobalMaxPooling1D()(ops.matmul(m, y)))), path)


@row(tolerance=DEEP)
def net_points(path):
    """PointNet: shared layers, maxima, distances of pairs and the nearest points."""
    x = keras.Input((16, 3))
    y = L.Dense(12, "relu")(L.BatchNormalization()(L.Dense(8, "relu")(x)))
    d = ops.sum(ops.square(ops.expand_dims(x, 2) - ops.expand_dims(x, 1)), -1)
    near = ops.top_k(-d, 4)[1]
    edge = L.Lambda(lambda t: tf.gather(t[0], t[1], batch_dims=1), output_shape=(16, 4, 12))([y, near])
    save(keras.Model(x, L.Dense(3)(ops.max(ops.max(L.Dense(6)(edge), 2), 1))), path)


@row(feed=lambda rng, n: {"state": rng.normal(size=(n, 6)), "mask": rng.random((n, 4)) > 0.3})
def net_policy(path):
    """An actor and a critic: masked actions, their probabilities, entropy."""
    s, m = keras.Input((6,), name="state"), keras.Input((4,), name="mask", dtype="bool")
    h = L.Dense(8, "tanh")(s)
    logits = ops.where(m, L.Dense(4)(h), -1e8)
    a = L.Dense(4)(h)
    p = ops.softmax(logits)
    save(keras.Model([s, m], {"action": ops.argmax(logits, -1), "p": p, "q": L.Dense(1)(h) + a - ops.mean(a, -1, keepdims=True),
                              "entropy": -ops.sum(p * ops.log(p + 1e-8), -1)}), path)


@row()
def net_mixture_density(path):
    x = keras.Input((3,))
    h = L.Dense(10, "tanh")(x)
    save(keras.Model(x, L.Concatenate()([L.Softmax()(L.Dense(3)(h)), L.Dense(3)(h), L.Activation("softplus")(L.Dense(3)(h)),
                                         L.Activation("exponential")(L.Dense(3)(h))])), path)


@row()
def net_normalizing_flow(path):
    """Affine couplings, with the logarithm of the determinant."""
    x = keras.Input((6,))
    y, log_det = x, 0
    for k in range(3):
        a, b = ops.split(y, 2, axis=-1)
        s = L.Dense(3, "tanh")(L.Dense(8, "relu")(a))
        b = b * ops.exp(s) + L.Dense(3)(a)
        log_det = log_det + ops.sum(s, -1)
        y = ops.flip(ops.concatenate([a, b], -1), -1)
    save(keras.Model(x, {"z": y, "log_p": log_det - 0.5 * ops.sum(ops.square(y), -1)}), path)


@row(tolerance=DEEP)
def net_video(path):
    """Frames through one network, then recurrent over time."""
    x = keras.Input((5, 12, 12, 3))
    frame = keras.Sequential([L.Conv2D(4, 3, activation="relu"), L.GlobalAveragePooling2D()])
    y = L.TimeDistributed(frame)(x)
    z = L.ConvLSTM2D(2, 3)(x)
    save(keras.Model(x, {"class": L.Dense(3)(L.LSTM(5)(y)), "last": z}), path)


@row(tolerance=DEEP)
def net_video_3d(path):
    x = keras.Input((4, 10, 10, 2))
    y = L.MaxPooling3D((1, 2, 2))(L.ReLU()(L.BatchNormalization()(L.Conv3D(4, 3, padding="same")(x))))
    save(keras.Model(x, L.Dense(3)(L.GlobalAveragePooling3D()(y))), path)


@row(tolerance=DEEP)
def net_nchw(path):
    """Channels first, turned for the convolutions of the CPU."""
    x = keras.Input((3, 16, 16))
    y = L.Conv2D(6, 3, padding="same", activation="relu")(L.Permute((2, 3, 1))(x))
    y = L.Permute((3, 1, 2))(L.MaxPooling2D()(y))
    y = L.BatchNormalization(axis=1)(y)
    save(keras.Model(x, L.Dense(3)(L.GlobalAveragePooling2D(data_format="channels_first")(y))), path)


@row(sizes=[(7,), (12,)])
def net_convolutional_text(path):
    """fastText and Kim's convolutions of several widths."""
    x = keras.Input((None,), dtype="int32")
    e = L.Embedding(10, 6)(x)
    y = [L.GlobalMaxPooling1D()(L.Conv1D(4, w, padding="same", activation="relu")(e)) for w in (2, 3, 4)]
    save(keras.Model(x, L.Dense(2)(L.Concatenate()(y + [L.GlobalAveragePooling1D()(e)]))), path)


@row(sizes=[(9,), (14,)], tolerance=DEEP)
def net_conformer(path):
    x = keras.Input((None, 8))
    y = x + 0.5 * L.Dense(8)(L.Dense(16, "swish")(L.LayerNormalization()(x)))
    z = L.LayerNormalization()(y)
    y = y + L.MultiHeadAttention(2, 4)(z, z)
    a, b = ops.split(L.Dense(16)(L.LayerNormalization()(y)), 2, axis=-1)
    z = a * ops.sigmoid(b)
    y = y + L.Dense(8)(L.Activation("swish")(L.BatchNormalization()(L.DepthwiseConv1D(3, padding="same")(z))))
    save(keras.Model(x, L.LayerNormalization()(y)), path)


@row(sizes=[(8,), (13,)], tolerance=DEEP)
def net_linear_attention(path):
    """A state-space layer: cumulative sums and decays, no softmax."""
    x = keras.Input((None, 6))
    q, k, v = [L.Dense(6)(x) for _ in range(3)]
    kv = ops.cumsum(ops.einsum("ntd,nte->ntde", ops.elu(k) + 1, v), axis=1)
    z = ops.cumsum(ops.elu(k) + 1, axis=1)
    y = ops.einsum("ntd,ntde->nte", ops.elu(q) + 1, kv) / (ops.sum((ops.elu(q) + 1) * z, -1, keepdims=True) + 1e-3)
    save(keras.Model(x, y), path)


@row(sizes=[(9,), (16,)], tolerance=DEEP)
def net_fnet(path):
    """Mixing by a Fourier transform along the features; the real part counts."""
    x = keras.Input((None, 8))
    y = L.Lambda(lambda t: tf.math.real(tf.signal.fft(tf.cast(t, tf.complex64))))(x)
    save(keras.Model(x, L.LayerNormalization()(x + y)), path)


@row(tolerance=DEEP)
def net_fourier_features(path):
    x = keras.Input((2,))
    b = np.random.default_rng(3).normal(size=(2, 8)).astype(np.float32)
    y = L.Lambda(lambda t: tf.concat([tf.sin(tf.matmul(t, b)), tf.cos(tf.matmul(t, b))], -1))(x)
    for _ in range(3):
        y = ops.sin(30 * L.Dense(8, kernel_initializer=keras.initializers.RandomUniform(-0.01, 0.01))(y))
    save(keras.Model(x, L.Dense(3, "sigmoid")(y)), path)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 4))})
def net_ensemble(path):
    """Forests: thresholds and children in tables, walked for a fixed depth."""
    rng = np.random.default_rng(5)
    feature, limit = rng.integers(0, 4, (3, 7)), rng.normal(size=(3, 7)).astype(np.float32)
    leaf = rng.normal(size=(3, 8)).astype(np.float32)

    def f(x):
        total = tf.zeros([tf.shape(x)[0]])
        for t in range(3):
            at = tf.zeros([tf.shape(x)[0]], tf.int32)
            for _ in range(3):
                value = tf.gather(x, tf.gather(feature[t], at), batch_dims=1)
                at = 2 * at + 1 + tf.cast(value > tf.gather(limit[t], at), tf.int32)
            total += tf.gather(leaf[t], at - 7)
        return {"score": total, "class": tf.where(total > 0, "yes", "no")}

    serve(path, f, [], x=(tf.float32, None, 4))
