"""The step loop through a PJRT plugin beside JAX calling the same program on the same plugin: what our
client, the staging of batches and the replay of rings add to the device's own time.

Ours runs launches of 20 training steps of mnist_cnn on synthetic data, batches copied and staged each
time, the scalars of each step read. JAX compiles the very text that we gave the plugin and executes
it, results put back as arguments, in two ways: "resident", with all arguments on the device already
and nothing read, so it pays for nothing but the execution; "fed", with the batches put there and the
scalars read in each launch, as ours does. Rounds alternate; the median and the least ratio of rounds
are reported, ours over JAX's. MODEL BATCH as arguments: only that."""

import glob
import os
import statistics
import sys
import tempfile

import sides

sides.run_under_peers("jax")
(PLUGIN,) = glob.glob(os.path.join(sys.prefix, "lib", "python*", "site-packages", "**",
                                   "xla_cpu_pjrt.so"), recursive=True)
os.environ["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"xla_cpu_plugin:{PLUGIN}"
os.environ["JAX_PLATFORMS"] = "xla_cpu_plugin"
os.environ["JAX_ENABLE_X64"] = "1"
import jax_program

ROUNDS = int(os.environ.get("ROUNDS", "7"))


def one_round(ours, theirs, launches, fed):
    """The seconds of each; a launch before, untimed, as memory of a process that waits may be taken."""
    ours.seconds(theirs.steps)
    seconds = ours.seconds(launches * theirs.steps)[0]
    theirs.seconds(1, fed)
    return seconds, theirs.seconds(launches, fed)


def compare(model, batch):
    with tempfile.TemporaryDirectory() as folder:
        ours = sides.ours("bench_train", model, batch, "--serve", PLUGIN, folder)
        (path,) = glob.glob(os.path.join(folder, "*.mlir"))
        with open(path, encoding="utf-8") as file:
            theirs = jax_program.Program(file.read())
    ours.seconds(theirs.steps)
    launches = max(1, round(1.0 / theirs.seconds(2) * 2))
    print(f"pjrt: {model}, batch {batch}")
    for fed in [False, True]:
        rounds = [one_round(ours, theirs, launches, fed) for _ in range(ROUNDS)]
        ms = [1e3 * statistics.median(r[k] for r in rounds) / (launches * theirs.steps) for k in (0, 1)]
        ratios = [r[0] / r[1] for r in rounds]
        print(f"  ours {ms[0]:.4f} ms a step, JAX {'fed' if fed else 'resident'} {ms[1]:.4f} ms; ours / JAX "
              f"{statistics.median(ratios):.3f} (least {min(ratios):.3f})", flush=True)
    ours.close()


WHAT = [(sys.argv[1], int(sys.argv[2]))] if len(sys.argv) > 2 else [
    ("mnist_cnn", 32), ("mnist_cnn", 128), ("empty", 32)]
for what in WHAT:
    compare(*what)
