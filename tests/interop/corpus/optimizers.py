"""Signatures that train with the operators of the optimizers of TensorFlow 1 and of Keras before version 3, called again
and again: they give the variable and the slots."""
import tensorflow as tf

from corpus.modules import fixed, spec
from corpus.rows import add

ADAM = {"lr": 0.1, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}
RMS = {"lr": 0.1, "rho": 0.9, "momentum": 0.5, "epsilon": 1e-3}
FTRL = {"lr": 0.1, "l1": 0.3, "l2": 0.1, "lr_power": -0.5}
# Of each operator: what its slots begin with, its numbers, and the attribute of its other form.
OPTIMIZERS = {
    "GradientDescent": ({}, {"alpha": 0.1}, {}),
    "Momentum": ({"accum": 0}, {"lr": 0.1, "momentum": 0.9}, {"use_nesterov": True}),
    "KerasMomentum": ({"accum": 0}, {"lr": 0.1, "momentum": 0.9}, {"use_nesterov": True}),
    "Adam": ({"m": 0, "v": 0}, {"beta1_power": 0.9, "beta2_power": 0.999, **ADAM}, {"use_nesterov": True}),
    "AdamWithAmsgrad": ({"m": 0, "v": 0, "vhat": 0}, {"beta1_power": 0.9, "beta2_power": 0.999, **ADAM}, {}),
    "AdaMax": ({"m": 0, "v": 0}, {"beta1_power": 0.9, **ADAM}, {}),
    "Adagrad": ({"accum": 0.1}, {"lr": 0.1}, {"update_slots": False}),
    "AdagradV2": ({"accum": 0.1}, {"lr": 0.1, "epsilon": 1e-7}, {"update_slots": False}),
    "Adadelta": ({"accum": 0, "accum_update": 0}, {"lr": 0.1, "rho": 0.95, "epsilon": 1e-3}, {}),
    "RMSProp": ({"ms": 0, "mom": 0}, RMS, {}),
    "CenteredRMSProp": ({"mg": 0, "ms": 0, "mom": 0}, RMS, {}),
    "Ftrl": ({"accum": 0.1, "linear": 0}, FTRL, {"multiply_linear_by_lr": True}),
    "FtrlV2": ({"accum": 0.1, "linear": 0}, {"l2_shrinkage": 0.2, **FTRL}, {"multiply_linear_by_lr": True}),
    "ProximalGradientDescent": ({}, {"alpha": 0.1, "l1": 0.5, "l2": 0.1}, {}),
    "ProximalAdagrad": ({"accum": 0.1}, {"lr": 0.1, "l1": 0.5, "l2": 0.1}, {}),
    "AdagradDA": ({"gradient_accumulator": 0, "gradient_squared_accumulator": 0.1}, {"lr": 0.1, "l1": 0.01, "l2": 0.1}, {}),
    "AddSign": ({"m": 0}, {"lr": 0.1, "alpha": 1.0, "sign_decay": 0.9, "beta": 0.9}, {}),
    "PowerSign": ({"m": 0}, {"lr": 0.1, "logbase": 1.0, "sign_decay": 0.9, "beta": 0.9}, {}),
}

SPARSE = [name for name in OPTIMIZERS if hasattr(tf.raw_ops, f"ResourceSparseApply{name}")]


def steps_of(name, attributes, sparse=False):
    slots, numbers, _ = OPTIMIZERS[name]

    def make(path):
        m = tf.Module()
        m.var = tf.Variable(fixed(1, 3, 4))
        m.slots = {k: tf.Variable(tf.fill([3, 4], float(x))) for k, x in slots.items()}

        @tf.function(input_signature=[spec("x", tf.float32, None, 4)])
        def f(x):
            gradient = tf.reduce_mean(x[:, None] * m.var, 0)
            step = {"global_step": tf.constant(3, tf.int64)} if name == "AdagradDA" else {}
            rows = {}
            if sparse:
                rows["indices"] = tf.constant([2, 0])[:tf.shape(x)[0] // 2 + 1]  # one, two
                gradient = tf.gather(gradient, rows["indices"])
            getattr(tf.raw_ops, f"Resource{'Sparse' if sparse else ''}Apply{name}")(
                var=m.var.handle, **{k: v.handle for k, v in m.slots.items()}, **{k: tf.constant(v) for k, v in numbers.items()},
                **{"delta" if "GradientDescent" in name and not sparse else "grad": gradient}, **rows, **step, **attributes)
            return {"var": m.var.read_value(), **{k: v.read_value() for k, v in m.slots.items()}}
        tf.saved_model.save(m, path, signatures=f)
    return make


for optimizer, (_, _, other) in OPTIMIZERS.items():
    for form in ({}, other) if other else ({},):
        add(f"optimizer_{optimizer}{'_other' if form else ''}", steps_of(optimizer, form), batches=(1, 3, 32, 3),
            sample=optimizer in ("Adam", "RMSProp", "FtrlV2"))
        if optimizer in SPARSE:
            add(f"optimizer_sparse_{optimizer}{'_other' if form else ''}", steps_of(optimizer, form, True), batches=(1, 3, 32, 3),
                sample=optimizer in ("Adagrad", "FtrlV2"))


def adam_of_tensorflow_1(path):
    """minimize() of compat.v1: reference variables, beta powers that are assigned, a signature that trains."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], "x")
        w = v1.get_variable("w", initializer=fixed(1, 4, 3), use_resource=False)
        b = v1.get_variable("b", initializer=fixed(2, 3), use_resource=False)
        loss = tf.reduce_mean(tf.square(x @ w + b))
        train = v1.train.AdamOptimizer(0.1).minimize(loss)
        with tf.control_dependencies([train]):
            outputs = {"w": tf.identity(w._ref()), "b": tf.identity(b._ref())}  # after the step
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, path, {"x": x}, outputs)


add("optimizer_of_tensorflow_1", adam_of_tensorflow_1, batches=(1, 3, 32, 3), sample=True)


def sparse_of_tensorflow_1(make):
    def save(path):
        """minimize() of a lookup in reference variables; the lookups name rows several times."""
        v1 = tf.compat.v1
        with tf.Graph().as_default(), v1.Session() as session:
            ids = v1.placeholder(tf.int32, [None], "ids")
            table = v1.get_variable("table", initializer=fixed(1, 5, 3), use_resource=False)
            loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids) - 0.5))
            train = make(v1.train).minimize(loss)
            with tf.control_dependencies([train]):
                outputs = {"table": tf.identity(table._ref())}
            session.run(v1.global_variables_initializer())
            v1.saved_model.simple_save(session, path, {"ids": ids}, outputs)
    return save


for optimizer, make in {
        "sgd": lambda train: train.GradientDescentOptimizer(0.1),
        "momentum": lambda train: train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        "adagrad": lambda train: train.AdagradOptimizer(0.1),
        "adadelta": lambda train: train.AdadeltaOptimizer(0.1),
        "rmsprop": lambda train: train.RMSPropOptimizer(0.1, centered=True),
        "adam": lambda train: train.AdamOptimizer(0.1),
        "ftrl": lambda train: train.FtrlOptimizer(0.1, l1_regularization_strength=0.01, l2_shrinkage_regularization_strength=0.02),
        "proximal_adagrad": lambda train: train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01)}.items():
    add(f"sparse_{optimizer}_of_tensorflow_1", sparse_of_tensorflow_1(make), batches=(1, 3, 32, 3))
