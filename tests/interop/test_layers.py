"""Every layer with the defaults of its options against Keras' of the same name: variables, their
initializers and whether they are trained, results in training and in evaluation, moving averages."""
import os
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf

TOOL = os.path.join(os.environ["SEXTANT_TEST_BIN"], "layer_tool")
L = keras.layers
IMAGE, VECTOR = (5, 7, 6, 3), (5, 11)

# our layer -> shape of the input, Keras' layer with nothing said that has a default
ROWS = {
    "dense": (VECTOR, lambda: L.Dense(4)),
    "conv2d": (IMAGE, lambda: L.Conv2D(4, 3)),
    "max_pooling2d": (IMAGE, lambda: L.MaxPooling2D(2)),
    "average_pooling2d": (IMAGE, lambda: L.AveragePooling2D(2)),
    "global_average_pooling2d": (IMAGE, L.GlobalAveragePooling2D),
    "flatten": (IMAGE, L.Flatten),
    "batch_normalization": (IMAGE, L.BatchNormalization),
    "linear": (VECTOR, lambda: L.Activation("linear")),
    "relu": (VECTOR, L.ReLU),
    "relu6": (VECTOR, lambda: L.Activation("relu6")),
    "sigmoid": (VECTOR, lambda: L.Activation("sigmoid")),
    "tanh": (VECTOR, lambda: L.Activation("tanh")),
    "softmax": (VECTOR, L.Softmax),
}
INITIALIZERS = {"GlorotUniform": "glorot_uniform", "Zeros": "zeros", "Ones": "ones"}


class Variable:
    def __init__(self, name, role, initializer, dtype, *dims):
        self.name, self.role, self.initializer = name.split("/")[-1], role, initializer
        self.dtype, self.shape = np.dtype(dtype), tuple(int(d) for d in dims)

    def read(self, file):
        count = int(np.prod(self.shape, dtype=np.int64))
        return np.frombuffer(file.read(count * self.dtype.itemsize), self.dtype).reshape(self.shape)


class Layer:
    """Our layer: its variables; run(values, x) gives y and the values after."""

    def __init__(self, name, mode, device, shape):
        self.process = subprocess.Popen([TOOL, name, mode, device, *map(str, shape)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.variables = []
        for line in iter(self.process.stdout.readline, b"end\n"):
            what, *rest = line.decode().split()
            if what == "variable":
                self.variables.append(Variable(*rest))
            else:
                self.y = Variable("y", "", "", "float32", *rest)
        assert hasattr(self, "y"), f"layer_tool {name} ended"

    def run(self, values, x):
        send = self.process.stdin
        for v in self.variables:
            send.write(np.ascontiguousarray(values.get(v.name, 0), v.dtype).reshape(v.shape).tobytes())
        send.write(x.tobytes())
        send.close()
        y = self.y.read(self.process.stdout)
        after = {v.name: v.read(self.process.stdout) for v in self.variables}
        assert self.process.wait() == 0
        return y, after


def close(label, ours, theirs):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape, (label, ours.shape, theirs.shape)
    off = np.abs(ours - theirs).max()
    assert off <= 1e-5 * max(1e-3, np.abs(theirs).max()), (label, off)


def check(name, device):
    shape, make = ROWS[name]
    rng = np.random.default_rng(3)
    # deviations of a hundredth: where epsilon counts
    x = (0.02 * rng.normal(size=shape) + 0.01 if name == "batch_normalization" else 4 * rng.normal(size=shape)).astype(np.float32)
    theirs = make()
    theirs.build(shape)
    for mode in "train", "eval":
        ours = Layer(name, mode, device, shape)
        assert sorted(v.name for v in ours.variables) == sorted(w.name for w in theirs.weights), name
        values = {}
        for v in ours.variables:
            weight = next(w for w in theirs.weights if w.name == v.name)
            initializer = getattr(theirs, f"{v.name}_initializer")
            assert INITIALIZERS[type(initializer).__name__] == v.initializer, (name, v.name, v.initializer)
            assert weight.trainable == (v.role == "weight"), (name, v.name, v.role)
            values[v.name] = rng.uniform(0.5, 1.5, weight.shape).astype(np.float32)
            weight.assign(values[v.name])
        y, after = ours.run(values, x)
        close((name, mode, "y"), y, theirs(x, training=mode == "train"))
        for v in ours.variables:
            weight = next(w for w in theirs.weights if w.name == v.name)
            close((name, mode, v.name), after[v.name], weight.numpy())
            moved = np.abs(after[v.name] - values[v.name]).max() > 0
            assert moved == (mode == "train" and v.role == "state"), (name, mode, v.name)


def check_dropout(device):
    """Which elements are kept is ours to draw; how many and by how much they grow is Keras'."""
    x = np.full((64, 50), 3.0, np.float32)
    theirs = L.Dropout(0.25, seed=1)
    for mode in "train", "eval":
        y, _ = Layer("dropout", mode, device, x.shape).run({}, x)
        other = np.asarray(theirs(x, training=mode == "train"))
        np.testing.assert_allclose(np.unique(y), np.unique(other), rtol=1e-6)
        assert abs((y == 0).mean() - (other == 0).mean()) < 0.05, ((y == 0).mean(), (other == 0).mean())


def check_moving_variance(device):
    """The biased variance, as Keras 3 and TensorFlow 1's unfused batch normalization move theirs.
    TensorFlow 1's fused one (rank 4) and Keras 2's moved the unbiased one: n / (n - 1) of it."""
    x = np.random.default_rng(9).normal(2, 3, (2, 3, 2, 4)).astype(np.float32)
    values = {"gamma": np.ones(4), "beta": np.zeros(4), "moving_mean": np.zeros(4), "moving_variance": np.zeros(4)}
    _, after = Layer("batch_normalization", "train", device, x.shape).run(values, x)
    n = x.size / 4
    close("moving mean", after["moving_mean"], 0.01 * x.mean((0, 1, 2)))
    close("moving variance", after["moving_variance"], 0.01 * x.var((0, 1, 2)))
    fused = tf.raw_ops.FusedBatchNormV3(x=x, scale=np.ones(4, np.float32), offset=np.zeros(4, np.float32),
                                        mean=np.zeros(0, np.float32), variance=np.zeros(0, np.float32))
    close("fused", after["moving_variance"] * np.float32(n / (n - 1)), 0.01 * fused.batch_variance.numpy())
    unfused = tf.nn.moments(tf.constant(x), [0, 1, 2])[1]
    close("unfused", after["moving_variance"], 0.01 * unfused.numpy())


if __name__ == "__main__":
    for device in sys.argv[1:] or ["host", "cpu"]:
        for name in ROWS:
            check(name, device)
        check_dropout(device)
        check_moving_variance(device)
        print(f"{device}: {len(ROWS) + 1} layers as Keras'")
