"""A training run's checkpoints, opened by TensorFlow: by name, by object, by the state file."""
import os
import subprocess
import tempfile

import numpy as np
import tensorflow as tf

LAYERS = {"conv2d": (3, 3, 1, 32), "conv2d_1": (3, 3, 32, 64), "dense": (1600, 10)}


class Layer(tf.Module):
    def __init__(self, shape):
        super().__init__()
        self.kernel = tf.Variable(tf.zeros(shape))
        self.bias = tf.Variable(tf.zeros(shape[-1]))


def main():
    with tempfile.TemporaryDirectory() as run:
        program = os.path.join(os.environ["SEXTANT_BUILD"], "examples", "estimator_mnist")
        subprocess.run([program, run, "12", "generated:digits?n=200", "generated:digits?n=40"],
                       check=True, stdout=subprocess.DEVNULL)
        latest = tf.train.latest_checkpoint(run)
        assert latest == os.path.join(run, "model.ckpt-12"), latest
        state = tf.train.get_checkpoint_state(run)
        assert list(state.all_model_checkpoint_paths)[-1].endswith("model.ckpt-12"), state

        names = list(state.all_model_checkpoint_paths)
        with open(os.path.join(run, "checkpoint"), "a") as file:  # as keep_checkpoint_every_n_hours
            file.write('# preserved: "model.ckpt-3"\n')
        assert list(tf.train.get_checkpoint_state(run).all_model_checkpoint_paths) == names

        reader = tf.train.load_checkpoint(latest)
        shapes = reader.get_variable_to_shape_map()
        for layer, shape in LAYERS.items():
            for slot in ("", "/Adam", "/Adam_1"):
                assert tuple(shapes[f"{layer}/kernel{slot}"]) == shape, (layer, slot)
                assert tuple(shapes[f"{layer}/bias{slot}"]) == shape[-1:], (layer, slot)
        step = reader.get_tensor("global_step")
        assert step == 12 and step.dtype == np.int64, step
        for name in shapes:  # every checksum
            reader.get_tensor(name)
        assert np.abs(reader.get_tensor("conv2d/kernel/Adam")).max() > 0
        assert "_sextant/cursor" in shapes

        layers = {name: Layer(shape) for name, shape in LAYERS.items()}
        counter = tf.Variable(0, dtype=tf.int64)
        status = tf.train.Checkpoint(global_step=counter, **layers).restore(latest)
        status.assert_existing_objects_matched().expect_partial()
        assert counter.numpy() == 12
        for name, layer in layers.items():
            np.testing.assert_array_equal(layer.kernel.numpy(), reader.get_tensor(f"{name}/kernel"))
            np.testing.assert_array_equal(layer.bias.numpy(), reader.get_tensor(f"{name}/bias"))

        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            kernel = tf.compat.v1.get_variable("dense/kernel", LAYERS["dense"])
            tf.compat.v1.train.Saver([kernel]).restore(session, latest)
            np.testing.assert_array_equal(session.run(kernel), reader.get_tensor("dense/kernel"))
    print("ok")


main()
