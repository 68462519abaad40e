"""Inference beside OpenVINO, ONNX Runtime and TensorFlow: models of keras.applications with random weights, an LSTM, a
GRU, a transformer and an encoder of BERT-base's shape, each exported as a SavedModel that all sides load; ONNX Runtime
loads what tf2onnx makes of it. Each side is a process; rounds alternate. Of each the least time of a run is reported,
by the clock and of processors, which a busy machine hurts least, and the median of the rounds' ratios to Sextant.

All processors, or THREADS=1. MODELS="MobileNetV2 lstm", ENGINES="TensorFlow", BATCHES="1 16": those alone. KEEP=DIR
keeps the models there. PRECISION=int8: in 8-bit integers, calibrated with a few random inputs; ONNX Runtime's
quantize_static makes the model of both peers, since OpenVINO's own quantizer (nncf) is not among the requirements.
PRECISION=bfloat16: Sextant's and OpenVINO's (the others have none on the CPU); a second OpenVINO, in float32, shows what
its bfloat16 gains on this processor.

Bound by the convolutions and products (see bench/README.md); goal: 1.0 of the best of the three for each model."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import sides

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

ROUNDS = int(os.environ.get("ROUNDS", "7"))
THREADS = int(os.environ.get("THREADS", "0"))
SECONDS = 0.5  # of a round, for each side
APPLICATIONS = ["MobileNetV2", "EfficientNetB0", "ResNet50", "DenseNet121", "InceptionV3", "Xception", "NASNetMobile"]
MODELS = [*APPLICATIONS, "lstm", "gru", "transformer", "bert"]
INT8 = os.environ.get("PRECISION") == "int8"
BFLOAT16 = os.environ.get("PRECISION") == "bfloat16"


def make(name, path):
    """A SavedModel at `path` and its ONNX form beside it."""
    import keras
    import networks
    if name in networks.FURTHER:
        model = networks.FURTHER[name]()
    elif hasattr(keras.applications, name):
        model = getattr(keras.applications, name)(weights=None)
    elif name == "transformer":
        model = networks.transformer(256, 8, 128)
    elif name == "bert":
        model = keras.Model(*networks.encoder(12, 768, 12, 128))
    else:
        model = networks.recurrent({"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}[name], "softmax")
    model.export(path, verbose=False)
    convert = [sys.executable, "-m", "tf2onnx.convert", "--saved-model", path, "--output", path + ".onnx", "--opset", "17"]
    done = subprocess.run(convert, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(done.stdout)


def quantize(path):
    """The ONNX form in 8-bit integers: filters by channel, as ours."""
    import onnxruntime.quantization as quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Examples(quantization.CalibrationDataReader):
        def __init__(self):
            import onnxruntime as ort
            (given,) = ort.InferenceSession(path + ".onnx", providers=["CPUExecutionProvider"]).get_inputs()
            self.feeds = iter([{given.name: feed_of(given.shape, 1)} for _ in range(8)])

        def get_next(self):
            return next(self.feeds, None)

    quant_pre_process(path + ".onnx", path + ".prepared.onnx", skip_symbolic_shape=True)
    quantization.quantize_static(path + ".prepared.onnx", path + ".int8.onnx", Examples(),
                                 quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                                 activation_type=quantization.QuantType.QUInt8,
                                 weight_type=quantization.QuantType.QInt8)


# ---- The peers: each loads a model and returns what runs it once ----

def feed_of(shape, batch):
    import numpy as np
    return np.random.rand(batch, *shape[1:]).astype("float32")


def openvino(path, batch, precision="bf16" if BFLOAT16 else "f32"):
    import openvino as ov
    core = ov.Core()
    model = core.read_model(path + ".int8.onnx" if INT8 else path)
    feed = feed_of([d.get_max_length() for d in model.inputs[0].partial_shape], batch)
    model.reshape({model.inputs[0]: feed.shape})
    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision}
    if THREADS:
        options["INFERENCE_NUM_THREADS"] = THREADS
    request = core.compile_model(model, "CPU", options).create_infer_request()
    return lambda: request.infer({0: feed}, share_inputs=True, share_outputs=True)


def onnxruntime(path, batch):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = ort.InferenceSession(path + (".int8.onnx" if INT8 else ".onnx"), options, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    feed = {given.name: feed_of(given.shape, batch)}
    return lambda: session.run(None, feed)


def tensorflow(path, batch):
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(THREADS)
    model = tf.saved_model.load(path)
    signature = model.signatures["serving_default"]
    (name, spec), = signature.structured_input_signature[1].items()
    feed = {name: tf.constant(feed_of(spec.shape, batch))}
    return lambda: (model, [y.numpy() for y in signature(**feed).values()])


def openvino_f32(path, batch):
    return openvino(path, batch, "f32")


if BFLOAT16:
    ENGINES = {"OpenVINO": openvino, "OpenVINO-f32": openvino_f32}
elif INT8:
    ENGINES = {"OpenVINO": openvino, "ONNXRuntime": onnxruntime}
else:
    ENGINES = {"OpenVINO": openvino, "ONNXRuntime": onnxruntime, "TensorFlow": tensorflow}


# ---- The comparison ----

class Side:
    def __init__(self, process):
        self.process = process
        # at a time: as many runs as take 30 ms, so that each finds the last one's caches
        self.runs = max(1, int(0.03 / min(process.seconds(1)[0] for _ in range(3))))

    def measure(self):
        times, end = [], time.perf_counter() + SECONDS
        while len(times) < 3 or time.perf_counter() < end:
            times.append([seconds / self.runs for seconds in self.process.seconds(self.runs)])
        return min(t for t, _ in times), min(cpu for _, cpu in times)


def compare(name, path, batch):
    ours, peers = Side(sides.ours("bench_infer", path, batch, "--serve")), {}
    for engine in os.environ.get("ENGINES", " ".join(ENGINES)).split():
        try:
            peers[engine] = Side(sides.Process(sys.executable, __file__, "--peer", engine, path, batch))
        except RuntimeError as error:
            print(f"infer {name}, batch {batch}: {engine} does not run it (see above): {error}", flush=True)
    rounds = [(ours.measure(), {engine: peer.measure() for engine, peer in peers.items()}) for _ in range(ROUNDS)]
    for side in (ours, *peers.values()):
        side.process.close()
    for i, what in enumerate(("by the clock", "of processors")):
        print(f"infer {name:<14} batch {batch:<2} {what:<13} {min(a[i] for a, _ in rounds) * 1e3:8.2f} ms")
        for engine in peers:
            ratios = sorted(b[engine][i] / a[i] for a, b in rounds)
            print(f"    {engine:<12} {min(b[engine][i] for _, b in rounds) * 1e3:8.2f} ms; ratio "
                  f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} … {ratios[-1]:.2f})", flush=True)


def main():
    sides.run_under_peers("engines")
    with tempfile.TemporaryDirectory() as directory:
        for name in os.environ.get("MODELS", " ".join(MODELS)).split():
            path = os.path.join(os.environ.get("KEEP", directory), name)
            if not os.path.exists(path + ".onnx"):
                # In a process of its own, so that what TensorFlow holds does not slow the sides down.
                subprocess.run([sys.executable, __file__, "--make", name, path], check=True, stdout=subprocess.DEVNULL)
            if INT8 and not os.path.exists(path + ".int8.onnx"):
                subprocess.run([sys.executable, __file__, "--quantize", path], check=True, stdout=subprocess.DEVNULL)
            for batch in os.environ.get("BATCHES", "1 16").split():
                compare(name, path, batch)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make(*sys.argv[2:])
    elif sys.argv[1:2] == ["--quantize"]:
        quantize(*sys.argv[2:])
    elif sys.argv[1:2] == ["--peer"]:
        engine, path, batch = sys.argv[2:]
        sides.serve(ENGINES[engine](path, int(batch)))
    else:
        sys.exit(main())
