"""Training against Keras: mnist_cnn without dropout, the same weights and batches on both sides.

Teacher-forced: at each of 100 steps both start from Keras' weights and slots; the loss agrees within
1e-5 and the update within 1e-4 of its largest element. Free-running: 100 steps each on its own; the
losses agree within 1e-2. (design: Proof)
"""
import sys

import numpy as np
from keras_mnist import BATCH, batches, keras_model, keras_state, keras_step
from stepper import Stepper

STEPS = 100
UPDATE = 1e-4
# A step has about a million ReLU inputs and pooling candidates. When rounding puts one of them on the
# other side of 0, or swaps two candidates, one example's share of one gradient moves: such a step is
# counted, bounded, and may not be common.
KINK, MOST_KINKED = 5e-2, 10


def well_conditioned(after, name):
    """Where an Adam update can be compared: it is m / (sqrt(v) + 1e-7), the sign of the gradient
    smoothed over about 1e-6, so that an element whose gradient is rounding noise beside the largest
    gets an update of any size from either side; one that is exactly 0 does not move. Its slots are compared without exception.
    """
    momentum, root = np.abs(after[name + "/Adam"]), np.sqrt(after[name + "/Adam_1"])
    clear = (momentum > 1e-3 * momentum.max()) & (root > 1e-3 * root.max()) | (root == 0)
    assert clear.mean() > 0.5, (name, clear.mean())
    return clear


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
        if worst > UPDATE:
            kinked.append(step)
        else:
            worst_update = np.maximum(worst_update, worst)
        assert worst <= KINK, (step, worst)
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
