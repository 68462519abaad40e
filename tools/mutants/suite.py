"""The tests, as the mutated build's CTest lists them: what each reaches, and running them."""
import ctypes
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time

import build



def read_layers():
    """The rows of tools/layers, lowest first, then what stands above them all."""
    with open(os.path.join(build.ROOT, "tools", "layers")) as f:
        rows = [l.split("#")[0].split(" not ")[0] for l in f if "->" not in l]
    return " ".join(rows).split() + ["cli", "interop"]


LAYERS = read_layers()
MEMORY_BYTES = 8 << 30  # of address space: a slip that allocates without end must not take the machine
FILE_BYTES = 2 << 30
# They look at the sources or the binary itself, which the switches change.
LEFT_OUT = re.compile(r"^tools::")
SPARSE = re.compile(r"^train::backup::")  # they make a sparse file of 1 TiB
PR_SET_CHILD_SUBREAPER = 36


class Test:
    def __init__(self, entry, signature):
        self.name, self.command, self.signature = entry["name"], entry["command"], signature
        properties = {p["name"]: p["value"] for p in entry["properties"]}
        self.environment = dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", []))
        self.directory = properties.get("WORKING_DIRECTORY", build.TREE)
        parts = self.name.split("::")
        self.layer = parts[1] if parts[0] == "pjrt_ref" and parts[1] in LAYERS else parts[0]
        self.file = parts[2] if parts[0] == "pjrt_ref" and len(parts) > 2 else parts[1]
        self.interop = self.layer == "interop"


def list_tests(files):
    listing = json.loads(subprocess.run(
        ["ctest", "--test-dir", build.BUILD, "--show-only=json-v1", "-LE", "^long$"], check=True,
        capture_output=True, text=True).stdout)
    tests = []
    for entry in listing["tests"]:
        if "command" in entry and not LEFT_OUT.match(entry["name"]):
            tests.append(Test(entry, signature(entry, files)))
    return tests


def signature(entry, files):
    """Changes when the test's own source or a helper beside it does."""
    parts = [p for p in entry["name"].split("::") if p != "pjrt_ref"]
    stem = f"tests/{parts[0]}/test_{parts[1]}."
    digest = hashlib.sha256()
    for path in sorted(files):
        beside = path.startswith(f"tests/{parts[0]}/") and "/test_" not in path and \
            "/long_" not in path
        if path.startswith(stem) or beside or re.match(r"tests/[^/]*\.h$", path):
            digest.update(files[path])
    return digest.hexdigest()[:16]


def descendants(pid):
    """Every process below this one."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as f:
                    fields = f.read().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(name))
            except OSError:
                pass
    found, queue = [], [pid]
    while queue:
        for child in children.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found


class Runner:
    """Runs tests one at a time; belongs to one process, which adopts what tests leave behind."""

    def __init__(self, index):
        self.scratch = os.path.join(build.WORK, "tmp", str(index))
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # The caches of the user hold the peers' environments; slips must not spoil the rest.
        self.cache = os.path.join(build.WORK, "tmp", f"cache-{index}", "sextant")
        os.makedirs(self.cache, exist_ok=True)
        real = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "sextant")
        for name in os.listdir(real) if os.path.isdir(real) else []:
            link = os.path.join(self.cache, name)
            if name.startswith("peers") and not os.path.islink(link):
                os.symlink(os.path.join(real, name), link)

    def run(self, test, limit_seconds, mutant=None, trace=None):
        """Returns (verdict, seconds): "passed", "failed", "skipped" or "timeout"."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        os.makedirs(self.scratch)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SX_MUTANT")}
        environment.update(test.environment, TMPDIR=self.scratch,
                           XDG_CACHE_HOME=os.path.dirname(self.cache))
        if mutant is not None:
            environment["SX_MUTANT"] = str(mutant)
        if trace is not None:
            environment["SX_MUTANT_TRACE"] = trace

        def limit():
            memory = MEMORY_BYTES * (4 if test.interop else 1)
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            if not SPARSE.match(test.name):
                resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        begin = time.monotonic()
        log = os.path.join(self.scratch + ".log")
        with open(log, "wb") as output:
            process = subprocess.Popen(test.command, cwd=test.directory, env=environment,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                       start_new_session=True, preexec_fn=limit)
            try:
                code = process.wait(limit_seconds)
                verdict = {0: "passed", 77: "skipped"}.get(code, "failed")
            except subprocess.TimeoutExpired:
                verdict = "timeout"
        seconds = time.monotonic() - begin
        self.end_all(process)
        return verdict, seconds

    def end_all(self, process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except OSError:
            pass
        process.wait()
        left = descendants(os.getpid())
        while left:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                pass
            left = descendants(os.getpid())


def limit_for(seconds):
    return 10 * seconds + 10


def record(runner, test):
    """Runs the test with nothing switched on. Returns {verdict, seconds} and, where it passes, the
    numbers of the slips it `met` and of the tables with slips that were `loaded`."""
    trace = runner.scratch + ".trace.so"  # a library's name: tests count the other files they map
    with open(trace, "wb") as f:
        f.truncate(build.MAX_NUMBERS)
    verdict, seconds = runner.run(test, 900, trace=trace)
    if verdict != "passed":
        return {"verdict": verdict, "seconds": seconds}
    with open(trace, "rb") as f:
        noted = [(n, how) for n, how in enumerate(f.read()) if how]
    return {"verdict": "passed", "seconds": seconds, "met": [n for n, how in noted if how & 1],
            "loaded": [n for n, how in noted if how & 2]}


def is_named_after(test, path):
    """Whether a test is of that source file: io::tfrecord of src/io/tfrecord_file.c, cli::query of
    cli/cmd_query.c, cli::option_limits of cli/option.c."""
    of, file = test.file, re.sub(r"^cmd_", "", os.path.splitext(os.path.basename(path))[0])
    return of == file or of.startswith(file + "_") or file.startswith(of + "_")


def try_slip(runner, number, path, tests, traces, passed, interop, limit):
    """Runs the tests that meet the slip, those of its file first, until one fails, or `limit` seconds
    of tests have run. `passed` holds the signatures of tests that did not see it before. Returns the
    result to keep."""
    layer = build.layer_of(path)
    own, above, peers = [], [], []
    for test in tests:
        trace = traces.get(test.name, {})
        loaded = test.layer == layer and number in trace.get("loaded", ())
        if loaded or number in trace.get("met", ()):
            (peers if test.interop else own if test.layer == layer else above).append(
                (trace["seconds"], test))
    ran = dict(passed)
    total, left_out = 0.0, 0
    groups = [own, above] + ([peers] if interop else [])
    for group in groups:
        for seconds, test in sorted(group, key=lambda g: (not is_named_after(g[1], path), g[0])):
            if passed.get(test.name) == test.signature:
                continue
            if limit and total + seconds > limit and not is_named_after(test, path):
                left_out += 1
                continue
            verdict, took = runner.run(test, limit_for(seconds), mutant=number)
            total += took
            if verdict in ("failed", "timeout"):
                # Under load a test may fail by itself: only what fails again counts.
                again, took = runner.run(test, limit_for(seconds), mutant=number)
                total += took
                if again in ("failed", "timeout"):
                    return {"state": "killed", "by": test.name, "how": again, "seconds": total}
            ran[test.name] = test.signature
    met = len(own) + len(above) + len(peers)
    return {"state": "lived" if met else "unreached", "passed": ran, "met": met, "seconds": total,
            "left_out": left_out}
