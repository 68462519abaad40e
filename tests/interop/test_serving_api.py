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
                                     predict_pb2, prediction_service_pb2_grpc, regression_pb2)

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


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    export("m/1")
    loaded = tf.saved_model.load("m/1")
    with server() as port, grpc.insecure_channel(f"localhost:{port}") as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        check_classify(stub, loaded)
        check_regress(stub, loaded)
        check_multi_inference(stub, loaded)
        check_metadata(stub)
