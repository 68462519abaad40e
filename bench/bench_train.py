"""Training steps beside Keras on TensorFlow: mnist_cnn at batch 32 and 128 on synthetic data, mlp and a
near-empty model, resnet50. Both sides train the same network with the same optimizer on all processors; rounds
alternate, and the median and the least ratio of rounds are reported (performance.md, section 8). Of resnet50 the
most memory that each side has had, too, in processes of their own; goal: 0.6 of Keras'.

    bench_train.py [MODEL BATCH [STEPS]]       bench_train.py MODEL BATCH memory    the memory alone

Keras is taken at its best of: train_on_batch-like tf.function over a step, the same with many steps
in one call (a tf.while_loop: what steps_per_execution does), each with and without XLA."""

import os
import statistics
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np
import keras
import tensorflow as tf

import sides

ROUNDS = int(os.environ.get("ROUNDS", "7"))
STEPS_IN_CALL = 20


def mnist_cnn():
    layers = keras.layers
    return keras.Sequential([
        keras.Input((28, 28, 1)),
        layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Flatten(), layers.Dropout(0.5), layers.Dense(10),
    ])


def mlp():
    return keras.Sequential([keras.Input((28, 28, 1)), keras.layers.Flatten(),
                             keras.layers.Dense(128, activation="relu"), keras.layers.Dense(10)])


def resnet50():
    return keras.applications.ResNet50(weights=None, input_shape=(224, 224, 3), classes=1000,
                                       classifier_activation=None)


def empty():
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])


MODELS = {
    "mnist_cnn": (mnist_cnn, (28, 28, 1), 10, lambda: keras.optimizers.Adam(1e-3)),
    "mlp": (mlp, (28, 28, 1), 10, lambda: keras.optimizers.Adam(1e-3)),
    "resnet50": (resnet50, (224, 224, 3), 1000, lambda: keras.optimizers.SGD(0.1, momentum=0.9)),
    "empty": (empty, (4,), 2, lambda: keras.optimizers.SGD(1e-2)),
}


class Theirs:
    """One way of running Keras' training step."""

    def __init__(self, name, batch, many, jit):
        build, shape, classes, optimizer = MODELS[name]
        keras.utils.set_random_seed(1)
        self.model = build()
        self.optimizer = optimizer()
        self.optimizer.build(self.model.trainable_variables)
        rng = np.random.default_rng(1)
        self.x = tf.constant(rng.random((batch,) + shape, dtype=np.float32))
        self.y = tf.constant(rng.integers(0, classes, batch).astype(np.int32))
        self.many = many
        self.plain = name == "empty"
        self.call = tf.function(self.steps if many else self.step, jit_compile=jit)

    def step(self):
        with tf.GradientTape() as tape:
            out = self.model(self.x, training=True)
            if self.plain:
                loss = tf.reduce_mean(tf.square(out))
            else:
                loss = tf.reduce_mean(
                    tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.y, logits=out))
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    def steps(self):
        loss = tf.constant(0.0)
        for _ in tf.range(STEPS_IN_CALL):
            loss = self.step()
        return loss

    def seconds(self, steps):
        calls = max(1, steps // STEPS_IN_CALL) if self.many else steps
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(calls):
            loss = self.call()
        loss.numpy()
        done = calls * STEPS_IN_CALL if self.many else calls
        scale = steps / done
        return [(time.perf_counter() - start) * scale, (time.process_time() - cpu) * scale]


def ways(name, batch):
    """XLA's convolutions on CPUs are the slower ones by far: not waited for on a large network."""
    large = name == "resnet50"
    for many in (False,) if large else (False, True):
        for jit in (False,) if large else (False, True):
            try:
                theirs = Theirs(name, batch, many, jit)
                theirs.seconds(1 if large else STEPS_IN_CALL)
                yield f"{'loop of %d' % STEPS_IN_CALL if many else 'step'}{', XLA' if jit else ''}", theirs
            except Exception as error:  # XLA cannot compile every optimizer
                print(f"    ({'loop' if many else 'step'}{', XLA' if jit else ''}: {str(error)[:80]})")


def compare(name, batch, steps):
    ours = sides.ours("bench_train", name, batch, "--serve")
    ours.seconds(steps)
    best, best_way, best_time = None, None, 1e9
    for way, theirs in ways(name, batch):
        seconds = min(theirs.seconds(steps)[0] for _ in range(3)) / steps
        print(f"    keras {way}: {seconds * 1e6:.1f} us")
        if seconds < best_time:
            best, best_way, best_time = theirs, way, seconds
    rounds = [(ours.seconds(steps), best.seconds(steps)) for _ in range(ROUNDS)]
    ours.close()
    mine = statistics.median(a[0] for a, _ in rounds) / steps
    his = statistics.median(b[0] for _, b in rounds) / steps
    print(f"train: {name}, batch {batch}: ours {mine * 1e6:.1f} us a step ({batch / mine:.0f}/s), "
          f"keras ({best_way}) {his * 1e6:.1f} us ({batch / his:.0f}/s)")
    for k, what in enumerate(("by the clock", "of processor time")):
        ratios = sorted(b[k] / a[k] for a, b in rounds)
        print(f"    ratio {what}: median {statistics.median(ratios):.2f}, least {ratios[0]:.2f}")
    sys.stdout.flush()


def compare_memory(name, batch):
    """Of a step as a tf.function, which takes no more than a loop of them."""
    mine = sides.ours("bench_train", name, batch, "--serve")
    his = sides.Process(sys.executable, os.path.abspath(__file__), name, batch, "--serve")
    peaks = []
    for side in (mine, his):
        side.seconds(2)
        peaks.append(side.peak_bytes() / 2**20)
        side.close()
    print(f"train: {name}, batch {batch}: most memory: ours {peaks[0]:.0f} MiB, keras {peaks[1]:.0f} MiB, "
          f"ratio {peaks[0] / peaks[1]:.2f}")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[3:] == ["--serve"]:
        step = Theirs(sys.argv[1], int(sys.argv[2]), False, False)
        sides.serve(lambda: step.call().numpy())
        sys.exit()
    print(f"tensorflow {tf.__version__}, keras {keras.__version__}, load {os.getloadavg()[0]:.1f}")
    if sys.argv[3:] == ["memory"]:
        compare_memory(sys.argv[1], int(sys.argv[2]))
    elif len(sys.argv) > 2:
        compare(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 20)
    else:
        compare("mnist_cnn", 32, 200)
        compare("mnist_cnn", 128, 60)
        compare("mlp", 32, 2000)
        compare("empty", 32, 2000)
        compare("resnet50", 16, 2)
        compare_memory("resnet50", 16)
