"""Makes the models of the corpus and compares what Sextant answers with what TensorFlow does.

    python check.py [--only REGEX] [--keep DIR] [--missing FILE]

--keep leaves the models in a directory and uses those that lie there. --missing writes which operators the
refused models lack, by count. SEXTANT_TEST_BIN is where corpus_tool is."""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # TensorFlow's own kernels
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import numpy as np
import tensorflow as tf

from corpus import rows
from corpus.gaps import GAPS

MODULES = ["keras_layers", "keras_applications", "keras_sequences", "keras_preprocessing", "functions", "text", "tables",
           "images", "detectors", "graphs", "sizes", "networks", "modules", "tasks", "training", "habits",
           "optimizers", "lists", "branches", "namespaces", "resized", "keras2", "dims", "loops"]


class Refused(Exception):
    """The model cannot be loaded, or not run: a gap."""


# ---- corpus_tool ----

def pack(values):
    out = b""
    for v in values:
        dtype = tf.as_dtype(v.dtype if v.dtype != object else "string").as_datatype_enum
        out += " ".join(map(str, [dtype, v.ndim, *v.shape])).encode() + b"\n"
        out += b"".join(b"%d %s" % (len(s), s) for s in v.ravel()) if v.dtype == object else v.tobytes()
    return out


class Tool:
    """A model that corpus_tool has loaded."""

    def __init__(self, path, tags):
        self.process = subprocess.Popen([os.path.join(os.environ["SEXTANT_TEST_BIN"], "corpus_tool"), path, tags],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answer()

    def answer(self):
        line = self.process.stdout.readline().split()
        if not line:
            raise AssertionError(f"corpus_tool ended with {self.process.wait()}")
        if line[0] == b"error":
            raise Refused(self.process.stdout.read(int(line[1])).decode(errors="replace"))
        return dict(self.tensor() for _ in range(int(line[1])))

    def tensor(self):
        stream = self.process.stdout
        name, dtype, _, *dims = stream.readline().decode().split()
        dims = [int(d) for d in dims]
        n, dtype = int(np.prod(dims)), tf.as_dtype(int(dtype))
        if dtype != tf.string:
            size = n * np.dtype(dtype.as_numpy_dtype).itemsize
            return name, np.frombuffer(stream.read(size), dtype.as_numpy_dtype).reshape(dims)
        strings = []
        for _ in range(n):
            size = b""
            while (c := stream.read(1)) != b" ":
                size += c
            strings.append(stream.read(int(size)))
        return name, np.array(strings, object).reshape(dims)

    def run(self, signature, feed):
        try:
            self.process.stdin.write(signature.encode() + b"\n" + pack([feed[k] for k in sorted(feed)]))
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self.answer()

    def time(self, signature, feed, runs):
        """Of `runs` runs: seconds by the clock, and of processors."""
        self.process.stdin.write(b"time %d %s\n" % (runs, signature.encode()) + pack([feed[k] for k in sorted(feed)]))
        self.process.stdin.flush()
        line = self.process.stdout.readline().split()
        if line[:1] != [b"time"]:
            raise Refused(self.process.stdout.read(int(line[1])).decode(errors="replace") if line else "corpus_tool ended")
        return float(line[1]), float(line[2])

    def close(self):
        """What the device computed by its operators' host kernels, which are slow: their names."""
        self.process.stdin.close()
        lines = self.process.stdout.read().decode(errors="replace").splitlines()
        self.process.stdout.close()
        host = {line.split(" ", 2)[2] for line in lines if line.startswith("kernel ") and line.endswith(" host")}
        self.process.wait()
        return sorted(host)


# ---- One model ----

def draw(rng, spec, dims):
    """An input of a signature, its unknown dimensions taken from `dims`."""
    dims = iter(dims)
    rank = 2 if spec.shape.rank is None else spec.shape.rank
    shape = [next(dims) if spec.shape.rank is None or d is None else d for d in (spec.shape if spec.shape.rank is not None else [None] * rank)]
    dtype = spec.dtype.as_numpy_dtype
    if spec.dtype == tf.string:
        return np.array([b"text %d" % i for i in range(int(np.prod(shape)))], object).reshape(shape)
    if spec.dtype.is_bool:
        return rng.random(shape) > 0.5
    if spec.dtype.is_complex:
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return rng.normal(size=shape).astype(dtype) if spec.dtype.is_floating else rng.integers(0, 5, shape).astype(dtype)


def feeds(row, specs):
    """The row's batches and what is fed of each."""
    for batch in row.batches:
        for size in row.sizes:
            rng = np.random.default_rng(1000 * batch + sum(size))
            if row.feed is not None:
                feed = row.feed(rng, batch)
                feed = feed if isinstance(feed, dict) else {k: feed for k in specs}
                feed = {k: np.asarray(v) for k, v in feed.items()}
                yield batch, {k: v if k not in specs else v.astype(object if specs[k].dtype == tf.string else specs[k].dtype.as_numpy_dtype)
                              for k, v in feed.items() if k in specs}
                if size == row.sizes[-1]:
                    break
            else:
                feed = {}
                for k, s in sorted(specs.items()):
                    feed[k] = draw(rng, s, (batch, *size) if s.shape.rank is None or (s.shape.rank and s.shape[0] is None) else size)
                yield batch, feed
        if not any(s.shape.rank is None or None in s.shape for s in specs.values()) and row.feed is None:
            break


def compare(what, ours, theirs, tolerance):
    assert ours.keys() == theirs.keys(), f"{what}: outputs {sorted(ours)}, TensorFlow's {sorted(theirs)}"
    for key, y in theirs.items():
        x = ours[key]
        assert x.shape == y.shape and x.dtype == y.dtype, f"{what}: {key} is {x.dtype}{x.shape}, TensorFlow's {y.dtype}{y.shape}"
        if y.dtype == object or y.dtype.kind in "iub":
            wrong = x != y
            assert not np.any(wrong), f"{what}: {key} differs in {np.sum(wrong)} of {y.size}: {x[wrong][:3]}, TensorFlow's {y[wrong][:3]}"
        elif y.size:
            x, y = [v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in (x, y)]
            finite = np.isfinite(y)
            assert np.array_equal(x[~finite], y[~finite], equal_nan=True), f"{what}: {key} differs in what is not finite"
            scale = np.abs(y[finite]).max(initial=1e-3)
            off = np.abs(x[finite] - y[finite]).max(initial=0)
            assert off <= tolerance * scale, f"{what}: {key} is off by {off:.2e}, its largest value {scale:.2e}"


def parts(outputs):
    """Ragged and sparse outputs as the tensors that they consist of."""
    out = {}
    for key, y in outputs.items():
        if isinstance(y, tf.RaggedTensor):
            splits = {f"{key}.row_splits{k and f'_{k}' or ''}": s for k, s in enumerate(y.nested_row_splits)}
            out |= {f"{key}.flat_values": y.flat_values, **splits}
        elif isinstance(y, tf.SparseTensor):
            out |= {f"{key}.indices": y.indices, f"{key}.values": y.values, f"{key}.dense_shape": y.dense_shape}
        else:
            out[key] = y
    return out


def check_refused(what, tool, function, name, specs, feed):
    """TensorFlow's answer is an error, and so is ours; the model goes on."""
    try:
        function(**{k: tf.constant(v, specs[k].dtype) for k, v in feed.items()})
        raise AssertionError(f"{what}: TensorFlow answers what the row says it refuses")
    except (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError):
        pass
    try:
        tool.run(name, feed)
    except Refused:
        return
    raise AssertionError(f"{what}: answered, which TensorFlow refuses")


def check(row, path, kernels=False):
    """Every signature, at every batch and size, of the model at `path`. `kernels`: the device has kernels of its own
    for everything that it computes."""
    loaded = tf.saved_model.load(path, tags=list(row.tags))
    tool, n, slow = Tool(path, ",".join(row.tags)), 0, []
    try:
        for name, function in loaded.signatures.items():
            if name.startswith("__saved_model"):
                continue
            specs = function.structured_input_signature[1]
            twin = name == "serve" and "serving_default" in loaded.signatures  # Keras exports its default twice
            for batch, feed in list(feeds(row, specs))[:1 if twin else None]:
                shapes = {k: v.shape for k, v in feed.items()}
                if batch in row.wrong:
                    check_refused(f"{row.name} {name} {shapes}", tool, function, name, specs, feed)
                    n += 1
                    continue
                theirs = parts(function(**{k: tf.constant(v, specs[k].dtype) for k, v in feed.items()}))
                theirs = {k: v.numpy() for k, v in theirs.items()}
                theirs = {k: v if isinstance(v, (np.ndarray, np.generic)) else np.array(v, object) for k, v in theirs.items()}
                theirs = {k: np.asarray(v) for k, v in theirs.items()}
                compare(f"{row.name} {name} {shapes}", tool.run(name, feed), theirs, row.tolerance)
                n += 1
    finally:
        slow = tool.close()
    assert not (kernels and slow), f"{row.name} runs on the device in {', '.join(slow)}"
    assert n > 0, f"{row.name} has no signature"
    return n


# ---- All ----

OPERATOR = re.compile(r"(?:unsupported operators?: |\), )([A-Za-z0-9_]+) \(\d+ nodes?: ")


def run(chosen, keep=None, missing_path=None, after=None, kernels=False):
    """Compares the rows; returns how many were wrong. after(row, path) is called for each."""
    tf.get_logger().setLevel("ERROR")
    wrong = sorted(GAPS.keys() - {row.gap_key for row in rows.ROWS.values()})
    for key in wrong:
        print(f"{key}: NO MODEL has this key of gaps.py")
    passed, runs, gaps = 0, 0, {}
    missing = collections.defaultdict(set)
    for row in chosen:
        began = time.time()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(keep or folder, row.name)
            try:
                if not os.path.exists(os.path.join(path, "saved_model.pb")):
                    shutil.rmtree(path, ignore_errors=True)
                    tf.keras.backend.clear_session()
                    tf.keras.utils.set_random_seed(7)
                    row.make(path)
                made = time.time() - began
                n = check(row, path, kernels)
                runs, passed = runs + n, passed + 1
                if row.gap_key in GAPS:
                    wrong.append(row.name)
                    print(f"{row.name}: NO GAP any more: take {row.gap_key!r} from gaps.py")
                print(f"{row.name}: {n} runs ({made:.1f} s to make, {time.time() - began - made:.1f} s)", flush=True)
                if after:
                    after(row, path)
            except Refused as e:
                text = str(e)
                for op in OPERATOR.findall(text):
                    missing[op].add(row.name)
                if row.gap_key in GAPS and GAPS[row.gap_key] in text:
                    gaps[row.name] = text
                    print(f"{row.name}: GAP: {text[:600]}", flush=True)
                else:
                    wrong.append(row.name)
                    print(f"{row.name}: REFUSED: {text[:1500]}", flush=True)
            except AssertionError as e:
                wrong.append(row.name)
                print(f"{row.name}: WRONG: {str(e)[:1500] or traceback.format_exc()}", flush=True)
            except Exception:
                wrong.append(row.name)
                print(f"{row.name}: FAILED: {traceback.format_exc()[-1500:]}", flush=True)
    for op, names in sorted(missing.items(), key=lambda m: (-len(m[1]), m[0])):
        print(f"{len(names):4} models lack {op}: {' '.join(sorted(names))}")
    print(f"{passed} models as TensorFlow's in {runs} runs; {len(gaps)} listed gaps; {len(wrong)} wrong or refused: {' '.join(wrong)}")
    if missing_path:
        with open(missing_path, "w") as f:
            f.write(f"# Operators that models of the corpus lack ({len(chosen)} models, {passed} run), by count\n")
            for op, names in sorted(missing.items(), key=lambda m: (-len(m[1]), m[0])):
                f.write(f"{len(names):4} {op}: {' '.join(sorted(names))}\n")
    return len(wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    parser.add_argument("--missing")
    args = parser.parse_args()
    chosen = [r for r in rows.all_rows(MODULES).values() if re.search(args.only, r.name)]
    return 1 if run(chosen, args.keep, args.missing) else 0


if __name__ == "__main__":
    sys.exit(main())
