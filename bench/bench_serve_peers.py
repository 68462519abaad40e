"""The model server beside servers of the same models made of the libraries that TensorFlow Serving is made of, gRPC C++ and
libevent with RapidJSON (bench/peers/): processor time of a request, y = x / 2 + 2 of the first numbers of x, asked by
h2load. They have no model runtime, models or metrics, so they flatter TensorFlow Serving. Then parsing and writing JSON
alone, and what a server costs that does nothing.

Of each row rounds alternate, the least counts (a busy machine hurts it least), and the ratio is Sextant's time divided by
the peer's. Goals are in the last column. `tools/deps --serving-peers` installs what the peers are built from, and h2load.

ROUNDS=5, ROWS="grpc" runs those whose name contains a word."""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time

import servers

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

SOURCE, BUILD = os.environ["SEXTANT_SRC"], os.environ["SEXTANT_BUILD"]
ROUNDS = int(os.environ.get("ROUNDS", "5"))
SIDE, SKIPPED = 224, 77
PREDICT = "/tensorflow.serving.PredictionService/Predict"


# ---- Servers ----

def ours(protocol, **options):
    return servers.ours(protocol, "--model_config_file=models.config", **options)


def peer(protocol):
    return servers.Server([os.path.join(BUILD, "bench", "peers", f"serve_{protocol}"), "10"], r"^(\d+)$")


def build_peers():
    """Programs of bench/peers, in the build directory; False, having said why, if a library is missing."""
    out, here = os.path.join(BUILD, "bench", "peers"), os.path.join(SOURCE, "bench", "peers")
    os.makedirs(out, exist_ok=True)
    compile_ = "g++ -O2 -std=c++17 -I. "
    script = f"""set -e; cd {out}
protoc -I{here} --cpp_out=. --grpc_out=. --plugin=protoc-gen-grpc=$(command -v grpc_cpp_plugin) predict.proto
[ serve_grpc -nt {here}/serve_grpc.cc ] || {compile_} {here}/serve_grpc.cc predict.pb.cc predict.grpc.pb.cc \
    $(pkg-config --cflags --libs grpc++ protobuf) -o serve_grpc
[ serve_rest -nt {here}/serve_rest.cc ] || {compile_} {here}/serve_rest.cc $(pkg-config --cflags --libs libevent) -o serve_rest
command -v h2load"""
    done = subprocess.run(["bash", "-c", script], text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode != 0:
        print(f"the peers cannot be built (tools/deps --serving-peers): {done.stderr.strip().splitlines()[:1]}")
    return done.returncode == 0


# ---- Models and requests ----

def export(path, shape):
    """y = x / 2 + 2 of the first numbers of each example."""
    import tensorflow as tf
    module = tf.Module()
    def half_plus_two(x):
        return {"y": (x[:, 0, 0, :] if len(shape) > 1 else x) / 2 + 2}
    spec = tf.TensorSpec(shape, tf.float32, "x")
    tf.saved_model.save(module, path, signatures=tf.function(half_plus_two, input_signature=[spec]).get_concrete_function())


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def grpc_call(model, shape, numbers, packed):
    dims = field(2, b"".join(field(2, b"\x08" + varint(n)) for n in shape))
    data = struct.pack(f"<{len(numbers)}f", *numbers)
    tensor = b"\x08\x01" + dims + field(4 if packed else 5, data)
    message = field(1, field(1, model.encode())) + field(2, field(1, b"x") + field(2, tensor))
    return b"\0" + struct.pack(">I", len(message)) + message


def write_requests():
    tiny = [float(i) for i in range(1, 11)]
    image = [((i * 7919) % 1000003) / 1000003 for i in range(SIDE * SIDE * 3)]
    rows = [[image[(r * SIDE + c) * 3:][:3] for c in range(SIDE)] for r in range(SIDE)]
    for name, data in {"tiny.grpc": grpc_call("tiny", [10], tiny, True),
                       "content.grpc": grpc_call("image", [1, SIDE, SIDE, 3], image, True),
                       "values.grpc": grpc_call("image", [1, SIDE, SIDE, 3], image, False),
                       "tiny.json": json.dumps({"instances": tiny}).encode(),
                       "image.json": json.dumps({"instances": [[[[round(x, 7) for x in pixel] for pixel in row]
                                                                for row in rows]]}, separators=(",", ":")).encode()}.items():
        open(name, "wb").write(data)


# ---- Rows ----

def ask(server, protocol, body, requests, connections, streams):
    """Processor seconds of a request."""
    model = "image" if "image" in body or protocol == "grpc" and "tiny" not in body else "tiny"
    url = f"http://127.0.0.1:{server.port}" + (PREDICT if protocol == "grpc" else f"/v1/models/{model}:predict")
    flags = (["-H", "content-type: application/grpc", "-H", "te: trailers"] if protocol == "grpc"
             else ["--h1", "-H", "content-type: application/json"])
    before = server.cpu_seconds()
    done = subprocess.run(["h2load", f"-n{requests}", f"-c{connections}", f"-m{streams}", "-d", body, *flags, url],
                          text=True, capture_output=True)
    taken = server.cpu_seconds() - before
    answered = re.search(r"\((\d+)\) data", done.stdout)
    if f" {requests} succeeded" not in done.stdout or not answered or int(answered[1]) < requests * 10:
        sys.exit(f"{url} with {body}: {done.stdout}{done.stderr}")
    return taken / requests


ROWS = [  # name, protocol, body, requests, connections, streams, goal
    ("grpc tiny, 1 connection", "grpc", "tiny.grpc", 10000, 1, 1, ""),
    ("grpc tiny, 8 connections", "grpc", "tiny.grpc", 20000, 8, 1, "0.40"),
    ("grpc tiny, 4 connections x 16 streams", "grpc", "tiny.grpc", 40000, 4, 16, "0.25"),
    ("grpc 602 KB, tensor_content", "grpc", "content.grpc", 500, 4, 1, "0.60"),
    ("grpc 602 KB, float_val", "grpc", "values.grpc", 500, 4, 1, "0.50"),
    ("rest tiny, 8 connections", "rest", "tiny.json", 20000, 8, 1, "0.45"),
    ("rest 1.4 MB of JSON", "rest", "image.json", 100, 4, 1, "0.25"),
]


def compare(name, protocol, body, requests, connections, streams, goal):
    sides = [ours(protocol), peer(protocol)]
    for side in sides:
        ask(side, protocol, body, max(requests // 10, connections), connections, streams)
    rounds = [[ask(side, protocol, body, requests, connections, streams) for side in sides] for _ in range(ROUNDS)]
    for side in sides:
        side.stop()
    mine, theirs = (min(times) * 1e6 for times in zip(*rounds))
    print(f"{name:<40}{mine:10.1f}{theirs:10.1f}{mine / theirs:8.2f}{goal:>8}", flush=True)


def compare_json():
    done = subprocess.run([os.path.join(BUILD, "bench", "bench_serve_json"), "image.json"], text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    seconds = [float(x) for x in done.stdout.split()]
    program = os.path.join(BUILD, "bench", "peers", "serve_rest")
    for i, what in enumerate(("parse", "write")):
        theirs = float(subprocess.check_output([program, f"--{what}", "image.json"]))
        print(f"json {what + ', 150,528 floats':<35}{seconds[i] * 1e6:10.1f}{theirs * 1e6:10.1f}"
              f"{seconds[i] / theirs:8.2f}{('0.20', '0.12')[i]:>8}", flush=True)


def idle_server():
    """What a server costs that has two small models and nothing to do."""
    listening = 9.9
    for _ in range(ROUNDS):
        start = time.perf_counter()
        server = ours("grpc", ready="^Running gRPC")
        listening = min(listening, time.perf_counter() - start)
        server.stop()
    server = ours("grpc")
    time.sleep(1)
    print(f"exec to listening {listening * 1e3:.0f} ms (goal 50), then {server.resident_bytes() / 1e6:.1f} MB resident "
          f"(goal 20); the program {os.path.getsize(os.environ['SEXTANT_BIN']) / 1e6:.1f} MB, without symbols "
          f"{stripped_bytes() / 1e6:.1f} (goal 10)")
    server.stop()


def stripped_bytes():
    subprocess.run(["strip", "-o", "stripped", os.environ["SEXTANT_BIN"]], check=True)
    return os.path.getsize("stripped")


def main():
    if not build_peers():
        sys.exit(SKIPPED)
    words = os.environ.get("ROWS", "").split()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        # In a process of its own: TensorFlow's threads would run beside the servers.
        subprocess.run([sys.executable, __file__, "--export"], check=True, stderr=subprocess.DEVNULL)
        write_requests()
        print(f"{'processor time of a request, us':<40}{'Sextant':>10}{'peer':>10}{'ratio':>8}{'goal':>8}")
        for row in ROWS:
            if not words or any(word in row[0] for word in words):
                compare(*row)
        if not words or "json" in words:
            compare_json()
        if not words or "idle" in words:
            idle_server()


if __name__ == "__main__":
    if sys.argv[1:] == ["--export"]:
        export("tiny/1", [None])
        export("image/1", [None, SIDE, SIDE, 3])
        with open("models.config", "w") as config:
            rows = (f'config {{ name: "{name}" base_path: "{os.getcwd()}/{name}" model_platform: "tensorflow" }}'
                    for name in ("tiny", "image"))
            config.write(f"model_config_list {{ {' '.join(rows)} }}")
    else:
        sys.exit(main())
