"""TensorFlow Serving's API by its own client: Classify, Regress, MultiInference, GetModelMetadata, over gRPC and REST.
TensorFlow computes what the answers have to be."""
import json
import os
import subprocess
import tempfile
import urllib.request

from serving import fails, server

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from tensorflow.python.saved_model import loader_impl
from tensorflow_serving.apis import (classification_pb2, get_model_metadata_pb2, inference_pb2, input_pb2,
                                     predict_pb2, prediction_service_pb2_grpc, regression_pb2, session_service_pb2)

CLASSIFY, REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"
NAMES = ["rose", "tulip", "äster"]
INVALID = grpc.StatusCode.INVALID_ARGUMENT


def export(path):
    """x: 2 floats with a default, bias: one integer with a default."""
    module = tf.Module()
    module.w = tf.Variable(np.array([[1, -2, 0.5], [0.25, 3, -1]], np.float32))
    features = {"x": tf.io.FixedLenFeature([2], tf.float32), "bias": tf.io.FixedLenFeature([1], tf.int64, [0])}
    texts = [tf.TensorSpec([None], tf.string, "inputs")]

    def logits(inputs):
        parsed = tf.io.parse_example(inputs, features)
        return parsed["x"] @ module.w + tf.cast(parsed["bias"], tf.float32)

    def names(inputs):
        return tf.repeat(tf.constant([NAMES]), tf.shape(inputs)[0], axis=0)

    functions = {
        "serving_default": lambda inputs: {"classes": names(inputs), "scores": logits(inputs)},
        "labels": lambda inputs: {"classes": names(inputs)},
        "scores": lambda inputs: {"scores": logits(inputs)},
        "regress": lambda inputs: {"outputs": logits(inputs)[:, :1]},
        "flat": lambda inputs: {"outputs": logits(inputs)[:, 1]},
        "wide": lambda inputs: {"outputs": logits(inputs)},
        "other": lambda inputs: {"y": logits(inputs)},
    }
    signatures = {k: tf.function(f, input_signature=texts).get_concrete_function() for k, f in functions.items()}
    floats = tf.function(lambda inputs: {"outputs": inputs}, input_signature=[tf.TensorSpec([None], tf.float32, "inputs")])
    signatures["floats"] = floats.get_concrete_function()
    tf.saved_model.save(module, path, signatures=signatures)


def example(**features):
    made = tf.train.Example()
    for name, value in features.items():
        kind = made.features.feature[name]
        if isinstance(value[0], float):
            kind.float_list.value.extend(value)
        else:
            kind.int64_list.value.extend(value)
    return made


EXAMPLES = [example(x=[1.0, 2.0]), example(x=[-0.5, 0.25], bias=[3]), example(x=[0.0, 0.0])]


def want(loaded, signature, examples=EXAMPLES, context=None):
    texts = [(context.SerializeToString() if context else b"") + e.SerializeToString() for e in examples]
    return {k: v.numpy() for k, v in loaded.signatures[signature](tf.constant(texts)).items()}


def filled(message, signature="", examples=EXAMPLES, context=None):
    message.model_spec.name = "m"
    message.model_spec.signature_name = signature
    fill_input(message.input, examples, context)
    return message


def fill_input(made, examples=EXAMPLES, context=None):
    if context is not None:
        made.example_list_with_context.context.CopyFrom(context)
        made.example_list_with_context.examples.extend(examples)
    else:
        made.example_list.examples.extend(examples)


def check_classify(stub, loaded):
    for context in (None, example(bias=[7]), example(x=[5.0, 5.0])):
        expected = want(loaded, "serving_default", context=context)
        for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
            answer = stub.Classify(filled(classification_pb2.ClassificationRequest(), context=context),
                                   compression=compression)
            rows = answer.result.classifications
            np.testing.assert_allclose([[c.score for c in row.classes] for row in rows], expected["scores"], rtol=1e-6)
            assert [[c.label for c in row.classes] for row in rows] == [NAMES] * 3
        assert (answer.model_spec.name, answer.model_spec.version.value) == ("m", 1)
        assert answer.model_spec.signature_name == "serving_default"
    labels = stub.Classify(filled(classification_pb2.ClassificationRequest(), "labels")).result
    assert [(c.label, c.score) for c in labels.classifications[2].classes] == [(name, 0) for name in NAMES]
    scores = stub.Classify(filled(classification_pb2.ClassificationRequest(), "scores")).result
    assert [c.label for c in scores.classifications[0].classes] == [""] * 3

    ask = lambda *args: fails(INVALID, args[0], stub.Classify, filled(classification_pb2.ClassificationRequest(), *args[1:]))
    ask("No signature was found with the name: nothing", "nothing")
    ask("Expected classification signature outputs to contain at least one of \"classes\" or \"scores\"", "regress")
    ask("Input is empty.", "", [])
    ask("", "", [example(x=[1.0])])  # a wrong number of values: the model's graph says so
    fails(INVALID, "Missing ModelSpec", stub.Classify, classification_pb2.ClassificationRequest())
    unknown = filled(classification_pb2.ClassificationRequest())
    unknown.model_spec.name = "no"
    fails(grpc.StatusCode.NOT_FOUND, "Servable not found for request: Latest(no)", stub.Classify, unknown)
    unknown.model_spec.version.value = 7
    fails(grpc.StatusCode.NOT_FOUND, "Servable not found for request: Specific(no, 7)", stub.Classify, unknown)
    unknown.model_spec.version_label = "stable"
    fails(INVALID, "Unrecognized servable version label: stable", stub.Classify, unknown)


def check_regress(stub, loaded):
    for signature in ("regress", "flat"):
        answer = stub.Regress(filled(regression_pb2.RegressionRequest(), signature, context=example(bias=[-2])))
        expected = want(loaded, signature, context=example(bias=[-2]))["outputs"].reshape(-1)
        np.testing.assert_allclose([r.value for r in answer.result.regressions], expected, rtol=1e-6)
        assert answer.model_spec.signature_name == signature
    ask = lambda *args: fails(INVALID, args[0], stub.Regress, filled(regression_pb2.RegressionRequest(), *args[1:]))
    ask("Expected one output Tensor.")
    ask("No regression outputs found in SignatureDef: ", "other")
    ask("either [batch_size] or [batch_size, 1] but got [3,3]", "wide")
    ask("takes no serialized examples", "floats")


def multi(*tasks, name="m"):
    request = inference_pb2.MultiInferenceRequest()
    for signature, method in tasks:
        task = request.tasks.add(method_name=method)
        task.model_spec.name = name
        task.model_spec.signature_name = signature
    fill_input(request.input)
    return request


def check_multi_inference(stub, loaded):
    answer = stub.MultiInference(multi(("regress", REGRESS), ("", CLASSIFY)))
    assert [r.model_spec.signature_name for r in answer.results] == ["regress", "serving_default"]
    assert answer.results[0].model_spec.version.value == 1
    got = [r.value for r in answer.results[0].regression_result.regressions]
    np.testing.assert_allclose(got, want(loaded, "regress")["outputs"].reshape(-1), rtol=1e-6)
    rows = answer.results[1].classification_result.classifications
    np.testing.assert_allclose([[c.score for c in row.classes] for row in rows],
                               want(loaded, "serving_default")["scores"], rtol=1e-6)
    twice = multi(("regress", REGRESS), ("regress", REGRESS))
    fails(INVALID, "Duplicate evaluation of signature: regress", stub.MultiInference, twice)
    fails(INVALID, "Requested signature not found in model graph: no", stub.MultiInference, multi(("no", REGRESS)))
    fails(grpc.StatusCode.UNIMPLEMENTED, "Unsupported signature method_name: tensorflow/serving/predict",
          stub.MultiInference, multi(("regress", "tensorflow/serving/predict")))
    mixed = multi(("regress", REGRESS), ("", CLASSIFY))
    mixed.tasks[1].model_spec.name = "n"
    fails(INVALID, "must access the same model name", stub.MultiInference, mixed)
    mixed.tasks[1].model_spec.name = ""
    fails(INVALID, "Found ModelSpec with an empty model name.", stub.MultiInference, mixed)
    fails(INVALID, "ModelSpec has no name specified.", stub.MultiInference, inference_pb2.MultiInferenceRequest())


def metadata_request(*fields):
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=fields)
    request.model_spec.name = "m"
    return request


def check_metadata(stub):
    answer = stub.GetModelMetadata(metadata_request("signature_def"))
    assert (answer.model_spec.name, answer.model_spec.version.value) == ("m", 1)
    got = get_model_metadata_pb2.SignatureDefMap()
    assert answer.metadata["signature_def"].Unpack(got)
    saved = loader_impl.parse_saved_model("m/1").meta_graphs[0].signature_def
    assert set(got.signature_def) == set(saved), (set(got.signature_def), set(saved))
    for name in saved:
        assert got.signature_def[name] == saved[name], (got.signature_def[name], saved[name])
    fails(INVALID, "must specify at least one metadata_field", stub.GetModelMetadata, metadata_request())
    fails(INVALID, "Metadata field graph is not supported", stub.GetModelMetadata, metadata_request("signature_def", "graph"))
    return got


def post(port, path, body):
    """The status and the text of the answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(f"http://localhost:{port}{path}", data)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def number(value):
    """A float as TensorFlow Serving writes it: six digits if they read back, else nine."""
    text = f"{value:.6g}"
    text = text if np.float32(text) == value else f"{value:.9g}"
    return text if "." in text or "e" in text else text + ".0"


ROWS = [{"x": [1.0, 2.0]}, {"x": [-0.5, 0.25], "bias": 3}, {"x": [0.0, 0.0], "bias": [True]}]


def check_rest(port, loaded):
    examples = EXAMPLES[:2] + [example(x=[0.0, 0.0], bias=[1])]
    path = "/v1/models/m:classify"
    for context, features in ((None, None), (example(bias=[7]), {"bias": 7})):
        body = {"examples": ROWS, **({"context": features} if features else {})}
        if features:  # in any order
            body = {"context": body["context"], "examples": ROWS}
        expected = want(loaded, "serving_default", examples, context)
        rows = [", ".join(f'["{name}", {number(score)}]' for name, score in zip(NAMES, row)) for row in expected["scores"]]
        text = '{\n    "results": [' + ", ".join(f"[{row}]" for row in rows) + "\n    ]\n}"
        assert post(port, path, body) == (200, text), (post(port, path, body), text)
        if features:
            assert post(port, path, {"examples": ROWS, "context": features}) == (200, text)
    code, text = post(port, "/v1/models/m/versions/1:classify", {"signature_name": "labels", "examples": ROWS[:1]})
    assert (code, text) == (200, '{\n    "results": [[["rose", 0.0], ["tulip", 0.0], ["äster", 0.0]]\n    ]\n}'), text
    for signature in ("regress", "flat"):
        values = want(loaded, signature, examples)["outputs"].reshape(-1)
        got = post(port, "/v1/models/m:regress", {"signature_name": signature, "examples": ROWS})
        assert got == (200, '{\n    "results": [' + ", ".join(map(number, values)) + "]\n}"), got
    for body, part in ((b"", "JSON Parse error: The document is empty"), (b"{}", "key 'examples' is expected and was not found"),
                       ({"examples": 1}, "Expecting 'examples' value to be an list/array"),
                       ({"examples": []}, "'examples' value is an empty array"),
                       ({"examples": [[1]]}, "Example must be JSON object but got JSON Array"),
                       ({"examples": [{"x": None}]}, "Feature: x has element with unexpected JSON type: Null"),
                       ({"examples": [{"x": [[1]]}]}, "Feature: x has element with unexpected JSON type: Array"),
                       ({"examples": [{"x": {"b": 1}}]}, "Feature: x has element with unexpected JSON type: Object"),
                       ({"examples": [{"x": {"b64": "!"}}]}, "Unable to base64 decode"),
                       ({"examples": [{"x": [1.0, 2]}]}, "Unexpected element type in feature: x expecting type: float"),
                       ({"examples": [{"x": [1, "a"]}]}, "Unexpected element type in feature: x expecting type: int64"),
                       ({"examples": [{"x": ["a", 1]}]}, "Unexpected element type in feature: x expecting type: bytes"),
                       ({"examples": [{"x": 2**63}]}, "Feature: x has uint64_t element. Only int64_t is supported."),
                       ({"signature_name": 1, "examples": [{}]}, "'signature_name' key must be a string value."),
                       ({"signature_name": "no", "examples": ROWS}, "No signature was found with the name: no"),
                       ({"examples": ROWS, "context": 1}, "Example must be JSON object but got JSON Number"),
                       (b'{"examples": [{"x": [1.0, 2.0]}]} x', "JSON Parse error")):
        code, text = post(port, path, body)
        assert code == 400 and part in json.loads(text)["error"], (body, code, text)
    code, text = post(port, "/v1/models/no:classify", {"examples": ROWS})
    assert code == 404 and json.loads(text)["error"] == "Servable not found for request: Latest(no)", text


def session_run(channel):
    return channel.unary_unary("/tensorflow.serving.SessionService/SessionRun",
                               session_service_pb2.SessionRunRequest.SerializeToString,
                               session_service_pb2.SessionRunResponse.FromString)


def session_request(name, value, fetch, **more):
    request = session_service_pb2.SessionRunRequest(fetch=fetch, **more)
    request.model_spec.name = "m"
    request.feed.add(name=name).tensor.CopyFrom(tf.make_tensor_proto(value))
    return request


def check_session_run(channel, loaded, signatures):
    run = session_run(channel)
    texts = [e.SerializeToString() for e in EXAMPLES]
    expected = want(loaded, "serving_default")["scores"]
    served = signatures.signature_def["serving_default"]
    tensor = served.outputs["scores"].name
    answer = run(session_request(served.inputs["inputs"].name, texts, [tensor]))
    assert [t.name for t in answer.tensor] == [tensor] and answer.model_spec.version.value == 1
    np.testing.assert_allclose(tf.make_ndarray(answer.tensor[0].tensor), expected, rtol=1e-6)
    answer = run(session_request("inputs", texts, ["scores"], tensor_name_is_alias=True))
    np.testing.assert_allclose(tf.make_ndarray(answer.tensor[0].tensor), expected, rtol=1e-6)
    fails(INVALID, "input tensor alias not found in signature: other:0", run, session_request("other:0", texts, [tensor]))
    fails(grpc.StatusCode.UNIMPLEMENTED, "target", run, session_request("inputs", texts, [tensor], target=["init"]))


def predict_request(**inputs):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "m"
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request


def check_predict_errors(stub):
    fails(INVALID, "input size does not match signature: 2!=1 len({a,inputs}) != len({inputs}). Sent extra: {a}. "
          "Missing but required: {}.", stub.Predict, predict_request(inputs=[b""], a=1.0))
    fails(INVALID, "input tensor alias not found in signature: a. Inputs expected to be in the set {inputs}.",
          stub.Predict, predict_request(a=[b""]))
    fails(INVALID, "input size does not match signature: 0!=1 len({}) != len({inputs}). Sent extra: {}. "
          "Missing but required: {inputs}.", stub.Predict, predict_request())
    request = predict_request(inputs=[b""])
    request.output_filter.append("y")
    fails(INVALID, "output tensor alias not found in signature: y Outputs expected to be in the set {classes,scores}.",
          stub.Predict, request)
    request.output_filter[:] = ["scores", "scores"]
    fails(INVALID, "duplicate output tensor alias: scores", stub.Predict, request)


def check_content(stub, loaded, is_content):
    request = predict_request(inputs=[e.SerializeToString() for e in EXAMPLES])
    request.request_options.client_id = b"accepted"  # and of no effect, as in TensorFlow Serving
    answer = stub.Predict(request)
    expected = want(loaded, "serving_default")
    for name in ("classes", "scores"):
        made = answer.outputs[name]
        lists = {"classes": made.string_val, "scores": made.float_val}
        assert bool(made.tensor_content) == is_content and bool(lists[name]) != is_content
        got = tf.io.parse_tensor(made.SerializeToString(), made.dtype).numpy()
        np.testing.assert_array_equal(got, expected[name]) if name == "classes" else \
            np.testing.assert_allclose(got, expected[name], rtol=1e-6)


def get(port, path):
    with urllib.request.urlopen(f"http://localhost:{port}{path}") as answer:
        return json.loads(answer.read())


def check_rest_metadata(port, signatures):
    for path in ("", "/versions/1"):
        page = get(port, f"/v1/models/m{path}/metadata")
        assert page["model_spec"] == {"name": "m", "signature_name": "", "version": "1"}
        got = json_format.ParseDict(page["metadata"]["signature_def"], get_model_metadata_pb2.SignatureDefMap())
        assert got == signatures
    status = {"model_version_status": [{"version": "1", "state": "AVAILABLE",
                                        "status": {"error_code": "OK", "error_message": ""}}]}
    for path in ("", "/versions/1", "/labels/any"):
        assert get(port, f"/v1/models/m{path}") == status


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    export("m/1")
    loaded = tf.saved_model.load("m/1")
    with server("--json_float_format=tfs") as port, grpc.insecure_channel(f"localhost:{port}") as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        check_classify(stub, loaded)
        check_regress(stub, loaded)
        check_multi_inference(stub, loaded)
        signatures = check_metadata(stub)
        check_predict_errors(stub)
        check_content(stub, loaded, False)
        check_session_run(channel, loaded, signatures)
        check_rest(port, loaded)
        check_rest_metadata(port, signatures)
    with server("--enable_serialization_as_tensor_content") as port, grpc.insecure_channel(f"localhost:{port}") as channel:
        check_content(prediction_service_pb2_grpc.PredictionServiceStub(channel), loaded, True)
