"""What comparisons share: this interpreter's replacement by the one that has the peer, and a side that is a process of
its own."""

import os
import subprocess
import sys
import time

SOURCE = os.environ.get("SEXTANT_SRC", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run_under(python):
    """The script again under another interpreter, once."""
    if "SEXTANT_BENCH_PYTHON" not in os.environ:
        os.environ["SEXTANT_BENCH_PYTHON"] = python
        os.execv(python, [python] + sys.argv)


def run_under_peers(name):
    """Under the interpreter of `tools/peers NAME`."""
    if "SEXTANT_BENCH_PYTHON" in os.environ:
        return
    peers = subprocess.run([os.path.join(SOURCE, "tools", "peers"), name], text=True, stdout=subprocess.PIPE)
    if peers.returncode != 0:
        print(f"SKIP: the peers could not be installed (tools/peers {name} says why)")
        sys.exit(77)
    run_under(peers.stdout.strip())


class Process:
    """A program that prints "ready" and then answers each line, how often to run, with the seconds of these runs, by
    the clock and of processors. RuntimeError: it ended before it was ready."""

    def __init__(self, *command):
        self.process = subprocess.Popen([str(word) for word in command], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        if self.process.stdout.readline() != "ready\n":
            self.close()
            raise RuntimeError(f"exit code {self.process.returncode} of {command[0]}")

    def seconds(self, runs):
        self.process.stdin.write(f"{runs}\n")
        self.process.stdin.flush()
        return [float(x) for x in self.process.stdout.readline().split()]

    def peak_bytes(self):
        """The most memory that it has had."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:"))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def ours(program, *arguments):
    """The benchmark `program` of the build, as a Process."""
    return Process(os.path.join(os.environ["SEXTANT_BUILD"], "bench", program), *arguments)


def serve(run):
    """Makes this process the other end of a Process."""
    run()
    print("ready", flush=True)
    for line in sys.stdin:
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(int(line)):
            run()
        print(time.perf_counter() - start, time.process_time() - cpu, flush=True)
