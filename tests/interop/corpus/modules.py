"""What people write around models: tf.Modules with state, several signatures, caches, decoders, pipelines from raw
bytes and strings to answers."""
import os

import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

from corpus.networks import serve
from corpus.rows import DEEP, add, row
from corpus.text import sentences

F32, I32, I64, STRING = tf.float32, tf.int32, tf.int64, tf.string
C64 = tf.complex64


def weights(seed, *shape):
    return tf.Variable(np.random.default_rng(seed).normal(size=shape).astype(np.float32) / float(np.sqrt(shape[0])))


def fixed(seed, *shape):
    return tf.constant(np.random.default_rng(seed).normal(size=shape).astype(np.float32) / float(np.sqrt(shape[0])))


def spec(name, dtype, *shape):
    return tf.TensorSpec(shape, dtype, name)


# ---- State ----

class RunningMoments(tf.Module):
    """Statistics that calls update and others read; only the updating one is called by the default signature."""

    def __init__(self):
        super().__init__()
        self.n = tf.Variable(0, dtype=I64, trainable=False)
        self.mean, self.m2 = tf.Variable(tf.zeros([3])), tf.Variable(tf.zeros([3]))

    @tf.function(input_signature=[spec("x", F32, None, 3)])
    def update(self, x):
        for i in tf.range(tf.shape(x)[0]):
            self.n.assign_add(1)
            delta = x[i] - self.mean
            self.mean.assign_add(delta / tf.cast(self.n, F32))
            self.m2.assign_add(delta * (x[i] - self.mean))
        return {"n": self.n.read_value(), "mean": self.mean.read_value(), "variance": self.m2 / tf.cast(self.n, F32)}


@row(batches=(1, 3, 4, 32))
def module_running_moments(path):
    m = RunningMoments()
    tf.saved_model.save(m, path, signatures=m.update)


class RingBuffer(tf.Module):
    """The last eight rows, by scatters into a variable."""

    def __init__(self):
        super().__init__()
        self.rows, self.at = tf.Variable(tf.zeros([8, 4])), tf.Variable(0)

    @tf.function(input_signature=[spec("x", F32, None, 4)])
    def push(self, x):
        slots = tf.math.floormod(self.at + tf.range(tf.shape(x)[0]), 8)
        last = tf.maximum(tf.shape(x)[0] - 8, 0)
        self.rows.scatter_nd_update(slots[last:, None], x[last:])
        self.at.assign(tf.math.floormod(self.at + tf.shape(x)[0], 8))
        order = tf.math.floormod(self.at + tf.range(8), 8)
        return {"window": tf.gather(self.rows, order), "mean": tf.reduce_mean(self.rows, 0)}


@row(batches=(1, 3, 5, 32))
def module_ring_buffer(path):
    m = RingBuffer()
    tf.saved_model.save(m, path, signatures=m.push)


class Bandit(tf.Module):
    """Counts of choices; branches of tf.cond assign."""

    def __init__(self):
        super().__init__()
        self.wins, self.tries = tf.Variable(tf.zeros([5])), tf.Variable(tf.ones([5]))

    @tf.function(input_signature=[spec("arm", I32), spec("reward", F32)])
    def learn(self, arm, reward):
        def hit():
            self.wins.scatter_add(tf.IndexedSlices(tf.ones([1]), [arm]))
            return tf.constant("hit")
        what = tf.cond(reward > 0, hit, lambda: tf.constant("miss"))
        self.tries.scatter_add(tf.IndexedSlices(tf.ones([1]), [arm]))
        bound = self.wins / self.tries + tf.sqrt(2 * tf.math.log(tf.reduce_sum(self.tries)) / self.tries)
        return {"best": tf.argmax(bound), "bound": bound, "what": what}


@row(feed=lambda rng, n: {"arm": rng.integers(0, 5), "reward": rng.normal()}, batches=(1, 2, 3, 4, 5, 6))
def module_bandit(path):
    m = Bandit()
    tf.saved_model.save(m, path, signatures=m.learn)


class Several(tf.Module):
    """Signatures that share layers: encode, score, both; of several dtypes; one without inputs."""

    def __init__(self):
        super().__init__()
        self.table, self.w = weights(1, 10, 6), weights(2, 6, 3)
        self.names = tf.constant(["cat", "dog", "cow"])

    @tf.function(input_signature=[spec("ids", I64, None, None)])
    def encode(self, ids):
        return {"vector": tf.reduce_mean(tf.gather(self.table, ids), 1)}

    @tf.function(input_signature=[spec("vector", F32, None, 6)])
    def score(self, vector):
        logits = tf.matmul(vector, self.w)
        return {"scores": tf.nn.softmax(logits), "class_id": tf.argmax(logits, 1), "class": tf.gather(self.names, tf.argmax(logits, 1))}

    @tf.function(input_signature=[spec("ids", I64, None, None), spec("k", I32)])
    def best(self, ids, k):
        values, at = tf.math.top_k(self.score(self.encode(ids)["vector"])["scores"], k)
        return {"values": values, "classes": tf.gather(self.names, at)}

    @tf.function(input_signature=[])
    def labels(self):
        return {"labels": self.names, "n": tf.size(self.names), "version": tf.constant("1.2")}


@row(sizes=[(5,), (2,)], feed=lambda rng, n: {"ids": rng.integers(0, 10, (n, 4)), "k": 1 + n % 3, "vector": rng.normal(size=(n, 6))})
def module_several_signatures(path):
    m = Several()
    tf.saved_model.save(m, path, signatures={"serving_default": m.best, "encode": m.encode, "score": m.score, "labels": m.labels})


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 4)), "alpha": 0.3})
def module_default_arguments(path):
    """A Python argument with a default, bound when it is traced; another with a TensorSpec."""
    m = tf.Module()
    m.f = tf.function(lambda x, alpha, training=False, mode="mean": {"y": x * alpha + (1.0 if training else 2.0),
                                                                      "z": tf.reduce_mean(x, 1) if mode == "mean" else x})
    tf.saved_model.save(m, path, signatures=m.f.get_concrete_function(spec("x", F32, None, 4), spec("alpha", F32)))


@row(feed=lambda rng, n: {"inputs_1": rng.normal(size=(n, 4)), "inputs": rng.normal(size=(n, 3)), "inputs_2": rng.integers(0, 4, n)})
def module_nested_inputs(path):
    """Inputs in a list and a dictionary; outputs in a list, which become output_0, output_1."""
    m = tf.Module()

    def f(inputs):
        a, (b, c) = inputs["a"], inputs["bc"]
        return [tf.matmul(a, tf.ones([3, 2])), {"s": b + tf.cast(c, F32)[:, None]}]

    m.f = tf.function(f)
    concrete = m.f.get_concrete_function({"a": spec("inputs", F32, None, 3), "bc": (spec("inputs_1", F32, None, 4), spec("inputs_2", I32, None))})
    m.g = tf.function(lambda inputs, inputs_1, inputs_2: dict(zip(
        ("first", "second"), tf.nest.flatten(concrete(inputs, inputs_1, inputs_2)))), input_signature=[
            spec("inputs", F32, None, 3), spec("inputs_1", F32, None, 4), spec("inputs_2", I32, None)])
    tf.saved_model.save(m, path, signatures=m.g)


@row(sizes=[(3,), (2, 4), (2, 3, 2)], batches=(1, 3))
def module_any_rank(path):
    """A dense layer over the last axis of a value of any rank."""
    w = weights(3, 4, 2)

    def f(x):
        x = tf.reshape(x, tf.concat([tf.shape(x)[:-1], [-1, 1]], 0)) * tf.ones([4])
        flat = tf.reshape(x, [-1, 4])
        y = tf.reshape(tf.matmul(flat, w), tf.concat([tf.shape(x)[:-1], [2]], 0))
        return {"y": y, "norm": tf.norm(y, axis=-1), "n": tf.size(x), "shape": tf.shape(y)}

    m = tf.Module()
    m.w = w
    m.f = tf.function(f, input_signature=[tf.TensorSpec(None, F32, "x")])
    tf.saved_model.save(m, path, signatures=m.f)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 4))}, batches=(0, 1, 3, 32))
def module_no_batch_in_outputs(path):
    """Sums over the batch, an output that reads no input, the input itself."""
    serve(path, lambda x: {"sum": tf.reduce_sum(x, 0), "c": tf.constant([[1, 2]]), "x": x, "n": tf.shape(x),
                           "covariance": tf.matmul(x, x, transpose_a=True)}, [], x=(F32, None, 4))


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 6, 6, 2)).astype(np.float32)})
def module_nested_keras(path):
    """A Keras model in a Module with variables of its own and a second model that shares a layer."""
    shared = L.Conv2D(4, 3, activation="relu")
    a = keras.Input((6, 6, 2))
    first = keras.Model(a, L.GlobalMaxPooling2D()(shared(a)))
    second = keras.Model(a, L.Dense(2)(L.Flatten()(shared(a))))
    bias = tf.Variable([0.5, -0.5])
    serve(path, lambda x: {"first": first(x), "second": second(x) + bias}, [first, second, bias], x=(F32, None, 6, 6, 2))


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 4))})
def module_half_constants(path):
    """Weights kept as float16 and int8, cast when they are used."""
    w16 = tf.Variable(np.random.default_rng(1).normal(size=(4, 5)).astype(np.float16), trainable=False)
    w8 = tf.Variable(np.random.default_rng(2).integers(-127, 127, (5, 3)).astype(np.int8), trainable=False)
    scale = tf.Variable(np.float32([0.01, 0.02, 0.03]))
    serve(path, lambda x: {"y": tf.matmul(tf.nn.relu(tf.matmul(x, tf.cast(w16, F32))), tf.cast(w8, F32) * scale)},
          [w16, w8, scale], x=(F32, None, 4))


@row(feed=lambda rng, n: {"x": rng.integers(-128, 127, (n, 8))})
def module_int8_accumulate(path):
    """An integer layer: int8 in, int32 sums, rescaled and rounded to uint8."""
    w = tf.Variable(np.random.default_rng(3).integers(-20, 20, (8, 4)).astype(np.int8), trainable=False)

    def f(x):
        acc = tf.matmul(tf.cast(x, I32), tf.cast(w, I32)) + tf.constant([1, -2, 3, -4])
        return {"acc": acc, "q": tf.cast(tf.clip_by_value(tf.round(tf.cast(acc, F32) * 0.013) + 128, 0, 255), tf.uint8),
                "bits": tf.bitwise.bitwise_and(acc, 0xff)}

    serve(path, f, [w], x=(tf.int8, None, 8))


# ---- Decoders ----

class CachedDecoder(tf.Module):
    """A small transformer that decodes greedily with keys and values cached in TensorArrays' stead: tensors that the
    loop carries and tensor_scatter_nd_update fills."""

    def __init__(self):
        super().__init__()
        self.table, self.head = weights(1, 12, 8), weights(2, 8, 12)
        self.q, self.k, self.v, self.o = (weights(s, 8, 8) for s in (3, 4, 5, 6))

    @tf.function(input_signature=[spec("prompt", I32, None, None), spec("steps", I32)])
    def generate(self, prompt, steps):
        n, length = tf.shape(prompt)[0], tf.shape(prompt)[1]
        total = length + steps
        keys, values = tf.zeros([n, total, 8]), tf.zeros([n, total, 8])
        ids = tf.pad(prompt, [[0, 0], [0, steps]])
        for i in tf.range(total - 1):
            x = tf.gather(self.table, ids[:, i])
            rows = tf.stack([tf.range(n), tf.fill([n], i)], 1)
            keys = tf.tensor_scatter_nd_update(keys, rows, x @ self.k)
            values = tf.tensor_scatter_nd_update(values, rows, x @ self.v)
            scores = tf.einsum("nd,ntd->nt", x @ self.q, keys) / float(np.sqrt(8))
            scores = tf.where(tf.range(total) <= i, scores, -1e9)
            y = x + tf.einsum("nt,ntd->nd", tf.nn.softmax(scores), values) @ self.o
            step = tf.argmax(y @ self.head, -1, output_type=I32)
            if i + 1 >= length:
                ids = tf.tensor_scatter_nd_update(ids, tf.stack([tf.range(n), tf.fill([n], i + 1)], 1), step)
        return {"ids": ids, "cache": keys}


@row(feed=lambda rng, n: {"prompt": rng.integers(1, 12, (n, 3)), "steps": 4}, batches=(1, 3))
def decoder_with_cache(path):
    m = CachedDecoder()
    tf.saved_model.save(m, path, signatures=m.generate)


@row(feed=lambda rng, n: {"start": rng.integers(0, 9, n)}, batches=(1, 3, 8))
def decoder_beams_until_done(path):
    """Beam search with a length penalty, finished beams kept, in a while loop of TensorArrays."""
    table = tf.math.log_softmax(fixed(5, 9, 9) * 3)

    def f(start):
        n, k, end = tf.shape(start)[0], 4, 0
        alive = tf.tile(start[:, None], [1, k])[:, :, None]
        scores = tf.tile([[0.0] + [-1e9] * (k - 1)], [n, 1])
        done = tf.fill([n, k], False)

        def go(i, alive, scores, done):
            return (i < 7) & ~tf.reduce_all(done)

        def step(i, alive, scores, done):
            log = tf.where(done[:, :, None], tf.one_hot(tf.fill([n, k], end), 9, 0.0, -1e9), tf.gather(table, alive[:, :, -1]))
            total = tf.reshape(scores[:, :, None] + log, [n, -1])
            scores, at = tf.math.top_k(total, k)
            beam, token = at // 9, at % 9
            alive = tf.concat([tf.gather(alive, beam, batch_dims=1), token[:, :, None]], -1)
            done = tf.gather(done, beam, batch_dims=1) | (token == end)
            return i + 1, alive, scores, done

        i, alive, scores, done = tf.while_loop(go, step, (0, alive, scores, done), shape_invariants=(
            tf.TensorShape([]), tf.TensorShape([None, None, None]), tf.TensorShape([None, None]), tf.TensorShape([None, None])))
        lengths = tf.reduce_sum(tf.cast(alive != end, F32), -1)
        best = tf.argmax(scores / ((5 + lengths) / 6) ** 0.6, -1)
        return {"best": tf.gather(alive, best, batch_dims=1), "steps": i, "scores": scores}

    serve(path, f, [], start=(I32, None))


@row(feed=lambda rng, n: {"logits": rng.normal(size=(n, 6, 5)), "lengths": rng.integers(1, 7, n)})
def decoder_viterbi(path):
    """The best path of a chain by dynamic programming, forwards and back, in two loops."""
    moves = fixed(7, 5, 5)

    def f(logits, lengths):
        scores, back = logits[:, 0], tf.TensorArray(I32, size=5, element_shape=[None, 5])
        for t in tf.range(1, 6):
            each = scores[:, :, None] + moves
            live = (t < lengths)[:, None]
            back = back.write(t - 1, tf.where(live, tf.argmax(each, 1, I32), tf.range(5)[None]))
            scores = tf.where(live, tf.reduce_max(each, 1) + logits[:, t], scores)
        at = tf.argmax(scores, 1, I32)
        path_ = tf.TensorArray(I32, size=6, element_shape=[None])
        path_ = path_.write(5, at)
        for t in tf.range(4, -1, -1):
            at = tf.gather(back.read(t), at, batch_dims=1)
            path_ = path_.write(t, at)
        return {"path": tf.transpose(path_.stack()), "score": tf.reduce_max(scores, 1)}

    serve(path, f, [], logits=(F32, None, 6, 5), lengths=(I32, None))


@row(feed=lambda rng, n: {"prompt": rng.integers(1, 9, (n, 2)), "seed": [3, n]}, batches=(1, 3))
def decoder_samples(path):
    """Sampling with temperature and the nucleus of the best, seeded by an input."""
    table = fixed(8, 9, 9) * 4

    def f(prompt, seed):
        ids = prompt
        for i in tf.range(4):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(ids, tf.TensorShape([None, None]))])
            logits = tf.gather(table, ids[:, -1]) / 0.7
            order = tf.argsort(logits, direction="DESCENDING")
            best = tf.gather(tf.nn.softmax(logits), order, batch_dims=1)
            kept = tf.cumsum(best, -1, exclusive=True) < 0.8
            logits = tf.where(kept, tf.gather(logits, order, batch_dims=1), -1e9)
            at = tf.random.stateless_categorical(logits, 1, seed + i, dtype=I32)
            ids = tf.concat([ids, tf.gather(order, at, batch_dims=1)], 1)
        return {"ids": ids}

    serve(path, f, [], prompt=(I32, None, None), seed=(I32, 2))


# ---- Complex numbers through control flow ----

@row(feed=lambda rng, n: {"z": (rng.normal(size=(n, 4)) + 1j * rng.normal(size=(n, 4))) / 2, "steps": 2 + n % 3})
def complex_control_flow(path):
    """Branches, loops and lists of complex numbers."""
    def f(z, steps):
        c = z[:, ::-1]
        y = tf.cond(tf.reduce_sum(tf.abs(z)) > 4.0, lambda: z * 0.5, lambda: tf.math.conj(z))
        inside = tf.ones_like(tf.abs(z), I32)
        for _ in tf.range(steps):
            y = y * y + c
            inside += tf.cast(tf.abs(y) < 2.0, I32)
        array = tf.TensorArray(C64, size=steps, element_shape=[None, 4])
        for i in tf.range(steps):
            array = array.write(i, z * tf.cast(i + 1, C64))
        return {"y": tf.where(tf.abs(y) < 1e6, y, 0j), "inside": inside, "list": array.stack(),
                "map": tf.map_fn(lambda r: tf.reduce_sum(r) * r, z)}

    serve(path, f, [], z=(C64, None, 4), steps=(I32,))


@row(feed=lambda rng, n: {"wave": rng.normal(size=(n, 64))})
def complex_outputs(path):
    """A spectrum, its phase unwrapped, and a filter by its complex response; complex128 beside."""
    response = tf.constant(np.exp(1j * np.linspace(0, 3, 33)).astype(np.complex64))

    def f(wave):
        spectrum = tf.signal.rfft(wave) * response
        return {"spectrum": spectrum, "wave": tf.signal.irfft(spectrum), "power": tf.math.real(spectrum * tf.math.conj(spectrum)),
                "wide": tf.signal.fft(tf.cast(wave, tf.complex128)), "first": spectrum[:, 0]}

    serve(path, f, [], wave=(F32, None, 64))


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 8)), "state": rng.normal(size=(n, 4)) + 1j * rng.normal(size=(n, 4))})
def complex_state_space(path):
    """A diagonal state space layer (S4): a complex recurrence over the sequence."""
    a = tf.constant(np.exp(-np.linspace(0.1, 0.5, 4) + 1j * np.linspace(0.2, 2, 4)).astype(np.complex64))
    b, c = tf.constant([1 + 1j, 2 + 0j, 0.5j, -1 + 0j], C64), tf.constant([0.3 + 0j, 1j, 1 - 1j, 0.2 + 0j], C64)

    def f(x, state):
        def step(h, u):
            return h * a + tf.cast(u, C64)[:, None] * b
        states = tf.scan(step, tf.transpose(x), state)
        return {"y": tf.transpose(tf.math.real(tf.einsum("tnk,k->tn", states, c))), "state": states[-1]}

    serve(path, f, [], x=(F32, None, 8), state=(C64, None, 4))


# ---- From raw bytes and strings ----

@row(feed=lambda rng, n: {"text": sentences(rng, n)})
def pipeline_bag_of_words(path):
    """Cleaned, split, hashed, counted, weighted: a ragged pipeline to a linear classifier."""
    w, idf = weights(1, 64, 3), tf.Variable(np.random.default_rng(2).uniform(1, 3, 64).astype(np.float32))

    def f(text):
        words = tf.strings.split(tf.strings.regex_replace(tf.strings.lower(text), r"[^a-z' ]", " "))
        pairs = tf.strings.ngrams(words, [1, 2])
        ids = tf.strings.to_hash_bucket_fast(pairs, 64)
        counts = tf.math.bincount(ids, axis=-1, minlength=64, maxlength=64, dtype=F32)
        tf_idf = tf.math.l2_normalize(counts * idf, axis=1)
        return {"scores": tf.nn.softmax(tf_idf @ w), "n": words.row_lengths(), "first": words[:, :1].to_tensor("-"),
                "lengths": tf.reduce_max(tf.strings.length(words), 1)}

    serve(path, f, [w, idf], text=(STRING, None))


@row(feed=lambda rng, n: {"text": sentences(rng, n)})
def pipeline_characters_to_rnn(path):
    """Code points, padded, embedded, through a GRU."""
    rnn = keras.Sequential([L.Embedding(64, 6, mask_zero=True), L.GRU(5), L.Dense(2)])
    rnn(tf.zeros([1, 4], I32))

    def f(text):
        points = tf.strings.unicode_decode(text, "UTF-8")
        ids = tf.math.floormod(points, 63).to_tensor(0, shape=[None, 12]) + 1
        mask = tf.sequence_mask(tf.minimum(points.row_lengths(), 12), 12)
        return {"logits": rnn(tf.where(mask, ids, 0))}

    serve(path, f, [rnn], text=(STRING, None))


@row(feed=lambda rng, n: {"text": sentences(rng, n)})
def pipeline_word_pieces(path):
    """BERT's preparation: words, pieces from a table, [CLS] and [SEP], ids, mask and types padded to a length."""
    m = tf.Module()
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "film", "was", "great", "bad", "not", "a", "##s", "dog", "cat"]
    m.table = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(
        tf.constant(pieces), tf.range(len(pieces), dtype=I64)), 1)

    def f(text):
        words = tf.strings.split(tf.strings.regex_replace(tf.strings.lower(text), r"[[:punct:]]", ""))
        parts = tf.strings.split(tf.strings.regex_replace(words.flat_values, r"(dog|cat)s$", r"\1 ##s"))
        ids = words.with_flat_values(m.table.lookup(parts[:, :1].to_tensor("[UNK]")[:, 0]))
        n = tf.shape(text, I64)[0]
        ids = tf.concat([tf.fill([n, 1], tf.constant(2, I64)), ids[:, :8], tf.fill([n, 1], tf.constant(3, I64))], 1)
        mask = tf.ones_like(ids)
        return {"input_word_ids": tf.cast(ids.to_tensor(shape=[None, 10]), I32), "input_mask": tf.cast(mask.to_tensor(shape=[None, 10]), I32),
                "input_type_ids": tf.zeros([n, 10], I32), "pieces": parts.row_lengths()}

    m.f = tf.function(f, input_signature=[spec("text", STRING, None)])
    tf.saved_model.save(m, path, signatures=m.f)


@row(feed=lambda rng, n: {"line": np.array([b"%d,%.2f,%s,%d" % (rng.integers(20, 60), rng.normal(), rng.choice([b"red", b"blue", b""]),
                                                                rng.integers(0, 2)) for _ in range(n)], object)})
def pipeline_csv_tabular(path):
    """Lines of CSV to a wide and deep answer: buckets, crosses, hashes, a vocabulary."""
    m = tf.Module()
    m.colors = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant(["red", "green", "blue"]), tf.range(3)), -1)
    m.wide, m.deep = weights(4, 20, 1), keras.Sequential([L.Dense(6, "relu"), L.Dense(1)])
    m.deep(tf.zeros([1, 6]))

    def f(line):
        age, score, color, flag = tf.io.decode_csv(line, [[0], [0.0], ["none"], [0]])
        bucket = tf.raw_ops.Bucketize(input=age, boundaries=[25, 35, 45])
        cross = tf.strings.to_hash_bucket_fast(tf.strings.join([tf.strings.as_string(bucket), color], "_X_"), 20)
        one_hot = tf.one_hot(m.colors.lookup(color), 3)
        deep = m.deep(tf.concat([tf.stack([tf.cast(age, F32) / 50, score, tf.cast(flag, F32)], 1), one_hot], 1))
        logit = tf.gather(m.wide, cross) + deep
        return {"probability": tf.sigmoid(logit), "bucket": bucket, "cross": cross}

    m.f = tf.function(f, input_signature=[spec("line", STRING, None)])
    tf.saved_model.save(m, path, signatures=m.f)


@row(feed=lambda rng, n: {"wav": np.array(tf.audio.encode_wav(rng.uniform(-1, 1, (800, 1)).astype(np.float32), 8000).numpy(), object)}, batches=(1, 2))
def pipeline_wav_to_word(path):
    """A file of sound to a command's name: WAV, STFT, mel, logarithm, convolutions, label."""
    net = keras.Sequential([L.Conv2D(4, 3, strides=2, activation="relu"), L.GlobalAveragePooling2D(), L.Dense(3)])
    net(tf.zeros([1, 20, 12, 1]))
    names = tf.constant(["yes", "no", "stop"])

    def f(wav):
        audio, rate = tf.audio.decode_wav(wav, 1)
        audio = tf.squeeze(audio, -1)
        power = tf.square(tf.abs(tf.signal.stft(audio, 128, 64, 128)))
        mel = tf.matmul(power, tf.signal.linear_to_mel_weight_matrix(12, 65, 8000, 60.0, 3800.0))
        log_mel = tf.math.log(mel + 1e-5)
        logits = net(log_mel[None, :, :, None])
        return {"label": names[tf.argmax(logits[0])], "scores": tf.nn.softmax(logits), "rate": rate, "log_mel": log_mel}

    m = tf.Module()
    m.net = net
    m.f = tf.function(f, input_signature=[spec("wav", STRING)])
    tf.saved_model.save(m, path, signatures=m.f)


@row(feed=lambda rng, n: {"audio": rng.normal(size=(n, 600)) * 0.1}, tolerance=DEEP)
def pipeline_mfcc_frames(path):
    """MFCCs with deltas, normalized over time, frames spliced."""
    def f(audio):
        emphasized = tf.concat([audio[:, :1], audio[:, 1:] - 0.97 * audio[:, :-1]], 1)
        power = tf.abs(tf.signal.stft(emphasized, 100, 50, 128, tf.signal.hamming_window, True)) ** 2
        mel = tf.tensordot(power, tf.signal.linear_to_mel_weight_matrix(16, 65, 8000, 80.0, 3600.0), 1)
        mfcc = tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(tf.maximum(mel, 1e-6)))[..., :10]
        padded = tf.pad(mfcc, [[0, 0], [1, 1], [0, 0]], "SYMMETRIC")
        deltas = (padded[:, 2:] - padded[:, :-2]) / 2
        y = tf.concat([mfcc, deltas], -1)
        mean, variance = tf.nn.moments(y, [1], keepdims=True)
        y = (y - mean) * tf.math.rsqrt(variance + 1e-3)
        return {"frames": tf.reshape(tf.signal.frame(y, 3, 2, axis=1), [tf.shape(y)[0], -1, 60])}

    serve(path, f, [], audio=(F32, None, None))


@row(feed=lambda rng, n: {"bytes": np.array([tf.io.encode_png(rng.integers(0, 256, (9 + i, 12, 3)).astype(np.uint8)).numpy() for i in range(n)], object)})
def pipeline_images_of_sizes(path):
    """PNGs of several sizes, letterboxed to one, standardized, classified, the top two with names."""
    net = keras.Sequential([L.Conv2D(4, 3, strides=2, activation="relu"), L.Flatten(), L.Dense(3)])
    net(tf.zeros([1, 16, 16, 3]))
    names = tf.constant(["a", "b", "c"])

    def one(data):
        image = tf.image.convert_image_dtype(tf.io.decode_image(data, 3, expand_animations=False), F32)
        return tf.image.resize_with_pad(image, 16, 16)

    def f(data):
        images = tf.map_fn(one, data, fn_output_signature=F32)
        images.set_shape([None, 16, 16, 3])
        scores, at = tf.math.top_k(tf.nn.softmax(net(tf.image.per_image_standardization(images))), 2)
        return {"scores": scores, "names": tf.gather(names, at)}

    m = tf.Module()
    m.net = net
    m.f = tf.function(f, input_signature=[spec("bytes", STRING, None)])
    tf.saved_model.save(m, path, signatures=m.f)


@row(feed=lambda rng, n: {"key": rng.choice([b"a", b"b", b"zz"], n), "n": rng.integers(0, 9, n)})
def pipeline_assets_of_two_tables(path):
    """Two files of assets with the same name in different folders, columns of tab separated values."""
    m = tf.Module()
    for at, rows in enumerate(["a\t1\nb\t2\n", "x\t7\ny\t8\nz\t9\n"]):
        folder = os.path.join(path + ".files", str(at))
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "table.tsv"), "w") as file:
            file.write(rows)
    m.one = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
        os.path.join(path + ".files", "0", "table.tsv"), STRING, 0, I64, 1, delimiter="\t"), -1)
    m.two = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
        os.path.join(path + ".files", "1", "table.tsv"), I64, 1, STRING, 0, delimiter="\t"), "none")
    m.f = tf.function(lambda key, n: {"value": m.one.lookup(key), "name": m.two.lookup(tf.cast(n, I64))}, input_signature=[
        spec("key", STRING, None), spec("n", I32, None)])
    tf.saved_model.save(m, path, signatures=m.f)


# ---- Detection ----

def anchors(height, width, sizes):
    y, x = np.meshgrid(np.arange(height) + 0.5, np.arange(width) + 0.5, indexing="ij")
    boxes = [np.stack([y / height - s / 2, x / width - s / 2, y / height + s / 2, x / width + s / 2], -1) for s in sizes]
    return np.stack(boxes, 2).reshape(-1, 4).astype(np.float32)


@row(feed=lambda rng, n: {"image": rng.random((n, 32, 32, 3))})
def detector_of_anchors(path):
    """RetinaNet's end: heads over two levels, boxes decoded from anchors, classes through NMS, padded results."""
    trunk = keras.Input((32, 32, 3))
    c3 = L.Conv2D(8, 3, strides=4, padding="same", activation="relu")(trunk)
    c4 = L.Conv2D(8, 3, strides=2, padding="same", activation="relu")(c3)
    boxes, classes = L.Conv2D(2 * 4, 3, padding="same"), L.Conv2D(2 * 3, 3, padding="same", bias_initializer="ones")
    net = keras.Model(trunk, [L.Concatenate(axis=1)([L.Reshape((-1, k))(head(c)) for c in (c3, c4)]) for head, k in ((boxes, 4), (classes, 3))])
    at = tf.constant(np.concatenate([anchors(8, 8, (0.2, 0.3)), anchors(4, 4, (0.4, 0.6))]))

    def f(image):
        delta, logits = net(image)
        size = at[:, 2:] - at[:, :2]
        center = delta[..., :2] * 0.1 * size + at[:, :2] + size / 2
        extent = tf.exp(tf.minimum(delta[..., 2:] * 0.2, 4.0)) * size
        decoded = tf.clip_by_value(tf.concat([center - extent / 2, center + extent / 2], -1), 0.0, 1.0)
        b, s, c, n = tf.image.combined_non_max_suppression(decoded[:, :, None], tf.sigmoid(logits), 5, 10, 0.4, 0.1)
        return {"detection_boxes": b, "detection_scores": s, "detection_classes": tf.cast(c, I32) + 1, "num_detections": n}

    serve(path, f, [net], image=(F32, None, 32, 32, 3))


@row(feed=lambda rng, n: {"image": rng.random((n, 24, 24, 3))}, batches=(1, 3))
def detector_two_stage(path):
    """Proposals of one image each by NMS, cropped from the features, classified (Faster R-CNN)."""
    trunk = keras.Sequential([L.Conv2D(6, 3, strides=2, padding="same", activation="relu")])
    head = keras.Sequential([L.Flatten(), L.Dense(8, "relu"), L.Dense(4)])
    trunk(tf.zeros([1, 24, 24, 3]))
    head(tf.zeros([1, 3, 3, 6]))
    at = tf.constant(anchors(6, 6, (0.3,)))
    score = fixed(3, 6, 1)

    def f(image):
        features = trunk(image)
        pooled = tf.nn.avg_pool2d(features, 2, 2, "VALID")
        scores = tf.reshape(tf.matmul(tf.reshape(pooled, [-1, 6]), score), [-1, 36])
        picked = tf.map_fn(lambda s: tf.image.non_max_suppression_padded(at, s, 4, 0.3, pad_to_max_output_size=True)[0], scores,
                           fn_output_signature=I32)
        boxes = tf.gather(at, picked)
        n = tf.shape(image)[0]
        crops = tf.image.crop_and_resize(features, tf.reshape(boxes, [-1, 4]), tf.repeat(tf.range(n), 4), [3, 3])
        return {"boxes": boxes, "classes": tf.reshape(tf.nn.softmax(head(tf.ensure_shape(crops, [None, 3, 3, 6]))), [n, 4, 4])}

    serve(path, f, [trunk, head], image=(F32, None, 24, 24, 3))


@row(feed=lambda rng, n: {"heat": rng.normal(size=(n, 8, 8, 3)), "offset": rng.random((n, 8, 8, 2))})
def detector_peaks(path):
    """CenterNet's end: local maxima by pooling, the best of all classes, offsets gathered."""
    def f(heat, offset):
        heat = tf.sigmoid(heat)
        peaks = tf.where(tf.nn.max_pool2d(heat, 3, 1, "SAME") == heat, heat, 0.0)
        scores, at = tf.math.top_k(tf.reshape(peaks, [-1, 8 * 8 * 3]), 4)
        cell, kind = at // 3, at % 3
        shift = tf.gather(tf.reshape(offset, [-1, 64, 2]), cell, batch_dims=1)
        center = tf.cast(tf.stack([cell // 8, cell % 8], -1), F32) + shift
        return {"center": center, "class": kind, "score": scores}

    serve(path, f, [], heat=(F32, None, 8, 8, 3), offset=(F32, None, 8, 8, 2))


# ---- Graphs, clusters, points ----

@row(feed=lambda rng, n: {"nodes": rng.normal(size=(4 * n, 5)), "source": rng.integers(0, 4 * n, 6 * n), "target": rng.integers(0, 4 * n, 6 * n),
                          "graph": np.repeat(np.arange(n), 4)})
def graph_attention(path):
    """GAT: attention over edges by segments, two heads, graphs pooled by their ids."""
    w, a, b = weights(1, 5, 8), weights(2, 8, 2), weights(3, 8, 2)

    def f(nodes, source, target, graph):
        h = nodes @ w
        e = tf.nn.leaky_relu(tf.gather(h @ a, source) + tf.gather(h @ b, target), 0.2)
        n = tf.shape(nodes)[0]
        e = tf.exp(e - tf.gather(tf.math.unsorted_segment_max(e, target, n), target))
        e = e / (tf.gather(tf.math.unsorted_segment_sum(e, target, n), target) + 1e-9)
        sent = tf.reshape(tf.gather(h, source), [-1, 2, 4]) * e[:, :, None]
        out = tf.nn.elu(tf.reshape(tf.math.unsorted_segment_sum(sent, target, n), [-1, 8]))
        return {"nodes": out, "graphs": tf.math.segment_mean(out, graph), "degree": tf.math.bincount(target, minlength=n)}

    serve(path, f, [w, a, b], nodes=(F32, None, 5), source=(I32, None), target=(I32, None), graph=(I32, None))


@row(feed=lambda rng, n: {"indices": np.stack([np.arange(n), np.arange(n)[::-1]], 1), "values": rng.normal(size=n), "x": rng.normal(size=(n, 3)), "n": n})
def graph_sparse_adjacency(path):
    """A GCN whose adjacency comes as a sparse tensor's parts."""
    w = weights(4, 3, 2)

    def f(indices, values, x, n):
        adjacency = tf.sparse.reorder(tf.SparseTensor(indices, values, tf.stack([n, n])))
        degree = tf.sparse.reduce_sum(tf.sparse.map_values(tf.abs, adjacency), 1)
        h = tf.sparse.sparse_dense_matmul(adjacency, x @ w) / (degree[:, None] + 1.0)
        return {"h": tf.nn.relu(h), "dense": tf.sparse.to_dense(adjacency)}

    serve(path, f, [w], indices=(I64, None, 2), values=(F32, None), x=(F32, None, 3), n=(I64,))


@row(feed=lambda rng, n: {"x": rng.normal(size=(4 * n, 2))}, batches=(2, 3))
def cluster_k_means(path):
    """k-means, until the centers rest or ten rounds."""
    def f(x):
        centers, moved, i = x[:3], tf.constant(1.0), 0
        while (i < 10) & (moved > 1e-6):
            near = tf.argmin(tf.reduce_sum((x[:, None] - centers) ** 2, -1), 1, I32)
            new = tf.math.unsorted_segment_mean(x, near, 3)
            moved, centers = tf.reduce_sum((new - centers) ** 2), new
            i += 1
        return {"centers": centers, "rounds": i, "near": tf.argmin(tf.norm(x[:, None] - centers, axis=-1), 1)}

    m = tf.Module()
    m.f = tf.function(f, input_signature=[spec("x", F32, None, 2)])
    tf.saved_model.save(m, path, signatures=m.f)


@row(feed=lambda rng, n: {"query": rng.normal(size=(n, 8)), "k": 2})
def search_quantized_vectors(path):
    """Product quantization: codes of uint8, a table of distances for each query, the nearest."""
    codes = tf.Variable(np.random.default_rng(5).integers(0, 16, (40, 4)).astype(np.uint8), trainable=False)
    books = weights(6, 4, 16, 2)

    def f(query, k):
        parts = tf.reshape(query, [-1, 4, 1, 2])
        table = tf.reduce_sum((parts - books) ** 2, -1)
        d = tf.reduce_sum(tf.gather(tf.transpose(table, [1, 2, 0]), tf.transpose(tf.cast(codes, I32)), batch_dims=1), 0)
        best, at = tf.math.top_k(-tf.transpose(d), k)
        return {"distance": -best, "id": at}

    serve(path, f, [codes, books], query=(F32, None, 8), k=(I32,))


# ---- Forecasts, tables of numbers ----

@row(feed=lambda rng, n: {"series": np.cumsum(rng.normal(size=(n, 24)), 1)})
def forecast_autoregressive(path):
    """An LSTM cell warmed by the past, then fed by its own answers, the results stacked."""
    cell, dense = L.LSTMCell(6), L.Dense(1)
    cell(tf.zeros([1, 1]), [tf.zeros([1, 6])] * 2)
    dense(tf.zeros([1, 6]))

    def f(series):
        mean, deviation = tf.reduce_mean(series, 1, keepdims=True), tf.math.reduce_std(series, 1, keepdims=True) + 1e-3
        x = (series - mean) / deviation
        h = [tf.zeros([tf.shape(x)[0], 6])] * 2
        z = h[0]
        for t in tf.range(24):
            z, h = cell(tf.gather(x, [t], axis=1), h)
        y = dense(z)
        out = tf.TensorArray(F32, size=6, element_shape=[None, 1])
        for t in tf.range(6):
            out = out.write(t, y)
            z, h = cell(y, h)
            y = dense(z)
        return {"forecast": tf.squeeze(tf.transpose(out.stack(), [1, 0, 2]), -1) * deviation + mean}

    m = tf.Module()
    m.kept = [cell, dense]
    m.f = tf.function(f, input_signature=[spec("series", F32, None, 24)])
    tf.saved_model.save(m, path, signatures=m.f)


@row(feed=lambda rng, n: {"series": rng.normal(size=(n, 32))})
def forecast_decomposed(path):
    """Moving averages, a seasonal mean, a trend by least squares, their sum continued."""
    def f(series):
        trend = tf.nn.avg_pool1d(tf.pad(series, [[0, 0], [2, 2]], "REFLECT")[:, :, None], 5, 1, "VALID")[:, :, 0]
        season = tf.reduce_mean(tf.reshape(series - trend, [-1, 8, 4]), 1)
        t = tf.range(32, dtype=F32)
        a = tf.stack([tf.ones([32]), t], 1)
        fit = tf.linalg.lstsq(tf.tile(a[None], [tf.shape(series)[0], 1, 1]), trend[:, :, None])
        ahead = tf.stack([tf.ones([4]), 32 + tf.range(4, dtype=F32)], 1)
        return {"forecast": tf.squeeze(tf.matmul(ahead[None], fit), -1) + season, "anomaly": tf.abs(series - trend) > 3 * tf.math.reduce_std(series, 1, True)}

    serve(path, f, [], series=(F32, None, 32))


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 12, 3))})
def forecast_kalman(path):
    """A Kalman filter: inverses of small matrices in a scan."""
    a = tf.constant([[1.0, 0.5], [0.0, 0.9]])
    h = tf.constant([[1.0, 0.0], [0.5, 1.0], [0.0, 1.0]])

    def f(x):
        def step(state, z):
            mean, p = state
            mean, p = mean @ tf.transpose(a), a @ p @ tf.transpose(a) + 0.1 * tf.eye(2)
            s = h @ p @ tf.transpose(h) + 0.5 * tf.eye(3)
            gain = p @ tf.transpose(h) @ tf.linalg.inv(s)
            mean = mean + tf.linalg.matvec(gain, z - mean @ tf.transpose(h))
            return mean, (tf.eye(2) - gain @ h) @ p
        n = tf.shape(x)[0]
        means, ps = tf.scan(step, tf.transpose(x, [1, 0, 2]), (tf.zeros([n, 2]), tf.tile(tf.eye(2)[None], [n, 1, 1])))
        return {"mean": tf.transpose(means, [1, 0, 2]), "last": ps[-1]}

    serve(path, f, [], x=(F32, None, 12, 3))


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 5))})
def trees_of_tensors(path):
    """A boosted forest as tensors: nodes walked by gathers, leaves summed."""
    rng = np.random.default_rng(9)
    feature = tf.constant(rng.integers(0, 5, (6, 7)).astype(np.int32))
    border, leaf = tf.constant(rng.normal(size=(6, 7)).astype(np.float32)), tf.constant(rng.normal(size=(6, 8)).astype(np.float32))

    def f(x):
        n = tf.shape(x)[0]
        at = tf.zeros([n, 6], I32)
        tree = tf.tile(tf.range(6)[None], [n, 1])
        for _ in range(3):
            both = tf.stack([tree, at], -1)
            right = tf.gather(x, tf.gather_nd(feature, both), batch_dims=1) > tf.gather_nd(border, both)
            at = 2 * at + 1 + tf.cast(right, I32)
        return {"margin": tf.reduce_sum(tf.gather_nd(leaf, tf.stack([tree, at - 7], -1)), 1), "leaf": at - 7}

    serve(path, f, [], x=(F32, None, 5))


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 3))}, tolerance=DEEP)
def gaussian_process(path):
    """The mean and variance of a Gaussian process by a Cholesky factor."""
    known, values = fixed(1, 10, 3), fixed(2, 10, 1)

    def f(x):
        def k(a, b):
            return tf.exp(-0.5 * tf.reduce_sum((a[:, None] - b[None]) ** 2, -1))
        chol = tf.linalg.cholesky(k(known, known) + 0.1 * tf.eye(10))
        cross = k(known, x)
        alpha = tf.linalg.cholesky_solve(chol, values)
        v = tf.linalg.triangular_solve(chol, cross)
        return {"mean": tf.transpose(tf.matmul(cross, alpha, transpose_a=True)), "variance": 1.0 - tf.reduce_sum(v ** 2, 0)}

    serve(path, f, [], x=(F32, None, 3))


@row(feed=lambda rng, n: {"a": rng.random((n, 5)), "b": rng.random((n, 5))}, tolerance=DEEP)
def optimal_transport(path):
    """Sinkhorn's iteration between two histograms."""
    cost = tf.constant(np.abs(np.subtract.outer(np.arange(5.), np.arange(5.))).astype(np.float32))

    def f(a, b):
        a, b = a / tf.reduce_sum(a, 1, True), b / tf.reduce_sum(b, 1, True)
        kernel = tf.exp(-cost / 0.5)
        u, v = tf.ones_like(a), tf.ones_like(b)
        for _ in tf.range(20):
            u = a / tf.matmul(v, kernel, transpose_b=True)
            v = b / tf.matmul(u, kernel)
        plan = u[:, :, None] * kernel * v[:, None, :]
        return {"distance": tf.reduce_sum(plan * cost, [1, 2]), "plan": plan}

    serve(path, f, [], a=(F32, None, 5), b=(F32, None, 5))


@row(feed=lambda rng, n: {"left": rng.integers(1, 6, (n, 5)), "right": rng.integers(1, 6, (n, 4))}, batches=(1, 3))
def edit_distances(path):
    """Edit distance by dynamic programming over rows."""
    def f(left, right):
        row_ = tf.tile(tf.range(5)[None], [tf.shape(left)[0], 1])
        for i in tf.range(5):
            change = row_[:, :-1] + tf.cast(left[:, i][:, None] != right, I32)
            best = tf.minimum(change, row_[:, 1:] + 1)
            first = row_[:, :1] + 1
            new = first
            for j in range(4):
                new = tf.concat([new, tf.minimum(best[:, j:j + 1], new[:, -1:] + 1)], 1)
            row_ = new
        return {"distance": row_[:, -1]}

    serve(path, f, [], left=(I32, None, 5), right=(I32, None, 4))


# ---- Gradients inside, recursion, many branches ----

@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 6, 6, 1))})
def gradient_saliency(path):
    """The derivative of the best class by the pixels, and integrated gradients over eight steps."""
    net = keras.Sequential([L.Conv2D(3, 3, activation="tanh"), L.Flatten(), L.Dense(4)])
    net(tf.zeros([1, 6, 6, 1]))

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_max(net(x), 1)
        saliency = tape.gradient(y, x)
        steps = tf.linspace(0.0, 1.0, 8)
        many = tf.reshape(steps[:, None, None, None, None] * x[None], [-1, 6, 6, 1])
        with tf.GradientTape() as tape:
            tape.watch(many)
            y = tf.reduce_sum(net(many)[:, 0])
        path_ = tf.reduce_mean(tf.reshape(tape.gradient(y, many), [8, -1, 6, 6, 1]), 0)
        return {"saliency": tf.abs(saliency), "integrated": path_ * x}

    serve(path, f, [net], x=(F32, None, 6, 6, 1))


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 4)), "y": rng.normal(size=(n, 2))})
def gradient_adapts_inside(path):
    """MAML: three steps of gradient descent on the examples of the request, then an answer."""
    w = weights(1, 4, 2)

    def f(x, y):
        v = tf.identity(w)
        for _ in range(3):
            with tf.GradientTape() as tape:
                tape.watch(v)
                loss = tf.reduce_mean((tf.tanh(x @ v) - y) ** 2)
            v = v - 0.5 * tape.gradient(loss, v)
        return {"y": tf.tanh(x @ v), "loss": loss, "w": v}

    serve(path, f, [w], x=(F32, None, 4), y=(F32, None, 2))


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 3)), "which": n % 4})
def branches_of_experts(path):
    """switch_case over layers that return several values, one with strings."""
    layers = [L.Dense(2, a) for a in ("relu", "tanh", "sigmoid")]
    for layer in layers:
        layer(tf.zeros([1, 3]))

    def f(x, which):
        y, name = tf.switch_case(which, [lambda l=l: (l(x), tf.constant(l.activation.__name__)) for l in layers],
                                 default=lambda: (x[:, :2], tf.constant("none")))
        return {"y": y, "name": name}

    serve(path, f, layers, x=(F32, None, 3), which=(I32,))


@row(feed=lambda rng, n: {"n": n, "x": rng.normal(size=(n,))}, batches=(0, 1, 3, 9), sample=True)
def loops_within_branches(path):
    """Loops in branches in loops, an early break, a list whose length data decides."""
    def f(n, x):
        total, found = tf.constant(0), tf.constant(-1)
        out = tf.TensorArray(F32, size=0, dynamic_size=True, element_shape=[])
        for i in tf.range(n):
            if i % 2 == 0:
                j = tf.constant(0)
                while j < i:
                    total += j
                    j += 2
            else:
                out = out.write(out.size(), x[i] * 2)
            if total > 6:
                found = i
                break
        return {"total": total, "found": found, "odd": out.stack()}

    m = tf.Module()
    m.f = tf.function(f, input_signature=[spec("n", I32), spec("x", F32, None)])
    tf.saved_model.save(m, path, signatures=m.f)


@row(feed=lambda rng, n: {"a": rng.normal(size=(n, 3)), "b": rng.normal(size=(n + 1, 3))}, batches=(0, 1, 3))
def broadcast_of_unknown_shapes(path):
    """All pairs, where nothing of the shapes is known."""
    def f(a, b):
        d = tf.norm(tf.expand_dims(a, 1) - tf.expand_dims(b, 0), axis=-1)
        return {"pairs": d, "near": tf.sort(d, 1)[:, :1], "mask": tf.linalg.band_part(tf.ones_like(d), 0, -1),
                "tile": tf.tile(a[:, None], [1, tf.shape(b)[0], 1])}

    serve(path, f, [], a=(F32, None, None), b=(F32, None, None))
