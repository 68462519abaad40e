"""Learning-rate schedules against Keras' own, step by step, around every place where they bend.

A warm-up before a decay is Keras' CosineDecay(warmup_target, warmup_steps); before the others it is the
same rule put around Keras' schedule: linear from 0, then the schedule from its own step 0.
"""
import os
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np

TOOL = os.path.join(os.environ["SEXTANT_TEST_BIN"], "schedule_tool")
RATE = 0.05
K = keras.optimizers.schedules
# Every step of the first 130, and far ones.
STEPS = [*range(130), 199, 200, 201, 1000, 4999, 5000, 5001, 12345, 100_000, 16_777_216]

# settings of ours, without the rate; Keras' schedule of it
ROWS = {
    "exponential": (["kind=exponential", "rate=.9", "steps=40"], lambda: K.ExponentialDecay(RATE, 40, 0.9)),
    "staircase": (["kind=exponential", "rate=.5", "steps=25", "staircase=1"],
                  lambda: K.ExponentialDecay(RATE, 25, 0.5, staircase=True)),
    "growing": (["kind=exponential", "rate=1.001", "steps=1000"], lambda: K.ExponentialDecay(RATE, 1000, 1.001)),
    "piecewise": (["kind=piecewise", "boundaries=30,60,80", "values=1,.1,.01,.001"],
                  lambda: K.PiecewiseConstantDecay([30, 60, 80], [RATE * f for f in (1, 0.1, 0.01, 0.001)])),
    "one piece": (["kind=piecewise", "boundaries=100", "values=.5,2"],
                  lambda: K.PiecewiseConstantDecay([100], [RATE / 2, RATE * 2])),
    "eight boundaries": (["kind=piecewise", "boundaries=10,20,30,40,50,60,70,80", "values=1,2,3,4,5,6,7,8,9"],
                         lambda: K.PiecewiseConstantDecay([*range(10, 90, 10)], [RATE * f for f in range(1, 10)])),
    "cosine": (["kind=cosine", "steps=100"], lambda: K.CosineDecay(RATE, 100)),
    "cosine alpha": (["kind=cosine", "steps=5000", "alpha=.1"], lambda: K.CosineDecay(RATE, 5000, alpha=0.1)),
    "cosine warm-up": (["kind=cosine", "steps=100", "alpha=.2", "warmup_steps=25"],
                       lambda: K.CosineDecay(0.0, 100, alpha=0.2, warmup_target=RATE, warmup_steps=25)),
}


class WarmUp:
    """Linear from 0 to the schedule's start over `steps`, then `schedule` from its step 0."""

    def __init__(self, steps, schedule):
        self.steps, self.schedule = steps, schedule

    def __call__(self, step):
        if step < self.steps:
            return float(self.schedule(0)) * step / self.steps
        return self.schedule(step - self.steps)


for name in ("exponential", "staircase", "piecewise", "one piece", "cosine"):
    settings, schedule = ROWS[name]
    ROWS[f"{name} after 30 steps of warm-up"] = (
        [*settings, "warmup_steps=30"], lambda schedule=schedule: WarmUp(30, schedule()))
ROWS["constant after a warm-up"] = (["warmup_steps=7"], lambda: WarmUp(7, lambda step: RATE))


def check(name, device):
    settings, make = ROWS[name]
    done = subprocess.run([TOOL, device, str(RATE), *settings], input=" ".join(map(str, STEPS)),
                          capture_output=True, text=True)
    assert done.returncode == 0, (name, done.stderr)
    ours = np.array(done.stdout.split(), np.float64)
    schedule = make()
    theirs = np.array([float(schedule(step)) for step in STEPS])
    assert ours.shape == theirs.shape, (name, ours.shape)
    # each of itself, but for the cosine's end, where two numbers near 1 cancel
    off = np.abs(ours - theirs) / np.maximum(np.abs(theirs), RATE * 1e-2 if "cosine" in name else 0)
    off[theirs == ours] = 0
    worst = int(np.argmax(off))
    assert off[worst] <= 2e-5, (name, device, STEPS[worst], ours[worst], theirs[worst])
    assert len(set(theirs)) > 1, name


if __name__ == "__main__":
    for device in sys.argv[1:] or ["host", "cpu"]:
        for name in ROWS:
            check(name, device)
        print(f"{device}: {len(ROWS)} schedules at {len(STEPS)} steps as Keras'")
