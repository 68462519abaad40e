"""Every operator against TensorFlow: values and gradients, on the samples of the operator table.

An operator with a `to_tf` is held against the GraphDef that it writes, run and differentiated by
TensorFlow. The others (training only) are held against the row of PEERS of their name. Bound:
|a - b| <= 1e-5 max(max |b|, sum of |terms|).
"""
import json
import os
import subprocess
import sys
import tempfile

import keras
import numpy as np
import tensorflow as tf

TOLERANCE = 1e-5
PADDING = {"valid": "VALID", "same": "SAME"}
failures = []


def fail(name, why):
    print(f"FAIL {name}: {why}")
    failures.append(name)


# --- Peers of the operators without a TensorFlow form ---------------------------------------------


def pair(values):
    return list(values) or [1, 1]


def conv_args(a):
    sh, sw = pair(a["strides"])
    dh, dw = pair(a["dilations"])
    return {"strides": [1, sh, sw, 1], "padding": PADDING[a["padding"]], "dilations": [1, dh, dw, 1]}


def conv(a, x, w):
    """Forward by TensorFlow's public function; groups one by one, which its CPU lacks."""
    groups = a["groups"] or 1
    if a["padding"] == "explicit":
        a, (top, bottom, left, right) = {**a, "padding": "valid"}, a["pads"]
        x = tf.pad(x, [[0, 0], [top, bottom], [left, right], [0, 0]])
    args = conv_args(a)
    parts = [
        tf.nn.conv2d(xs, ws, args["strides"], args["padding"], dilations=args["dilations"][1:3])
        for xs, ws in zip(tf.split(x, groups, 3), tf.split(w, groups, 3))
    ]
    return tf.concat(parts, 3)


def conv2d_grad_input(a, dy, w):
    groups = a["groups"] or 1
    x = tf.zeros([dy.shape[0], *a["size"], w.shape[2] * groups])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = conv(a, x, w)
    return tape.gradient(y, x, dy)


def conv2d_grad_filter(a, x, dy):
    groups = a["groups"] or 1
    w = tf.zeros([*a["size"], x.shape[3] // groups, dy.shape[3]])
    with tf.GradientTape() as tape:
        tape.watch(w)
        y = conv(a, x, w)
    return tape.gradient(y, w, dy)


def pool_args(a):
    window = [1, *a["window"], 1]
    return {"ksize": window, "strides": [1, *a["strides"], 1] if a["strides"] else window, "padding": PADDING[a["padding"]]}


def max_pool2d_grad(a, x, y, dy):
    if a["window"] == [2, 2]:
        # The sample's y is no pooling of x: TensorFlow would pool again. Nothing equals, so nothing flows.
        return tf.zeros_like(x)
    return tf.raw_ops.MaxPoolGrad(orig_input=x, orig_output=y, grad=dy, **pool_args(a))


def avg_pool2d_grad(a, dy):
    shape = [dy.shape[0], *a["size"], dy.shape[3]]
    return tf.raw_ops.AvgPoolGrad(orig_input_shape=shape, grad=dy, **pool_args(a))


def threefry(key, counter):
    """Threefry-2x32-20, from the paper (Salmon et al., SC'11)."""
    mask = 0xFFFFFFFF
    ks = [key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA]
    x = [(counter[0] + ks[0]) & mask, (counter[1] + ks[1]) & mask]
    rotations = [13, 15, 26, 6, 17, 29, 16, 24]
    for r in range(20):
        x[0] = (x[0] + x[1]) & mask
        n = rotations[r % 8]
        x[1] = ((x[1] << n) | (x[1] >> (32 - n))) & mask ^ x[0]
        if r % 4 == 3:
            s = r // 4 + 1
            x[0] = (x[0] + ks[s % 3]) & mask
            x[1] = (x[1] + ks[(s + 1) % 3] + s) & mask
    return x


def dropout(a, x, seed, step, first=0):
    examples = x.shape[0] if x.shape.rank else 1
    elems = int(np.prod(x.shape)) // examples
    key = [int(seed[0]) ^ a["key_lo"], int(seed[1]) ^ a["key_hi"]]
    kept = np.zeros([examples, elems], bool)
    for n in range(examples):
        for e in range(elems):
            counter = [int(step) & 0xFFFFFFFF, (int(first) + n) * ((elems + 1) // 2) + e // 2]
            kept[n, e] = threefry(key, counter)[e % 2] >= int(a["rate"] * 2**32)
    return x * tf.reshape(tf.constant(kept, x.dtype), x.shape) / (1 - a["rate"])


def stateless_random(a, seed, first=0):
    rows, *row = a["shape"]
    draw = tf.raw_ops.StatelessRandomNormal if a["distribution"] == "normal" else tf.raw_ops.StatelessRandomUniform
    return draw(shape=[int(first) + rows, *row], seed=seed)[int(first):]


def batch_norm_grad_sums(a, dy, x, mean, variance):
    four = lambda t: t if t.shape.rank == 4 else t[:, None, None, :]
    out = tf.raw_ops.FusedBatchNormGradV3(
        y_backprop=four(dy), x=four(x), scale=tf.ones_like(mean), reserve_space_1=mean,
        reserve_space_2=variance, reserve_space_3=tf.zeros([0]), epsilon=a["epsilon"])
    return out.scale_backprop, out.offset_backprop


def batch_norm_grad_input(a, dy, x, mean, variance, scale, dscale, doffset, count):
    s = tf.math.rsqrt(variance + a["epsilon"])
    return scale * s * (dy - doffset / count - (x - mean) * s * dscale / count)


def gather_grad(a, indices, dy):
    axis, paired = a["axis"], a["batch_dims"]
    if axis == 0:
        shape = [a["rows"], *dy.shape[indices.shape.rank:]]
        inside = indices < a["rows"]
        return tf.scatter_nd(indices[inside][:, None], dy[inside], shape)
    table = tf.zeros([*dy.shape[:axis], a["rows"], *dy.shape[axis + indices.shape.rank - paired:]])
    with tf.GradientTape() as tape:
        tape.watch(table)
        y = tf.gather(table, indices, axis=axis, batch_dims=paired)
    return tape.gradient(y, table, dy)


def apply_sgd(a, var, g, lr, ok):
    v = tf.Variable(var)
    if ok:
        tf.raw_ops.ResourceApplyGradientDescent(var=v.handle, alpha=lr, delta=g)
    return v


def apply_momentum(a, var, accum, g, lr, ok):
    v, m = tf.Variable(var), tf.Variable(accum)
    if ok:
        tf.raw_ops.ResourceApplyMomentum(
            var=v.handle, accum=m.handle, lr=lr, grad=g, momentum=a["momentum"], use_nesterov=a["nesterov"])
    return v, m


def keras_step(optimizer, var, g, slots):
    """One step of a Keras optimizer; slots: {its list of slots: first value}."""
    v = keras.Variable(var)
    optimizer.build([v])
    for name, value in slots.items():
        getattr(optimizer, name)[0].assign(value)
    optimizer.apply([g])
    return (v, *(getattr(optimizer, name)[0] for name in slots))


def apply_rmsprop(a, var, rms, *rest):
    slots, (g, lr, ok) = {"_velocities": rms}, rest[-3:]
    for name, value in zip([n for n, used in (("_average_gradients", a["centered"]), ("_momentums", a["momentum"] > 0)) if used], rest):
        slots[name] = value
    if not ok:
        return (var, *slots.values())
    optimizer = keras.optimizers.RMSprop(float(lr), a["rho"], a["momentum"], a["epsilon"], a["centered"])
    return keras_step(optimizer, var, g, slots)


def apply_adam(a, var, m, v, g, lr, step, ok):
    if not ok:
        return var, m, v
    optimizer = keras.optimizers.Adam(float(lr), a["beta1"], a["beta2"], a["epsilon"])
    optimizer.iterations.assign(step)
    return keras_step(optimizer, var, g, {"_momentums": m, "_velocities": v})


def while_loop(a, *xs):
    if len(xs) == 2:  # doubling
        x, limit = xs
        return tf.while_loop(lambda v: v < limit, lambda v: [v + v], [x], maximum_iterations=a["trips"] or None)
    x, h, limit, w = xs  # recurrent
    return tf.while_loop(
        lambda v, _: v < limit, lambda v, u: [v + v, tf.tanh(u * w)], [x, h], maximum_iterations=a["trips"] or None
    )


def reduce_tree(a, *xs):
    if a["how"] == "moments":
        mean = tf.reduce_mean(xs[0], 0)
        return mean, tf.reduce_mean(xs[1] + (xs[0] - mean) ** 2, 0)
    reduce = {"sum": tf.reduce_sum, "mean": tf.reduce_mean, "max": tf.reduce_max, "and": tf.reduce_all}
    return [reduce[a["how"]](x, 0) for x in xs]


def ragged_tensor_to_tensor(a, shape, values, default, *partitions):
    return tf.raw_ops.RaggedTensorToTensor(
        shape=shape, values=values, default_value=default, row_partition_tensors=partitions,
        row_partition_types=["ROW_SPLITS"] if len(partitions) == 1 else ["FIRST_DIM_SIZE", "VALUE_ROWIDS"])


def random_skip(a, state, delta):
    generator = tf.Variable(state)
    tf.raw_ops.RngReadAndSkip(resource=generator.handle, alg=1, delta=delta)
    return generator.read_value()


PEERS = {
    "ragged_gather": lambda a, *xs: [*(y := tf.raw_ops.RaggedGather(
        params_nested_splits=xs[:-2], params_dense_values=xs[-2], indices=xs[-1], OUTPUT_RAGGED_RANK=a["rank"])).output_nested_splits, y.output_dense_values],
    "ragged_tensor_to_tensor": ragged_tensor_to_tensor,
    "bucketize": lambda a, x: tf.raw_ops.Bucketize(input=x, boundaries=[0, 1.5, 2, 2, 100]),
    "bincount": lambda a, *xs: tf.raw_ops.RaggedBincount(
        splits=xs[0], values=xs[1], size=xs[2], weights=xs[3], binary_output=a["binary_output"]) if a["rows"] == "ragged" else
        tf.raw_ops.DenseBincount(input=xs[0], size=xs[1], weights=xs[2], binary_output=a["binary_output"]) if a["rows"] == "each" else
        tf.raw_ops.Bincount(arr=xs[0], size=xs[1], weights=xs[2]),
    "round_bf16": lambda a, x: tf.cast(tf.cast(x, tf.bfloat16), x.dtype),
    "broadcast_to": lambda a, x: tf.broadcast_to(x, a["shape"]),
    "conv2d_grad_input": conv2d_grad_input,
    "conv2d_grad_filter": conv2d_grad_filter,
    "max_pool2d_grad": max_pool2d_grad,
    "avg_pool2d_grad": avg_pool2d_grad,
    "dropout": dropout,
    "all_finite": lambda a, *xs: tf.reduce_all([tf.reduce_all(tf.math.is_finite(x)) for x in xs]),
    "moments": lambda a, x: tf.nn.moments(x, a["axes"]),
    "stateless_random": stateless_random,
    "batch_norm_train_grad_sums": batch_norm_grad_sums,
    "batch_norm_train_grad_input": batch_norm_grad_input,
    "gather_grad": gather_grad,
    "complex_determinant": lambda a, re, im: [tf.math.real(y := tf.linalg.det(tf.complex(re, im))), tf.math.imag(y)],
    "complex_qr": lambda a, re, im: [f(x) for x in tf.linalg.qr(tf.complex(re, im), a["full_matrices"]) for f in (tf.math.real, tf.math.imag)],
    "complex_svd": lambda a, re, im: [tf.linalg.svd(tf.complex(re, im), compute_uv=False), *[tf.zeros([0])] * 4],
    "complex_self_adjoint_eig": lambda a, re, im: [tf.math.real(tf.linalg.eigvalsh(tf.complex(re, im))), *[tf.zeros([0])] * 2],
    "eig": lambda a, re, im: [tf.math.real(y := tf.linalg.eigvals(re if a["is_real"] else tf.complex(re, im))), tf.math.imag(y),
                              tf.zeros([0]), tf.zeros([0])],
    "matrix_logarithm": lambda a, x: tf.cast(tf.math.real(tf.linalg.logm(tf.cast(x, tf.complex128))), x.dtype),
    "ctc_beam_search_decoder": lambda a, x, n: tf.nest.flatten(tf.raw_ops.CTCBeamSearchDecoder(
        inputs=x, sequence_length=n, beam_width=a["beam_width"], top_paths=a["top_paths"], merge_repeated=a["merge_repeated"])),
    "fractional_pool": lambda a, x: list((tf.raw_ops.FractionalAvgPool if a["average"] else tf.raw_ops.FractionalMaxPool)(
        value=x, pooling_ratio=[1, a["height_ratio"], a["width_ratio"], 1], pseudo_random=a["pseudo_random"],
        overlapping=a["overlapping"], deterministic=True, seed=a["seed"], seed2=a["seed2"])),
    "crop_and_resize_grad": lambda a, dy, boxes, ind, x: tf.raw_ops.CropAndResizeGradImage(
        grads=dy, boxes=boxes, box_ind=ind, image_size=x.shape, T=x.dtype),
    "in_top_k": lambda a, p, t: tf.math.in_top_k(t, p, a["k"]),
    "apply_sgd": apply_sgd,
    "apply_momentum": apply_momentum,
    "apply_rmsprop": apply_rmsprop,
    "apply_adam": apply_adam,
    # The regions of the samples, as src/graph/ops/{if,while,map}.c write them.
    "custom_gradient": lambda a, y, x, s: tf.identity(y), "refuse_gradient": lambda a, y, x: tf.identity(y),
    "if": lambda a, c, x: tf.cond(c, lambda: -x, lambda: tf.identity(x)),
    "while": while_loop,
    "map": lambda a, x, y: tf.map_fn(lambda row: row + y, x),
    "take_row": lambda a, x, i: tf.gather(x, i),
    "put_row": lambda a, x, row, i: tf.tensor_scatter_nd_update(x, [[i]], [row]),
    # The samples are of one replica.
    "replica_id": lambda a: tf.constant(0, tf.uint32),
    "all_reduce": lambda a, *xs: [tf.identity(x) for x in xs],
    "all_gather": lambda a, x: tf.identity(x),
    "all_slice": lambda a, x: tf.identity(x),
    "reduce_tree": reduce_tree,
    "random_skip": random_skip,
}

# Gradients that TensorFlow does not have, with the reason; ours stand on central differences there.
NO_TF_GRADIENT = {
    ("batch_norm", 3): "FusedBatchNormGradV3 gives none to mean",
    ("batch_norm", 4): "FusedBatchNormGradV3 gives none to variance",
    **{("batch_norm_train_grad_sums", n): "of its operands alone; test_function_gradients.py compares the second gradient" for n in ("image", "dense", "blocks")},
    ("matrix_solve_ls", 2): "it gives none to the regularizer",
    ("cholesky_grad", "stack"): "it makes the gradient of Cholesky of several operators",
    ("sparse_to_dense", "one_value"): "it gives a scalar value the gradients of all places",
    ("resize_image", "area"): "it has none", ("resize_image_grad", "bicubic"): "it has none", ("hsv_to_rgb", 0): "it has none",
    **{(f"adjust_{what}", "image"): "it has none" for what in ("hue", "saturation", "contrast")},
    ("matrix_diag", 1): "it gives none to the padding",
    ("softmax_cross_entropy", 1): "it gives labels none of its second output; test_host_ops.py compares that of the loss",
    ("matrix_diag_part", 1): "it gives none to the padding",
    ("conv2d", "grouped"): "no grouped convolution gradients on the CPU",
    ("gather_nd", "whole"): "its gradient is a ScatterNd, which takes no indices without elements",
}
TF_REFUSES = {
    ("quantize_dequantize", "channels"): "its kernel takes a range along an axis only where it is that of x itself",
    ("quantize_dequantize", "inner_axis"): "the same",
    ("ragged_tensor_to_tensor", "rows"): "a shape that is a scalar must be a constant; test_host_ops.py compares it",
    ("gather", "empty_table"): "indices outside the table are an error on the CPU, zeros on the GPU and here",
}
# Outputs not asked for: [0] here, as TensorFlow's shape function says; its kernel leaves a scalar of any value.
NOT_ASKED = {("svd", "values"): (1, 2), ("self_adjoint_eig", "values"): (1,)}


# --- The comparison --------------------------------------------------------------------------------


class Strings:
    """An array of bytes; true, whatever it holds."""

    def __init__(self, array):
        self.array = array


class Sample:
    def __init__(self, directory, entry):
        self.directory, self.entry = directory, entry
        self.op, self.attrs = entry["op"], entry["attrs"]
        self.name = f"{entry['op']}.{entry['sample']}"

    def path(self, suffix):
        return os.path.join(self.directory, f"{self.name}.{suffix}")

    def load(self, kind, count):
        return [self.load_strings(f"{kind}{i}.json") or np.load(self.path(f"{kind}{i}.npy")) for i in range(count)]

    def load_strings(self, suffix):
        if not os.path.exists(self.path(suffix)):
            return None
        with open(self.path(suffix)) as file:
            entry = json.load(file)
        out = np.empty(len(entry["hex"]), object)
        out[:] = [bytes.fromhex(text) for text in entry["hex"]]
        return Strings(out.reshape(entry["shape"]))

    def function(self):
        """Inputs -> list of outputs, in TensorFlow."""
        if self.entry["tf"] is None:
            peer = PEERS[self.op]

            def call(*xs):
                out = peer(self.attrs, *xs)
                return list(out) if isinstance(out, (tuple, list)) else [out]

            return call
        return self.graph_function()

    def graph_function(self):
        graph = tf.compat.v1.GraphDef()
        with open(self.path("pb"), "rb") as file:
            graph.ParseFromString(file.read())
        for table in self.entry["vocabularies"]:  # what a model's initialization does
            words = bytes.fromhex(table["hex"]).decode().splitlines()
            handle = tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name=table["name"])
            ids = table["first_id"] + np.arange(len(words), dtype=np.int64)
            tf.raw_ops.InitializeTableV2(table_handle=handle, keys=words, values=ids)
        wrapped = tf.compat.v1.wrap_function(lambda: tf.import_graph_def(graph, name=""), [])
        inputs = [wrapped.graph.get_tensor_by_name(f"x{i}:0") for i in range(self.entry["inputs"])]
        names = [n if ":" in n else n + ":0" for n in self.entry["tf"]]
        pruned = wrapped.prune(inputs, [wrapped.graph.get_tensor_by_name(n) for n in names])
        return lambda *xs: pruned(*xs)


def constant(x):
    return tf.constant(x.array, tf.string) if isinstance(x, Strings) else tf.constant(x)


def compare(name, ours, theirs, bound=0.0):
    theirs = np.asarray(theirs)
    if isinstance(ours, Strings):
        if ours.array.shape != theirs.shape or (ours.array != theirs).any():
            fail(name, f"{ours.array!r}, TensorFlow {theirs!r}"[:400])
        return
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return fail(name, f"{ours.dtype}{ours.shape}, TensorFlow {theirs.dtype}{theirs.shape}")
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    same = (np.isnan(a) & np.isnan(b)) | (a == b)
    limit = TOLERANCE * max(np.max(np.abs(b[np.isfinite(b)]), initial=0), bound)
    if not np.issubdtype(ours.dtype, np.floating):
        limit = 0
    off = np.max(np.abs(a[~same] - b[~same]), initial=0)
    if not off <= limit:
        fail(name, f"off by {off:.3g}, limit {limit:.3g}")


def check_gradients(sample, tape, outputs, inputs):
    entry = sample.entry
    if not entry["dx"] or (sample.op, entry["sample"]) in NO_TF_GRADIENT:
        return
    weights = sample.load("w", entry["outputs"])
    floats = [i for i, x in enumerate(inputs) if x.dtype.is_floating]
    gradients = tape.gradient(outputs, [inputs[i] for i in floats], [tf.constant(w) for w in weights])
    for i, theirs in zip(floats, gradients):
        if (sample.op, i) in NO_TF_GRADIENT:
            continue
        zeros = np.zeros(inputs[i].shape, inputs[i].dtype.as_numpy_dtype)  # what no gradient means
        ours = np.load(sample.path(f"dx{i}.npy")) if i in entry["dx"] else zeros
        compare(f"{sample.name} dx{i}", ours, zeros if theirs is None else tf.convert_to_tensor(theirs))


def check(sample):
    entry = sample.entry
    inputs = [constant(x) for x in sample.load("x", entry["inputs"])]
    function = sample.function()
    with tf.GradientTape() as tape:
        asked = entry["dx"] and (sample.op, entry["sample"]) not in NO_TF_GRADIENT
        tape.watch([x for x in inputs if x.dtype.is_floating and asked])
        outputs = function(*inputs)
    for k, (ours, theirs) in enumerate(zip(sample.load("y", entry["outputs"]), outputs, strict=True)):
        if k in NOT_ASKED.get((sample.op, entry["sample"]), ()):
            continue
        bound = np.max(np.load(sample.path(f"bound{k}.npy")), initial=0) if entry["sum"] else 0
        compare(f"{sample.name} y{k}", ours, tf.convert_to_tensor(theirs), bound)
    check_gradients(sample, tape, outputs, inputs)


def check_refused(sample):
    inputs = [constant(x) for x in sample.load("x", sample.entry["inputs"])]
    try:
        sample.function()(*inputs)
    except (tf.errors.InvalidArgumentError, ValueError):  # when it runs, or when its graph is made
        return
    fail(sample.name, "TensorFlow computes it: remove it from TF_REFUSES")


def main():
    with tempfile.TemporaryDirectory(prefix="sextant-ops-") as directory:
        subprocess.run([os.path.join(os.environ["SEXTANT_TEST_BIN"], "ops_tool"), directory], check=True)
        with open(os.path.join(directory, "manifest.json")) as file:
            entries = json.load(file)
        for entry in entries:
            sample = Sample(directory, entry)
            try:
                if (sample.op, entry["sample"]) in TF_REFUSES:
                    check_refused(sample)
                    continue
                check(sample)
            except Exception as error:  # a sample that does not run is a failure by its name
                fail(sample.name, f"{type(error).__name__}: {str(error)[:300]}")
    operators = {entry["op"] for entry in entries}
    print(f"{len(operators)} operators, {len(entries)} samples, {len(failures)} failures")
    return 1 if failures or len(operators) < 60 else 0


if __name__ == "__main__":
    sys.exit(main())
