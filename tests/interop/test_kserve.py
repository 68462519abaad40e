"""KServe's v2 protocol with a client that is not ours: tritonclient over HTTP and gRPC, unmodified. TensorFlow exports
the model."""
import contextlib
import glob
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
SRC = Path(os.environ["SEXTANT_SRC"])
found = subprocess.run([SRC / "tools/peers", "triton"], capture_output=True, text=True)
if found.returncode != 0:
    print("SKIP: tritonclient could not be installed")
    sys.exit(77)
sys.path += glob.glob(str(Path(found.stdout.strip()).parent.parent / "lib/python3*/site-packages"))

import numpy as np
import tensorflow as tf
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

DTYPES = {"BOOL": tf.bool, "UINT8": tf.uint8, "UINT16": tf.uint16, "UINT32": tf.uint32, "UINT64": tf.uint64,
          "INT8": tf.int8, "INT16": tf.int16, "INT32": tf.int32, "INT64": tf.int64, "FP16": tf.float16,
          "FP32": tf.float32, "FP64": tf.float64, "BYTES": tf.string, "BF16": tf.bfloat16}


def export(path):
    module = tf.Module()
    spec = lambda dtype, name, shape=(None,): tf.TensorSpec(shape, dtype, name)
    pair = tf.function(lambda a, b: {"sum": a + b, "difference": a - b},
                       input_signature=[spec(tf.float32, "a", (None, 3)), spec(tf.float32, "b", (None, 3))])
    signatures = {"serving_default": pair}
    for name, dtype in DTYPES.items():
        signatures[name] = tf.function(lambda x: {"y": tf.identity(x), "z": tf.stack([x, x], 1)},
                                       input_signature=[spec(dtype, "x")])
    tf.saved_model.save(module, path, signatures={k: v.get_concrete_function() for k, v in signatures.items()})


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def server():
    port, rest = free_port(), free_port()
    process = subprocess.Popen([os.environ["SEXTANT_BIN"], "serve", f"--port={port}", f"--rest_api_port={rest}",
                                "--model_name=m", f"--model_base_path={os.getcwd()}/m"], stdout=subprocess.PIPE, text=True)
    try:
        for line in process.stdout:
            if line.startswith("Serving m at"):
                break
        assert process.poll() is None, "the server ended"
        yield port, rest
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


def fails(part, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except InferenceServerException as error:
        assert part in str(error), error
        return
    raise AssertionError(f"no error with {part}")


def values_of(name):
    dtype = DTYPES[name]
    if name == "BYTES":
        return np.array([b"", b"a\xffb", "äöü".encode(), b"x" * 300], np.object_)
    if name == "BOOL":
        return np.array([True, False, True])
    if dtype.is_integer:
        return np.array([dtype.min, 0, 1, dtype.max], triton_to_np_dtype(name))
    return np.array([-1.5, 0, np.inf, 0.333, 65504], triton_to_np_dtype(name))


def check_models(client, as_dict):
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("m")
    assert client.is_model_ready("m", "1") and not client.is_model_ready("m", "7") and not client.is_model_ready("no")
    about = as_dict(client.get_server_metadata())
    assert about["name"] == "sextant" and "binary_tensor_data" in about["extensions"], about
    model = as_dict(client.get_model_metadata("m"))
    assert model["versions"] == ["1"] and model["platform"] == "tensorflow_savedmodel", model
    assert [(x["name"], x["datatype"], [int(d) for d in x["shape"]]) for x in sorted(model["inputs"], key=lambda x: x["name"])] \
        == [("a", "FP32", [-1, 3]), ("b", "FP32", [-1, 3])], model
    assert sorted(x["name"] for x in model["outputs"]) == ["difference", "sum"], model
    fails("Servable not found", client.get_model_metadata, "no")
    index = as_dict(client.get_model_repository_index())
    index = index["models"] if isinstance(index, dict) else index
    assert [(x["name"], x["version"], x["state"]) for x in index] == [("m", "1", "READY")], index


def check_infer(client, triton, http):
    a = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    b = np.random.default_rng(2).normal(size=(5, 3)).astype(np.float32)
    inputs = [triton.InferInput("b", b.shape, "FP32"), triton.InferInput("a", a.shape, "FP32")]
    ways = [{}] if not http else [{}, {"request_compression_algorithm": "gzip"}]
    for binary in (True, False) if http else (True,):
        kwargs = {"binary_data": binary} if http else {}
        inputs[0].set_data_from_numpy(b, **kwargs)
        inputs[1].set_data_from_numpy(a, **kwargs)
        for way in ways:
            answer = client.infer("m", inputs, request_id="r1", **way)
            np.testing.assert_allclose(answer.as_numpy("sum"), a + b, rtol=1e-6)
            np.testing.assert_allclose(answer.as_numpy("difference"), a - b, rtol=1e-6)
            if http:
                about = answer.get_response()
                assert (about["model_name"], about["model_version"], about["id"]) == ("m", "1", "r1"), about
            else:
                about = answer.get_response()
                assert (about.model_name, about.model_version, about.id) == ("m", "1", "r1"), about
        only = triton.InferRequestedOutput("difference", **kwargs)
        answer = client.infer("m", inputs, model_version="1", outputs=[only])
        np.testing.assert_allclose(answer.as_numpy("difference"), a - b, rtol=1e-6)
        assert answer.as_numpy("sum") is None
    large = np.random.default_rng(3).normal(size=(40000, 3)).astype(np.float32)
    for i in inputs:
        i.set_shape(large.shape)
        i.set_data_from_numpy(large)
    np.testing.assert_array_equal(client.infer("m", inputs).as_numpy("sum"), large + large)
    calls = [client.async_infer("m", inputs) for _ in range(4)] if http else []
    for call in calls:
        np.testing.assert_array_equal(call.get_result().as_numpy("sum"), large + large)

    fails('input "b" is missing', client.infer, "m", inputs[1:])
    fails("is none of the model's", client.infer, "m", [triton.InferInput("c", [1], "FP32").set_data_from_numpy(a[0, :1])])
    fails("is none of the model's", client.infer, "m", inputs, outputs=[triton.InferRequestedOutput("no")])
    fails("Servable not found", client.infer, "no", inputs)
    fails("Servable not found", client.infer, "m", inputs, model_version="9")
    wrong = [triton.InferInput(name, [1, 3], "FP64").set_data_from_numpy(np.zeros((1, 3))) for name in "ab"]
    fails("expected float32[", client.infer, "m", wrong)


def check_types(client, triton, http):
    for name in DTYPES:
        value = values_of(name)
        x = triton.InferInput("x", value.shape, name)
        for binary in (True, False) if http and name not in ("FP16", "BF16", "BYTES") else (True,):
            x.set_data_from_numpy(value, **({"binary_data": binary} if http else {}))
            if name == "FP32" and not binary:
                continue  # the client writes Infinity as JSON, and does not read it
            answer = client.infer("m", [x], parameters={"signature_name": name})
            np.testing.assert_array_equal(answer.as_numpy("y"), value, name)
            np.testing.assert_array_equal(answer.as_numpy("z"), np.stack([value, value], 1), name)


def main():
    scratch = tempfile.mkdtemp()
    os.chdir(scratch)
    export("m/1")
    with server() as (port, rest):
        with triton_http.InferenceServerClient(f"127.0.0.1:{rest}", concurrency=4) as client:
            check_models(client, lambda answer: answer)
            check_infer(client, triton_http, True)
            check_types(client, triton_http, True)
        from google.protobuf.json_format import MessageToDict
        with triton_grpc.InferenceServerClient(f"127.0.0.1:{port}") as client:
            check_models(client, lambda answer: MessageToDict(answer, preserving_proto_field_name=True))
            check_infer(client, triton_grpc, False)
            check_types(client, triton_grpc, False)
    os.chdir("/")
    shutil.rmtree(scratch)
    print("ok")


main()
