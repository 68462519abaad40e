"""Every operator in every dtype that it takes, against TensorFlow: the samples of the operator table with
other dtypes in place of float32 and int32, elementwise operators on edge values too (the ends of integers'
ranges, infinities, NaN, -0). Cases that TensorFlow's CPU has no kernel for are counted."""
import collections
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf

import test_ops

# One rounding of a result, and for 16 bits the roundings within TensorFlow's own kernels.
TOLERANCE = {"float64": 1e-9, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
UNKNOWN = ("No OpKernel", "not in the list of allowed values", "Could not find device", "is not supported", "Unsupported", "not registered",
           "not implemented", "No registered", "incompatible with expected")

# Where the two part, by operator and the case's end.
APART = {
    ("erf", "@float64_edges"): "TensorFlow's erf of an infinite float64 is NaN",
    ("relu_grad", "_edges"): "TensorFlow multiplies by 0: an infinity where nothing flows gives NaN",
    ("floor_div", "@bfloat16"): "TensorFlow rounds the quotient to bfloat16 before it takes the floor",
    ("ctc_loss", "@float64"): "TensorFlow adds probabilities in float32's logarithms: 8 digits",
    ("leaky_relu", "@float64"): "the sample's alpha, which TensorFlow keeps in float32, is no float32",
    ("leaky_relu", "@float64_edges"): "the same",
    ("unique", "@float16"): "TensorFlow tells 0 and -0 of 16 bits apart",
    ("unique", "@bfloat16"): "the same",
}

# Where the gradients alone do.
GRADIENTS_APART = {
    ("resize_image", "bicubic@float64"): "TensorFlow multiplies in float32",
    ("rgb_to_hsv", "@float16"): "TensorFlow's reciprocals of squares overflow: infinity times 0 is NaN",
}


def named(table, sample):
    return any(op == sample.op and sample.entry["sample"].endswith(end) for op, end in table)


def check(sample):
    """Whether TensorFlow has it."""
    entry, name = sample.entry, sample.name
    inputs = [load(sample, f"x{i}") for i in range(entry["inputs"])]
    try:
        function = sample.function()
        theirs = function(*inputs)
    except (tf.errors.OpError, ValueError, TypeError) as error:
        if any(text in str(error) for text in UNKNOWN) or isinstance(error, tf.errors.UnimplementedError):
            return False
        if not entry.get("error"):
            test_ops.fail(name, f"TensorFlow: {str(error)[:200]}")
        return True
    if entry.get("error"):
        test_ops.fail(name, "refused, which TensorFlow computes")
        return True
    for k, (y, want) in enumerate(zip([load(sample, f"y{i}") for i in range(entry["outputs"])], theirs, strict=True)):
        if k in test_ops.NOT_ASKED.get((sample.op, entry["sample"].split("@")[0]), ()):
            continue
        bound = np.max(load(sample, f"bound{k}").numpy().astype(np.float64), initial=0) if entry["sum"] else 0
        compare(f"{name} y{k}", y, tf.convert_to_tensor(want), bound)
    if not entry["dx"] or (sample.op, entry["sample"].split("@")[0]) in test_ops.NO_TF_GRADIENT or named(GRADIENTS_APART, sample):
        return True
    weights = [load(sample, f"w{i}") for i in range(entry["outputs"])]
    floats = [i for i in entry["dx"] if inputs[i].dtype.is_floating]
    try:
        with tf.GradientTape() as tape:
            tape.watch([inputs[i] for i in floats])
            theirs = function(*inputs)
        gradients = tape.gradient(theirs, [inputs[i] for i in floats], weights)
    except (tf.errors.OpError, ValueError, TypeError, LookupError):
        return True
    for i, want in zip(floats, gradients):
        if want is not None and (sample.op, i) not in test_ops.NO_TF_GRADIENT:
            # TensorFlow rounds each node of a gradient to 16 bits, Sextant once
            compare(f"{name} dx{i}", load(sample, f"dx{i}"), tf.convert_to_tensor(want), 0, 4)
    return True


def load(sample, kind):
    strings = sample.load_strings(f"{kind}.json")
    if strings is not None:
        return test_ops.constant(strings)
    array = np.load(sample.path(f"{kind}.npy"))
    return tf.constant(array.view(tf.bfloat16.as_numpy_dtype) if array.dtype == np.dtype("V2") else array)


def compare(name, ours, theirs, bound, roundings=1):
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return test_ops.fail(name, f"{ours.dtype}{ours.shape}, TensorFlow {theirs.dtype}{theirs.shape}")
    if ours.dtype == tf.string or not ours.dtype.is_floating:
        a, b = np.asarray(ours.numpy()), np.asarray(theirs.numpy())
        if (a != b).any():
            test_ops.fail(name, f"{a[a != b][:4]}, TensorFlow {b[a != b][:4]}")
        return
    a, b = [t.numpy().astype(np.float64) for t in (ours, theirs)]
    same = (np.isnan(a) & np.isnan(b)) | (a == b)
    finite = np.abs(b[np.isfinite(b)])
    # of each element's own size: one large number hides no other; the terms of 16 bits are unknown
    middle = 0 if not finite.size else np.max(finite) if ours.dtype.size == 2 else np.median(finite)
    limit = roundings * TOLERANCE[ours.dtype.name] * np.maximum(np.abs(b), max(middle, bound))
    wrong = ~same & ~(np.abs(a - b) <= limit)
    if wrong.any():
        test_ops.fail(name, f"{a[wrong][:4]}, TensorFlow {b[wrong][:4]}")


def main():
    none, ran = collections.Counter(), 0
    with tempfile.TemporaryDirectory(prefix="sextant-dtypes-") as directory:
        subprocess.run([os.path.join(os.environ["SEXTANT_TEST_BIN"], "ops_tool"), directory, "dtypes"], check=True)
        with open(os.path.join(directory, "manifest.json")) as file:
            entries = json.load(file)
        for entry in entries:
            sample = test_ops.Sample(directory, entry)
            if entry["tf"] is None or (sample.op, entry["sample"].split("@")[0]) in test_ops.TF_REFUSES:
                continue
            if named(APART, sample):
                continue
            try:
                has = check(sample)
            except Exception as error:  # a sample that does not run is a failure by its name
                test_ops.fail(sample.name, f"{type(error).__name__}: {str(error)[:300]}")
                has = True
            ran += has
            none[sample.op] += not has
    print(f"{ran} cases compared, {sum(none.values())} that TensorFlow's CPU lacks, {len(test_ops.failures)} failures")
    return 1 if test_ops.failures or ran < 500 else 0


if __name__ == "__main__":
    sys.exit(main())
