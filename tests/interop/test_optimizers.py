"""Each optimizer on the linear model: against Keras, 30 steps each on its own from the same weights and
a step with every parameter at its default; against TensorFlow 1, slot by slot under its names; LARS
against its rule in TensorFlow's operations."""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import keras
import tensorflow as tf
from stepper import Stepper

v1 = tf.compat.v1

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
        worst = np.maximum(worst, abs(our_loss - keras_loss) / max(1, abs(keras_loss)))
        assert worst <= 1e-4, (name, step, our_loss, keras_loss)
    kernel = model.trainable_variables[0].numpy()
    moved = np.abs(state["dense/kernel"] - kernel).max() / np.abs(kernel).max()
    assert moved <= 1e-3, (name, moved)
    assert state["global_step"] == STEPS
    print(f"{device} {name}: losses within {worst:.2g}, weights within {moved:.2g}")


def batch(rng):
    return rng.random((BATCH, 28, 28, 1), np.float32), rng.integers(0, CLASSES, BATCH)


def compare(label, before, ours, theirs, rounding={}):
    """Every update of ours against theirs, {name: value}, within 1e-4 of its greatest element, and of
    what float32's rounding of a gradient does to an element, {name: value}."""
    worst = 0
    for name in theirs:
        largest = np.abs(theirs[name] - before[name]).max()
        assert largest > 0, (label, name, "did not move")
        off = np.abs(ours[name] - theirs[name]) - rounding.get(name, 0)
        worst = np.maximum(worst, off.max() / largest)
        assert worst <= 1e-4, (label, name, worst)
    return worst


def adam_rounding(rate, step, velocity):
    """What Adam makes of a gradient that is off by 2^-24, one rounding of a mean of terms up to 1: much
    where the gradients so far, and so the root that it divides by, are near 0."""
    rate *= np.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
    return rate * 0.1 * 2**-24 / (np.sqrt(velocity) + 1e-7)


def check_defaults(device):
    """Pictures so dark that epsilon decides the kernel's update."""
    for name, optimizer in {"sgd": keras.optimizers.SGD(), "rmsprop": keras.optimizers.RMSprop(),
                            "adam": keras.optimizers.Adam()}.items():
        ours = Stepper("linear", device, BATCH, f"optimizer={name}")
        rng = np.random.default_rng(7)
        kernel = keras.Variable(rng.normal(0, 0.05, (PIXELS, CLASSES)).astype(np.float32))
        bias = keras.Variable(rng.normal(0, 0.05, CLASSES).astype(np.float32))
        state = ours.zeros()
        state["dense/kernel"], state["dense/bias"] = kernel.numpy(), bias.numpy()
        images, labels = batch(rng)
        images *= 1e-5
        with tf.GradientTape() as tape:
            logits = tf.reshape(images, (BATCH, PIXELS)) @ kernel.value + bias.value
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        gradients = tape.gradient(loss, [kernel.value, bias.value])
        before = {"dense/kernel": np.copy(kernel.numpy()), "dense/bias": np.copy(bias.numpy())}
        optimizer.apply(gradients, [kernel, bias])
        _, after = ours.step(state, images, labels)
        # float32 keeps some 3 digits of an update that is 1e-3 of the weight
        for what, theirs in (("dense/kernel", kernel.numpy()), ("dense/bias", bias.numpy())):
            moved = np.abs(theirs - before[what]).max()
            off = np.abs(after[what] - theirs).max()
            assert moved > 0 and off <= 1e-2 * moved + 2e-8, (device, name, what, off, moved)
        print(f"{device} {name}: defaults as Keras'")


# our settings, TensorFlow 1's optimizer, the initial value of its slots other than 0
TF1_ROWS = {
    "momentum": (["momentum=.8"], lambda: v1.train.MomentumOptimizer(0.1, 0.8), {}),
    "nesterov": (["optimizer=momentum", "momentum=.8", "nesterov=1"],
                 lambda: v1.train.MomentumOptimizer(0.1, 0.8, use_nesterov=True), {}),
    "rmsprop": (["momentum=.8", "rho=.7", "initial_accumulator_value=1"],
                lambda: v1.train.RMSPropOptimizer(0.1, 0.7, 0.8, 1e-7), {"RMSProp": 1}),
    "centered": (["optimizer=rmsprop", "momentum=.8", "rho=.7", "centered=1", "initial_accumulator_value=1"],
                 lambda: v1.train.RMSPropOptimizer(0.1, 0.7, 0.8, 1e-7, centered=True), {"RMSProp": 1}),
    "adam": ([], lambda: v1.train.AdamOptimizer(0.1, epsilon=1e-7), {}),
}


def check_tf1(name, device):
    """The slots have TensorFlow 1's names, initial values and, at each of 5 steps, its values."""
    settings, make, initial = TF1_ROWS[name]
    settings = settings if settings and settings[0].startswith("optimizer") else [f"optimizer={name}", *settings]
    ours = Stepper("linear", device, BATCH, *settings, "learning_rate=.1")
    with tf.Graph().as_default(), v1.Session() as session:
        images, labels = v1.placeholder(tf.float32, [BATCH, 28, 28, 1]), v1.placeholder(tf.int64, [BATCH])
        kernel = v1.get_variable("dense/kernel", [PIXELS, CLASSES], use_resource=True,
                                 initializer=v1.random_normal_initializer(0, 0.05, seed=1))
        bias = v1.get_variable("dense/bias", [CLASSES], use_resource=True,
                               initializer=v1.random_normal_initializer(0, 0.05, seed=2))
        logits = tf.reshape(images, [BATCH, PIXELS]) @ kernel + bias
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        train = make().minimize(loss)
        session.run(v1.global_variables_initializer())
        values = lambda: {v.op.name: session.run(v) for v in v1.global_variables()}
        state = values()
        own = {n for n in state if "_power" not in n}  # Adam's powers of beta: ours counts steps
        assert set(ours.shapes) - {"global_step"} == own, (name, set(ours.shapes) ^ own)
        for n in own - {"dense/kernel", "dense/bias"}:
            value = initial.get(n.split("/")[-1], 0)
            assert ours.initial[n] == (value or "zeros") and np.all(state[n] == value), (n, ours.initial[n])
        rng, worst = np.random.default_rng(11), 0
        for step in range(5):
            pictures, truth = batch(rng)
            _, after = ours.step({**{n: state[n] for n in own}, "global_step": np.int64(step)}, pictures, truth)
            session.run(train, {images: pictures, labels: truth})
            theirs = values()
            rounding = {n: adam_rounding(0.1, step, theirs[n + "/Adam_1"]) for n in own if n + "/Adam_1" in own}
            worst = np.maximum(worst, compare(name, state, after, {n: theirs[n] for n in own}, rounding))
            state = theirs
    print(f"{device} {name}: TensorFlow 1's slots, updates within {worst:.2g}")


def lars(var, momentum, gradient, adapted, rate, decay, nesterov):
    """tf.contrib.opt.LARSOptimizer, of TensorFlow 1.15: its compute_lr(), then apply_momentum. What its
    skip_list names (as in TPU's ResNet: bias, batch_normalization) is not adapted and does not decay."""
    w, g = tf.Variable(var), tf.constant(gradient)
    m = tf.Variable(momentum)
    if adapted:
        w_norm, g_norm = tf.norm(w), tf.norm(g)
        trust = tf.where(w_norm > 0, tf.where(g_norm > 0, 0.001 * w_norm / (g_norm + decay * w_norm), 1.0), 1.0)
        rate, g = rate * trust, g + decay * w
    tf.raw_ops.ResourceApplyMomentum(var=w.handle, accum=m.handle, lr=rate, grad=g, momentum=0.9,
                                     use_nesterov=nesterov)
    return w.numpy(), m.numpy()


def check_lars(device, nesterov):
    rate, decay = 4.0, 0.02
    ours = Stepper("linear", device, BATCH, "optimizer=lars", f"learning_rate={rate}", f"l2={decay}",
                   f"nesterov={int(nesterov)}")
    rng, worst = np.random.default_rng(13), 0
    state = {n: rng.normal(0, 0.5, s).astype(np.float32) for n, s in ours.shapes.items()}
    for step in range(5):
        state["global_step"] = np.int64(step)
        images, labels = batch(rng)
        with tf.GradientTape() as tape:
            weights = [tf.constant(state["dense/kernel"]), tf.constant(state["dense/bias"])]
            tape.watch(weights)
            logits = tf.reshape(images, (BATCH, PIXELS)) @ weights[0] + weights[1]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        theirs = {}
        for name, g in zip(("dense/kernel", "dense/bias"), tape.gradient(loss, weights)):
            theirs[name], theirs[name + "/Momentum"] = lars(
                state[name], state[name + "/Momentum"], g, name == "dense/kernel", rate, decay, nesterov)
        our_loss, after = ours.step(state, images, labels)
        assert abs(our_loss - float(loss)) <= 1e-5 * float(loss), (our_loss, float(loss))  # decay is no part of it
        worst = np.maximum(worst, compare("lars", state, after, theirs))
        state = theirs
    print(f"{device} lars, nesterov {nesterov}: updates within {worst:.2g}")


if __name__ == "__main__":
    for device in sys.argv[1:] or ["host", "cpu"]:
        for name in ROWS:
            check(name, device)
        check_defaults(device)
        for name in TF1_ROWS:
            check_tf1(name, device)
        for nesterov in False, True:
            check_lars(device, nesterov)
