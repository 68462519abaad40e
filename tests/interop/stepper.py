"""One training step at a time in our program, through train_tool: variables in, variables out."""
import os
import subprocess

import numpy as np

TOOL = os.path.join(os.environ["SEXTANT_TEST_BIN"], "train_tool")


class Stepper:
    def __init__(self, model, device, batch, *settings):
        self.process = subprocess.Popen([TOOL, model, device, str(batch), *settings],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.shapes, self.initial = {}, {}
        for line in iter(self.process.stdout.readline, b"end\n"):
            if not line:
                raise RuntimeError("train_tool ended")
            name, initializer, value, *dims = line.decode().split()
            self.shapes[name] = [int(d) for d in dims]
            self.initial[name] = float(value) if initializer == "constant" else initializer

    @staticmethod
    def dtype(name):
        return np.int64 if name == "global_step" else np.float32

    def zeros(self):
        return {name: np.zeros(shape, self.dtype(name)) for name, shape in self.shapes.items()}

    def step(self, variables, features, labels):
        """The loss of the step, and every variable after it."""
        send = self.process.stdin
        for name in self.shapes:
            send.write(np.ascontiguousarray(variables[name], self.dtype(name)).tobytes())
        send.write(np.ascontiguousarray(features, np.float32).tobytes())
        send.write(np.ascontiguousarray(labels, np.int32).tobytes())
        send.flush()
        loss = np.frombuffer(self.process.stdout.read(8), np.float64)[0]
        after = {}
        for name, shape in self.shapes.items():
            dtype = np.dtype(self.dtype(name))
            count = int(np.prod(shape, dtype=np.int64))
            after[name] = np.frombuffer(self.process.stdout.read(count * dtype.itemsize), dtype).reshape(shape)
        return loss, after
