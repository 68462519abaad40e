"""Keras' side of a comparison of training steps: mnist_cnn without dropout, its state under our names,
and batches that both sides take."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import keras
import tensorflow as tf
from keras import layers

BATCH, CLASSES = 32, 10
# Keras' variables in the order that we have ours by name
LAYERS = ["conv2d", "conv2d_1", "dense"]


@tf.custom_gradient
def rounded(x):
    """To bfloat16, and so its gradient."""
    narrow = lambda t: tf.cast(tf.cast(t, tf.bfloat16), tf.float32)
    return narrow(x), narrow


class RoundedConv2D(layers.Conv2D):
    """What mixed_bfloat16 makes of Conv2D where it is one kernel of oneDNN: all that it reads and writes is
    bfloat16, sums are float32."""

    def call(self, inputs):
        y = self.convolution_op(rounded(inputs), rounded(self.kernel))
        return rounded(self.activation(y + rounded(self.bias)))


class RoundedDense(layers.Dense):
    def call(self, inputs):
        return rounded(tf.matmul(rounded(inputs), rounded(self.kernel)) + rounded(self.bias))


def keras_model(policy="float32"):
    """`policy`: Keras', or "rounded": mixed_bfloat16 in float32 operations, the same on every processor."""
    keras.utils.set_random_seed(1)
    keras.mixed_precision.set_global_policy("float32" if policy == "rounded" else policy)
    conv, dense = (RoundedConv2D, RoundedDense) if policy == "rounded" else (layers.Conv2D, layers.Dense)
    model = keras.Sequential([
        keras.Input((28, 28, 1)),
        conv(32, 3, activation="relu"), layers.MaxPooling2D(2),
        conv(64, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Flatten(), dense(CLASSES), layers.Activation("linear", dtype="float32"),
    ])
    model.compile(optimizer=keras.optimizers.Adam(1e-3),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.optimizer.build(model.trainable_variables)
    return model


def keras_state(model, step):
    """Keras' weights and slots under our names; all are float32 under any policy."""
    state = {"global_step": np.int64(step)}
    for i, variable in enumerate(model.trainable_variables):
        name = LAYERS[i // 2] + ("/kernel" if i % 2 == 0 else "/bias")
        assert variable.dtype == "float32", variable.dtype
        state[name] = variable.numpy()
        state[name + "/Adam"] = model.optimizer._momentums[i].numpy()
        state[name + "/Adam_1"] = model.optimizer._velocities[i].numpy()
    return state


def put_keras_state(model, state):
    """The reverse of keras_state()."""
    for i, variable in enumerate(model.trainable_variables):
        name = LAYERS[i // 2] + ("/kernel" if i % 2 == 0 else "/bias")
        variable.assign(state[name])
        model.optimizer._momentums[i].assign(state[name + "/Adam"])
        model.optimizer._velocities[i].assign(state[name + "/Adam_1"])
    model.optimizer.iterations.assign(state["global_step"])


def keras_step(model, images, labels):
    """The loss of one step of Keras'."""
    model.reset_metrics()
    return float(model.train_on_batch(images, labels))


def batches(steps):
    """Smooth class-dependent images: learnable, no ties between neighbouring pixels."""
    rng = np.random.default_rng(7)
    prototypes = rng.normal(size=(CLASSES, 28, 28, 1))
    for _ in range(steps):
        labels = rng.integers(0, CLASSES, BATCH)
        images = 0.5 + 0.2 * prototypes[labels] + 0.1 * rng.normal(size=(BATCH, 28, 28, 1))
        yield images.astype(np.float32), labels
