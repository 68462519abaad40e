"""Text pipelines: from strings to ids, vectors and classes."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

from corpus.functions import function, spec
from corpus.keras_layers import save
from corpus.rows import DEEP, add

WORDS = "the a film was great bad Fine! NOT worth, watching twice Überraschung naïve 東京 dogs cats don't".split()
TEXTS = spec(None, dtype=tf.string)


def sentences(rng, n):
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 9))) for _ in range(n)]
    texts[0] = "  Great, GREAT film!\t(not bad) "
    if n > 2:
        texts[1:3] = ["", "unseen words only"]
    return np.array([t.encode() for t in texts], object)


def strings(name, body, **options):
    function(name, body, TEXTS, feed=lambda rng, n: sentences(rng, n), **options)


def vectorization(name, **layer):
    def build(path):
        x = keras.Input((), dtype="string")
        v = L.TextVectorization(**layer)
        v.adapt([t.decode() for t in sentences(np.random.default_rng(3), 40)])
        save(keras.Model(x, v(x)), path)
    add(name, build, feed=lambda rng, n: sentences(rng, n))


vectorization("text_vectorization", max_tokens=12)
vectorization("text_vectorization_padded", max_tokens=30, output_sequence_length=6)
vectorization("text_vectorization_ngrams", ngrams=2, output_mode="multi_hot", max_tokens=30)
vectorization("text_vectorization_count", output_mode="count", pad_to_max_tokens=True, max_tokens=40)
vectorization("text_vectorization_tf_idf", output_mode="tf_idf")
vectorization("text_vectorization_characters", split="character", standardize="lower")
vectorization("text_vectorization_ragged_ids", standardize="strip_punctuation", split="whitespace")


def vectorized(x, length=8):
    v = L.TextVectorization(max_tokens=20, output_sequence_length=length)
    v.adapt([t.decode() for t in sentences(np.random.default_rng(3), 40)])
    return v(x)


def text_lstm(path):
    x = keras.Input((), dtype="string")
    y = L.Bidirectional(L.LSTM(6))(L.Embedding(20, 5, mask_zero=True)(vectorized(x)))
    save(keras.Model(x, L.Dense(2, "softmax")(y)), path)


def text_convolution(path):
    x = keras.Input((), dtype="string")
    y = L.GlobalMaxPooling1D()(L.Conv1D(6, 3, activation="relu")(L.Embedding(20, 5)(vectorized(x))))
    save(keras.Model(x, L.Dense(1, "sigmoid")(y)), path)


def text_transformer(path):
    from corpus.keras_sequences import Positions, block
    x = keras.Input((), dtype="string")
    y = Positions(16, 8)(L.Embedding(20, 8)(vectorized(x, None)))
    save(keras.Model(x, L.Dense(3)(L.GlobalAveragePooling1D()(block(y, 2, 8, 16)))), path)


def text_bag(path):
    """The average of embeddings, and the name of the class."""
    x = keras.Input((), dtype="string")
    logits = keras.Sequential([L.Embedding(20, 5), L.GlobalAveragePooling1D(), L.Dense(3)])(vectorized(x))
    model = keras.Model(x, logits)
    names = tf.constant(["good", "bad", "none"])
    module = tf.Module()
    module.model = model
    module.f = tf.function(lambda text: {"class": tf.gather(names, tf.argmax(model(text), -1)), "scores": model(text)},
                           input_signature=[tf.TensorSpec([None], tf.string, "text")])
    tf.saved_model.save(module, path, signatures=module.f)


for make in text_lstm, text_convolution, text_transformer, text_bag:
    add(make.__name__, make, feed=lambda rng, n: sentences(rng, n),
        tolerance=DEEP if make is text_transformer else 1e-5)


def lookup(name, make, dtype, feed):
    def build(path):
        x = keras.Input((None,), dtype=dtype)
        save(keras.Model(x, make()(x)), path)
    add(name, build, feed=feed)


letters = lambda rng, n: rng.choice([b"a", b"b", b"c", b"zz", b""], (n, 3))
ids = lambda rng, n: rng.integers(0, 6, (n, 3))
lookup("string_lookup", lambda: L.StringLookup(vocabulary=["a", "b", "c"]), "string", letters)
lookup("string_lookup_oov", lambda: L.StringLookup(vocabulary=["a", "b"], num_oov_indices=3), "string", letters)
lookup("string_lookup_multi_hot", lambda: L.StringLookup(vocabulary=["a", "b"], output_mode="multi_hot"), "string", letters)
lookup("string_lookup_count", lambda: L.StringLookup(vocabulary=["a", "b"], output_mode="count"), "string", letters)
lookup("string_lookup_mask", lambda: L.StringLookup(vocabulary=["a", "b"], mask_token=""), "string", letters)
lookup("string_lookup_invert", lambda: L.StringLookup(vocabulary=["a", "b", "c"], invert=True), "int64", ids)
lookup("integer_lookup", lambda: L.IntegerLookup(vocabulary=[2, 4, 5]), "int64", ids)
lookup("integer_lookup_one_hot", lambda: L.IntegerLookup(vocabulary=[2, 4, 5], output_mode="multi_hot"), "int64", ids)
lookup("hashing_strings", lambda: L.Hashing(7), "string", letters)
lookup("hashing_salt", lambda: L.Hashing(7, salt=[133, 137], mask_value="a"), "string", letters)


def splits(x):
    words = tf.strings.split(x)
    return {"ids": tf.strings.to_hash_bucket_fast(words, 97).to_tensor(-1), "n": words.row_lengths(), "w": words.to_tensor(b"."),
            "s": tf.strings.split(x, ",").to_tensor(b"-"), "j": tf.strings.reduce_join(words, -1, separator="_"),
            "f": tf.strings.to_hash_bucket_strong(x, 31, [1, 2]), "b": tf.strings.to_hash_bucket(x, 31)}


def cases(x):
    return {"l": tf.strings.lower(x), "u": tf.strings.upper(x), "e": tf.strings.lower(x, "utf-8"), "s": tf.strings.strip(x),
            "n": tf.strings.length(x), "c": tf.strings.length(x, "UTF8_CHAR"), "b": tf.strings.substr(x, 0, 3),
            "r": tf.strings.regex_replace(x, "[aeiou]+", "<\\0>"), "m": tf.strings.regex_full_match(x, ".*film.*"),
            "j": tf.strings.join([x, x], "|"), "q": tf.equal(x, "the")}


def characters(x):
    chars = tf.strings.unicode_split(x, "UTF-8")
    return {"c": chars.to_tensor(b""), "d": tf.strings.unicode_decode(x, "UTF-8").to_tensor(-1),
            "b": tf.strings.bytes_split(x).to_tensor(b""), "t": tf.strings.unicode_transcode(x, "UTF-8", "UTF-16-BE"),
            "s": tf.strings.unicode_script(tf.strings.unicode_decode(x, "UTF-8").flat_values),
            "n": tf.strings.ngrams(chars, 3, separator="").to_tensor(b"")}


def numbers(x):
    n = tf.strings.length(x)
    text = tf.strings.as_string(tf.cast(n, tf.float32) / 3, precision=3)
    return {"t": text, "f": tf.strings.to_number(text), "i": tf.strings.to_number(tf.strings.as_string(n), tf.int64),
            "s": tf.strings.format("{} of {}", (tf.size(n), tf.shape(n))), "w": tf.strings.as_string(n, width=6, fill="0")}


def base64(x):
    e = tf.io.encode_base64(x)
    return {"e": e, "d": tf.io.decode_base64(e), "p": tf.io.encode_base64(x, pad=True)}


strings("strings_split", splits)
strings("strings_case", cases, sample=True)
strings("strings_unicode", characters)
strings("strings_numbers", numbers)
strings("strings_base64", base64)


def hashed_linear(x):
    """A linear model of hashed words, as a wide model has."""
    words = tf.strings.split(tf.strings.lower(x))
    bucket = tf.strings.to_hash_bucket_fast(words, 50)
    w = tf.constant(np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32))
    return {"y": tf.nn.embedding_lookup_sparse(w, bucket.to_sparse(), None, combiner="mean"),
            "z": tf.nn.safe_embedding_lookup_sparse(w, bucket.to_sparse(), combiner="sqrtn")}


strings("strings_embedding", hashed_linear)


def with_table(name, body, feed):
    """Tables belong to the module, so that they are saved."""
    class Tables(tf.Module):
        @tf.function(input_signature=[TEXTS])
        def f(self, x):
            return body(self, x)

    def build(path):
        m = Tables()
        m.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
            tf.constant(["fi", "lm", "film", "great", "g", "bad"]), tf.range(6, dtype=tf.int64)), -1)
        tf.saved_model.save(m, path, signatures=m.f)
    add(name, build, feed=feed)


def pieces(m, x):
    """The longest beginnings of words that are in a table, found in a loop."""
    words = tf.strings.split(tf.strings.lower(x)).flat_values
    end, found = tf.strings.length(words), m.table.lookup(words)
    for _ in tf.range(6):
        end = tf.where(found < 0, tf.maximum(end - 1, 1), end)
        found = tf.where(found < 0, m.table.lookup(tf.strings.substr(words, tf.zeros_like(end), end)), found)
    return {"ids": found, "n": tf.size(words)}


with_table("text_word_pieces", pieces, lambda rng, n: sentences(rng, n))
