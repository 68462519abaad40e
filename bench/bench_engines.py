"""Inference beside OpenVINO, ONNX Runtime and TensorFlow: Keras' SavedModels with random weights, and the same models
as ONNX for ONNX Runtime (tf2onnx). Rounds alternate between the engines, each in a process of its own; of each side the
least time of a run is reported, by the clock and of processors, and the median of the rounds' ratios to Sextant.

MODELS="ResNet50 bert", BATCHES="1 16", ROUNDS=5, THREADS=1 (of each engine; all processors), KEEP=DIR for the models.

Bound by the convolutions and products (bench/README.md); goal: 1.0 of the best of the three for each model."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
THREADS = int(os.environ.get("THREADS", "0"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
SECONDS = 0.5  # of a round, for each side


# ---- A peer: a process that answers a line "RUNS" with the seconds of a run, by the clock and of processors ----

def serve(run):
    run()
    print("ready", flush=True)
    for line in sys.stdin:
        runs = int(line)
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(runs):
            run()
        print(time.perf_counter() - start, time.process_time() - cpu, flush=True)


def feed_of(shape, batch):
    import numpy as np
    return np.random.rand(*[batch if not isinstance(d, int) or d < 0 else d for d in shape]).astype("float32")


def openvino(path, batch):
    import openvino as ov
    core = ov.Core()
    model = core.read_model(path)
    feed = feed_of([d.get_length() if d.is_static else -1 for d in model.inputs[0].partial_shape], batch)
    model.reshape({model.inputs[0]: feed.shape})
    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": os.environ.get("PRECISION", "f32")}
    if THREADS:
        options["INFERENCE_NUM_THREADS"] = THREADS
    request = core.compile_model(model, "CPU", options).create_infer_request()
    return lambda: request.infer({0: feed}, share_inputs=True, share_outputs=True)


def onnxruntime(path, batch):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = ort.InferenceSession(path + ".onnx", options, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    feed = {given.name: feed_of(given.shape, batch)}
    return lambda: session.run(None, feed)


def tensorflow(path, batch):
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    model = tf.saved_model.load(path)
    signature = model.signatures["serving_default"]
    (name, spec), = signature.structured_input_signature[1].items()
    feed = {name: tf.constant(feed_of([d or -1 for d in spec.shape], batch))}
    return lambda: [y.numpy() for y in signature(**feed).values()]


ENGINES = {"OpenVINO": openvino, "ONNX Runtime": onnxruntime, "TensorFlow": tensorflow}


class Side:
    def __init__(self, command):
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"this side does not run: {' '.join(command)}")
        self.runs = 1
        self.runs = max(1, int(0.03 / min(self.run()[0] for _ in range(3))))

    def run(self):
        self.process.stdin.write(f"{self.runs}\n")
        self.process.stdin.flush()
        return [float(x) / self.runs for x in self.process.stdout.readline().split()]

    def measure(self):
        times, end = [], time.perf_counter() + SECONDS
        while len(times) < 3 or time.perf_counter() < end:
            times.append(self.run())
        return min(t for t, _ in times), min(cpu for _, cpu in times)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---- The models ----

def make(name, path):
    """A SavedModel at `path` and its ONNX form beside it."""
    import keras
    import bench_infer
    layers = keras.layers

    def bert():
        """An encoder of BERT-base's shape after its embeddings: 12 layers, 768 wide, 12 heads, 128 tokens."""
        x = inputs = keras.Input((128, 768))
        for _ in range(12):
            x = layers.LayerNormalization()(x + layers.MultiHeadAttention(12, 64)(x, x))
            hidden = layers.Dense(3072, activation="gelu")(x)
            x = layers.LayerNormalization()(x + layers.Dense(768)(hidden))
        return keras.Model(inputs, x)

    {**bench_infer.MODELS, "bert": bert}[name]().export(path, verbose=False)
    subprocess.run([sys.executable, "-m", "tf2onnx.convert", "--saved-model", path, "--output", path + ".onnx", "--opset",
                    "17"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compare(name, path, batch):
    program = os.path.join(os.environ["SEXTANT_BUILD"], "bench", "bench_infer")
    ours = Side([program, path, str(batch), "--serve"])
    peers = {}
    for engine in ENGINES:
        try:
            peers[engine] = Side([sys.executable, __file__, "--peer", engine, path, str(batch)])
        except RuntimeError as e:
            print(f"{name}, batch {batch}: {e}", flush=True)
    rounds = []
    for _ in range(ROUNDS):
        rounds.append({None: ours.measure(), **{engine: peer.measure() for engine, peer in peers.items()}})
    for side in (ours, *peers.values()):
        side.close()
    for i, what in enumerate(("by the clock", "of processors")):
        text = f"{name:<15} batch {batch:<3} {what:<13} {min(r[None][i] for r in rounds) * 1e3:8.2f} ms"
        for engine in peers:
            ratios = sorted(r[engine][i] / r[None][i] for r in rounds)
            text += (f"; {engine} {min(r[engine][i] for r in rounds) * 1e3:.2f} ms, "
                     f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} … {ratios[-1]:.2f})")
        print(text, flush=True)


def main():
    if sys.argv[1:2] == ["--peer"]:
        engine, path, batch = sys.argv[2:]
        return serve(ENGINES[engine](path, int(batch)))
    peers = subprocess.run([os.path.join(SOURCE, "tools", "peers"), "engines"], text=True, stdout=subprocess.PIPE)
    if peers.returncode != 0:
        print("SKIP: the engines could not be installed (tools/peers engines says why)")
        return 77
    if os.path.realpath(sys.prefix) != os.path.realpath(os.path.dirname(os.path.dirname(peers.stdout.strip()))):
        os.execv(peers.stdout.strip(), [peers.stdout.strip(), *sys.argv])
    wanted = os.environ.get("MODELS", "ResNet50 MobileNetV2 EfficientNetB0 DenseNet121 InceptionV3 bert lstm").split()
    with tempfile.TemporaryDirectory() as directory:
        for name in wanted:
            path = os.path.join(os.environ.get("KEEP", directory), name)
            if not os.path.exists(path + ".onnx"):
                # In a process of its own: what TensorFlow holds here would slow the engines down.
                subprocess.run([sys.executable, __file__, "--make", name, path], check=True, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
            for batch in map(int, os.environ.get("BATCHES", "1 16").split()):
                compare(name, path, batch)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make(*sys.argv[2:])
    else:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
        sys.exit(main())
