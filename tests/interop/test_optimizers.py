"""Each optimizer against Keras: the linear model, 30 steps each on its own from the same weights."""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import keras
from stepper import Stepper

STEPS, BATCH, PIXELS, CLASSES = 30, 16, 28 * 28, 10

# our name -> learning rate, Keras' optimizer. Small for Adam: it divides rounding by rounding where a
# gradient is near 0, and what differs there grows with the rate.
ROWS = {
    "sgd": (0.05, keras.optimizers.SGD),
    "momentum": (0.05, lambda rate: keras.optimizers.SGD(rate, momentum=0.9)),
    "rmsprop": (0.05, keras.optimizers.RMSprop),
    "adam": (0.001, keras.optimizers.Adam),
}


def check(name, device):
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((28, 28, 1)), keras.layers.Flatten(), keras.layers.Dense(CLASSES)])
    rate, optimizer = ROWS[name]
    model.compile(optimizer=optimizer(rate), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    ours = Stepper("linear", device, BATCH, f"optimizer={name}", f"learning_rate={rate}")
    state = ours.zeros()
    state["dense/kernel"], state["dense/bias"] = [v.numpy() for v in model.trainable_variables]
    rng = np.random.default_rng(5)
    worst = 0
    for step in range(STEPS):
        images, labels = rng.random((BATCH, 28, 28, 1), np.float32), rng.integers(0, CLASSES, BATCH)
        model.reset_metrics()
        keras_loss = float(model.train_on_batch(images, labels))
        our_loss, state = ours.step(state, images, labels)
        worst = max(worst, abs(our_loss - keras_loss) / max(1, abs(keras_loss)))
        assert worst <= 1e-4, (name, step, our_loss, keras_loss)
    kernel = model.trainable_variables[0].numpy()
    moved = np.abs(state["dense/kernel"] - kernel).max() / np.abs(kernel).max()
    assert moved <= 1e-3, (name, moved)
    assert state["global_step"] == STEPS
    print(f"{device} {name}: losses within {worst:.2g}, weights within {moved:.2g}")


if __name__ == "__main__":
    for device in sys.argv[1:] or ["ref", "cpu"]:
        for name in ROWS:
            check(name, device)
