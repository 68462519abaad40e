"""From exec to the first prediction of ResNet-50 at batch 1, and the most memory that inference takes, beside ONNX Runtime
and OpenVINO: each a process of its own that loads the model, answers once (by the clock, and of processors) and, for the
memory, ten times. A peer is a Python process, so the interpreter that imports numpy alone is measured, too, and its share
is left out of the second ratio. Rounds alternate; ratios are Sextant's / the peer's, median (greatest).

Ours is bound by reading and packing 100 MB of weights. Goals: 0.3 of ONNX Runtime's process; 0.8 of the least memory.
KEEP=DIR uses models that lie there, as in bench_infer.py; MODEL=name another than ResNet50."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import sides

ROUNDS = int(os.environ.get("ROUNDS", "7"))
MODEL = os.environ.get("MODEL", "ResNet50")
RUNS = 10  # for the memory

INTERPRETER = "import sys, numpy as np; np.load(sys.argv[2])"
PEERS = {
    "ONNXRuntime": """
import sys, numpy as np, onnxruntime as ort
session = ort.InferenceSession(sys.argv[1] + ".onnx", providers=["CPUExecutionProvider"])
feed = {session.get_inputs()[0].name: np.load(sys.argv[2])}
for _ in range(int(sys.argv[3])):
    session.run(None, feed)
""",
    "OpenVINO": """
import sys, numpy as np, openvino as ov
core, x = ov.Core(), np.load(sys.argv[2])
model = core.read_model(sys.argv[1] + ".onnx")
model.reshape({model.inputs[0]: x.shape})
hints = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
request = core.compile_model(model, "CPU", hints).create_infer_request()
for _ in range(int(sys.argv[3])):
    request.infer({0: x})
"""}


def measure(command):
    """Seconds by the clock, of processors, and the most bytes of memory, of a new process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"exit code {process.returncode} of {' '.join(command)}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10


def main():
    sides.run_under_peers("engines")
    import numpy as np
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(os.environ.get("KEEP", directory), MODEL)
        if not os.path.exists(path + ".onnx"):
            bench_infer = os.path.join(sides.SOURCE, "bench", "bench_infer.py")
            subprocess.run([sys.executable, bench_infer, "--make", MODEL, path], check=True, stdout=subprocess.DEVNULL)
        x = os.path.join(directory, "x.npy")
        np.save(x, np.random.default_rng(1).random((1, 224, 224, 3), dtype=np.float32))
        sextant = os.environ["SEXTANT_BIN"]
        first = {"Sextant": [sextant, "run", path, "--input", x],
                 "interpreter": [sys.executable, "-c", INTERPRETER, path, x, "1"],
                 **{peer: [sys.executable, "-c", program, path, x, "1"] for peer, program in PEERS.items()}}
        rounds = [{side: measure(command) for side, command in first.items()} for _ in range(ROUNDS)]
        for i, what in enumerate(("by the clock", "of processors")):
            least = {side: min(r[side][i] for r in rounds) for side in first}
            print(f"exec to the first prediction of {MODEL}, {what}: Sextant {least['Sextant'] * 1e3:.0f} ms; an "
                  f"interpreter alone {least['interpreter'] * 1e3:.0f} ms")
            for peer in PEERS:
                ratios = sorted(r["Sextant"][i] / r[peer][i] for r in rounds)
                without = sorted(r["Sextant"][i] / (r[peer][i] - r["interpreter"][i]) for r in rounds)
                print(f"    {peer:<12} {least[peer] * 1e3:5.0f} ms; ratio {statistics.median(ratios):.2f} "
                      f"({ratios[-1]:.2f}); without the interpreter {statistics.median(without):.2f} ({without[-1]:.2f})")
        # The most memory: what serves, of which the weights' file is no part once it is read.
        ours = sides.ours("bench_infer", path, "1", "--serve")
        ours.seconds(RUNS)
        bytes_of = {"Sextant": ours.peak_bytes(), "interpreter": measure(first["interpreter"])[2]}
        ours.close()
        bytes_of |= {peer: measure([*first[peer][:-1], str(RUNS)])[2] for peer in PEERS}
        print(f"most memory, {RUNS} runs at batch 1: Sextant {bytes_of['Sextant'] >> 20} MiB; an interpreter alone "
              f"{bytes_of['interpreter'] >> 20} MiB")
        for peer in PEERS:
            print(f"    {peer:<12} {bytes_of[peer] >> 20:5} MiB; ratio {bytes_of['Sextant'] / bytes_of[peer]:.2f}; without "
                  f"the interpreter {bytes_of['Sextant'] / (bytes_of[peer] - bytes_of['interpreter']):.2f}")


if __name__ == "__main__":
    sys.exit(main())
