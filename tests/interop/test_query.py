"""`sextant query` with servers that are not ours: grpcio with tensorflow-serving-api's services and messages, which
TensorFlow computes; and its classify and regress on our own server, over both protocols."""
import json
import os
import subprocess
import tempfile
from concurrent import futures

import numpy as np
from serving import server

import grpc
import tensorflow as tf
from tensorflow_serving.apis import (classification_pb2, get_model_metadata_pb2, get_model_status_pb2,
                                     model_service_pb2_grpc, predict_pb2, prediction_service_pb2_grpc, regression_pb2)

DTYPES = [tf.float32, tf.float64, tf.int32, tf.int64, tf.uint8, tf.int8, tf.int16, tf.uint16, tf.bool, tf.string]


class Prediction(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Each signature is named after a type: z = [x, x], in lists of values or, of float32, as content."""

    def GetModelMetadata(self, request, context):
        answer = get_model_metadata_pb2.GetModelMetadataResponse()
        answer.model_spec.name = request.model_spec.name
        answer.model_spec.version.value = 4
        signatures = get_model_metadata_pb2.SignatureDefMap()
        for dtype in DTYPES:
            signature = signatures.signature_def[dtype.name]
            signature.method_name = "tensorflow/serving/predict"
            for tensors, name, rank in ((signature.inputs, "x", 1), (signature.outputs, "z", 2)):
                info = tensors[name]
                info.name, info.dtype = f"{name}:0", dtype.as_datatype_enum
                for _ in range(rank):
                    info.tensor_shape.dim.add().size = -1
        answer.metadata["signature_def"].Pack(signatures)
        return answer

    def Predict(self, request, context):
        if request.model_spec.name == "slow":
            assert context.time_remaining() < 2
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "too slow")
        if request.model_spec.name == "odd":
            context.abort(grpc.StatusCode.ABORTED, "100 % öd\nd")
        answer = predict_pb2.PredictResponse()
        x = tf.make_ndarray(request.inputs["x"])
        name = request.model_spec.signature_name
        z = np.stack([x, x], 1) if x.ndim == 1 else x
        answer.outputs["z"].CopyFrom(tf.make_tensor_proto(z, dtype=tf.as_dtype(name)))
        if name == "float32":
            answer.outputs["z"].ClearField("float_val")
            answer.outputs["z"].tensor_content = z.astype("<f4").tobytes()
        return answer

    def Classify(self, request, context):
        answer = classification_pb2.ClassificationResponse()
        for _ in request.input.example_list.examples:
            row = answer.result.classifications.add()
            row.classes.add(label="a", score=0.5)
            row.classes.add(label="b")
        return answer

    def Regress(self, request, context):
        answer = regression_pb2.RegressionResponse()
        for example in request.input.example_list.examples:
            answer.result.regressions.add(value=example.features.feature["x"].float_list.value[0])
        return answer


class Models(model_service_pb2_grpc.ModelServiceServicer):
    def GetModelStatus(self, request, context):
        answer = get_model_status_pb2.GetModelStatusResponse()
        row = answer.model_version_status.add(version=3, state=50)
        row.status.error_code, row.status.error_message = 14, 'out of "disk"'
        answer.model_version_status.add(version=4, state=30)
        return answer


def export(path):
    module = tf.Module()
    features = {"x": tf.io.FixedLenFeature([2], tf.float32), "bias": tf.io.FixedLenFeature([1], tf.int64, [0])}

    def logits(inputs):
        parsed = tf.io.parse_example(inputs, features)
        return parsed["x"] * [1.0, -2.0] + tf.cast(parsed["bias"], tf.float32)

    def names(inputs):
        return tf.repeat(tf.constant([["rose", "äster"]]), tf.shape(inputs)[0], axis=0)

    functions = {"serving_default": lambda inputs: {"classes": names(inputs), "scores": logits(inputs)},
                 "labels": lambda inputs: {"classes": names(inputs)},
                 "regress": lambda inputs: {"outputs": logits(inputs)[:, :1]}}
    texts = [tf.TensorSpec([None], tf.string, "inputs")]
    tf.saved_model.save(module, path, signatures={
        name: tf.function(f, input_signature=texts).get_concrete_function() for name, f in functions.items()})


def query(*words, text=None, code=0):
    done = subprocess.run([os.environ["SEXTANT_BIN"], "query", *words], input=text, capture_output=True, text=True)
    assert done.returncode == code, (words, done)
    return done.stderr if code else done.stdout


def check_foreign():
    foreign = grpc.server(futures.ThreadPoolExecutor(4))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Prediction(), foreign)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(Models(), foreign)
    at = f"localhost:{foreign.add_insecure_port('127.0.0.1:0')}"
    foreign.start()
    ask = lambda *words, **more: query(at, "--model", "m", "--protocol", "grpc", *words, **more)
    values = {tf.bool: [True, False], tf.string: ["", "äöü", "x"], tf.float32: [1.5, -0.1], tf.float64: [0.1, 1e300],
              tf.uint8: [0, 255], tf.int64: [2**62, -1]}
    for dtype in DTYPES:
        x = values.get(dtype, [1, 2, 3])
        answer = json.loads(ask("--signature", dtype.name, "--request", "-", "--json", text=json.dumps(x)))
        assert answer == {"predictions": [[v, v] for v in x]}, (dtype, answer)
        answer = json.loads(ask("--request", "-", text=json.dumps({"signature_name": dtype.name, "inputs": x})))
        assert answer == {"outputs": [[v, v] for v in x]}, (dtype, answer)
    np.save("x.npy", np.array([0.25, 1e-30], np.float32))
    assert json.loads(ask("--signature", "float32", "--input", "x.npy")) == {"predictions": [[0.25] * 2, [1e-30] * 2]}
    assert json.loads(ask("--signature", "string", "--lines", "-", text="a\nb")) == {"predictions": [["a"] * 2, ["b"] * 2]}

    rows = [{"x": 0.5}, {"x": [2.0]}]
    assert json.loads(ask("--method", "classify", "--request", "-", text=json.dumps(rows))) == {
        "results": [[["a", 0.5], ["b", 0.0]]] * 2}
    assert json.loads(ask("--method", "regress", "--request", "-", text=json.dumps({"examples": rows}))) == {
        "results": [0.5, 2.0]}
    versions = json.loads(ask())["model_version_status"]
    assert versions == [{"version": "3", "state": "END",
                         "status": {"error_code": "UNAVAILABLE", "error_message": 'out of "disk"'}},
                        {"version": "4", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}]
    described = json.loads(ask("--method", "metadata"))
    assert described["model_spec"]["version"] == "4"
    assert set(described["metadata"]["signature_def"]["signature_def"]) == {d.name for d in DTYPES}

    floats = ("--protocol", "grpc", "--signature", "float32", "--request", "-")
    error = query(at, "--model", "odd", *floats, text="[1.0]", code=1)
    assert "ABORTED: 100 % öd" in error, error
    error = query(at, "--model", "slow", "--timeout", "1", *floats, text="[1.0]", code=6)
    assert "no complete response within 1 s" in error, error
    error = query(at, "--model", "m", "--protocol", "grpc", "--signature", "no", "--request", "-", text="[1]", code=1)
    assert "no" in error
    foreign.stop(None)
    assert "connect" in query(at, "--model", "m", *floats, text="[1.0]", code=6)


def check_ours():
    export("m/1")
    with server() as port:
        rows = json.dumps([{"x": [1.0, 2.0]}, {"x": [-0.5, 0.25], "bias": 3}])
        for method, signature in (("classify", "serving_default"), ("classify", "labels"), ("regress", "regress")):
            words = ("--method", method, "--signature", signature, "--request", "-")
            by_rest = json.loads(query(f"localhost:{port}", "--model", "m", *words, text=rows))
            by_grpc = json.loads(query(f"localhost:{port}", "--model", "m", "--protocol", "grpc", *words, text=rows))
            assert by_rest == by_grpc, (by_rest, by_grpc)
            assert by_rest["results"][0] in ([["rose", 1.0], ["äster", -4.0]], [["rose", 0.0], ["äster", 0.0]], 1.0)


os.chdir(tempfile.mkdtemp())
check_foreign()
check_ours()
