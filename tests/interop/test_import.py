"""SavedModels that TensorFlow and Keras write, imported as functions: the same outputs for each signature, at several
batch sizes and lengths. Recurrent layers, lists of tensors, branches, loops, slices, graphs of TensorFlow 1."""
import os
import subprocess
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf

TOOL = os.path.join(os.environ["SEXTANT_TEST_BIN"], "import_tool")
v1 = tf.compat.v1
layers = tf.keras.layers


def pack(values):
    """Tensors as import_tool reads them."""
    out = b""
    for v in values:
        dtype = tf.as_dtype(v.dtype if v.dtype != object else "string").as_datatype_enum
        out += " ".join(map(str, [dtype, v.ndim, *v.shape])).encode() + b"\n"
        out += b"".join(b"%d %s" % (len(s), s) for s in v.ravel()) if v.dtype == object else v.tobytes()
    return out


def unpack(data, keys):
    out = {}
    for key in keys:
        line, data = data.split(b"\n", 1)
        dtype, _, *dims = map(int, line.split())
        n = int(np.prod(dims))
        if dtype == tf.string.as_datatype_enum:
            strings = []
            for _ in range(n):
                size, data = data.split(b" ", 1)
                strings.append(data[:int(size)])
                data = data[int(size):]
            out[key] = np.array(strings, object).reshape(dims)
        else:
            dtype = tf.as_dtype(dtype).as_numpy_dtype
            out[key] = np.frombuffer(data, dtype, n).reshape(dims)
            data = data[n * np.dtype(dtype).itemsize:]
    return out


def check(path, name, expected, feed, folder):
    with open(f"{folder}/in", "wb") as f:
        f.write(pack([feed[k] for k in sorted(feed)]))
    done = subprocess.run([TOOL, path, name, f"{folder}/in", f"{folder}/out"], capture_output=True, text=True)
    assert done.returncode == 0, (name, done.stderr)
    ours = unpack(open(f"{folder}/out", "rb").read(), sorted(expected))
    for key, y in expected.items():
        assert ours[key].shape == y.shape and ours[key].dtype == y.dtype, (name, key, ours[key].shape, y.shape)
        if y.dtype.kind == "f":
            np.testing.assert_allclose(ours[key], y, atol=1e-5, rtol=1e-5, err_msg=f"{name} {key}")
        else:
            np.testing.assert_array_equal(ours[key], y, err_msg=f"{name} {key}")


class Model(tf.Module):
    """Each method is a signature of rows [N,4]; those of SEQUENCES take [N,T,4]."""

    def __init__(self):
        super().__init__()
        self.lstm_layer = layers.LSTM(5)
        self.lstm_all = layers.LSTM(5, return_sequences=True, return_state=True)
        self.gru_layer = layers.GRU(5, return_sequences=True)
        self.gru_before = layers.GRU(3, reset_after=False)
        self.simple = layers.SimpleRNN(5)
        self.cells = layers.RNN([layers.LSTMCell(4), layers.GRUCell(3)])

    SEQUENCES = ["lstm", "lstm_states", "gru", "gru_reset_before", "simple_rnn", "rnn_of_cells"]
    ROWS = ["map_rows", "map_pairs", "scan", "scan_backwards", "fold", "array", "array_of_rows", "growing_array",
            "array_of_blocks", "case", "switch_case", "slices", "computed_slices", "split", "unstack", "autograph"]

    def lstm(self, x):
        return {"y": self.lstm_layer(x)}

    def lstm_states(self, x):
        y, h, c = self.lstm_all(x)
        return {"y": y, "h": h, "c": c}

    def gru(self, x):
        return {"y": self.gru_layer(x)}

    def gru_reset_before(self, x):
        return {"y": self.gru_before(x)}

    def simple_rnn(self, x):
        return {"y": self.simple(x)}

    def rnn_of_cells(self, x):
        return {"y": self.cells(x)}

    def map_rows(self, x):
        return {"y": tf.map_fn(lambda r: tf.reduce_sum(r) * r, x)}

    def map_pairs(self, x):
        return {"y": tf.map_fn(lambda r: r[0] * r[1], (x, x + 1), fn_output_signature=tf.float32)}

    def scan(self, x):
        return {"y": tf.scan(lambda a, r: a * 0.5 + r, x)}

    def scan_backwards(self, x):
        return {"y": tf.scan(lambda a, r: a * 0.5 + tf.reduce_sum(r), x, initializer=0.0, reverse=True)}

    def fold(self, x):
        return {"y": tf.foldl(lambda a, r: a + r, x)}

    def array(self, x):
        array = tf.TensorArray(tf.float32, size=5)
        return {"y": tf.while_loop(lambda i, a, s: i < 5, lambda i, a, s: (i + 1, a.write(i, s), tf.tanh(s + 1)),
                                   (0, array, x))[1].stack()}

    def array_of_rows(self, x):
        array = tf.TensorArray(tf.float32, size=tf.shape(x)[0])
        for i in tf.range(tf.shape(x)[0]):
            array = array.write(i, tf.cond(x[i, 0] > 0, lambda: x[i], lambda: -x[i]))
        return {"y": array.stack(), "last": array.read(tf.shape(x)[0] - 1), "size": array.size()}

    def growing_array(self, x):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(tf.shape(x)[0]):
            array = array.write(i, x[i] * 2)
        return {"y": array.stack()}

    def array_of_blocks(self, x):
        array = tf.TensorArray(tf.float32, size=3, infer_shape=False)
        for i in range(3):
            array = array.write(i, x * float(i))
        return {"y": array.concat()}

    def case(self, x):
        total = tf.reduce_sum(x)
        return {"y": tf.case([(total > 1, lambda: x + 1), (total < -1, lambda: x - 1)], default=lambda: x * 2)}

    def switch_case(self, x):
        index = tf.cast(tf.reduce_sum(x), tf.int32)
        return {"y": tf.switch_case(index, [lambda: x + 1, lambda: tf.concat([x, x], 0), lambda: tf.tanh(x)])}

    def slices(self, x):
        return {"a": x[-1], "b": x[:, -2], "c": x[..., 1:], "d": x[:, tf.newaxis, 1:3], "e": x[:, :-1], "f": x[-2:],
                "g": x[0, ..., tf.newaxis], "h": x[:, 3:1]}

    def computed_slices(self, x):
        n = tf.shape(x)[0]
        return {"a": x[:tf.minimum(n, 2), :], "b": x[n - 1:], "c": x[n - 1], "d": x[:, n - n:3], "e": x[:, n - n + 1]}

    def split(self, x):
        a, b = tf.split(x, 2, axis=1)
        return {"y": tf.concat([b, a], 1), "z": tf.split(x, [1, 3], 1)[1], "zeros": tf.zeros_like(a)}

    def unstack(self, x):
        return {"y": tf.stack(tf.unstack(x, axis=1)[::-1], axis=1)}

    def autograph(self, x):
        i = tf.constant(0)
        while tf.reduce_sum(x) < 100.0:
            if tf.equal(i, 1):
                x = x * 2
            else:
                x = x + 1
            i += 1
            if i > 50:
                break
        return {"y": x, "i": i}


def test_functions(folder):
    tf.keras.utils.set_random_seed(1)
    model = Model()
    rows, sequences = tf.TensorSpec([None, 4], name="x"), tf.TensorSpec([None, None, 4], name="x")
    signatures = {n: tf.function(getattr(model, n), input_signature=[rows]) for n in Model.ROWS}
    signatures |= {n: tf.function(getattr(model, n), input_signature=[sequences]) for n in Model.SEQUENCES}
    path = f"{folder}/functions"
    tf.saved_model.save(model, path, signatures=signatures)
    loaded = tf.saved_model.load(path)
    for name in [*Model.ROWS, *Model.SEQUENCES]:
        for batch, length in (1, 7), (3, 2):
            shape = (batch, length, 4) if name in Model.SEQUENCES else (batch, 4)
            x = np.random.default_rng(batch).normal(size=shape).astype(np.float32)
            expected = {k: v.numpy() for k, v in loaded.signatures[name](x=tf.constant(x)).items()}
            check(path, name, expected, {"x": x}, folder)


def branch(x, w):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(x, w), lambda: x - 1)


def loop(x, w):
    return tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w))), (0, x))[1]


def nested(x, w):
    def body(i, y):
        y = tf.cond(i < 2, lambda: y + 1, lambda: tf.matmul(y, w))
        return i + 1, tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z + 0.5), (0, y))[1]

    return tf.while_loop(lambda i, y: i < 4, body, (0, x))[1]


def test_v1(folder):
    """Control flow of TensorFlow 1, variables by reference, in parts, and as resources."""
    path = f"{folder}/v1"
    with tf.Graph().as_default(), v1.Session() as session:
        v1.disable_control_flow_v2()
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        normal = v1.random_normal_initializer(seed=1)
        ref = v1.get_variable("ref", [4, 4], use_resource=False, initializer=normal)
        resource = v1.get_variable("resource", [4, 4], use_resource=True, initializer=normal)
        parts = v1.get_variable("parts", [4, 6], partitioner=v1.fixed_size_partitioner(2, axis=0), use_resource=False,
                                initializer=normal)
        outputs = {
            "branch": branch(x, ref), "loop": loop(x, resource), "nested": nested(x, ref),
            "map": tf.map_fn(lambda r: r * tf.reduce_sum(r), x), "scan": tf.scan(lambda a, r: a * 0.5 + r, x),
            "partitioned": tf.matmul(x, tf.convert_to_tensor(parts)),
            "case": tf.case([(tf.reduce_sum(x) > 1, lambda: x + 1), (tf.reduce_sum(x) < -1, lambda: x - 1)],
                            default=lambda: x * 2),
        }
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(path)
        info = v1.saved_model.build_tensor_info
        builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map={
            name: v1.saved_model.build_signature_def({"x": info(x)}, {"y": info(y)}, "predict")
            for name, y in outputs.items()})
        builder.save()
        for name, y in outputs.items():
            for batch in 1, 3:
                feed = np.random.default_rng(batch).normal(size=(batch, 4)).astype(np.float32)
                check(path, name, {"y": session.run(y, {x: feed})}, {"x": feed}, folder)


with tempfile.TemporaryDirectory() as folder:
    test_v1(folder)
    v1.enable_control_flow_v2()
    test_functions(folder)
print("passed")
