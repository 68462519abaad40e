"""The step loop through a PJRT plugin beside JAX calling the same program on the same plugin: what our
client, the staging of batches and the replay of rings add to the device's own time.

Ours runs launches of 20 training steps of mnist_cnn on synthetic data, batches copied and staged each
time. JAX compiles the very text that we gave the plugin and executes it with all arguments on the
device already, results put back as arguments; so it pays for nothing but the execution. Rounds
alternate; the median and the least ratio of rounds are reported, ours over JAX's."""

import glob
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = os.environ.get("SEXTANT_SRC", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROUNDS = int(os.environ.get("ROUNDS", "7"))
STEPS = 20


def with_jax():
    """This script again under the interpreter that has JAX."""
    if "SEXTANT_JAX" in os.environ:
        return
    peers = subprocess.run([os.path.join(SOURCE, "tools", "peers"), "jax"], text=True,
                           stdout=subprocess.PIPE)
    if peers.returncode != 0:
        print("SKIP: JAX could not be installed (tools/peers says why)")
        sys.exit(77)
    python = peers.stdout.strip()
    os.environ["SEXTANT_JAX"] = python
    os.execv(python, [python] + sys.argv)


with_jax()
prefix = os.path.dirname(os.path.dirname(os.environ["SEXTANT_JAX"]))
(PLUGIN,) = glob.glob(os.path.join(prefix, "lib", "python*", "site-packages", "**",
                                   "xla_cpu_pjrt.so"), recursive=True)
os.environ["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"xla_cpu_plugin:{PLUGIN}"
os.environ["JAX_PLATFORMS"] = "xla_cpu_plugin"
os.environ["JAX_ENABLE_X64"] = "1"
import jax
import jax.extend
import numpy as np

DTYPES = {"f32": np.float32, "i32": np.int32, "i64": np.int64, "ui32": np.uint32, "i1": np.bool_}


class Ours:
    def __init__(self, model, batch, folder):
        program = os.path.join(os.environ["SEXTANT_BUILD"], "bench", "bench_train")
        self.process = subprocess.Popen([program, model, str(batch), "--serve", PLUGIN, folder],
                                        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n"

    def seconds(self, launches):
        self.process.stdin.write(f"{launches * STEPS}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline().split()[0])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Theirs:
    """The program of the text, with arguments of its types; aliased results go back."""

    def __init__(self, text):
        self.device = jax.devices()[0]
        backend = self.device.client
        options = jax.extend.backend.get_compile_options(num_replicas=1, num_partitions=1)
        self.program = backend.compile_and_load(text, [self.device], options)
        head = re.search(r"@main\((.*?)\) -> ", text, re.S).group(1)
        rows = re.findall(r"%\d+: tensor<([^>]*)>(?: \{tf\.aliasing_output = (\d+))?", head)
        types = [row[0] for row in rows]
        self.alias = {i: int(row[1]) for i, row in enumerate(rows) if row[1]}
        self.arguments = [self.make(i, t) for i, t in enumerate(types)]

    def make(self, number, text):
        *dims, dtype = text.split("x")
        shape = tuple(int(d) for d in dims)
        rng = np.random.default_rng(number)
        if dtype == "f32":
            value = rng.random(shape, dtype=np.float32) * np.float32(0.02)
        elif dtype == "i32":
            value = rng.integers(0, 10, shape, dtype=np.int32)
        else:
            value = np.full(shape, STEPS if dtype == "i64" and number not in self.alias else 0,
                            DTYPES[dtype])
        return jax.device_put(value, self.device)

    def launch(self):
        results = self.program.execute_sharded(self.arguments)
        results = results.disassemble_into_single_device_arrays()
        results[-1][0].block_until_ready()
        for argument, result in self.alias.items():
            self.arguments[argument] = results[result][0]
        return results

    def seconds(self, launches):
        start = time.perf_counter()
        for _ in range(launches):
            self.launch()
        return time.perf_counter() - start


def compare(model, batch):
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours(model, batch, folder)
        (path,) = glob.glob(os.path.join(folder, "*.mlir"))
        with open(path, encoding="utf-8") as file:
            theirs = Theirs(file.read())
    assert int(np.asarray(theirs.launch()[-1][0])) == STEPS, "JAX's launch left its loop"
    ours.seconds(1)
    launches = max(1, round(1.0 / theirs.seconds(2) * 2))
    rounds = [(ours.seconds(launches), theirs.seconds(launches)) for _ in range(ROUNDS)]
    ours.close()
    ratios = [a / b for a, b in rounds]
    a, b = (1e3 * statistics.median(r[k] for r in rounds) / launches / STEPS for k in (0, 1))
    print(f"pjrt: {model}, batch {batch}: ours {a:.3f} ms a step, JAX {b:.3f} ms; "
          f"ours / JAX {statistics.median(ratios):.3f} (least {min(ratios):.3f})", flush=True)


compare("mnist_cnn", 32)
compare("mnist_cnn", 128)
compare("empty", 32)
