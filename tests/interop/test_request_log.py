"""The request log, read by TensorFlow with TensorFlow Serving's own messages: what its client sent and was answered."""
import glob
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request

from serving import server

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (classification_pb2, inference_pb2, predict_pb2, prediction_log_pb2,
                                     prediction_service_pb2_grpc, regression_pb2)


def export(path):
    module = tf.Module()
    module.w = tf.Variable([[1.0, 3.0], [2.0, -1.0]])
    texts = [tf.TensorSpec([None], tf.string, "inputs")]
    parse = lambda inputs: tf.io.parse_example(inputs, {"x": tf.io.FixedLenFeature([2], tf.float32)})["x"] @ module.w
    functions = {
        "serving_default": tf.function(lambda x: {"y": x @ module.w, "n": tf.shape(x)[0]},
                                       input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")]),
        "classify": tf.function(lambda inputs: {"scores": parse(inputs)}, input_signature=texts),
        "regress": tf.function(lambda inputs: {"outputs": parse(inputs)[:, :1]}, input_signature=texts)}
    tf.saved_model.save(module, path, signatures={k: f.get_concrete_function() for k, f in functions.items()})


def by_grpc(channel):
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.extend([1.0, 2.0])
    predict = predict_pb2.PredictRequest()
    predict.model_spec.name = "m"
    predict.inputs["x"].CopyFrom(tf.make_tensor_proto([[1.0, 2.0], [3.0, 4.0]]))
    predict.output_filter.append("y")
    made = [(predict, stub.Predict, "predict_log")]
    for message, method, name in ((classification_pb2.ClassificationRequest(), stub.Classify, "classify"),
                                  (regression_pb2.RegressionRequest(), stub.Regress, "regress")):
        message.model_spec.name, message.model_spec.signature_name = "m", name
        message.input.example_list.examples.extend([example] * 2)
        made.append((message, method, name + "_log"))
    multi = inference_pb2.MultiInferenceRequest()
    for name in ("classify", "regress"):
        task = multi.tasks.add(method_name=f"tensorflow/serving/{name}")
        task.model_spec.name, task.model_spec.signature_name = "m", name
    multi.input.example_list.examples.append(example)
    made.append((multi, stub.MultiInference, "multi_inference_log"))
    return [(name, message, method(message, compression=how)) for message, method, name in made
            for how in (grpc.Compression.NoCompression, grpc.Compression.Gzip)]


def by_rest(port):
    post = lambda path, body: urllib.request.urlopen(f"http://localhost:{port}/v1/models/m{path}", body.encode()).read()
    post(":predict", '{"inputs": [[1.0, 2.0]]}')
    post(":classify", '{"signature_name": "classify", "examples": [{"x": [1.0, 2.0]}]}')
    post(":regress", '{"signature_name": "regress", "examples": [{"x": [1.0, 2.0]}]}')


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    export("m/1")
    began = int(time.time())
    with server("--request_log=log/r") as port, grpc.insecure_channel(f"localhost:{port}") as channel:
        sent = by_grpc(channel)
        by_rest(port)
    files = glob.glob("log/r-m-*.tfrecord")
    assert len(files) == 1, files
    logs = [prediction_log_pb2.PredictionLog.FromString(r.numpy()) for r in tf.data.TFRecordDataset(files)]
    assert len(logs) == len(sent) + 3, len(logs)
    for log in logs:
        metadata = log.log_metadata
        assert metadata.model_spec.name == "m" and metadata.model_spec.version.value == 1
        assert metadata.sampling_config.sampling_rate == 1.0 and list(metadata.saved_model_tags) == ["serve"]
        assert began <= metadata.timestamp_secs <= time.time() + 1
    for log, (kind, request, answer) in zip(logs, sent):
        assert log.WhichOneof("log_type") == kind
        assert getattr(log, kind).request == request
        assert getattr(log, kind).response == answer
    predict, classify, regress = logs[len(sent):]
    np.testing.assert_array_equal(tf.make_ndarray(predict.predict_log.request.inputs["x"]), [[1, 2]])
    np.testing.assert_allclose(tf.make_ndarray(predict.predict_log.response.outputs["y"]), [[5, 1]])
    assert tf.make_ndarray(predict.predict_log.response.outputs["n"]) == 1
    assert predict.predict_log.request.model_spec.signature_name == "serving_default"
    example = classify.classify_log.request.input.example_list.examples[0]
    assert list(example.features.feature["x"].float_list.value) == [1.0, 2.0]
    assert [c.score for c in classify.classify_log.response.result.classifications[0].classes] == [5.0, 1.0]
    assert regress.regress_log.response.result.regressions[0].value == 5.0

    # Replayed, they are answered as they were; and they warm up the next start.
    with server() as port:
        run = lambda *words, check=True: subprocess.run([os.environ["SEXTANT_BIN"], "replay", *files, *words],
                                                        check=check, capture_output=True, text=True).stdout
        assert f": {len(logs)} answered as in the log, 0 differ, 0 failed" in run("--url", f"localhost:{port}")
    # All go to the version that is asked for.
    shutil.copytree("m/1", "m/2")
    with server() as port:
        result = run("--url", f"localhost:{port}", "--version", "1", check=False)
        assert f"{len(logs)} failed" in result, result
        assert f": {len(logs)} answered as in the log" in run("--url", f"localhost:{port}", "--version", "2")
    shutil.rmtree("m/2")
    assert ": 4 warm-up records" in run("--warmup-dir", "m/1")
    with server("--max_num_load_retries=0"):
        pass
