"""Makes, with TensorFlow 2.15: models of Keras 2 in the SavedModel format, and exports of tf.estimator.
    python keras2_models.py DIR
Imported by keras2.py, without TensorFlow 2.15, for the names and what is fed."""
import os
import sys

MODELS = {}


def model(**options):
    def note(make):
        make.feed = options.pop("feed", None)
        make.options = options
        MODELS[make.__name__] = make
        return make
    return note


def words(rng, n):
    return rng.choice([b"good film", b"bad, bad film", b"", b"Good!"], (n, 1))


LENGTHS = {"sizes": [(7,), (12,)]}


def k():
    import tensorflow as tf
    tf.keras.utils.set_random_seed(3)
    return tf.keras, tf.keras.layers


@model()
def keras2_dense(path):
    keras, L = k()
    m = keras.Sequential([keras.Input((4,)), L.Dense(5, "relu"), L.Dropout(0.5), L.Dense(3, "softmax")])
    m.compile("adam", "mse")
    import numpy as np
    m.fit(np.ones((8, 4)), np.ones((8, 3)), verbose=0)
    m.save(path)


@model(tolerance=1e-4, sizes=[(64, 64), (80, 96)])
def keras2_mobilenet(path):
    keras, _ = k()
    keras.applications.MobileNetV2(input_shape=(None, None, 3), include_top=False, weights=None, pooling="avg").save(path)


@model(tolerance=1e-4, batches=(1, 3))
def keras2_efficientnet(path):
    keras, _ = k()
    keras.applications.EfficientNetB0(input_shape=(64, 64, 3), weights=None, classes=10).save(path)


@model(**LENGTHS)
def keras2_lstm(path):
    keras, L = k()
    keras.Sequential([keras.Input((None, 4)), L.LSTM(5, return_sequences=True), L.Bidirectional(L.GRU(4)), L.Dense(2)]).save(path)


@model(sizes=[(7,), (12,)])
def keras2_masked(path):
    keras, L = k()
    keras.Sequential([keras.Input((None,), dtype="int32"), L.Embedding(6, 5, mask_zero=True), L.LSTM(5), L.Dense(2)]).save(path)


@model(**LENGTHS)
def keras2_attention(path):
    keras, L = k()
    x = keras.Input((None, 4))
    y = L.LayerNormalization()(x + L.MultiHeadAttention(2, 3)(x, x))
    keras.Model(x, L.GlobalAveragePooling1D()(y)).save(path)


@model(feed=words)
def keras2_text(path):
    keras, L = k()
    v = L.TextVectorization(max_tokens=10, output_sequence_length=5)
    v.adapt(["good film", "bad film", "so bad"])
    keras.Sequential([keras.Input((1,), dtype="string"), v, L.Embedding(10, 4), L.GlobalAveragePooling1D(), L.Dense(2)]).save(path)


@model(feed=lambda rng, n: rng.choice([b"a", b"b", b"zz"], (n, 1)))
def keras2_lookup(path):
    keras, L = k()
    keras.Sequential([keras.Input((1,), dtype="string"), L.StringLookup(vocabulary=["a", "b", "c"], output_mode="one_hot"),
                      L.Dense(2)]).save(path)


@model()
def keras2_augmented(path):
    keras, L = k()
    keras.Sequential([keras.Input((12, 12, 3)), L.RandomFlip(), L.RandomRotation(0.1), L.RandomZoom(0.1), L.RandomContrast(0.1),
                      L.Rescaling(1 / 255.0), L.Conv2D(4, 3, activation="relu"), L.Resizing(6, 6), L.Flatten(), L.Dense(2)]).save(path)


@model()
def keras2_functional(path):
    """Two inputs and outputs, a shared layer, a custom train step's variables."""
    keras, L = k()
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    shared = L.Dense(3)
    keras.Model([a, b], {"sum": shared(a) + shared(b), "cat": L.Concatenate()([a, b])}).save(path)


@model()
def keras2_export(path):
    keras, L = k()
    keras.Sequential([keras.Input((8, 8, 2)), L.SeparableConv2D(4, 3), L.BatchNormalization(), L.GlobalMaxPooling2D(), L.Dense(2)]
                     ).export(path)


# ---- Estimators ----

def columns():
    import tensorflow as tf
    c = tf.feature_column
    age, hours = c.numeric_column("age"), c.numeric_column("hours", normalizer_fn=lambda x: (x - 40) / 5)
    job = c.categorical_column_with_vocabulary_list("job", ["a", "b", "c"], num_oov_buckets=1)
    city = c.categorical_column_with_hash_bucket("city", 5)
    buckets = c.bucketized_column(age, [30, 40, 50])
    return dict(age=age, hours=hours, job=job, city=city, buckets=buckets, crossed=c.crossed_column([buckets, "job"], 7),
                shown=c.indicator_column(job), embedded=c.embedding_column(city, 3))


def data():
    import numpy as np
    import tensorflow as tf
    rng = np.random.default_rng(1)
    x = {"age": rng.normal(40, 10, 64).astype("float32"), "hours": rng.normal(40, 5, 64).astype("float32"),
         "job": rng.choice(["a", "b", "c", "d"], 64), "city": rng.choice(["x", "y"], 64)}
    return tf.data.Dataset.from_tensor_slices((x, (x["age"] > 40).astype("int64"))).batch(16).repeat(2)


def export(estimator, path, receiver=None):
    import shutil
    import tensorflow as tf
    c = columns()
    estimator.train(data)
    if receiver is None:
        features = tf.feature_column.make_parse_example_spec([c["age"], c["hours"], c["shown"], c["embedded"], c["crossed"]])
        receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(features)
    made = estimator.export_saved_model(path + ".exports", receiver)
    shutil.move(made.decode(), path)


def raw(dtypes):
    """Features themselves in place of Examples."""
    import tensorflow as tf

    def receiver():
        features = {n: tf.compat.v1.placeholder(t, [None, 1], n) for n, t in dtypes.items()}
        return tf.estimator.export.ServingInputReceiver(features, features)

    return receiver


def config():
    import tensorflow as tf
    return tf.estimator.RunConfig(tf_random_seed=1)


@model()
def estimator_linear(path):
    import tensorflow as tf
    c = columns()
    export(tf.estimator.LinearClassifier([c["age"], c["job"], c["city"], c["crossed"], c["buckets"]], config=config()), path)


@model()
def estimator_dnn(path):
    import tensorflow as tf
    c = columns()
    export(tf.estimator.DNNClassifier([8, 4], [c["age"], c["hours"], c["shown"], c["embedded"]], batch_norm=True, config=config()), path)


@model()
def estimator_wide_and_deep(path):
    import tensorflow as tf
    c = columns()
    export(tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=[c["job"], c["crossed"]], dnn_feature_columns=[c["hours"], c["embedded"]], dnn_hidden_units=[6],
        n_classes=2, label_vocabulary=None, config=config()), path)


@model()
def estimator_regressor(path):
    import tensorflow as tf
    c = columns()
    export(tf.estimator.DNNRegressor([4], [c["age"], c["embedded"]], config=config()), path)


@model()
def estimator_raw(path):
    import tensorflow as tf
    c = columns()
    receiver = raw(dict(age=tf.float32, hours=tf.float32, job=tf.string, city=tf.string))
    export(tf.estimator.DNNClassifier([4], [c["age"], c["hours"], c["shown"], c["embedded"]], n_classes=2, config=config()), path, receiver)


@model()
def estimator_model_fn(path):
    """A model_fn of one's own, with tf.compat.v1.layers and several export outputs."""
    import tensorflow as tf
    v1 = tf.compat.v1

    def model_fn(features, labels, mode):
        x = tf.stack([features["age"] / 40, features["hours"] / 40], 1)
        x = tf.reshape(x, [-1, 2])
        y = v1.layers.dense(v1.layers.batch_normalization(v1.layers.dense(x, 4, tf.nn.relu), training=mode == "train"), 2)
        outputs = {"serving_default": tf.estimator.export.PredictOutput({"p": tf.nn.softmax(y)}),
                   "classes": tf.estimator.export.ClassificationOutput(tf.nn.softmax(y), tf.tile([["no", "yes"]], [tf.shape(y)[0], 1]))}
        if mode == "infer":
            return tf.estimator.EstimatorSpec(mode, y, export_outputs=outputs)
        loss = v1.losses.sparse_softmax_cross_entropy(labels, y)
        step = v1.train.AdamOptimizer().minimize(loss, v1.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, y, loss, step)

    export(tf.estimator.Estimator(model_fn, config=config()), path)


@model()
def estimator_keras(path):
    import tensorflow as tf
    c = columns()
    inputs = {n: tf.keras.Input((1,), name=n, dtype=d) for n, d in dict(age="float32", hours="float32").items()}
    y = tf.keras.layers.Dense(1)(tf.keras.layers.Concatenate()([inputs["age"], inputs["hours"]]))
    m = tf.keras.Model(inputs, y)
    m.compile("sgd", "mse")
    e = tf.keras.estimator.model_to_estimator(m)
    receiver = raw(dict(age=tf.float32, hours=tf.float32))
    import shutil
    e.train(lambda: data().map(lambda x, y: ({"age": x["age"][:, None], "hours": x["hours"][:, None]}, y)))
    shutil.move(e.export_saved_model(path + ".exports", receiver).decode(), path)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import traceback
    import tensorflow as tf
    tf.get_logger().setLevel("ERROR")
    for name, make in MODELS.items():
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        tf.keras.backend.clear_session()
        try:
            make(os.path.join(sys.argv[1], name))
        except Exception:
            traceback.print_exc()
            print("could not make", name, file=sys.stderr)
