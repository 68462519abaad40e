"""What the comparisons of model servers share: a server as a process, and `sextant bench serve` as its client."""

import json
import os
import re
import signal
import socket
import subprocess
import sys


class Server:
    def __init__(self, command, ready, port=None):
        """It prints a line that matches `ready` once it answers; a group of it is the port, if that is not given."""
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            if match := re.search(ready, line):
                self.port = port or int(match[1])
                return
        sys.exit(f"{command[0]} ended")

    def cpu_seconds(self):
        total = 0
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{task}/schedstat") as stat:
                total += int(stat.read().split()[0])
        return total / 1e9

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS:"))

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ours(protocol, *flags, ready=r"^Serving"):
    """`sextant serve`, whose port is that of "grpc" or "rest"."""
    grpc, rest = free_port(), free_port()
    return Server([os.environ["SEXTANT_BIN"], "serve", f"--port={grpc}", f"--rest_api_port={rest}", *flags], ready,
                  {"grpc": grpc, "rest": rest}[protocol])


def load(server, protocol, model, rate, seconds, *flags):
    """Open-loop load of the server; the figures of `sextant bench serve --json`. Exits if calls fail."""
    url = ([f"localhost:{server.port}", "--model", model] if protocol == "grpc"
           else [f"http://localhost:{server.port}/v1/models/{model}"])
    done = subprocess.run([os.environ["SEXTANT_BIN"], "bench", "serve", *url, "--protocol", protocol, "--rate", str(rate),
                           "--duration", str(seconds), "--json", *flags],
                          capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        sys.exit(f"{url[0]}: {done.stderr}")
    return json.loads(done.stdout)
