"""Training against Keras: mnist_cnn without dropout, the same weights and batches on both sides.

Teacher-forced: at each of 100 steps both start from Keras' weights and slots; the loss agrees within
1e-5 and the update within 1e-4 of its largest element. Free-running: 100 steps each on its own; the
losses agree within 1e-2. (design: Proof)
"""
import sys

import numpy as np
from keras_mnist import BATCH, batches, keras_model, keras_state, keras_step, put_keras_state
from stepper import Stepper

STEPS = 100
UPDATE = 1e-4
# A step has about a million ReLU inputs and pooling candidates. When rounding puts one of them on the
# other side of 0, or swaps two candidates, one example's share of one gradient moves: such a step is
# counted and may not be common, and Keras' own update must move as much when its weights move by 1e-6
# of themselves, in one of so many tries.
MOST_KINKED, NUDGE, TRIES = 10, 1e-6, 24


def well_conditioned(after, name):
    """Where an Adam update can be compared: it is m / (sqrt(v) + 1e-7), the sign of the gradient
    smoothed over about 1e-6, so that an element whose gradient is rounding noise beside the largest
    gets an update of any size from either side; one that is exactly 0 does not move. Its slots are compared without exception.
    """
    momentum, root = np.abs(after[name + "/Adam"]), np.sqrt(after[name + "/Adam_1"])
    clear = (momentum > 1e-3 * momentum.max()) & (root > 1e-3 * root.max()) | (root == 0)
    assert clear.mean() > 0.5, (name, clear.mean())
    return clear


def largest_error(before, after, our_after):
    """Of our update, in units of the largest element of Keras'."""
    worst = 0
    for name in after:
        delta, ours_delta = after[name] - before[name], our_after[name] - before[name]
        largest = np.abs(delta).max()
        if largest == 0 or name == "global_step":
            assert np.array_equal(after[name], our_after[name]), name
            continue
        error = np.abs(delta - ours_delta) / largest
        if not name.endswith(("Adam", "Adam_1")):
            error = error[well_conditioned(after, name)]
        worst = np.maximum(worst, error.max())
    return worst


def keras_moves(model, before, after, images, labels):
    """By how much Keras' update changes when its weights are nudged; leaves the model at `after`."""
    rng, moved = np.random.default_rng(3), 0
    for _ in range(TRIES):
        nudged = dict(before)
        for name in before:
            if name != "global_step" and not name.endswith(("Adam", "Adam_1")):
                noise = 1 + NUDGE * rng.standard_normal(before[name].shape)
                nudged[name] = (before[name] * noise).astype(np.float32)
        put_keras_state(model, nudged)
        keras_step(model, images, labels)
        moved = np.maximum(moved, largest_error(before, after, {
            name: value - nudged[name] + before[name]
            for name, value in keras_state(model, int(after["global_step"])).items()}))
    put_keras_state(model, after)
    return moved


def check_teacher_forced(device):
    model, ours = keras_model(), Stepper("mnist_cnn", device, BATCH, "dropout=0")
    worst_loss, worst_update, kinked = 0, 0, []
    for step, (images, labels) in enumerate(batches(STEPS)):
        before = keras_state(model, step)
        our_loss, our_after = ours.step(before, images, labels)
        keras_loss = keras_step(model, images, labels)
        after = keras_state(model, step + 1)
        worst_loss = np.maximum(worst_loss, abs(our_loss - keras_loss))
        assert abs(our_loss - keras_loss) <= 1e-5 * max(1, keras_loss), (step, our_loss, keras_loss)
        worst = largest_error(before, after, our_after)
        if worst > UPDATE:
            kinked.append(step)
            moves = keras_moves(model, before, after, images, labels)
            print(f"step {step}: {worst:.3g} of the largest; Keras' own, nudged: {moves:.3g}")
            assert worst <= 2 * moves, (step, worst, moves)
        else:
            worst_update = np.maximum(worst_update, worst)
    assert len(kinked) <= MOST_KINKED, kinked
    print(f"{device}: {STEPS} teacher-forced steps: loss within {worst_loss:.2g}, "
          f"update within {worst_update:.2g} of its largest element "
          f"but at a kink in {len(kinked)} steps")


def check_free_running(device):
    model, ours = keras_model(), Stepper("mnist_cnn", device, BATCH, "dropout=0")
    state, worst = keras_state(model, 0), 0
    for images, labels in batches(STEPS):
        our_loss, state = ours.step(state, images, labels)
        keras_loss = keras_step(model, images, labels)
        worst = np.maximum(worst, abs(our_loss - keras_loss))
    assert worst <= 1e-2, worst
    print(f"{device}: {STEPS} free-running steps: losses within {worst:.2g}")


if __name__ == "__main__":
    devices = sys.argv[1:] or ["cpu"]
    for device in devices:
        check_teacher_forced(device)
        check_free_running(device)
