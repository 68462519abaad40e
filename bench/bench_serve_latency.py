"""Latencies of the model server, and what loading and unloading models costs those that are served:

    what a request takes over what the model takes alone, in the same process (goal 30 us over gRPC, 40 over REST),
        beside servers of gRPC C++ and libevent that have no model (bench/peers/), if they can be built
    p50 with batching beside without, at a low load (goal 1.05)
    p99 of a model while another one of 1 GB is loaded and unloaded, beside p99 without (goal 1.3)
    from a new version in its directory to its first answer (goal 0.2 s)
    memory after 100 versions were loaded and unloaded, beside that after the first (goal 1.02)

By the clock, so it needs an idle machine: the load generator runs beside the server. SECONDS=10 for each load,
MEGABYTES=1000 of the large model, VERSIONS=100. Limited by waking threads: a request costs two or three of these."""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import bench_serve_peers
import servers
import sides

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

SECONDS = float(os.environ.get("SECONDS", "10"))
MEGABYTES, VERSIONS = int(os.environ.get("MEGABYTES", "1000")), int(os.environ.get("VERSIONS", "100"))
WIDTH, RATE = 256, 200


def export(path, megabytes=0):
    """Two dense layers, or one of that size."""
    import numpy as np
    import tensorflow as tf
    rng, module = np.random.default_rng(1), tf.Module()
    wide = megabytes * 1000000 // 4 // WIDTH or WIDTH
    module.w = [tf.Variable(rng.standard_normal((WIDTH, wide), np.float32)),
                tf.Variable(rng.standard_normal((wide, 8), np.float32))]

    def dense(x):
        return {"y": tf.nn.relu(x @ module.w[0]) @ module.w[1]}

    spec = tf.TensorSpec([None, WIDTH], tf.float32, "x")
    tf.saved_model.save(module, path, signatures=tf.function(dense, input_signature=[spec]).get_concrete_function())


def ask(server, protocol, *flags, model="small", rate=RATE):
    return servers.load(server, protocol, model, rate, SECONDS, "--request", "request.json", "--connections", "4", *flags)


def overhead():
    alone = sides.ours("bench_infer", "small/1", 1, "--serve")
    times = sorted(alone.seconds(50)[0] / 50 for _ in range(200))
    alone.close()
    kernel_us = statistics.median(times) * 1e6
    has_peers = bench_serve_peers.build_peers()
    for protocol, goal in (("grpc", 30), ("rest", 40)):
        server = servers.ours(protocol, "--model_name=small", f"--model_base_path={os.getcwd()}/small")
        peer = bench_serve_peers.peer(protocol) if has_peers else None
        p50 = [min(p50s) for p50s in zip(*([ask(side, protocol)["p50_us"] for side in (server, peer) if side]
                                           for _ in range(3)))]
        print(f"{protocol}: p50 {p50[0]:.0f} us, the model alone {kernel_us:.0f}: {p50[0] - kernel_us:.0f} us more (goal {goal})"
              + (f"; the peer without a model {p50[1]:.0f}: {p50[0] / p50[1]:.2f}" if peer else ""), flush=True)
        for side in (server, peer):
            if side:
                side.stop()


def batching():
    p50 = []
    for flags in (("--enable_batching",), ("--enable_batching=false",)):
        server = servers.ours("grpc", "--model_name=small", f"--model_base_path={os.getcwd()}/small", *flags)
        p50.append(ask(server, "grpc")["p50_us"])
        server.stop()
    print(f"p50 with batching {p50[0]:.0f} us, without {p50[1]:.0f}: {p50[0] / p50[1]:.2f} (goal 1.05)", flush=True)


def neighbours():
    """The large model comes and goes as a version of another model."""
    os.makedirs("other/1")
    shutil.copytree("small/1", "other/1", dirs_exist_ok=True)
    with open("models.config", "w") as config:
        rows = (f'config {{ name: "{name}" base_path: "{os.getcwd()}/{name}" model_platform: "tensorflow" }}'
                for name in ("small", "other"))
        config.write(f"model_config_list {{ {' '.join(rows)} }}")
    server = servers.ours("grpc", "--model_config_file=models.config")
    quiet = ask(server, "grpc")["p99_us"]
    ended = threading.Event()

    def come_and_go():
        while not ended.is_set():
            os.rename("large", "other/2")
            ended.wait(3)
            os.rename("other/2", "large")
            ended.wait(2)

    thread = threading.Thread(target=come_and_go)
    thread.start()
    busy = ask(server, "grpc")["p99_us"]
    ended.set()
    thread.join()
    server.stop()
    print(f"p99 {quiet / 1000:.2f} ms, while {MEGABYTES} MB are loaded and unloaded {busy / 1000:.2f}: {busy / quiet:.2f} "
          f"(goal 1.3)", flush=True)


def answers(server, version):
    done = subprocess.run([os.environ["SEXTANT_BIN"], "query", f"localhost:{server.port}", "--protocol", "grpc", "--model",
                           "swapped", "--version", str(version), "--request", "request.json"], capture_output=True)
    return done.returncode == 0


def versions():
    os.makedirs("swapped/1")
    shutil.copytree("small/1", "swapped/1", dirs_exist_ok=True)
    server = servers.ours("grpc", "--model_name=swapped", f"--model_base_path={os.getcwd()}/swapped")
    waits, memory = [], []
    for version in range(2, VERSIONS + 2):
        shutil.copytree("small/1", "new")
        os.rename("new", f"swapped/{version}")
        start = time.perf_counter()
        while not answers(server, version):
            time.sleep(0.005)
        waits.append(time.perf_counter() - start)
        shutil.rmtree(f"swapped/{version - 1}")
        memory.append(server.resident_bytes())
    server.stop()
    print(f"new version to its first answer: median {statistics.median(waits):.3f} s, slowest {max(waits):.3f} (goal 0.2)")
    print(f"memory after {VERSIONS} versions {memory[-1] / 1e6:.1f} MB, after the first {memory[0] / 1e6:.1f}: "
          f"{memory[-1] / memory[0]:.2f} (goal 1.02)", flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([sys.executable, __file__, "--export"], check=True, stderr=subprocess.DEVNULL)
        json.dump([[0.5] * WIDTH], open("request.json", "w"))
        overhead()
        batching()
        neighbours()
        versions()


if __name__ == "__main__":
    if sys.argv[1:] == ["--export"]:
        export("small/1")
        export("large", MEGABYTES)
    else:
        sys.exit(main())
