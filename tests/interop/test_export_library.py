"""Functions that we exported as SavedModels, in TensorFlow's hands: calls, branches, loops, maps, variables,
strings, shapes that data decide, effects (tests/savedmodel/export_libraries.h). TensorFlow's loaders give what our
runtime gives."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

v1 = tf.compat.v1
TOOL = os.path.join(os.environ["SEXTANT_TEST_BIN"], "export_tool")


def read(path):
    """{name: array} of a file of export_tool."""
    tensors = {}
    for line in path.read_text().splitlines():
        head, _, values = line.partition(":")
        name, dtype, *dims = head.split(" ")
        values, shape = values.split(), [int(d) for d in dims]
        if dtype == "string":
            data = np.empty(len(values), object)
            data[:] = [bytes.fromhex(v[1:]) for v in values]
        elif dtype == "bool":
            data = np.array([v == "1" for v in values], bool)
        else:
            data = np.array(values, np.float64 if dtype == "float32" else np.int64).astype(dtype)
        tensors[name] = data.reshape(shape)
    return tensors


def compare(name, got, expected):
    assert sorted(got) == sorted(expected), (name, sorted(got))
    for key, want in expected.items():
        y = np.asarray(got[key])
        assert y.shape == want.shape, (name, key, y.shape, want.shape)
        if want.dtype == np.float32:
            np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5, err_msg=f"{name} {key}")
        else:
            assert (y == want).all(), (name, key, y, want)


def check(folder, name):
    path = str(folder / name / "1")
    runs = sorted(folder.glob(f"{name}.*.in"))
    assert runs
    model = tf.saved_model.load(path)
    signature = model.signatures["serving_default"]
    for run in runs:
        inputs, expected = read(run), read(run.with_suffix(".out"))
        compare(f"{run.name} v2", {k: v.numpy() for k, v in signature(**{k: tf.constant(v) for k, v in inputs.items()}).items()},
                expected)
    with tf.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.load(session, ["serve"], path).signature_def["serving_default"]
        fetches = {k: v.name for k, v in signature.outputs.items()}
        for run in runs:
            feed = {signature.inputs[k].name: v for k, v in read(run).items()}
            compare(f"{run.name} v1", session.run(fetches, feed), read(run.with_suffix(".out")))


def check_cli(folder):
    """saved_model_cli shows and runs them."""
    cli = os.path.join(os.path.dirname(sys.executable), "saved_model_cli")
    done = subprocess.run([cli, "run", "--dir", str(folder / "text/1"), "--tag_set", "serve", "--signature_def", "serving_default",
                           "--input_exprs", 'text=[b"a b a b c", b"hello"]'], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "b'HELLO'" in done.stdout, done.stdout
    done = subprocess.run([cli, "show", "--dir", str(folder / "text/1"), "--all"], capture_output=True, text=True)
    assert "DT_STRING" in done.stdout and "(-1)" in done.stdout, done.stdout


def check_assert(folder):
    """An assert of ours ends TensorFlow's run, with its message."""
    signature = tf.saved_model.load(str(folder / "effects/1")).signatures["serving_default"]
    try:
        signature(by=tf.constant(-1.0))
    except tf.errors.InvalidArgumentError as e:
        assert "by must be positive" in str(e), e
    else:
        raise AssertionError("the assert did not fail")


def check_gradients(folder):
    """TensorFlow has no gradient either where ours is not that of the nodes: those have a type of gradient that it does not know."""
    model = saved_model_pb2.SavedModel.FromString((folder / "gradients/1/saved_model.pb").read_bytes())
    graph = model.meta_graphs[0].graph_def
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    types = {node.attr["_gradient_op_type"].s.decode() for node in nodes if node.op == "IdentityN"}
    assert types == {"custom", "refuse"} and not graph.library.registered_gradients, types
    signature = tf.saved_model.load(str(folder / "gradients/1")).signatures["serving_default"]
    x = tf.constant([1.0, -2.0])
    try:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = signature(x=x)["y"]
        tape.gradient(y, x)
    except (LookupError, tf.errors.NotFoundError):
        return
    raise AssertionError("it has a gradient")


def check_tape(folder):
    """TensorFlow's tape goes through calls, a branch, a loop and a map of ours, and gives what it does for the same in Python."""
    model = tf.saved_model.load(str(folder / "control/1"))
    variables = {v.name: v for v in model.variables}
    scale, bias = variables["scale:0"], variables["bias:0"]

    def python(x, n):
        cell = lambda v: tf.tanh(v * scale)
        y = cell(cell(x))
        for _ in range(n):
            y = cell(y) + bias
        return cell(y) if n < 2 else y + bias

    for n in (0, 1, 5):
        x = tf.constant(np.linspace(-1, 2, 12).reshape(4, 3), tf.float32)
        gradients = []
        for f in (lambda: model.signatures["serving_default"](x=x, n=tf.constant(n))["y"], lambda: python(x, n)):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(f() ** 2)
            gradients.append([tf.convert_to_tensor(g) for g in tape.gradient(y, [x, scale, bias], unconnected_gradients="zero")])
        for ours, theirs in zip(*gradients):
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=str(n))
    model = tf.saved_model.load(str(folder / "text/1"))
    texts = tf.constant(["a b a", "", "c"])
    with tf.GradientTape() as tape:
        y = model.signatures["serving_default"](text=texts)
        total = tf.reduce_sum(y["y"] * tf.range(1.0, 5.0))
    table = model.variables[0]
    gradient = tf.convert_to_tensor(tape.gradient(total, table)).numpy()
    rows = tf.strings.to_hash_bucket_fast(["a", "b", "a", "c"], 10).numpy()
    expected = np.zeros((10, 4), np.float32)
    np.add.at(expected, rows, np.arange(1, 5, dtype=np.float32))
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


def check_variables(folder):
    model = tf.saved_model.load(str(folder / "control/1"))
    assert sorted(v.name for v in model.variables) == ["bias:0", "scale:0"], model.variables
    assert all(v.trainable for v in model.variables)


def check_example(folder):
    """The model of sentences, trained: TensorFlow answers from strings what `sextant run` does."""
    build = os.environ["SEXTANT_BUILD"]
    done = subprocess.run([f"{build}/examples/text_attention", str(folder / "run"), "30"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    path = folder / "run/export"
    texts = ["what a nice day", "an awful, poor meal", "", "Fun", "so the film was quite dull and sad"]
    out = folder / "ours"
    out.mkdir()
    expression = "text=[" + ", ".join(f'"{t}"' for t in texts) + "]"
    done = subprocess.run([os.environ["SEXTANT_BIN"], "run", str(path), "--outdir", str(out), "--input_exprs", expression],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    signature = tf.saved_model.load(str(path / "1")).signatures["serving_default"]
    got = {k: v.numpy() for k, v in signature(text=tf.constant(texts)).items()}
    expected = {key: np.load(out / f"{key}.npy") for key in ("probabilities", "class")}
    np.testing.assert_allclose(got["probabilities"], expected["probabilities"], atol=1e-5)
    assert (got["class"] == expected["class"]).all()
    for text, row in zip(texts, got["probabilities"]):  # the other sentences only decide how long the padding is
        np.testing.assert_allclose(signature(text=tf.constant([text]))["probabilities"][0], row, atol=1e-5)
    with tempfile.TemporaryDirectory() as cli:
        done = subprocess.run([os.path.join(os.path.dirname(sys.executable), "saved_model_cli"), "run", "--dir", str(path / "1"),
                               "--tag_set", "serve", "--signature_def", "serving_default", "--input_exprs", expression,
                               "--outdir", cli], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        np.testing.assert_allclose(np.load(f"{cli}/probabilities.npy"), expected["probabilities"], atol=1e-5)
    checkpoint = tf.train.load_checkpoint(str(folder / "run/model.ckpt"))
    assert checkpoint.get_tensor("global_step") == 30 and checkpoint.get_tensor("embedding/Adam").shape == (256, 16)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "example").mkdir()
        done = subprocess.run([TOOL, scratch], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        check_example(folder / "example")
        names = sorted(p.name for p in folder.iterdir() if p.is_dir() and p.name != "example")
        assert len(names) >= 4, names
        for name in names:
            check(folder, name)
        check_cli(folder)
        check_assert(folder)
        check_gradients(folder)
        check_tape(folder)
        check_variables(folder)


main()
