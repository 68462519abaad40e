"""TensorFlow Serving's ModelService by its own client, and gRPC's reflection by grpcio-reflection."""
import os
import tempfile
import threading

from serving import fails, server

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tensorflow_serving.apis import (classification_pb2, get_model_metadata_pb2, get_model_status_pb2, inference_pb2,
                                     model_management_pb2, model_service_pb2_grpc, predict_pb2,
                                     prediction_service_pb2_grpc, regression_pb2, session_service_pb2)

INVALID, NOT_FOUND = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
STATE = get_model_status_pb2.ModelVersionStatus


def export(path, factor):
    module = tf.Module()
    module.factor = tf.Variable(factor)
    f = tf.function(lambda x: {"y": x * module.factor}, input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    tf.saved_model.save(module, path, signatures=f)


def status_request(name, **more):
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = name
    if "version" in more:
        request.model_spec.version.value = more["version"]
    if "label" in more:
        request.model_spec.version_label = more["label"]
    return request


def check_status(stub):
    answer = stub.GetModelStatus(status_request("m"))
    assert [(v.version, v.state, v.status.error_code, v.status.error_message) for v in answer.model_version_status] == [
        (2, STATE.AVAILABLE, 0, "")], answer
    assert stub.GetModelStatus(status_request("m", version=2)) == answer
    assert stub.GetModelStatus(status_request("m", label="any")) == answer
    fails(NOT_FOUND, "Could not find version 7 of model m", stub.GetModelStatus, status_request("m", version=7))
    fails(NOT_FOUND, "Could not find any versions of model no", stub.GetModelStatus, status_request("no"))
    fails(INVALID, "Missing ModelSpec", stub.GetModelStatus, get_model_status_pb2.GetModelStatusRequest())


def reload_request(*models):
    request = model_management_pb2.ReloadConfigRequest()
    request.config.model_config_list.SetInParent()
    for name, path, *versions in models:
        config = request.config.model_config_list.config.add(name=name, base_path=path, model_platform="tensorflow")
        if versions:
            config.model_version_policy.specific.versions.extend(versions)
    return request


def predict(channel, name, **spec):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = name
    if "label" in spec:
        request.model_spec.version_label = spec["label"]
    request.inputs["x"].CopyFrom(tf.make_tensor_proto(np.ones(1, np.float32)))
    answer = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(request)
    return answer.model_spec.version.value, answer.outputs["y"].float_val[0]


def check_reload(channel, folder):
    stub = model_service_pb2_grpc.ModelServiceStub(channel)
    assert predict(channel, "m") == (2, 20)
    request = reload_request(("m", f"{folder}/m", 1, 2), ("n", f"{folder}/n"))
    request.config.model_config_list.config[0].version_labels["old"] = 2
    request.metric_names.extend(["/tensorflow/serving/model_warmup_latency", "any"])
    answer = stub.HandleReloadConfigRequest(request)
    assert answer.status.error_code == 0 and not answer.status.error_message
    assert [(m.name, m.int64_value_increase) for m in answer.metric] == [(name, 0) for name in request.metric_names]
    assert predict(channel, "n") == (5, 3), "a new model is served when the answer comes"
    assert predict(channel, "m", label="old") == (2, 20)

    # All or nothing: nothing of these is taken.
    before = stub.GetModelStatus(status_request("n"))
    for code, part, bad in (
            (INVALID, "model_config_list.config[1]", reload_request(("m", f"{folder}/m"), ("", "/x"))),
            (INVALID, "given twice", reload_request(("k", f"{folder}/n"), ("k", f"{folder}/n"))),
            (INVALID, "Only ModelConfigList is currently supported", model_management_pb2.ReloadConfigRequest())):
        fails(code, part, stub.HandleReloadConfigRequest, bad)
    labelled = reload_request(("m", f"{folder}/m"), ("k", f"{folder}/n"))
    labelled.config.model_config_list.config[0].version_labels["new"] = 9
    fails(grpc.StatusCode.FAILED_PRECONDITION, "Request to assign label to version 9 of model m, which is not currently "
          "available for inference", stub.HandleReloadConfigRequest, labelled)
    platform = reload_request(("m", f"{folder}/m"))
    platform.config.model_config_list.config[0].model_platform = "other"
    fails(INVALID, "model_platform", stub.HandleReloadConfigRequest, platform)
    assert stub.GetModelStatus(status_request("n")) == before
    fails(NOT_FOUND, "Servable not found for request: Latest(k)", predict, channel, "k")
    raw = channel.unary_unary("/tensorflow.serving.ModelService/HandleReloadConfigRequest")
    fails(INVALID, "", raw, b"\x0a\x05\x0a\xff")

    # A model that cannot be served: the answer says so, the others are served.
    fails(grpc.StatusCode.UNKNOWN, "1 model(s) did not become available: {{name: missing}}",
          stub.HandleReloadConfigRequest, reload_request(("m", f"{folder}/m"), ("missing", f"{folder}/missing")))
    fails(NOT_FOUND, "Servable not found for request: Latest(n)", predict, channel, "n")
    stub.HandleReloadConfigRequest(reload_request(("m", f"{folder}/m")))
    assert predict(channel, "m") == (2, 20)


def check_reflection(channel):
    database = ProtoReflectionDescriptorDatabase(channel)
    services = database.get_services()
    for name in ("PredictionService", "ModelService", "SessionService"):
        assert f"tensorflow.serving.{name}" in services, services
    assert "inference.GRPCInferenceService" in services
    assert {"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection"} <= set(services)
    pool = descriptor_pool.DescriptorPool(database)
    service = pool.FindServiceByName("tensorflow.serving.PredictionService")
    assert [m.name for m in service.methods] == ["Classify", "Regress", "Predict", "MultiInference", "GetModelMetadata"]
    method = service.FindMethodByName("Predict")
    make = lambda descriptor: message_factory.GetMessageClass(descriptor)
    request = make(method.input_type)()  # a client that knows only what it was told
    request.model_spec.name = "m"
    request.inputs["x"].dtype = 1
    request.inputs["x"].tensor_shape.dim.add(size=1)
    request.inputs["x"].float_val.append(1)
    call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict", type(request).SerializeToString,
                               make(method.output_type).FromString)
    assert call(request).outputs["y"].float_val[0] == 20
    # Every message is that of TensorFlow Serving's own client, as far as it goes.
    for module in (classification_pb2, get_model_metadata_pb2, get_model_status_pb2, inference_pb2, model_management_pb2,
                   predict_pb2, regression_pb2, session_service_pb2):
        for name, theirs in module.DESCRIPTOR.message_types_by_name.items():
            if name == "PredictStreamedOptions":
                continue
            ours = pool.FindMessageTypeByName(theirs.full_name)
            for field in ours.fields:
                other = theirs.fields_by_name[field.name]
                assert (field.number, field.type, field.is_repeated) == (other.number, other.type, other.is_repeated), field.full_name
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    ask = reflection_pb2.ServerReflectionRequest
    answers = list(stub.ServerReflectionInfo(iter([
        ask(file_containing_symbol="tensorflow.serving.PredictionService.Predict"),
        ask(file_containing_symbol="tensorflow.serving.ModelVersionStatus.State"),
        ask(file_containing_symbol="tensorflow.serving.Pred"), ask(file_by_filename="x.proto"), ask(),
        ask(all_extension_numbers_of_type="tensorflow.serving.ModelSpec"), ask(list_services="", host="h")])))
    kinds = [a.WhichOneof("message_response") for a in answers]
    assert kinds == ["file_descriptor_response"] * 2 + ["error_response"] * 4 + ["list_services_response"], kinds
    assert [a.error_response.error_code for a in answers[2:6]] == [5, 5, 3, 5]
    assert answers[6].valid_host == "h" and answers[6].original_request.host == "h"
    newer = channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", ask.SerializeToString,
                                  reflection_pb2.ServerReflectionResponse.FromString)
    assert len(list(newer(iter([ask(list_services="")])))[0].list_services_response.service) == len(services)
    check_open_stream(newer, ask, len(services))
    kserve = pool.FindServiceByName("inference.GRPCInferenceService")
    assert {m.name for m in kserve.methods} >= {"ModelInfer", "ModelReady", "ServerLive", "RepositoryIndex"}
    assert kserve.FindMethodByName("ModelInfer").input_type.fields_by_name["raw_input_contents"].number == 7


def check_open_stream(method, ask, count):
    """As grpcurl does: the next request is sent when the last one was answered, and the stream stays open."""
    answered = [threading.Event() for _ in range(5)]

    def requests():
        for event in answered:
            yield ask(list_services="")
            assert event.wait(20), "no answer while the stream is open"

    answers = method(requests(), timeout=60)
    for event in answered:
        assert len(next(answers).list_services_response.service) == count
        event.set()
    assert list(answers) == []
    # One that the client leaves open, and cancels; the server serves on.
    over = threading.Event()

    def open_end():
        yield ask(list_services="")
        over.wait(60)

    left = method(open_end())
    next(left)
    left.cancel()
    over.set()
    assert len(list(method(iter([ask(list_services="")])))) == 1


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for path, factor in (("m/1", 10.0), ("m/2", 20.0), ("n/5", 3.0)):
        export(path, factor)
    with server() as port, grpc.insecure_channel(f"localhost:{port}") as channel:
        check_status(model_service_pb2_grpc.ModelServiceStub(channel))
        check_reflection(channel)
        check_reload(channel, folder)
