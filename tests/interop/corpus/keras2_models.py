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


@model(sizes=[(6, 5), (9, 8)])
def keras2_old_layers(path):
    """Layers that Keras 3 has no more, or writes otherwise."""
    keras, L = k()
    x = keras.Input((None, 4))
    y = L.ThresholdedReLU(0.2)(L.Conv1D(6, 3, padding="causal")(x))
    y = L.Bidirectional(L.SimpleRNN(4, return_sequences=True))(y)
    y = L.TimeDistributed(L.Dense(3))(y)
    keras.Model(x, [L.Attention()([y, y]), L.GlobalMaxPooling1D()(y)]).save(path)


@model()
def keras2_locally_connected(path):
    keras, L = k()
    keras.Sequential([keras.Input((10, 10, 2)), L.LocallyConnected2D(3, 3), L.ReLU(6.0), L.Flatten(), L.Dense(2)]).save(path)


@model()
def keras2_operators(path):
    """Operators of TensorFlow on Keras tensors, which become layers."""
    import tensorflow as tf
    keras, L = k()
    x = keras.Input((6, 4))
    y = tf.einsum("nij,nkj->nik", x, x) / 2.0
    y = tf.where(y > 0, y, tf.zeros_like(y)) @ x
    y = tf.concat([y[:, 1:], tf.reverse(y, [1])], 1)
    y = tf.reshape(tf.transpose(y, [0, 2, 1]), [-1, 44])
    keras.Model(x, {"y": tf.math.top_k(y, 3).values, "s": tf.reduce_sum(y, 1) - tf.math.reduce_std(y, 1), "n": tf.norm(y, axis=1)}).save(path)


@model()
def keras2_from_h5(path):
    """Saved as .h5, loaded, saved again: convolutions with constraints and regularization."""
    keras, L = k()
    m = keras.Sequential([keras.Input((12, 12, 3)), L.Conv2D(4, 3, kernel_regularizer="l2", kernel_constraint="max_norm"), L.BatchNormalization(),
                          L.PReLU(shared_axes=[1, 2]), L.SeparableConv2D(4, 3, depth_multiplier=2), L.GlobalAveragePooling2D(), L.Dense(3)])
    m.compile("rmsprop", "mse", metrics=["mae"])
    m.save(path + ".h5")
    keras.models.load_model(path + ".h5").save(path)


@model(sizes=[(7,), (12,)])
def keras2_custom_cell(path):
    """A subclassed model around an RNN of a cell of one's own."""
    import tensorflow as tf
    keras, L = k()

    class Cell(L.Layer):
        state_size = 5

        def build(self, shape):
            self.w = self.add_weight("w", (shape[-1], 5))
            self.u = self.add_weight("u", (5, 5), initializer="orthogonal")

        def call(self, x, states):
            h = tf.tanh(x @ self.w + states[0] @ self.u)
            return h * 0.5 + states[0] * 0.5, [h]

    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.rnn, self.out = L.RNN(Cell(), return_sequences=True), L.Dense(2)

        @tf.function(input_signature=[tf.TensorSpec([None, None, 3], tf.float32, "x")])
        def call(self, x):
            return self.out(self.rnn(x))

    m = Net()
    m(tf.zeros([1, 2, 3]))
    m.save(path)


@model(batches=(2,))
def keras2_stateful_gru(path):
    """The state of a layer lives from call to call."""
    keras, L = k()
    x = keras.Input(batch_shape=(2, 3, 4))
    keras.Model(x, L.Dense(2)(L.GRU(5, stateful=True)(x))).save(path)


@model()
def keras2_conv_lstm(path):
    keras, L = k()
    keras.Sequential([keras.Input((4, 8, 8, 2)), L.ConvLSTM2D(3, 3, dropout=0.1), L.Flatten(), L.Dense(2)]).save(path)


@model(feed=lambda rng, n: {"age": rng.integers(10, 80, (n, 1)), "job": rng.choice([b"a", b"b", b"zz"], (n, 1)), "pay": rng.normal(size=(n, 1))})
def keras2_columns_of_layers(path):
    """What the guide for structured data makes: lookups, hashes, buckets, crosses."""
    import numpy as np
    keras, L = k()
    age, job, pay = keras.Input((1,), dtype="int64", name="age"), keras.Input((1,), dtype="string", name="job"), keras.Input((1,), name="pay")
    normal = L.Normalization()
    normal.adapt(np.array([[1.0], [2.0], [4.0]]))
    lookup = L.IntegerLookup(vocabulary=[20, 30, 40], num_oov_indices=2, output_mode="one_hot")
    cross = L.HashedCrossing(9, output_mode="one_hot")((job, age))
    buckets = L.CategoryEncoding(4, "one_hot")(L.Discretization([20.0, 30.0, 50.0])(age))
    y = L.Concatenate()([normal(pay), lookup(age), cross, buckets, L.Embedding(5, 3)(L.Hashing(5)(job))[:, 0]])
    keras.Model([age, job, pay], L.Dense(2)(y)).save(path)


@model(tolerance=1e-4, batches=(1, 3))
def keras2_resnet(path):
    keras, _ = k()
    keras.applications.ResNet50(input_shape=(40, 40, 3), weights=None, classes=7).save(path)


@model(tolerance=1e-4, batches=(1, 3))
def keras2_densenet(path):
    keras, _ = k()
    keras.applications.DenseNet121(input_shape=(40, 40, 3), weights=None, classes=7).save(path)


@model(feed=lambda rng, n: {"age": rng.normal(40, 10, (n, 1)), "job": rng.choice([b"a", b"b", b"c", b"zz"], (n, 1)), "city": rng.choice([b"x", b"y"], (n, 1))})
def keras2_dense_features(path):
    import tensorflow as tf
    keras, L = k()
    c = columns()
    inputs = {"age": keras.Input((1,), name="age"), "job": keras.Input((1,), dtype="string", name="job"),
              "city": keras.Input((1,), dtype="string", name="city")}
    y = L.DenseFeatures([c["age"], c["shown"], c["embedded"], c["buckets"], tf.feature_column.indicator_column(c["crossed"])])(inputs)
    keras.Model(inputs, L.Dense(2)(L.Dense(6, "relu")(y))).save(path)


@model(tolerance=1e-2)
def keras2_mixed_precision(path):
    keras, L = k()
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        keras.Sequential([keras.Input((10, 10, 3)), L.Conv2D(4, 3, activation="swish"), L.BatchNormalization(), L.GlobalAveragePooling2D(),
                          L.Dense(3), L.Activation("softmax", dtype="float32")]).save(path)
    finally:
        keras.mixed_precision.set_global_policy("float32")


def text_mode(**options):
    def make(path):
        keras, L = k()
        v = L.TextVectorization(**options)
        v.adapt(["good film", "bad film", "so bad so good"])
        keras.Sequential([keras.Input((1,), dtype="string"), v]).save(path)
    return make


for name, options in dict(tf_idf=dict(output_mode="tf_idf", ngrams=2), multi_hot=dict(output_mode="multi_hot", max_tokens=8, pad_to_max_tokens=True),
                          count=dict(output_mode="count"), characters=dict(split="character"), ragged=dict(ngrams=3, max_tokens=9)).items():
    make = text_mode(**options)
    make.__name__ = f"keras2_text_{name}"
    model(feed=words)(make)


# ---- TensorFlow 1's own way ----

@model()
def v1_simple_save(path):
    """Layers of tf.compat.v1, moving averages that replace the weights, a dict of outputs."""
    import tensorflow as tf
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(3)
        x = v1.placeholder(tf.float32, [None, 8, 8, 2], "image")
        y = v1.layers.conv2d(x, 4, 3, activation=tf.nn.leaky_relu)
        y = v1.layers.batch_normalization(y, training=False)
        y = v1.layers.max_pooling2d(y, 2, 2)
        y = v1.layers.dense(v1.layers.flatten(y), 3)
        average = v1.train.ExponentialMovingAverage(0.9)
        average.apply(v1.trainable_variables())
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, path, {"image": x}, {"scores": tf.nn.softmax(y), "class": tf.argmax(y, 1), "name": tf.gather(
            ["a", "b", "c"], tf.argmax(y, 1))})


@model(feed=lambda rng, n: {"x": rng.normal(size=(n, 6, 4)), "n": rng.integers(1, 7, n)}, tolerance=1e-4)
def v1_dynamic_lstm(path):
    """tf.nn.dynamic_rnn over a stack of cells, both ways, with lengths."""
    import tensorflow as tf
    v1 = tf.compat.v1
    v1.disable_control_flow_v2()
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(3)
        x, n = v1.placeholder(tf.float32, [None, 6, 4], "x"), v1.placeholder(tf.int32, [None], "n")
        cell = v1.nn.rnn_cell.MultiRNNCell([v1.nn.rnn_cell.LSTMCell(5, use_peepholes=True, num_proj=3), v1.nn.rnn_cell.GRUCell(4)])
        y, _ = v1.nn.dynamic_rnn(cell, x, n, dtype=tf.float32)
        (a, b), _ = v1.nn.bidirectional_dynamic_rnn(v1.nn.rnn_cell.BasicLSTMCell(3), v1.nn.rnn_cell.BasicRNNCell(3), x, n, dtype=tf.float32)
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, path, {"x": x, "n": n}, {"y": y, "a": a, "b": b})
    v1.enable_control_flow_v2()


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
def estimator_linear_regressor(path):
    import tensorflow as tf
    c = columns()
    weighted = tf.feature_column.weighted_categorical_column(c["job"], "hours")
    export(tf.estimator.LinearRegressor([c["age"], weighted, c["buckets"]], config=config()), path)


@model()
def estimator_several_classes(path):
    """Names of classes, a sparse combiner, buckets of integers."""
    import tensorflow as tf
    c = columns()
    export(tf.estimator.LinearClassifier([c["job"], c["city"], c["age"]], n_classes=3, sparse_combiner="sqrtn", config=config()), path)


@model()
def estimator_combined_regressor(path):
    import tensorflow as tf
    c = columns()
    export(tf.estimator.DNNLinearCombinedRegressor(linear_feature_columns=[c["crossed"], c["buckets"]], dnn_feature_columns=[c["shown"], c["hours"]],
                                                   dnn_hidden_units=[5, 3], batch_norm=True, config=config()), path)


@model()
def estimator_heads(path):
    """Two heads of one network, one of several labels."""
    import tensorflow as tf
    c = columns()
    head = tf.estimator.MultiHead([tf.estimator.BinaryClassHead(name="a"), tf.estimator.PoissonRegressionHead(name="b")])
    e = tf.estimator.DNNEstimator(head, [5], [c["age"], c["hours"]], config=config())
    e.train(lambda: data().map(lambda x, y: (x, {"a": y[:, None], "b": tf.cast(y, tf.float32)[:, None]})))
    import shutil
    features = tf.feature_column.make_parse_example_spec([c["age"], c["hours"]])
    shutil.move(e.export_saved_model(path + ".exports", tf.estimator.export.build_parsing_serving_input_receiver_fn(features)).decode(), path)


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
