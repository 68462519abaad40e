"""What the tests of the server share that use clients which are not ours: TensorFlow's venv with TensorFlow
Serving's client beside it, and a running server."""
import contextlib
import glob
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
SRC = Path(os.environ["SEXTANT_SRC"])
found = subprocess.run([SRC / "tools/peers", "serving"], capture_output=True, text=True)
if found.returncode != 0:
    print("SKIP: tensorflow-serving-api could not be installed")
    sys.exit(77)
sys.path += glob.glob(str(Path(found.stdout.strip()).parent.parent / "lib/python3*/site-packages"))

import grpc


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def server(*args, models=("--model_name=m", "--model_base_path=m"), wait="Serving m at"):
    """Serves ./m; yields the port, of gRPC and REST."""
    port = free_port()
    process = subprocess.Popen([os.environ["SEXTANT_BIN"], "serve", f"--port={port}", "--rest_api_port=0", *models, *args],
                               stdout=subprocess.PIPE, text=True)
    try:
        for line in process.stdout:
            if line.startswith(wait):
                break
        assert process.poll() is None, "the server ended"
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


def fails(code, part, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except grpc.RpcError as error:
        assert error.code() == code and part in error.details(), (error.code(), error.details())
        return
    raise AssertionError(f"no error: {code}")
