"""Batching and warm-up by TensorFlow Serving's own client: calls of many threads are merged, each gets its own answer,
a bad one fails alone, and the metrics page says what was done. TensorFlow computes what the answers have to be."""
import os
import tempfile
import threading
import urllib.error
import urllib.request
from concurrent import futures

from serving import fails, server

import grpc
import numpy as np
import tensorflow as tf
from prometheus_client.parser import text_string_to_metric_families
from tensorflow_serving.apis import (classification_pb2, inference_pb2, model_pb2, predict_pb2,
                                     prediction_log_pb2, prediction_service_pb2_grpc, regression_pb2)

SESSION = ":tensorflow:serving:batching_session:"
THREADS, CALLS, WIDTH = 24, 12, 512


def export(path):
    """A product that takes some milliseconds for a row, and signatures on Examples."""
    rng = np.random.default_rng(3)
    module = tf.Module()
    module.w = tf.Variable((rng.normal(size=(WIDTH, WIDTH)) / WIDTH ** 0.5).astype(np.float32))

    def deep(x):
        for _ in range(24):
            x = tf.tanh(x @ module.w)
        return {"y": x[:, :8]}

    texts = [tf.TensorSpec([None], tf.string, "inputs")]
    parse = lambda inputs: tf.io.parse_example(inputs, {"x": tf.io.FixedLenFeature([2], tf.float32)})["x"]
    functions = {"serving_default": tf.function(deep, input_signature=[tf.TensorSpec([None, WIDTH], tf.float32, "x")]),
                 "classify": tf.function(lambda inputs: {"scores": parse(inputs)}, input_signature=texts),
                 "regress": tf.function(lambda inputs: {"outputs": parse(inputs)[:, :1]}, input_signature=texts)}
    tf.saved_model.save(module, path, signatures={k: f.get_concrete_function() for k, f in functions.items()})


def request(x):
    message = predict_pb2.PredictRequest()
    message.model_spec.name = "m"
    message.inputs["x"].CopyFrom(tf.make_tensor_proto(x))
    return message


def metrics(port):
    with urllib.request.urlopen(f"http://localhost:{port}/monitoring/prometheus/metrics") as page:
        text = page.read().decode()
    return {(s.name, tuple(sorted(s.labels.items()))): s.value
            for family in text_string_to_metric_families(text) for s in family.samples}


def ask_at_once(channel, loaded, rows):
    """Each thread sends CALLS requests of its own rows; returns the number of calls."""
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    start = threading.Barrier(THREADS)

    def run(seed):
        rng = np.random.default_rng(seed)
        start.wait()
        for i in range(CALLS):
            x = rng.normal(size=(1 + (seed + i) % rows, WIDTH)).astype(np.float32)
            y = tf.make_ndarray(stub.Predict(request(x), timeout=120).outputs["y"])
            np.testing.assert_allclose(y, loaded(tf.constant(x))["y"], rtol=1e-3, atol=1e-4)
        return CALLS

    with futures.ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(run, range(THREADS)))


def check_policy(loaded, *flags):
    with server("--rest_api_num_threads=1", *flags) as port, grpc.insecure_channel(f"localhost:{port}") as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        calls = ask_at_once(channel, loaded, 3)
        page = metrics(port)
        value = lambda name, **labels: page.get((SESSION + name, tuple(sorted(labels.items()))), 0)
        runs, pool = value("wrapped_run_count_total"), dict(thread_pool_name="model_server_batch_threads")
        assert value("input_batch_size_count") == value("queuing_latency_count", **pool) == calls, page
        assert value("processed_batch_size_count") == runs and 0 < runs < calls * 0.7, (runs, calls)
        padding = sum(v for (name, _), v in page.items() if name == SESSION + "padding_size_sum")
        assert value("processed_batch_size_sum") == value("input_batch_size_sum") + padding
        sizes = {int(dict(labels)["execution_batch_size"]) for name, labels in page if name == SESSION + "padding_size_count"}
        assert not flags or sizes - {1, 2, 3} <= {4, 8, 16, 32}, sizes  # one that runs by itself is not padded
        assert page["sextant_batcher_waiting", ()] == 0
        # A bad request beside good ones fails alone.
        bad = request(np.zeros((1, 3), np.float32))
        good = [stub.Predict.future(request(np.ones((1, WIDTH), np.float32))) for _ in range(8)]
        fails(grpc.StatusCode.INVALID_ARGUMENT, "expected float32[", stub.Predict, bad)
        want = loaded(tf.ones((1, WIDTH)))["y"]
        for call in good:
            np.testing.assert_allclose(tf.make_ndarray(call.result().outputs["y"]), want, rtol=1e-3, atol=1e-4)
        # More rows than a batch.
        x = np.random.default_rng(9).normal(size=(70, WIDTH)).astype(np.float32)
        y = tf.make_ndarray(stub.Predict(request(x)).outputs["y"])
        np.testing.assert_allclose(y, loaded(tf.constant(x))["y"], rtol=1e-3, atol=1e-4)
        # Deadlines that pass while others run: those calls are not run, and what cannot be in time is refused at once.
        before = metrics(port)["sextant_batcher_runs_total", ()]
        late = [stub.Predict.future(request(x), timeout=0.02) for _ in range(20)]
        codes = {call.code() for call in late}
        assert codes <= {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.OK}, codes
        for call in late:
            assert call.code() != grpc.StatusCode.UNAVAILABLE or "leaves too little of the" in call.details(), call.details()
        assert stub.Predict(request(x[:1])) and metrics(port)["sextant_batcher_runs_total", ()] > before


def spec(signature=""):
    return model_pb2.ModelSpec(name="m", signature_name=signature)


def warmup_records():
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.extend([1.0, 2.0])
    logs = [prediction_log_pb2.PredictionLog() for _ in range(4)]
    logs[0].predict_log.request.CopyFrom(request(np.ones((2, WIDTH), np.float32)))
    for log, signature, made in ((logs[1].classify_log, "classify", classification_pb2.ClassificationRequest()),
                                 (logs[2].regress_log, "regress", regression_pb2.RegressionRequest())):
        made.model_spec.CopyFrom(spec(signature))
        made.input.example_list.examples.append(example)
        log.request.CopyFrom(made)
    multi = inference_pb2.MultiInferenceRequest()
    multi.tasks.add(method_name="tensorflow/serving/classify").model_spec.CopyFrom(spec("classify"))
    multi.tasks.add(method_name="tensorflow/serving/regress").model_spec.CopyFrom(spec("regress"))
    multi.input.example_list.examples.append(example)
    logs[3].multi_inference_log.request.CopyFrom(multi)
    return logs


def write_warmup(logs):
    os.makedirs("m/1/assets.extra", exist_ok=True)
    with tf.io.TFRecordWriter("m/1/assets.extra/tf_serving_warmup_requests") as writer:
        for log in logs:
            writer.write(log.SerializeToString())


def status(port):
    try:
        with urllib.request.urlopen(f"http://localhost:{port}/v1/models/m") as page:
            return page.read().decode()
    except urllib.error.HTTPError:  # its version has not been found yet
        return ""


def check_warmup():
    write_warmup(warmup_records())
    with server() as port:
        assert '"state": "AVAILABLE"' in status(port)
        assert metrics(port)[":tensorflow:cc:saved_model:load_attempt_count_total",
                             (("model_path", "m"), ("status", "success"))] == 1
    bad = warmup_records()
    bad[1].classify_log.request.model_spec.signature_name = "no"
    write_warmup(bad)
    with server("--max_num_load_retries=0", wait="Listening on port") as port:
        for _ in range(600):
            text = status(port)
            if '"END"' in text:
                break
            threading.Event().wait(0.05)
        assert '"END"' in text, text
    with server("--enable_model_warmup=false") as port:
        assert '"state": "AVAILABLE"' in status(port)
    os.remove("m/1/assets.extra/tf_serving_warmup_requests")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    export("m/1")
    loaded = tf.saved_model.load("m/1").signatures["serving_default"]
    open("batching.cfg", "w").write("max_batch_size { value: 32 } batch_timeout_micros { value: 2000 } "
                                    "max_enqueued_batches { value: 100 } num_batch_threads { value: 1 } "
                                    "allowed_batch_sizes: 4 allowed_batch_sizes: 8 allowed_batch_sizes: 16 "
                                    "allowed_batch_sizes: 32 enable_large_batch_splitting { value: true } "
                                    "max_execution_batch_size { value: 32 }")
    parameters = ("--enable_batching", "--batching_parameters_file=batching.cfg")
    check_policy(loaded)
    check_policy(loaded, *parameters)
    check_policy(loaded, *parameters, "--batch_policy=tfs")
    check_warmup()
