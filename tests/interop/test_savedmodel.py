"""SavedModels of ours in TensorFlow's hands: every loader, the command line tool, encoded images."""
import os
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

TOOL = os.path.join(os.environ["SEXTANT_TEST_BIN"], "saved_model_tool")
SOURCE = os.environ.get("SEXTANT_SRC", os.path.join(os.path.dirname(__file__), "../.."))
v1 = tf.compat.v1

X = np.array([[1, 0, 0], [0, -9, -9]], np.float32)
LOGITS = X @ np.array([[1, 2], [3, 4], [5, 6]], np.float32) + np.array([10, -10], np.float32)
PROBABILITIES = tf.nn.softmax(LOGITS).numpy()


def tool(*args):
    done = subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return args[1]


def test_operator_table():
    """Every row of tf_ops.def says what TensorFlow's registry says."""
    rows = re.findall(r'SX_TF_OP\((\w+), (\w+),\s*"([^"]*)"\)',
                      open(os.path.join(SOURCE, "src/savedmodel/tf_ops.def")).read())
    assert len(rows) > 100 and [r[0] for r in rows] == sorted(r[0] for r in rows)
    for name, stateful, outputs in rows:
        op = op_def_registry.get(name)
        assert op is not None, name
        expected = ",".join(a.name + ("*" if a.number_attr or a.type_list_attr else "") for a in op.output_arg)
        assert (outputs, stateful == "true") == (expected, op.is_stateful), name


def check_outputs(out):
    np.testing.assert_allclose(out["probabilities"], PROBABILITIES, atol=1e-6)
    assert list(np.asarray(out["classid"])) == list(PROBABILITIES.argmax(1))
    names = [b"rose", b"tulip"]
    assert list(np.asarray(out["class"])) == [names[i] for i in PROBABILITIES.argmax(1)]


def test_load(path):
    model = tf.saved_model.load(path)
    assert sorted(model.signatures) == ["logits", "serving_default"]
    check_outputs({k: v.numpy() for k, v in model.signatures["serving_default"](x=tf.constant(X)).items()})
    np.testing.assert_allclose(model.signatures["logits"](x=tf.constant(X))["logits"], LOGITS, atol=1e-5)
    assert sorted(v.name for v in model.variables) == ["dense/bias:0", "dense/kernel:0"]
    assert {v.name: v.trainable for v in model.variables} == {"dense/bias:0": False, "dense/kernel:0": True}
    assert os.path.basename(model.asset_paths[0].asset_path.numpy().decode()) == "classes.txt"


def test_load_v1(path):
    with tf.Graph().as_default(), v1.Session() as session:
        meta = v1.saved_model.load(session, ["serve"], path)
        signature = meta.signature_def["serving_default"]
        fetches = {k: v.name for k, v in signature.outputs.items()}
        check_outputs(session.run(fetches, {signature.inputs["x"].name: X}))
        assert signature.method_name == "tensorflow/serving/predict"
        # what TF1 users do next: save again
        again = v1.train.Saver().save(session, os.path.join(path, "..", "again"))
        assert tf.train.load_checkpoint(again).get_tensor("dense/bias").tolist() == [10, -10]


def test_keras(path):
    layer = tf.keras.layers.TFSMLayer(path, call_endpoint="serving_default")
    check_outputs({k: v.numpy() for k, v in layer(tf.constant(X)).items()})


def cli(*args):
    done = subprocess.run([os.path.join(os.path.dirname(sys.executable), "saved_model_cli"), *args],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_saved_model_cli(path):
    shown = cli("show", "--dir", path, "--all")
    for part in "serving_default", "'logits'", "(-1, 3)", "DT_STRING", "tensorflow/serving/predict":
        assert part in shown, shown
    ran = cli("run", "--dir", path, "--tag_set", "serve", "--signature_def", "serving_default",
              "--input_exprs", "x=[[1,0,0]]")
    assert "rose" in ran and "5.6" in ran, ran


def jpeg(height, width, channels=3, seed=0):
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    waves = [127 + 120 * np.sin(x / (7 + c + seed) + y / (11 - c)) for c in range(channels)]
    return tf.io.encode_jpeg(np.stack(waves, -1).astype(np.uint8), quality=90).numpy()


def expected_images(batch, rule, size, extra, channels, scale):
    out = []
    for data in batch:
        image = tf.io.decode_jpeg(data, channels=channels, dct_method="INTEGER_FAST")[None]
        full = [size + extra, size + 3 + extra]
        if rule == "bilinear":
            image = tf.image.resize(image, full)
        elif rule == "bilinear-tf1":
            image = v1.image.resize_bilinear(image, full, align_corners=False)
        else:
            image = tf.cast(tf.image.resize(image, full, method="nearest"), tf.float32)
        top = extra // 2
        out.append(image[0, top:top + size, top:top + size + 3].numpy())
    out = np.stack(out)
    if scale == 1:
        out = out / 255
    elif scale == 2:
        out = out / 127.5 - 1
    elif scale == 3:
        c = np.arange(channels, dtype=np.float32)
        out = (out / 255 - (0.4 + 0.05 * c)) / (0.2 + 0.01 * c)
    return out


def test_images(folder):
    batch = [jpeg(40, 60), jpeg(33, 21, seed=1), jpeg(128, 96, seed=2), jpeg(5, 7, 1), jpeg(64, 64, seed=3)]
    for i, args in enumerate([("bilinear", 32, 0, 3, 1), ("bilinear-tf1", 30, 10, 3, 2), ("nearest", 17, 0, 3, 3),
                              ("bilinear", 28, 0, 1, 0), ("nearest", 20, 5, 1, 2)]):
        path = tool("images", f"{folder}/images{i}", *args)
        model = tf.saved_model.load(path)
        rule, size, extra, channels, scale = args
        for n in 1, 5:
            y = model.signatures["serving_default"](image_bytes=tf.constant(batch[:n]))["y"].numpy()
            expected = expected_images(batch[:n], *args)
            assert y.shape == expected.shape == (n, size, size + 3, channels)
            span = {0: 255, 1: 1, 2: 2, 3: 5}[scale]
            np.testing.assert_allclose(y, expected, atol=1e-5 * span)
        floats = np.random.default_rng(i).normal(size=(2, size, size + 3, channels)).astype(np.float32)
        np.testing.assert_array_equal(model.signatures["tensors"](image=tf.constant(floats))["y"], floats)
        none = model.signatures["serving_default"](image_bytes=tf.constant([], tf.string))["y"]
        assert none.shape == (0, size, size + 3, channels)
        with tf.Graph().as_default(), v1.Session() as session:
            meta = v1.saved_model.load(session, ["serve"], path)
            signature = meta.signature_def["serving_default"]
            y = session.run(signature.outputs["y"].name, {signature.inputs["image_bytes"].name: batch})
            np.testing.assert_allclose(y, expected, atol=1e-5 * span)


def predict(path, signature, *files):
    """{output: list of strings} of one signature, by our own import."""
    done = subprocess.run([TOOL, "predict", path, signature, *map(str, files)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {line.split(" ")[0]: line.split(" ")[1:] for line in done.stdout.splitlines()}


def check_same(ours, theirs):
    """Our import and TensorFlow compute the same from one exported model."""
    assert sorted(ours) == sorted(theirs)
    probabilities = np.array(ours["probabilities"], np.float32).reshape(theirs["probabilities"].shape)
    np.testing.assert_allclose(probabilities, theirs["probabilities"], atol=1e-5)
    assert [int(i) for i in ours["classid"]] == list(theirs["classid"])
    assert ours["class"] == [c.decode() for c in theirs["class"]]


def check_trainable(path, model, norms):
    """Weights are trainable, a batch norm's moving averages are not: loaded, and in TF1's collections."""
    flags = {v.name.removesuffix(":0"): v.trainable for v in model.variables}
    moving = {n for n in flags if n.endswith(("/moving_mean", "/moving_variance"))}
    assert len(moving) == 2 * norms and {n for n in flags if not flags[n]} == moving, (path, flags)
    assert len(flags) > len(moving)
    with tf.Graph().as_default(), v1.Session() as session:
        v1.saved_model.load(session, ["serve"], path)
        names = {v.op.name for v in v1.trainable_variables()}
        assert names == set(flags) - moving, names ^ (set(flags) - moving)
        assert {v.op.name for v in v1.global_variables()} == set(flags)


def test_export(folder):
    """Zoo models: the whole export, TensorFlow against our own import of the same files."""
    batch = [jpeg(40, 60), jpeg(33, 21, seed=1), jpeg(128, 96, seed=2), jpeg(90, 90, seed=4), jpeg(64, 64, seed=3)]
    files = []
    for i, data in enumerate(batch):
        files.append(f"{folder}/image{i}.jpg")
        with open(files[-1], "wb") as f:
            f.write(data)
    for model, classes, height, width, channels in [("mnist_cnn", 10, 28, 28, 1), ("flowers_cnn", 5, 128, 128, 3),
                                                    ("catsdogs_cnn", 2, 150, 150, 3), ("resnet50", 10, 64, 64, 3),
                                                    ("linear", 4, 20, 1, 0), ("mlp", 4, 20, 1, 0)]:
        tool("export", f"{folder}/{model}", model, classes, height, width, channels)
        path = f"{folder}/{model}/1"
        loaded = tf.saved_model.load(path)
        check_trainable(path, loaded, 53 if model == "resnet50" else 0)
        signatures = loaded.signatures
        shape = (5, height, width, channels) if channels else (5, height)
        floats = np.random.default_rng(5).uniform(-1, 1, size=shape).astype(np.float32)
        raw = f"{folder}/floats"
        floats.tofile(raw)
        if channels:
            assert sorted(signatures) == ["serving_default", "tensors"]
            for n in 1, 5:
                theirs = signatures["serving_default"](image_bytes=tf.constant(batch[:n]))
                check_same(predict(path, "serving_default", *files[:n]), {k: v.numpy() for k, v in theirs.items()})
            theirs = signatures["tensors"](image=tf.constant(floats))
            check_same(predict(path, "tensors", raw), {k: v.numpy() for k, v in theirs.items()})
            assert len(set(theirs["classid"].numpy())) > 0
        else:
            theirs = signatures["serving_default"](features=tf.constant(floats))
            check_same(predict(path, "serving_default", raw), {k: v.numpy() for k, v in theirs.items()})


def test_keras_models(folder):
    """What Keras exports, we import: functions inlined, variables found, the same answers."""
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(1)
    models = [
        [layers.Input((32, 32, 3)), layers.Rescaling(1 / 127.5, -1), layers.Conv2D(8, 3, activation="relu", padding="same"),
         layers.BatchNormalization(), layers.MaxPooling2D(), layers.DepthwiseConv2D(3, depth_multiplier=2),
         layers.ReLU(6.0), layers.SeparableConv2D(5, 3), layers.GlobalAveragePooling2D(), layers.Dropout(0.3),
         layers.Dense(7), layers.Softmax()],
        [layers.Input((32, 32, 3)), layers.ZeroPadding2D(1), layers.Conv2D(4, 5, strides=2, dilation_rate=1),
         layers.LeakyReLU(), layers.AveragePooling2D(3, padding="same"), layers.Flatten(),
         layers.Dense(9, activation="tanh"), layers.Dense(3, activation="sigmoid")],
    ]
    x = np.random.default_rng(0).uniform(0, 255, (3, 32, 32, 3)).astype(np.float32)
    raw = f"{folder}/keras_input"
    x.tofile(raw)
    for i, stack in enumerate(models):
        model = tf.keras.Sequential(stack)
        for weight in model.weights:
            positive = "variance" in weight.name or "gamma" in weight.name
            weight.assign(tf.random.uniform(weight.shape, 0.5 if positive else -0.2, 1.5 if positive else 0.2))
        path = f"{folder}/keras{i}"
        model.export(path, verbose=False)
        ours = predict(path, "serving_default", raw)
        expected = model(x).numpy()
        np.testing.assert_allclose(np.array(ours["output_0"], np.float32).reshape(expected.shape), expected, atol=1e-5)
    refused = tf.keras.Sequential([layers.Input((4,)), layers.Dense(3, activation=lambda v: tf.raw_ops.RandomGammaGrad(alpha=v, sample=v))])
    refused.export(f"{folder}/refused", verbose=False)
    done = subprocess.run([TOOL, "predict", f"{folder}/refused", "serving_default", raw], capture_output=True, text=True)
    assert done.returncode == 1 and "unsupported operator: RandomGammaGrad (1 node: " in done.stderr, done.stderr


class Functions(tf.Module):
    """What is no graph of one batch size: branches, loops, effects, results that depend on the whole batch."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(np.random.default_rng(7).normal(size=(4, 4)).astype(np.float32), name="w")
        self.count = tf.Variable(0.0, name="count")

    def branch(self, x):
        return {"y": tf.cond(tf.reduce_sum(x) > 0, lambda: tf.nn.relu(x @ self.w), lambda: tf.concat([x, x], 0) - 1)}

    def counted_loop(self, x):
        return {"y": tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.tanh(y @ self.w)), (0, x))[1]}

    def loop_until(self, x):
        return {"y": tf.while_loop(lambda y: tf.reduce_max(tf.abs(y)) < 100, lambda y: [y * 2], [x])[0]}

    def growing_loop(self, x):
        rows = tf.while_loop(lambda y: tf.shape(y)[0] < 10, lambda y: [tf.concat([y, y @ self.w], 0)], [x],
                             shape_invariants=[tf.TensorShape([None, 4])])[0]
        return {"y": rows, "rows": tf.shape(rows)[0]}

    def centred(self, x):
        return {"y": (x - tf.reduce_mean(x, 0)) / tf.reduce_mean(tf.abs(x)), "positive": tf.where(x > 0)}

    def flattened(self, x):
        shape = tf.shape(x)
        return {"y": tf.reshape(x[:, 1:], [shape[0] * 3]), "fill": tf.fill(shape, 2.0), "n": tf.size(x)}

    def count_runs(self, x):
        self.count.assign_add(2.0)
        return {"y": x + self.count}

    def checked(self, x):
        tf.debugging.Assert(tf.reduce_max(x) < 10, ["too large:", tf.reduce_max(x)])
        return {"y": x + 1, "where": tf.where(x > 0)}

    NAMES = ["branch", "counted_loop", "loop_until", "growing_loop", "centred", "flattened", "count_runs", "checked"]


def test_functions(folder):
    """Functions of TensorFlow's, run by ours: the same answers, and an assert's own message."""
    module = Functions()
    spec = tf.TensorSpec([None, 4], tf.float32, name="x")
    signatures = {n: tf.function(getattr(module, n), input_signature=[spec]) for n in Functions.NAMES}
    path, raw = f"{folder}/functions", f"{folder}/functions_input"
    tf.saved_model.save(module, path, signatures=signatures)
    for rows, scale in (3, 1), (3, -1), (1, 2):
        x = scale * np.random.default_rng(rows).uniform(-0.5, 1, (rows, 4)).astype(np.float32)
        x.tofile(raw)
        loaded = tf.saved_model.load(path)
        for name in Functions.NAMES:
            ours = predict(path, name, raw)
            theirs = loaded.signatures[name](x=tf.constant(x))
            assert sorted(ours) == sorted(theirs), (name, ours)
            for key, expected in theirs.items():
                np.testing.assert_allclose(np.array(ours[key], np.float64), expected.numpy().ravel(), atol=1e-5,
                                           rtol=1e-5, err_msg=f"{name} {key}")
    np.full((1, 4), 11, np.float32).tofile(raw)
    done = subprocess.run([TOOL, "predict", path, "checked", raw], capture_output=True, text=True)
    assert done.returncode == 1 and "assertion failed: [too large:] [11]" in done.stderr, done.stderr


test_operator_table()
with tempfile.TemporaryDirectory() as folder:
    model = tool("dense", f"{folder}/dense/1")
    test_load(model)
    test_load_v1(model)
    test_keras(model)
    test_saved_model_cli(model)
    test_images(folder)
    test_export(folder)
    test_keras_models(folder)
    test_functions(folder)
print("passed")
