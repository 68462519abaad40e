"""sextant show, scan and run print what TensorFlow's saved_model_cli prints, to the byte: SavedModels
of tf.Module with several functions, of Keras, of the TF1 builder with several graphs, and ours; run
prints arrays of all dtypes, from files, literals and Examples, as NumPy does."""
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
from tensorflow.python.tools import saved_model_cli as cli

from program import sextant

v1 = tf.compat.v1


class Functions(tf.Module):
    def __init__(self):
        super().__init__()
        self.scale = tf.Variable([1.0, 2.0, 3.0], name="scale")

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def one(self, x):
        return {"y": x * self.scale, "z": tf.reduce_sum(x)}

    @tf.function
    def options(self, a, b, training=False, scale=2.0, name="it's", opt=None, sizes=(1, 2)):
        return a + b if training else a - b * scale

    @tf.function
    def nested(self, d, *rest, **named):
        return d["x"] + d["y"] + rest[0] + named["k"]

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32),
                                  tf.SparseTensorSpec([None, 5], tf.int32)])
    def composite(self, a, b):
        return a.to_tensor(), tf.sparse.to_dense(b)

    @tf.function(input_signature=[tf.TensorSpec([], tf.string), tf.TensorSpec(None, tf.int64, name="ids")])
    def strings(self, text, ids):
        return tf.strings.length(text), ids


def make_functions(path):
    m = Functions()
    for dtype in (tf.float32, tf.int32, tf.int64):
        m.options(tf.ones([], dtype), tf.ones([], dtype), training=True)
    m.nested({"x": tf.constant(1), "y": tf.constant(2)}, tf.constant(3), k=tf.constant(4))
    tf.saved_model.save(m, path, signatures={"serving_default": m.one, "strings": m.strings})


def make_keras(path):
    layers = tf.keras.layers
    tf.keras.Sequential([layers.Input((4,)), layers.Dense(3, "relu"), layers.Dense(2)]).export(path, verbose=False)


def make_builder(path):
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        x, i = v1.placeholder(tf.float32, [None, 2], "x"), v1.placeholder(tf.int32, None, "i")
        y = tf.matmul(x, v1.get_variable("w", [2, 2]), name="y")
        signature = v1.saved_model.predict_signature_def({"x": x, "i": i}, {"y": y})
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(path)
        builder.add_meta_graph_and_variables(session, ["serve", "gpu"], {"serving_default": signature})
        builder.add_meta_graph(["train"], {})
        builder.add_meta_graph(["it's"], {"a": signature})
        builder.save()


def make_ours(path):
    sextant("train", "linear", "--data", "generated:digits", "--model-dir", path + "_run", "--steps", "1")
    sextant("export", path + "_run", "--out", path + "_out")
    os.rename(path + "_out/1", path)


def original(call):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        call()
    return text.getvalue()


def sort_sets(text):
    """Operators are printed as a Python set, dicts in the order of protobuf's maps, a function's
    options as they are numbered when loaded: all change from run to run. All are sorted."""
    text = re.sub(r"(ops: )\{(.*)\}", lambda m: m[1] + ", ".join(sorted(m[2].split(", "))), text)
    text = re.sub(r"(Value: )\{(.*)\}", lambda m: m[1] + str(sorted(p.strip("', \b") for p in m[2].split(", '"))), text)
    functions = re.split(r"(?<=\n)(?=  Function Name)", text)
    # a blank line follows the last option, whichever that is
    return [sorted(re.sub(r"#\d+$", "", o, count=1, flags=re.M).rstrip("\n") for o in re.split(r"(?<=\n)(?=    Option)", f))
            for f in functions] + [text.count("\n\n")]


def same(what, ours, theirs):
    assert sort_sets(ours) == sort_sets(theirs), f"{what}: sextant prints\n{ours}\nsaved_model_cli\n{theirs}"


def compare(path, tags):
    same(path, sextant("show", "--dir", path, "--all"), original(lambda: cli._show_all(path)))
    same(path, sextant("show", "--dir", path), original(lambda: cli._show_tag_sets(path)))
    for tag in tags:
        tagged = ["--dir", path, "--tag_set", tag]
        same(tag, sextant("show", *tagged), original(lambda: cli._show_signature_def_map_keys(path, tag)))
        keys = cli.get_signature_def_map(path, tag)
        same(tag, sextant("show", *tagged, "--list_ops"),
             original(lambda: (cli._show_ops_in_metagraph(path, tag), cli._show_signature_def_map_keys(path, tag))))
        for key in keys:
            same(key, sextant("show", *tagged, "--signature_def", key),
                 original(lambda: cli._show_inputs_outputs(path, tag, key)))
        graph = cli.saved_model_utils.get_meta_graph_def(path, tag)
        same(tag, sextant("scan", *tagged), original(lambda: cli.scan_meta_graph_def(graph, cli._OP_DENYLIST)))
        same(tag, sextant("scan", *tagged, "--op_denylist", "Const,Foo"),
             original(lambda: cli.scan_meta_graph_def(graph, {"Const", "Foo"})))


def arrays():
    """By dtype: what NumPy's rules for printing tell apart."""
    rng = np.random.default_rng(20261122)
    for dtype in (np.float32, np.float64, np.float16):
        edges = [[1, 2, 3], [0.1, 0.25, -3.5], [1e-5, 1], [[1.5, np.nan], [np.inf, -np.inf]], [np.nan, np.nan],
                 [-0.0, 0.0], np.zeros((0, 3)), np.zeros((2, 3, 2)), 3.25, 0.1, 1e-5, 12345.678, 1e4, 0.0001,
                 [999, 1001.5], [100, 0.09], [1000.0, 1.0], [1001.0, 1.0], np.arange(2000),
                 rng.standard_normal((3, 30)), rng.standard_normal((20, 70)) * 100, rng.standard_normal((4, 5, 6, 12))]
        for values in edges:
            yield np.array(values, dtype)
        for power in range(-6, 4):
            yield (rng.standard_normal(20) * 10.0**power).astype(dtype)
            yield np.round(rng.standard_normal((2, 11)) * 10, power % 4).astype(dtype)
    for values in ([1, 0, 100], [1.5, 2.25, -1e3], [0.1, 1e-5, 123456, 1e30], [np.nan, np.inf, -np.inf, -0.0], 0.1, 1, -2.5, np.nan, 1e-30,
                   [[1, 2.5], [3, 4]], np.arange(60) / 7, np.arange(2000), np.arange(40).reshape(2, 20) * 1.1):
        yield np.array(values, tf.bfloat16.as_numpy_dtype)
    for dtype in (np.complex64, np.complex128):
        edges = [[1, 2j, 3 + 0.5j], [0.1 - 1e-5j, 1], [complex(np.nan, np.inf), complex(-np.inf, 1)], [[1.5j, -2], [1e8, 1e-8j]], [-0.0, 0.0],
                 np.zeros((0, 3)), np.zeros((2, 3, 2)), 3.25, 2j, -0.5j, 1.5 + 2j, complex(np.nan, -np.inf), 1e-5 + 123456j, np.arange(2000) * 1j]
        for values in edges:
            yield np.array(values, dtype)
        for power in range(-6, 4, 3):
            yield ((rng.standard_normal((3, 20)) + 1j * rng.standard_normal((3, 20))) * 10.0**power).astype(dtype)
    for dtype in (np.int32, np.int64, np.uint8, np.int8, np.uint64):
        info = np.iinfo(dtype)
        for values in ([1, 100, 7], [info.min, info.max], 7, np.arange(120).reshape(2, 60) % 100):
            yield np.array(values, dtype)
    for values in ([True, False], True, rng.random((5, 50)) > 0.5, rng.random(1500) > 0.5):
        yield np.array(values)
    for values in ([b"abc", b"it's", b"\xff\n\x00x", b"\"both'"], [[b"a", b"bb"], [b"ccc", b""]],
                   [b"word" * k for k in range(1, 12)], b"scalar"):
        yield np.array(values, object)


LITERALS = {
    "float32_1": ["[1_000]", "[1_0.5]", "[0x_ff, 0xfF]", "[0o17]", "[0b1_01]", "[1E-3]", "[.5, 5.]", "[- 1, +1]", "[True, False]", "(1,)",
                  "[1,2,]", "[]", "[None, 1]", "[1, # one\n2]", " [1] ", "[1e400, -1e400]", "[9999999999999999999999]"],
    "int64_1": ["[2.5, -2.5]", "[1e3]", "[True]", "[9223372036854775807, -9223372036854775808]", "[1_000_000]"],
    "uint64_1": ["[18446744073709551615]", "[1.5]"],
    "object_1": [r"""['a\u00e9\U0001F600\x41\101\n\t\\\'\"\a\b\f\v']""", r"[b'\xff\u00e9\377']", r"[r'\n', R'\'', rb'\x', Br'a', u'x']",
                 "['''a'b''', \"\"\"a\nb\"\"\"]", "['a' 'b' \"c\"]", r"['\q']", "['a\\\nb']", "['ü']", "[b'a' b'b']"],
}
NUMPY_NAMES = {
    "np.array([1, 2], dtype=np.float32)": [1, 2], "np.asarray([1, 2], 'f4')": [1, 2], "np.zeros(shape=(2,))": [0, 0],
    "np.full(2, fill_value=7)": [7, 7], "np.full((2, 3), -1.5)": np.full((2, 3), -1.5), "np.arange(6).reshape(2, 3)": np.arange(6).reshape(2, 3),
    "np.arange(6).reshape((3, -1)).astype(np.float32)": np.arange(6).reshape(3, 2), "np.ones((2, 2)).reshape(-1)": np.ones(4),
    "[np.nan, np.inf, -np.inf, np.pi, np.float32(2.5)]": [np.nan, np.inf, -np.inf, np.pi, 2.5], "np.zeros((0, 3)).reshape(3, 0)": np.zeros((3, 0)),
}


def strings(values):
    return np.array([v.encode() if isinstance(v, str) else v for v in values], object)


def compare_runs(here):
    cases = {}
    for array in arrays():
        cases.setdefault(f"{array.dtype}_{array.ndim}", []).append(array)
    module, functions = tf.Module(), {}
    for key, (array, *_) in cases.items():
        dtype = tf.string if array.dtype == object else array.dtype
        functions[key] = tf.function(lambda x: {"y": tf.identity(x)},
                                     input_signature=[tf.TensorSpec([None] * array.ndim, dtype, "x")])
        setattr(module, key, functions[key])
    path = os.path.join(here, "identities")
    tf.saved_model.save(module, path, signatures=functions)

    def check(key, want, *args):
        got = sextant("run", "--dir", path, "--tag_set", "serve", "--signature_def", key, *args)
        want = "Result for output key y:\n%s\n" % (want,)
        assert got == want, f"{key} {args}: got\n{got}\nwant\n{want}"

    n = 0
    for key, some in cases.items():
        for array in some:
            np.save("x.npy", array.astype("S") if array.dtype == object else array)
            check(key, array[()], "--inputs", "x=x.npy")
            n += 1
    # The original's own parsing and text, once; then literals, lines and Examples against values.
    feed = cli.load_inputs_from_input_arg_string("x=x.npy", "", "")
    theirs = original(lambda: cli.run_saved_model_with_feed_dict(path, "serve", "object_0", feed, "out_tf", False))
    ours = sextant("run", "--dir", path, "--tag_set", "serve", "--signature_def", "object_0", "--inputs", "x=x.npy",
                   "--outdir", "out_sx")
    assert ours.replace("out_sx", "out_tf") == theirs, (ours, theirs)
    check("float32_1", np.array([1, 2.5, -3], np.float32), "--input_exprs", "x=[1, 2.5, -3]")
    for dtype in "complex64", "complex128":
        check(f"{dtype}_1", np.array([1 + 2j, -1.5j, 3, 2e-3 - 1j, 1j, -1 - 1j], dtype), "--input_exprs", "x=[1+2j, -1.5j, 3, 2e-3 - 1J, +1j, (-1-1j)]")
    check("float32_2", np.ones((2, 3), np.float32), "--input_exprs", "x=np.ones((2, 3), dtype=np.float32)")
    check("int64_1", np.arange(2, 20, 3), "--input_exprs", "x=np.arange(2, 20, 3)")
    check("int64_1", np.array([2**63 - 1, -(2**63)]), "--input_exprs", f"x=[{2**63 - 1}, {-2**63}]")
    check("object_1", np.array(["a;b".encode(), "ü\n".encode(), b"\xff"], object), "--input_exprs",
          r"x=['a;b', 'ü\n', b'\xff']")
    # What the original takes as a literal: the same array; NumPy's names, which it no longer takes.
    for key, texts in LITERALS.items():
        for text in texts:
            feed = cli.load_inputs_from_input_arg_string("", "x=" + text, "")["x"]
            check(key, strings(feed) if key == "object_1" else np.asarray(feed).astype(key[:-2]), "--input_exprs", "x=" + text)
    for text, want in NUMPY_NAMES.items():
        check(f"float32_{np.ndim(want)}", np.float32(want), "--input_exprs", "x=" + text)
    with open("lines.txt", "w") as f:
        f.write("one two\n\nthree")
    check("object_1", np.array([b"one two", b"", b"three"], object), "--inputs", "x=@lines.txt")
    np.save("text.npy", np.array(["ü", "abc"]))
    check("object_1", np.array(["ü".encode(), b"abc"], object), "--inputs", "x=text.npy")
    for example in ('{"a": [1.5, 2.0]}', '{"a": [1, -2]}', '{"a": ["x", "yz"]}', '{"a": [b"\\xff"]}', '{"a": [2.5, 1]}', "{}"):
        feed = cli.load_inputs_from_input_arg_string("", "", f"x=[{example}]")["x"]
        check("object_1", np.array(feed, object), "--input_examples", f"x=[{example}]")
    np.save("z.npy", np.array([1 + 2j]))  # which JSON cannot hold
    done = subprocess.run([os.environ["SEXTANT_BIN"], "run", path, "--signature", "complex128_1", "--input", "x=z.npy", "--json"],
                          capture_output=True, text=True)
    assert done.returncode != 0 and "Failed to write JSON value for tensor type: complex128" in done.stderr, done.stderr
    print(f"run: {n} arrays printed as NumPy does; literals, lines, Examples")


def main():
    with tempfile.TemporaryDirectory() as here:
        os.chdir(here)
        os.environ["XDG_CACHE_HOME"] = here
        models = [(make_functions, ["serve"]), (make_keras, ["serve"]), (make_ours, ["serve"]),
                  (make_builder, ["serve,gpu", "gpu,serve", "train", "it's"])]
        for make, tags in models:
            path = os.path.join(here, make.__name__)
            make(path)
            compare(path, tags)
            print(f"{make.__name__}: show and scan as saved_model_cli")
        compare_runs(here)


if __name__ == "__main__":
    sys.exit(main())
