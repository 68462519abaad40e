"""gRPC with clients that are not ours: grpcio with tensorflow-serving-api and grpc_health over TCP, a UNIX socket
and TLS, and curl over HTTP/2. TensorFlow computes what the answers have to be."""
import os
import shutil
import subprocess
import tempfile

from serving import fails, free_port, server

import grpc
import numpy as np
import tensorflow as tf
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

DTYPES = [tf.float32, tf.float64, tf.int32, tf.int64, tf.uint8, tf.int8, tf.int16, tf.uint16, tf.uint32, tf.uint64,
          tf.bool, tf.string, tf.float16, tf.bfloat16]
OPTIONS = [("grpc.max_receive_message_length", -1)]


def export(path):
    module = tf.Module()
    module.scale = tf.Variable(0.5)
    spec = lambda dtype, shape=(None,): tf.TensorSpec(shape, dtype, "x")
    signatures = {"serving_default": tf.function(lambda x: {"y": x * module.scale + 2.0},
                                                 input_signature=[spec(tf.float32, (None, None))])}
    for dtype in DTYPES:
        signatures[dtype.name] = tf.function(lambda x: {"y": tf.identity(x), "z": tf.stack([x, x], 1)},
                                             input_signature=[spec(dtype)])
    tf.saved_model.save(module, path, signatures={k: v.get_concrete_function() for k, v in signatures.items()})


def request(value, signature="", content=None, **spec):
    message = predict_pb2.PredictRequest()
    message.model_spec.name = spec.get("name", "m")
    message.model_spec.signature_name = signature
    message.inputs["x"].CopyFrom(tf.make_tensor_proto(value, dtype=spec.get("dtype")))
    if content:
        message.inputs["x"].ClearField("float_val")
        message.inputs["x"].tensor_content = np.asarray(value).tobytes()
    return message


def check_predict(channel):
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    x = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    for content in (False, True):
        for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
            answer = stub.Predict(request(x, content=content), compression=compression)
            np.testing.assert_allclose(tf.make_ndarray(answer.outputs["y"]), x * 0.5 + 2, rtol=1e-6)
    assert answer.model_spec.name == "m" and answer.model_spec.version.value == 1
    assert answer.model_spec.signature_name == "serving_default"

    large = np.random.default_rng(2).normal(size=(8, 150528)).astype(np.float32)
    for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
        answer = stub.Predict(request(large), compression=compression)
        np.testing.assert_allclose(tf.make_ndarray(answer.outputs["y"]), large * 0.5 + 2, rtol=1e-6)

    calls = [stub.Predict.future(request(np.full((1, 2), i, np.float32))) for i in range(300)]
    for i, call in enumerate(calls):
        np.testing.assert_allclose(tf.make_ndarray(call.result().outputs["y"]), [[i * 0.5 + 2] * 2])

    only = request(x)
    only.output_filter.append("y")
    assert list(stub.Predict(only).outputs) == ["y"]
    fails(grpc.StatusCode.NOT_FOUND, "Servable not found for request: Latest(no)", stub.Predict, request(x, name="no"))
    fails(grpc.StatusCode.FAILED_PRECONDITION, '"no" not found', stub.Predict, request(x, "no"))
    fails(grpc.StatusCode.INVALID_ARGUMENT, "expected float32[", stub.Predict, request(x.astype(np.float64)))
    fails(grpc.StatusCode.INVALID_ARGUMENT, "Missing ModelSpec", stub.Predict, predict_pb2.PredictRequest())
    unknown = channel.unary_unary("/tensorflow.serving.PredictionService/Nothing")
    fails(grpc.StatusCode.UNIMPLEMENTED, "unknown method", unknown, b"")
    fails(grpc.StatusCode.DEADLINE_EXCEEDED, "", stub.Predict, request(large), timeout=1e-5)


def check_types(channel):
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    values = {tf.string: [b"", b"a\xffb", "äöü".encode()], tf.bool: [True, False, True]}
    for dtype in DTYPES:
        if dtype in values:
            value = values[dtype]
        elif dtype.is_integer:
            value = np.array([dtype.min, 0, 1, dtype.max], dtype.as_numpy_dtype)
        else:
            value = np.array([-1.5, 0, np.inf, 0.333, np.nan], dtype.as_numpy_dtype)
        for extended in (False, True):
            message = request(value, dtype.name, dtype=dtype)
            if extended:  # a short list repeats its last value
                message.inputs["x"].tensor_shape.dim[0].size += 3
                value = list(value) + [value[-1]] * 3
                if message.inputs["x"].tensor_content:
                    continue
            answer = stub.Predict(message)
            assert answer.outputs["y"].dtype == dtype.as_datatype_enum
            got, twice = (tf.make_ndarray(answer.outputs[name]) for name in "yz")
            want = np.asarray(value, got.dtype)
            if dtype.is_floating:  # numpy does not know bfloat16's NaN
                got, twice, want = (a.astype(np.float64) for a in (got, twice, want))
            np.testing.assert_array_equal(got, want, dtype.name)
            np.testing.assert_array_equal(twice, np.stack([want, want], 1), dtype.name)


def check_health(channel):
    stub = health_pb2_grpc.HealthStub(channel)
    serving = health_pb2.HealthCheckResponse.SERVING
    assert stub.Check(health_pb2.HealthCheckRequest()).status == serving
    assert stub.Check(health_pb2.HealthCheckRequest(service="PredictionService")).status == serving
    fails(grpc.StatusCode.NOT_FOUND, "", stub.Check, health_pb2.HealthCheckRequest(service="x"))
    watch = stub.Watch(health_pb2.HealthCheckRequest())
    assert next(watch).status == serving
    watch.cancel()
    unknown = stub.Watch(health_pb2.HealthCheckRequest(service="x"))
    assert next(unknown).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    unknown.cancel()


def check_curl(port, *args):
    if not shutil.which("curl"):
        return
    scheme = "https" if args else "http"
    body = subprocess.run(["curl", "-sS", *(args or ["--http2-prior-knowledge"]), "-w", " %{http_version}",
                           "-d", '{"instances": [[1, 2]]}', f"{scheme}://localhost:{port}/v1/models/m:predict"],
                          capture_output=True, text=True, check=True).stdout
    assert "[2.5, 3.0]" in body and body.endswith(" 2"), body


def openssl(*args):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", *args], check=True, capture_output=True)


def check_tls():
    openssl("-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca")
    for name in ("server", "client"):
        openssl("-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", "/CN=localhost", "-addext",
                "subjectAltName=DNS:localhost", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-addext", "basicConstraints=critical,CA:FALSE")
    read = lambda name: open(name, "rb").read()
    inline = "".join(f"{field}: {tf.compat.as_text(repr(read(name))[1:])}\n"
                     for field, name in (("server_key", "server.key"), ("server_cert", "server.pem")))
    open("inline.cfg", "w").write(inline)  # as TensorFlow Serving has it
    open("mutual.cfg", "w").write('server_key: "server.key" server_cert: "server.pem" custom_ca: "ca.pem" client_verify: true')
    plain = grpc.ssl_channel_credentials(read("ca.pem"))
    mutual = grpc.ssl_channel_credentials(read("ca.pem"), read("client.key"), read("client.pem"))
    with server("--ssl_config_file=inline.cfg") as port:
        with grpc.secure_channel(f"localhost:{port}", plain, OPTIONS) as channel:
            check_predict(channel)
        check_curl(port, "--cacert", "ca.pem")
    with server("--ssl_config_file=mutual.cfg") as port:
        with grpc.secure_channel(f"localhost:{port}", mutual) as channel:
            check_health(channel)
        with grpc.secure_channel(f"localhost:{port}", plain) as channel:
            fails(grpc.StatusCode.UNAVAILABLE, "", health_pb2_grpc.HealthStub(channel).Check,
                  health_pb2.HealthCheckRequest(), timeout=20)
    open("bad.cfg", "w").write('server_key: "client.key" server_cert: "server.pem"')
    done = subprocess.run([os.environ["SEXTANT_BIN"], "serve", f"--port={free_port()}", "--rest_api_port=0",
                           "--model_base_path=m", "--ssl_config_file=bad.cfg"], capture_output=True, text=True)
    assert done.returncode != 0 and "bad.cfg" in done.stderr and "does not belong" in done.stderr, done.stderr


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    export("m/1")
    with server(f"--grpc_socket_path={folder}/socket") as port:
        for target in (f"localhost:{port}", f"unix:{folder}/socket"):
            with grpc.insecure_channel(target, OPTIONS) as channel:
                check_predict(channel)
                check_types(channel)
                check_health(channel)
        check_curl(port)
    check_tls()
