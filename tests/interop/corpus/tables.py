"""Tables, Examples, files of assets."""
import os

import numpy as np
import tensorflow as tf

from corpus.functions import spec
from corpus.rows import add

EXAMPLES = spec(None, dtype=tf.string)


class Tables(tf.Module):
    def __init__(self, folder):
        super().__init__()
        names = os.path.join(folder, "names.txt")
        os.makedirs(folder, exist_ok=True)
        with open(names, "w") as f:
            f.write("cat\ndog\nhorse\n")
        self.ids = tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(
            names, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 2)
        self.names = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
            names, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE), "?")
        self.prices = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
            tf.constant(["cat", "dog"]), tf.constant([1.5, 2.5])), -1.0)
        self.numbers = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
            tf.constant([1, 5], tf.int64), tf.constant([10, 50], tf.int64)), 0)

    @tf.function(input_signature=[EXAMPLES])
    def f(self, x):
        ids = self.ids.lookup(x)
        return {"ids": ids, "names": self.names.lookup(ids % 4), "prices": self.prices.lookup(x), "n": self.numbers.lookup(ids),
                "size": self.names.size()}


def static(path):
    m = Tables(path + ".files")
    tf.saved_model.save(m, path, signatures=m.f)


animals = lambda rng, n: rng.choice([b"cat", b"dog", b"horse", b"fly", b""], n)
add("tables_of_assets", static, feed=animals)


class Mutable(tf.Module):
    def __init__(self):
        super().__init__()
        self.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        self.table.insert(tf.constant(["cat", "dog"]), tf.constant([1, 2], tf.int64))

    @tf.function(input_signature=[EXAMPLES])
    def f(self, x):
        return {"y": self.table.lookup(x)}


def mutable(path):
    m = Mutable()
    tf.saved_model.save(m, path, signatures=m.f)


add("tables_mutable", mutable, feed=animals)


class Dense(Mutable):
    def __init__(self):
        tf.Module.__init__(self)
        self.table = tf.lookup.experimental.DenseHashTable(tf.string, tf.int64, -1, empty_key="", deleted_key="-")
        self.table.insert(tf.constant(["cat", "dog"]), tf.constant([1, 2], tf.int64))


def dense(path):
    m = Dense()
    tf.saved_model.save(m, path, signatures=m.f)


add("tables_dense", dense, feed=lambda rng, n: rng.choice([b"cat", b"dog", b"horse"], n))

# ---- Examples ----


def example(rng):
    feature, value = tf.train.Feature, {}
    value["a"] = feature(float_list=tf.train.FloatList(value=rng.normal(size=3)))
    if rng.random() > 0.3:
        value["b"] = feature(int64_list=tf.train.Int64List(value=rng.integers(0, 9, rng.integers(0, 4))))
    if rng.random() > 0.3:
        value["c"] = feature(bytes_list=tf.train.BytesList(value=[rng.choice([b"x", b"yy"])]))
    return tf.train.Example(features=tf.train.Features(feature=value)).SerializeToString()


def examples(rng, n):
    return np.array([example(rng) for _ in range(n)], object)


FEATURES = {"a": tf.io.FixedLenFeature([3], tf.float32), "b": tf.io.VarLenFeature(tf.int64),
            "c": tf.io.FixedLenFeature([], tf.string, b"none")}


def parse(path):
    module = tf.Module()

    def f(x):
        p = tf.io.parse_example(x, FEATURES | {"b": tf.io.RaggedFeature(tf.int64)})
        return {"a": p["a"], "b": p["b"].to_tensor(-1), "c": p["c"], "r": p["b"].row_lengths()}

    module.f = tf.function(f, input_signature=[EXAMPLES])
    tf.saved_model.save(module, path)


def parse_linear(path):
    """What an Estimator's export does: Examples to a score."""
    module = tf.Module()
    module.w = tf.Variable(np.random.default_rng(1).normal(size=(9, 2)).astype(np.float32))
    module.v = tf.Variable(np.random.default_rng(2).normal(size=(3, 2)).astype(np.float32))

    def f(x):
        p = tf.io.parse_example(x, FEATURES)
        y = tf.matmul(p["a"], module.v) + tf.nn.embedding_lookup_sparse(module.w, p["b"], None, combiner="sum")
        return {"scores": tf.nn.softmax(y)}

    module.f = tf.function(f, input_signature=[EXAMPLES])
    tf.saved_model.save(module, path)


def parse_sequence(path):
    module = tf.Module()

    def f(x):
        context, lists, _ = tf.io.parse_sequence_example(x, {"n": tf.io.FixedLenFeature([], tf.int64)}, {
            "v": tf.io.FixedLenSequenceFeature([2], tf.float32), "w": tf.io.VarLenFeature(tf.string)})
        return {"n": context["n"], "v": lists["v"], "w": tf.sparse.to_dense(lists["w"])}

    module.f = tf.function(f, input_signature=[EXAMPLES])
    tf.saved_model.save(module, path)


def sequence_examples(rng, n):
    out = []
    for _ in range(n):
        e = tf.train.SequenceExample()
        e.context.feature["n"].int64_list.value.append(int(rng.integers(9)))
        for _ in range(rng.integers(1, 4)):
            e.feature_lists.feature_list["v"].feature.add().float_list.value.extend(rng.normal(size=2))
            e.feature_lists.feature_list["w"].feature.add().bytes_list.value.extend([b"q"] * int(rng.integers(3)))
        out.append(e.SerializeToString())
    return np.array(out, object)


def decode(path):
    module = tf.Module()
    module.f = tf.function(lambda x: {"f": tf.io.decode_raw(x, tf.float32), "u": tf.io.decode_raw(x, tf.uint8),
                                      "p": tf.io.decode_raw(x, tf.int16, fixed_length=4)}, input_signature=[EXAMPLES])
    tf.saved_model.save(module, path)


def csv(path):
    module = tf.Module()

    def f(x):
        a, b, c = tf.io.decode_csv(x, [[0.0], [7], ["none"]])
        return {"a": a, "b": b, "c": c}

    module.f = tf.function(f, input_signature=[EXAMPLES])
    tf.saved_model.save(module, path)


add("examples_parsed", parse, feed=examples, sample=True)
add("examples_linear", parse_linear, feed=examples)
add("examples_of_sequences", parse_sequence, feed=sequence_examples)
add("bytes_decoded", decode, feed=lambda rng, n: [rng.bytes(8) for _ in range(n)])
add("csv_decoded", csv, feed=lambda rng, n: [b"%g,%d,%s" % (i / 3, i, b"t" * (i % 3)) for i in range(n)])
