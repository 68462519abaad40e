"""Batching at several loads: goodput (answers within the deadline) and p99 of our policy beside TensorFlow Serving's
(--batch_policy=tfs, with several batch_timeout_micros), one thread that runs the model, open-loop Poisson arrivals over
gRPC (`sextant bench serve`). Capacity is the best rate that any policy answers when it gets more than it can. The model
is a chain of products: a batch of 16 takes about as long as 4 single rows.

Goals of the reference: at least the throughput of the best timeout everywhere; at 2x overload with deadlines of 50 ms a
goodput of 0.9 of capacity. Both sides share the machine with the generator: only ratios count.

SECONDS=5, LOADS="0.3 0.6 0.9 1.2 2", LAYERS=128, WIDTH=512."""
import json
import os
import tempfile

import servers

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

SECONDS = float(os.environ.get("SECONDS", "5"))
LOADS = [float(x) for x in os.environ.get("LOADS", "0.3 0.6 0.9 1.2 2").split()]
LAYERS, WIDTH = int(os.environ.get("LAYERS", "128")), int(os.environ.get("WIDTH", "512"))
DEADLINE_MS = 50
POLICIES = [("conserve", ())] + [(f"tfs {us} us", ("--batch_policy=tfs", us)) for us in (0, 1000, 5000)]


def export(path):
    rng = np.random.default_rng(1)
    module = tf.Module()
    module.w = tf.Variable((rng.normal(size=(WIDTH, WIDTH)) / WIDTH ** 0.5).astype(np.float32))

    def deep(x):
        for _ in range(LAYERS):
            x = tf.tanh(x @ module.w)
        return {"y": x[:, :8]}

    signature = tf.function(deep, input_signature=[tf.TensorSpec([None, WIDTH], tf.float32, "x")])
    tf.saved_model.save(module, path, signatures=signature.get_concrete_function())


def serve(policy):
    flags, timeout_us = (policy[0],) if policy else (), policy[1] if policy else 0
    open("batching.cfg", "w").write(
        f"max_batch_size {{ value: 16 }} batch_timeout_micros {{ value: {timeout_us} }} "
        "max_enqueued_batches { value: 100 } num_batch_threads { value: 1 } "
        + " ".join(f"allowed_batch_sizes: {n}" for n in (1, 2, 4, 8, 16)))
    return servers.ours("grpc", "--model_name=m", f"--model_base_path={os.getcwd()}/m", "--enable_batching",
                        "--batching_parameters_file=batching.cfg", "--rest_api_num_threads=1", "--threads=1", *flags)


def load(server, rate, seconds, deadline_ms=DEADLINE_MS):
    # A connection has 100 calls at a time: enough for all that may be on their way until they are late.
    connections = max(4, int(rate * deadline_ms / 1000 * 1.5 / 100) + 1)
    return servers.load(server, "grpc", "m", rate, seconds, "--request", "request.json", "--warmup", "0.5", "--connections",
                        str(connections), "--deadline-ms", str(deadline_ms))


def capacity(policy):
    """Answers a second with more requests than it can answer, none of them late."""
    server = serve(policy)
    rate = 200
    best = 0
    for _ in range(8):
        got = load(server, rate, 1.5, deadline_ms=2000)["goodput"]
        best = max(best, got)
        if got < 0.8 * rate:
            break
        rate *= 1.7
    server.stop()
    return best


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    export("m/1")
    json.dump([[0.5] * WIDTH], open("request.json", "w"))
    rates = {name: capacity(policy) for name, policy in POLICIES}
    most = max(rates.values())
    print("capacity, answers/s: " + ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items()))
    print(f"goodput within {DEADLINE_MS} ms as a share of {most:.0f}/s, p99 in ms")
    print(f"{'load':>6}" + "".join(f"{name:>22}" for name, _ in POLICIES))
    for share in LOADS:
        row = f"{share:6.2f}"
        for name, policy in POLICIES:
            server = serve(policy)
            result = load(server, share * most, SECONDS)
            server.stop()
            row += f"{result['goodput'] / most:12.2f}{result['p99_us'] / 1000:10.1f}"
        print(row, flush=True)
