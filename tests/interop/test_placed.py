"""SavedModels whose nodes name devices: what TensorFlow places with tf.device, on two CPUs, and what
we export with device scopes."""
import os
import subprocess
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from program import sextant

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

MODEL = """
#include <sextant/sextant.h>

static sx_spec towers(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_device_scope_begin(b, "/cpu:0");
    sx_value left = sx_dense(b, in->features, 8, .activation = SX_RELU);
    sx_device_scope_end(b);
    sx_device_scope_begin(b, "/job:worker/task:1/gpu:5");
    sx_value right = sx_dense(b, in->features, 8, .activation = SX_TANH);
    sx_device_scope_end(b);
    return sx_classifier_spec(b, sx_dense(b, sx_add(b, left, right), 2), in->labels);
}
SX_MODEL(towers, .build = towers, .num_classes = 2, .inputs = {{"x", .dims = {5}}},
         .labels = {{.name = "kind"}})
"""


class Towers(tf.Module):
    def __init__(self):
        g = tf.random.Generator.from_seed(7)
        with tf.device("/CPU:0"):
            self.a = tf.Variable(g.normal((16, 32)))
        with tf.device("/CPU:1"):
            self.b = tf.Variable(g.normal((32, 4)) / 6)

    @tf.function(input_signature=[tf.TensorSpec((None, 16), tf.float32, name="x")])
    def run(self, x):
        with tf.device("/CPU:0"):
            h = tf.nn.relu(tf.matmul(x, self.a))
        with tf.device("/device:CPU:1"):
            y = tf.nn.softmax(tf.matmul(h, self.b))
            for _ in tf.range(3):
                y = y * 0.5 + tf.reduce_mean(y, 1, keepdims=True)
        with tf.device("/GPU:3"):  # which is not there
            z = tf.reduce_sum(h, 1)
        return {"y": y, "z": z}


def log_of(*args):
    done = subprocess.run([os.environ["SEXTANT_BIN"], *args], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def devices_of(path):
    model = saved_model_pb2.SavedModel()
    with open(path + "/saved_model.pb", "rb") as file:
        model.ParseFromString(file.read())
    graph = model.meta_graphs[0].graph_def
    nodes = list(graph.node) + [n for f in graph.library.function for n in f.node_def]
    return {(n.op, n.device) for n in nodes}


def run_theirs(work):
    """TensorFlow's numbers, on the devices that the log names; to the bit those of one device."""
    x = np.random.default_rng(3).standard_normal((70, 16)).astype(np.float32)
    np.save(work + "/x.npy", x)
    model = Towers()
    expected = {k: v.numpy() for k, v in model.run(x).items()}
    for policy in (None, "save_variable_devices"):
        path = f"{work}/{policy}"
        tf.saved_model.save(model, path, signatures=model.run,
                            options=tf.saved_model.SaveOptions(experimental_variable_policy=policy))
        common = ["run", "--dir", path, "--tag_set", "serve", "--signature_def", "serving_default",
                  "--inputs", f"x={work}/x.npy", "--overwrite"]
        log = log_of(*common, "--outdir", work + "/two", "--device", "cpu:0,cpu:1", "--log-device-placement")
        log_of(*common, "--outdir", work + "/one", "--device", "cpu")
        for op, number in (("MatMul", 0), ("MatMul", 1), ("Relu", 0), ("Softmax", 1), ("Sum", 0)):
            assert f": ({op}): /job:localhost/replica:0/task:0/device:CPU:{number}\n" in log, (op, number, log)
        for name, value in expected.items():
            two, one = np.load(f"{work}/two/{name}.npy"), np.load(f"{work}/one/{name}.npy")
            assert two.tobytes() == one.tobytes(), name
            np.testing.assert_allclose(two, value, rtol=2e-5, atol=1e-6, err_msg=name)
    print("TensorFlow's model on two devices: as on one, and as TensorFlow")


def run_ours(work):
    """The devices are in the file, and TensorFlow, which lacks one, computes our numbers."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((64, 5)).astype(np.float32)
    os.mkdir(work + "/ours_x")
    np.save(work + "/ours_x/x.npy", x)
    np.save(work + "/kind.npy", (x[:, 0] > 0).astype(np.int32))
    with open(work + "/towers.c", "w", encoding="utf-8") as file:
        file.write(MODEL)
    sextant("train", work + "/towers.c", "--data", f"{work}/ours_x/x.npy,{work}/kind.npy", "--batch-size", "16",
            "--max-steps", "4", "--model-dir", work + "/run")
    path = sextant("export", work + "/run", "--out", work + "/ours").strip().splitlines()[-1]
    devices = devices_of(path)
    for wanted in (("Relu", "/device:CPU:0"), ("Tanh", "/device:GPU:5"), ("Softmax", "")):
        assert wanted in devices, (wanted, devices)
    sextant("run", "--dir", path, "--tag_set", "serve", "--signature_def", "serving_default", "--inputs",
            f"x={work}/ours_x/x.npy", "--outdir", work + "/out", "--device", "cpu,cpu")
    found = tf.saved_model.load(path).signatures["serving_default"](x=tf.constant(x))
    for name, value in found.items():
        np.testing.assert_allclose(np.load(f"{work}/out/{name}.npy"), value.numpy(), rtol=2e-5, atol=1e-6,
                                   err_msg=name)
    print("our model in TensorFlow: the devices are named, the numbers are ours")


with tempfile.TemporaryDirectory() as work:
    run_theirs(work)
    run_ours(work)
