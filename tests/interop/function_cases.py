"""Functions against TensorFlow: all of them become the signatures of one SavedModel, with unknown dimensions. Sextant
imports and runs it, and must give TensorFlow's values, to the bit for strings and integers. Where TensorFlow refuses
the arguments, so must Sextant, with INVALID_ARGUMENT, OUT_OF_RANGE or RESOURCE_EXHAUSTED."""
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf


def pack(tensors):
    out = [struct.pack("<q", len(tensors))]
    for t in tensors:
        out.append(struct.pack(f"<{2 + t.ndim}q", tf.as_dtype(t.dtype if t.dtype != object else tf.string).as_datatype_enum, t.ndim, *t.shape))
        if t.dtype == object:
            for s in t.reshape(-1):
                out.append(struct.pack("<q", len(s)) + s)
        else:
            out.append(np.ascontiguousarray(t).tobytes())
    return b"".join(out)


def unpack(data):
    at = 0

    def number():
        nonlocal at
        at += 8
        return struct.unpack_from("<q", data, at - 8)[0]

    tensors = []
    for _ in range(number()):
        dtype = tf.as_dtype(number())
        shape = [number() for _ in range(number())]
        n = int(np.prod(shape))
        if dtype == tf.string:
            items = []
            for _ in range(n):
                size = number()
                items.append(data[at : at + size])
                at += size
            t = np.empty(n, object)
            t[:] = items
        else:
            t = np.frombuffer(data, dtype.as_numpy_dtype, n, at)
            at += n * dtype.size
        tensors.append(t.reshape(shape))
    return tensors


def flat(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def named(function):
    return lambda *xs: {f"y{k:02}": y for k, y in enumerate(flat(function(*xs)))}


def same(ours, theirs, rtol, atol):
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype}{ours.shape}, TensorFlow {theirs.dtype}{theirs.shape}"
    if ours.dtype.kind == "f":
        if np.allclose(ours, theirs, rtol, atol, equal_nan=True):
            return None
    elif all(a == b for a, b in zip(ours.reshape(-1), theirs.reshape(-1))):
        return None
    bad = [k for k, (a, b) in enumerate(zip(ours.reshape(-1), theirs.reshape(-1))) if a != b]
    return f"element {bad[0]} is {ours.flat[bad[0]]!r}, TensorFlow's {theirs.flat[bad[0]]!r} ({len(bad)} differ)"


def run(cases, static=(), sized=(), rtol=1e-6, atol=lambda name, theirs: 0.0, kept=()):
    """cases: name -> (function, arguments). Names that begin with any_ have unknown ranks; those in `static` no batch;
    those in `sized` no unknown size but the batch. Floats are within atol(name, TensorFlow's) + rtol. `kept`: what the model keeps: tables,
    layers. Returns the failures."""
    module, signatures, expected, failures = tf.Module(), {}, {}, []
    module.kept = list(kept)
    with tempfile.TemporaryDirectory(prefix="sextant-host-ops-") as tmp:
        for name, (function, args) in cases.items():
            args = [np.asarray(a, object if isinstance(a, bytes) else None) for a in args]
            any_rank = name.startswith("any_")
            # Unknown first dimensions of a signature are one, the batch.
            batch = None if len({a.shape[:1] for a in args if a.ndim > 0}) == 1 and name not in static else 0
            first = lambda a: [None if batch is None else a.shape[0]] if a.ndim > 0 else []
            specs = [tf.TensorSpec(None if any_rank else first(a) + (list(a.shape[1:]) if name in sized else [None] * (a.ndim - 1)), tf.string if a.dtype == object else a.dtype, f"x{i}")
                     for i, a in enumerate(args)]
            wrap = tf.function(named(function), autograph=False)
            try:
                concrete = wrap.get_concrete_function(*specs)
            except ValueError:  # shapes that TensorFlow refuses already here
                concrete = wrap.get_concrete_function(*(tf.TensorSpec([None] * s.shape.rank, s.dtype, s.name) for s in specs))
            try:
                by_name = concrete(*(tf.constant(a, s.dtype) for a, s in zip(args, specs)))
                expected[name] = [by_name[k].numpy() for k in sorted(by_name)]
                expected[name] = [np.asarray(y, object if isinstance(y, bytes) else None) for y in expected[name]]
            except (tf.errors.OpError, TypeError, UnicodeDecodeError) as error:
                # of a message that is no UTF-8, Python's own error remains
                assert isinstance(error, tf.errors.OpError) or "codec" in str(error), error
                expected[name] = error
            setattr(module, name, wrap)
            signatures[name] = concrete
            Path(tmp, f"{name}.in").write_bytes(pack(args))
        tf.saved_model.save(module, f"{tmp}/model", signatures=signatures)
        tool = os.path.join(os.environ["SEXTANT_TEST_BIN"], "function_tool")
        subprocess.run([tool, f"{tmp}/model", tmp], check=True)
        for name, theirs in expected.items():
            error = Path(tmp, f"{name}.error")
            refused = error.read_text(errors="replace") if error.exists() else None
            if isinstance(theirs, Exception):
                if refused is None or not refused.startswith(("INVALID_ARGUMENT", "OUT_OF_RANGE", "RESOURCE_EXHAUSTED")):
                    got = refused or unpack(Path(tmp, f"{name}.out").read_bytes())
                    failures.append(f"{name}: {str(got)[:300]}; TensorFlow refuses: {str(theirs)[:200]}")
                continue
            if refused is not None:
                failures.append(f"{name}: {refused[:400]}; TensorFlow gives {str(theirs)[:200]}")
                continue
            ours = unpack(Path(tmp, f"{name}.out").read_bytes())
            if len(ours) != len(theirs):
                failures.append(f"{name}: {len(ours)} outputs, TensorFlow {len(theirs)}")
            wrong = [f"y{k}: {w}" for k, (a, b) in enumerate(zip(ours, theirs)) if (w := same(a, b, rtol, atol(name, b)))]
            failures.extend(f"{name} {w}" for w in wrong)
    return failures


def main(cases, least, run, unknown_rank=()):
    """What a script of cases does: those that its arguments name a part of, or all, and then at least `least`; those
    in `unknown_rank` a second time, of unknown ranks. `run` gives the failures of cases. Returns the exit code."""
    only = sys.argv[1:]
    cases = {k: v for k, v in cases.items() if not only or any(o in k for o in only)}
    cases |= {f"any_{k}": cases[k] for k in unknown_rank if k in cases}
    failures = run(cases)
    for failure in failures:
        print(f"FAIL {failure}")
    print(f"{len(cases)} cases, {len(failures)} failures")
    return 1 if failures or (not only and len(cases) < least) else 0
