"""The metrics page by Prometheus' own parser: every series of TensorFlow Serving, after requests by its client."""
import os
import tempfile
import urllib.request

from serving import server

import grpc
import numpy as np
import tensorflow as tf
from prometheus_client.parser import text_string_to_metric_families
from tensorflow_serving.apis import classification_pb2, predict_pb2, prediction_service_pb2_grpc, regression_pb2

TFS, CC, CORE = ":tensorflow:serving:", ":tensorflow:cc:saved_model:", ":tensorflow:core:"
FAMILIES = {TFS + name: kind for name, kind in (
    ("request_count", "counter"), ("request_latency", "histogram"), ("runtime_latency", "histogram"),
    ("request_example_counts", "histogram"), ("request_example_count_total", "counter"),
    ("request_log_count", "counter"), ("model_warmup_latency", "histogram"), ("model_warmup_records_read", "counter"),
    ("batching_session:queuing_latency", "histogram"), ("batching_session:wrapped_run_count", "counter"),
    ("batching_session:padding_size", "histogram"), ("batching_session:input_batch_size", "histogram"),
    ("batching_session:processed_batch_size", "histogram"), ("mlmd_map", "gauge"))}
FAMILIES |= {CC + "load_attempt_count": "counter", CC + "load_latency": "counter", CORE + "graph_runs": "counter",
             CORE + "graph_run_time_usecs": "counter", CORE + "direct_session_runs": "counter"}


def export(path):
    module = tf.Module()
    module.w = tf.Variable([[1.0], [2.0]])
    texts = [tf.TensorSpec([None], tf.string, "inputs")]
    parse = lambda inputs: tf.io.parse_example(inputs, {"x": tf.io.FixedLenFeature([2], tf.float32)})["x"] @ module.w
    tf.saved_model.save(module, path, signatures={
        "serving_default": tf.function(lambda inputs: {"scores": parse(inputs)}, input_signature=texts),
        "regress": tf.function(lambda inputs: {"outputs": parse(inputs)}, input_signature=texts)})


def ask(port, stub):
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.extend([1.0, 2.0])
    for make, call, signature, count in (
            (classification_pb2.ClassificationRequest, stub.Classify, "", 3),
            (classification_pb2.ClassificationRequest, stub.Classify, "", 5),
            (regression_pb2.RegressionRequest, stub.Regress, "regress", 1)):
        request = make()
        request.model_spec.name, request.model_spec.signature_name = "m", signature
        request.input.example_list.examples.extend([example] * count)
        call(request)
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "m"
    request.inputs["inputs"].CopyFrom(tf.make_tensor_proto([example.SerializeToString()]))
    stub.Predict(request)
    request.inputs["inputs"].CopyFrom(tf.make_tensor_proto(1.0))
    try:
        stub.Predict(request)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    post = lambda path, body: urllib.request.urlopen(f"http://localhost:{port}/v1/models/m{path}", body.encode()).read()
    post(":classify", '{"examples": [{"x": [1.0, 2.0]}]}')
    post(":regress", '{"signature_name": "regress", "examples": [{"x": [1.0, 2.0]}]}')


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    export("m/1")
    open("monitoring.cfg", "w").write('prometheus_config { enable: true, path: "/my/metrics" }')
    with server("--monitoring_config_file=monitoring.cfg") as port, grpc.insecure_channel(f"localhost:{port}") as channel:
        ask(port, prediction_service_pb2_grpc.PredictionServiceStub(channel))
        with urllib.request.urlopen(f"http://localhost:{port}/my/metrics") as page:
            assert page.headers["Content-Type"].startswith("text/plain")
            text = page.read().decode()
    types = dict(line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE"))
    assert {name: types.get(name) for name in FAMILIES} == FAMILIES
    samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            assert (sample.name, labels) not in samples, sample
            samples[sample.name, labels] = sample.value

    def value(name, **labels):
        if FAMILIES.get(name) == "counter" and not name.endswith("_total"):
            name += "_total"  # as the parser calls it
        return samples.get((name, tuple(sorted(labels.items()))))

    assert value(TFS + "request_count", model_name="m", status="OK") == 6
    assert value(TFS + "request_count", model_name="m", status="INVALID_ARGUMENT") == 1
    for api, entrypoint, count in (("Predict", "GRPC", 1), ("Classify", "GRPC", 2), ("Regress", "GRPC", 1),
                                   ("predict", "REST", None), ("classify", "REST", 1), ("regress", "REST", 1)):
        labels = dict(model_name="m", API=api, entrypoint=entrypoint)
        assert value(TFS + "request_latency_count", **labels) == count, labels
        assert value(TFS + "request_latency_bucket", le="+Inf", **labels) == count
    for api, count in (("Predict", 1), ("Classify", 3), ("Regress", 2)):
        labels = dict(model_name="m", API=api, runtime="TF1")
        assert value(TFS + "runtime_latency_count", **labels) == count, labels
    bounds = sorted(float(dict(labels)["le"]) for name, labels in samples
                    if name == TFS + "runtime_latency_bucket" and ("API", "Regress") in labels)
    np.testing.assert_allclose(bounds[:-1], 10 * 1.8 ** np.arange(33), rtol=1e-4)
    assert bounds[-1] == np.inf
    counts = [value(TFS + "request_example_counts_bucket", model="m", le=le) for le in ("1", "2", "4", "8", "16384", "+Inf")]
    assert counts == [3, 3, 4, 5, 5, 5], counts
    assert value(TFS + "request_example_counts_sum", model="m") == 11
    assert value(TFS + "request_example_count_total", model="m") == 11
    assert value(CC + "load_attempt_count", model_path="m", status="success") == 1
    assert value(CC + "load_latency", model_path="m") > 0
    assert value(CORE + "graph_runs") == value(CORE + "direct_session_runs") == 6
    assert value(CORE + "graph_run_time_usecs") > 0
