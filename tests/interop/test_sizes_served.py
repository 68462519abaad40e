"""Models whose shapes only fit some numbers of rows, served: by REST, gRPC, at warm-up, with and without batching, by
many callers at once, each answer is TensorFlow's, and a size that does not fit is INVALID_ARGUMENT for its caller alone."""
import json
import os
import tempfile
import urllib.error
import urllib.request
from concurrent import futures

from serving import fails, server

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2, prediction_service_pb2_grpc

CALLERS, CALLS = 8, 24
W = tf.constant(np.random.default_rng(3).normal(size=(4, 1)).astype(np.float32))


def export(path):
    """serving_default: rows in threes. "squeezed": a row by itself is a scalar. "one": of one row alone."""
    module = tf.Module()
    rows = [tf.TensorSpec([None, 4], tf.float32, "x")]
    functions = {"serving_default": lambda x: {"y": tf.reduce_sum(tf.reshape(tf.nn.relu(x), [-1, 3, 4]), 1)},
                 "squeezed": lambda x: {"y": tf.squeeze(tf.matmul(x, W))},
                 "one": lambda x: {"y": tf.squeeze(x, 0) * 2.0}}
    tf.saved_model.save(module, path, signatures={k: tf.function(f, input_signature=rows).get_concrete_function()
                                                  for k, f in functions.items()})


def request(x, signature):
    message = predict_pb2.PredictRequest()
    message.model_spec.name = "m"
    message.model_spec.signature_name = signature
    message.inputs["x"].CopyFrom(tf.make_tensor_proto(x))
    return message


def write_warmup():
    os.makedirs("m/1/assets.extra", exist_ok=True)
    with tf.io.TFRecordWriter("m/1/assets.extra/tf_serving_warmup_requests") as writer:
        for signature, n in (("serving_default", 6), ("squeezed", 1), ("squeezed", 5), ("one", 1)):
            log = prediction_log_pb2.PredictionLog()
            log.predict_log.request.CopyFrom(request(np.ones((n, 4), np.float32), signature))
            writer.write(log.SerializeToString())


def by_rest(port, x, signature):
    body = json.dumps({"signature_name": signature, "inputs": x.tolist()}).encode()
    try:
        with urllib.request.urlopen(f"http://localhost:{port}/v1/models/m:predict", body) as page:
            return np.array(json.load(page)["outputs"], np.float32)
    except urllib.error.HTTPError as error:
        assert error.code == 400, error.code
        return json.load(error)["error"]


def check(port, stub, loaded, seed):
    rng = np.random.default_rng(seed)
    for i in range(CALLS):
        signature = ("serving_default", "squeezed", "squeezed", "one")[i % 4]
        n = int(rng.integers(1, 9)) if signature != "one" else 1 + int(rng.integers(0, 2))
        n = 65 if i == 5 else n  # more than a batch, and one of them left
        x = rng.normal(size=(n, 4)).astype(np.float32)
        try:
            want = loaded[signature](x=tf.constant(x))["y"].numpy()
        except tf.errors.InvalidArgumentError:
            part = "cannot reshape float32["
            assert part in by_rest(port, x, signature)
            fails(grpc.StatusCode.INVALID_ARGUMENT, part, stub.Predict, request(x, signature))
            continue
        for got in (by_rest(port, x, signature), tf.make_ndarray(stub.Predict(request(x, signature), timeout=120).outputs["y"])):
            assert got.shape == want.shape, (signature, n, got.shape, want.shape)
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    export("m/1")
    loaded = tf.saved_model.load("m/1").signatures
    write_warmup()
    open("batching.cfg", "w").write("max_batch_size { value: 32 } batch_timeout_micros { value: 2000 } "
                                    "num_batch_threads { value: 1 } allowed_batch_sizes: 8 allowed_batch_sizes: 32 "
                                    "max_enqueued_batches { value: 100 } enable_large_batch_splitting { value: true } "
                                    "max_execution_batch_size { value: 32 }")
    for flags in ((), ("--enable_batching", "--batching_parameters_file=batching.cfg")):
        with server(*flags) as port, grpc.insecure_channel(f"localhost:{port}") as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            with futures.ThreadPoolExecutor(CALLERS) as pool:
                list(pool.map(lambda seed: check(port, stub, loaded, seed), range(CALLERS)))
            # Many sizes: what is kept of them stays within the model's memory limit.
            for n in range(3, 900, 3):
                stub.Predict(request(np.ones((n, 4), np.float32), "serving_default"), timeout=120)
