"""ResNet-50 v1.5, bfloat16, batch 256, on an NVIDIA GPU through XLA's plugin, beside JAX on the same card
in the same run. Goals: 4,000 images/s, and no slower than JAX.

  resident   batches lie on the device. Ours: the text that we give the plugin, executed by JAX's client
             (jax_program.Program), so that what XLA makes of our program is compared. JAX: its own
             ResNet-50 (jax_resnet50.py), a call a step
  fed        every batch comes from host memory. Ours: bench_train, as `train` runs it, launches of as
             many steps as a gibibyte of batches holds. JAX: device_put before each step

The networks, the optimizer and the precision are the same. Ours also counts its metrics and looks whether
loss and gradients are finite. Rounds alternate; medians, and the least ratio of rounds. Bound by the
convolutions. Without an NVIDIA GPU, or without JAX for it in $SEXTANT_GPU_PYTHON (python3), nothing runs,
and that is said. `bench_gpu.py cpu BATCH` runs it all on XLA's CPU plugin, to see that it runs."""

import glob
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import sides

ON_CPU = sys.argv[1:2] == ["cpu"]
BATCH = int(sys.argv[2]) if ON_CPU else 256
STEPS = 2 if ON_CPU else 48
ROUNDS = int(os.environ.get("ROUNDS", "1" if ON_CPU else "7"))
GOAL_IMAGES, GOAL_RATIO = 4000, 1.0


def not_run(why):
    print(f"gpu: NOT RUN: {why}")
    sys.exit(0)


def choose_python():
    if ON_CPU:
        sides.run_under_peers("jax")
        return
    if not any(os.path.exists(f"/dev/{name}") for name in ("nvidia0", "nvidiactl")):
        not_run("no NVIDIA GPU on this machine")
    python = shutil.which(os.environ.get("SEXTANT_GPU_PYTHON", "python3"))
    probe = "import jax, jax_plugins.xla_cuda13"
    if python is None or subprocess.run([python, "-c", probe], stderr=subprocess.DEVNULL).returncode:
        not_run(f"no JAX for CUDA 13 among the packages of {python} (pip install jax[cuda13])")
    sides.run_under(python)


def choose_plugin():
    """The library, for us; the platform, for JAX."""
    name = "xla_cpu_pjrt.so" if ON_CPU else "xla_cuda13/xla_cuda_plugin.so"
    found = [path for site in sys.path
             for path in glob.glob(os.path.join(site, "**", name), recursive=True)]
    if ON_CPU:
        os.environ["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"xla_cpu_plugin:{found[0]}"
    os.environ["JAX_PLATFORMS"] = "xla_cpu_plugin" if ON_CPU else "cuda"
    os.environ["JAX_ENABLE_X64"] = "1"  # our programs count in int64
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    return found[0]


choose_python()
PLUGIN = choose_plugin()
import jax
import numpy as np

import jax_program
import jax_resnet50


class Jax:
    """Its own network. One array of images in host memory, and one on the device."""

    def __init__(self):
        rng = np.random.default_rng(1)
        parameters, moments = jax_resnet50.new_model(1)
        self.state = parameters, [0 * p for p in parameters], moments
        self.host = (rng.random((BATCH, 224, 224, 3), dtype=np.float32),
                     rng.integers(0, 10, BATCH, dtype=np.int32))
        self.resident = jax.device_put(self.host)
        self.seconds(1, False)

    def seconds(self, steps, fed):
        start = time.perf_counter()
        for _ in range(steps):
            images, labels = jax.device_put(self.host) if fed else self.resident
            *self.state, loss = jax_resnet50.step(*self.state, images, labels)
        assert np.isfinite(float(loss))
        return time.perf_counter() - start


def report(what, rounds):
    """`rounds` of (images/s of ours, of JAX)."""
    ours, theirs = (statistics.median(r[k] for r in rounds) for k in (0, 1))
    ratios = [a / b for a, b in rounds]
    ratio = statistics.median(ratios)
    reached = ours >= GOAL_IMAGES and ratio >= GOAL_RATIO
    print(f"gpu: resnet50, bfloat16, batch {BATCH}, {what}: ours {ours:,.1f} images/s, JAX "
          f"{theirs:,.1f}; ours / JAX {ratio:.3f} (least {min(ratios):.3f}); goals of "
          f"{GOAL_IMAGES:,} and {GOAL_RATIO}: {'reached' if reached else 'missed'}", flush=True)


print(f"gpu: {jax.devices()[0].device_kind}, JAX {jax.__version__}, {PLUGIN}", flush=True)
with tempfile.TemporaryDirectory() as folder:
    ours = sides.ours("bench_train", "resnet50:bfloat16", BATCH, "--serve", PLUGIN, folder)
    (text,) = glob.glob(os.path.join(folder, "*.mlir"))
    with open(text, encoding="utf-8") as file:
        text = file.read()
theirs = Jax()
ours.seconds(STEPS)
theirs.seconds(STEPS, True)
images = STEPS * BATCH
report("fed", [(images / ours.seconds(STEPS)[0], images / theirs.seconds(STEPS, True))
               for _ in range(ROUNDS)])
ours.close()
program = jax_program.Program(text)
launches = max(1, STEPS // program.steps)
report("resident", [(launches * program.steps * BATCH / program.seconds(launches),
                     images / theirs.seconds(STEPS, False)) for _ in range(ROUNDS)])
