"""Linear algebra against TensorFlow: diagonals, inverses, solutions, factors. What a factorization leaves open, the signs
of vectors, is made equal first.

Each row of CASES is a function and its arguments (function_cases.py)."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

import function_cases

raw = tf.raw_ops
CASES = {}
RNG = np.random.default_rng(5)


def case(name, function, *args):
    assert name not in CASES, name
    CASES[name] = (function, args)


def draw(*shape, dtype=np.float32):
    return RNG.normal(size=shape).astype(dtype)


def regular(*shape, dtype=np.float32):
    return (RNG.normal(size=shape) + 3 * np.eye(shape[-1])).astype(dtype)


def definite(*shape, dtype=np.float32):
    a = RNG.normal(size=shape)
    return (a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])).astype(dtype)


# --- Diagonals -------------------------------------------------------------------------------------

ALIGN = ["RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"]
for dtype in (np.float32, np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8, np.bool_):
    x = RNG.integers(0, 2 if dtype is np.bool_ else 100, (2, 3, 4)).astype(dtype)
    d = np.dtype(dtype).name
    case(f"diag_{d}", lambda x: raw.MatrixDiag(diagonal=x), x)
    case(f"diag_part_{d}", lambda x: raw.MatrixDiagPart(input=x), x)
    case(f"set_diag_{d}", lambda x, y: raw.MatrixSetDiag(input=x, diagonal=y), x, x[:, :, 0].copy())
x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) + 1
for k in (0, 1, -1, 2, -2, 3, (-1, 1), (0, 2), (-2, 0), (-2, 3), (1, 3), (-2, -1)):
    name = str(k).replace(" ", "").replace("-", "m").strip("()").replace(",", "_")
    part = tf.linalg.diag_part(x, k=k).numpy()
    for align in ALIGN if isinstance(k, tuple) else ALIGN[:1]:
        case(f"diag_part_k{name}_{align}", lambda x, k=k, a=align: raw.MatrixDiagPartV3(
            input=tf.reshape(x, [2, 3, 4]), k=k, padding_value=-1.0, align=a), x)
        case(f"set_diag_k{name}_{align}", lambda x, y, k=k, a=align, s=part.shape: raw.MatrixSetDiagV3(
            input=tf.reshape(x, [2, 3, 4]), diagonal=tf.reshape(y, s), k=k, align=a), x, -part)
        for sizes in ((-1, -1), (-1, 4)) if k != (-1, 1) else ((-1, -1), (3, 4), (3, -1)):
            case(f"diag_k{name}_{align}_{sizes[0] % 9}_{sizes[1] % 9}", lambda y, k=k, a=align, s=sizes, p=part.shape: raw.MatrixDiagV3(
                diagonal=tf.reshape(y, p), k=k, num_rows=s[0], num_cols=s[1], padding_value=-2.0, align=a), part)
    case(f"diag_part_v2_k{name}", lambda x, k=k: raw.MatrixDiagPartV2(input=tf.reshape(x, [2, 3, 4]), k=k, padding_value=0.0), x)
case("diag_eye", lambda x: tf.eye(tf.shape(x)[0], 4), x[:, :, 0].copy())
case("diag_outside", lambda x: raw.MatrixDiagPartV3(input=x, k=4, padding_value=0.0), x)
case("diag_empty", lambda x: raw.MatrixDiagV3(diagonal=x, k=0, num_rows=-1, num_cols=-1, padding_value=0.0), np.zeros((2, 0), np.float32))
case("set_diag_sizes", lambda x, y: raw.MatrixSetDiagV3(input=x, diagonal=y, k=0), x, x[:, 0, :2].copy())

# --- Square matrices -------------------------------------------------------------------------------




def eig(x):
    e, v = raw.SelfAdjointEigV2(input=x)
    return e, tf.matmul(v * e[..., None, :], v, transpose_b=True), tf.abs(v)


def svd(x, full=False):
    s, u, v = raw.Svd(input=x, full_matrices=full)
    p = s.shape[-1]
    return s, tf.abs(u[..., :p]), tf.abs(v[..., :p]), tf.matmul(u[..., :p] * s[..., None, :], v[..., :p], transpose_b=True), tf.matmul(
        u, u, transpose_a=True), tf.matmul(v, v, transpose_a=True)


SCALES = np.random.default_rng(9).normal(size=(12, 12)) * np.array([[1e200]] * 6 + [[1e-200]] * 6)  # the product of any six pivots is no number
case("determinant_scales", lambda x: raw.MatrixDeterminant(input=x), SCALES)
for dtype in (np.float32, np.float64):
    d = np.dtype(dtype).name
    for shape in ((4, 4), (2, 3, 3), (2, 1, 5, 5), (1, 1), (0, 0), (2, 0, 0), (0, 3, 3), (2, 17, 17)):
        name = f"{d}_{'x'.join(map(str, shape))}"
        a, spd = regular(*shape, dtype=dtype), definite(*shape, dtype=dtype)
        b = draw(*shape[:-1], 2, dtype=dtype)
        for adjoint in (False, True):
            case(f"inverse_{adjoint}_{name}", lambda x, t=adjoint: raw.MatrixInverse(input=x, adjoint=t), a)
            case(f"solve_{adjoint}_{name}", lambda x, y, t=adjoint: raw.MatrixSolve(matrix=x, rhs=y, adjoint=t), a, b)
            for lower in (False, True):
                case(f"triangular_{lower}_{adjoint}_{name}", lambda x, y, l=lower, t=adjoint: raw.MatrixTriangularSolve(
                    matrix=x, rhs=y, lower=l, adjoint=t), a + 3 * np.eye(shape[-1], dtype=dtype), b)
        case(f"determinant_{name}", lambda x: raw.MatrixDeterminant(input=x), a)
        case(f"log_determinant_{name}", lambda x: tuple(raw.LogMatrixDeterminant(input=x)), -a)
        case(f"cholesky_{name}", lambda x: raw.Cholesky(input=x), spd)
        case(f"cholesky_grad_{name}", lambda l, g: raw.CholeskyGrad(l=l, grad=g), np.linalg.cholesky(spd) if spd.size else spd, draw(*shape, dtype=dtype))
        if shape != (0, 0):
            case(f"lu_{name}", lambda x: tuple(raw.Lu(input=x)), a)
        case(f"eig_{name}", eig, spd)
        case(f"eig_values_{name}", lambda x: raw.SelfAdjointEigV2(input=x, compute_v=False)[0], spd)
    for shape in ((4, 4), (5, 3), (3, 5), (2, 6, 3), (2, 3, 6), (1, 1), (3, 1), (1, 3), (4, 0), (0, 4), (0, 3, 2)):
        name = f"{d}_{'x'.join(map(str, shape))}"
        a, b = draw(*shape, dtype=dtype), draw(*shape[:-1], 2, dtype=dtype)
        if 0 not in shape[-2:]:
            case(f"svd_{name}", svd, a)
            case(f"svd_full_{name}", lambda x: svd(x, True), a)
            for fast in (True, False):
                case(f"least_{fast}_{name}", lambda x, y, f=fast: raw.MatrixSolveLs(matrix=x, rhs=y, l2_regularizer=np.float64(0.0), fast=f), a, b)
            case(f"least_regular_{name}", lambda x, y: raw.MatrixSolveLs(matrix=x, rhs=y, l2_regularizer=np.float64(0.7)), a, b)
        case(f"svd_values_{name}", lambda x: raw.Svd(input=x, compute_uv=False)[0], a)
        for full in (False, True):
            case(f"qr_{full}_{name}", lambda x, f=full: tuple(raw.Qr(input=x, full_matrices=f)) if not f else (raw.Qr(input=x, full_matrices=True)[1],), a)
    for bands in (1, 2, 3):
        for lower in (False, True):
            for adjoint in (False, True):
                case(f"banded_{bands}_{lower}_{adjoint}_{d}", lambda a, b, l=lower, t=adjoint: raw.BandedTriangularSolve(
                    matrix=a, rhs=b, lower=l, adjoint=t), draw(2, bands, 5, dtype=dtype) + dtype(3), draw(2, 5, 2, dtype=dtype))
    for pivots in (False, True):
        case(f"tridiagonal_{pivots}_{d}", lambda a, b, p=pivots: raw.TridiagonalSolve(diagonals=a, rhs=b, partial_pivoting=p),
             draw(2, 3, 6, dtype=dtype), draw(2, 6, 2, dtype=dtype))
    case(f"tridiagonal_one_{d}", lambda a, b: raw.TridiagonalSolve(diagonals=a, rhs=b), draw(3, 1, dtype=dtype), draw(1, 2, dtype=dtype))
f32 = np.float32
SINGULAR, RECTANGLE, BROKEN = f32([[1, 2], [2, 4]]), draw(2, 3), f32([[1, np.nan], [2, 4]])
for name, a in (("singular", SINGULAR), ("rectangle", RECTANGLE), ("nan", BROKEN), ("not_definite", -definite(3, 3))):
    case(f"odd_inverse_{name}", lambda x: raw.MatrixInverse(input=x), a)
    case(f"odd_determinant_{name}", lambda x: raw.MatrixDeterminant(input=x), a)
    case(f"odd_log_determinant_{name}", lambda x: tuple(raw.LogMatrixDeterminant(input=x)), a)
    case(f"odd_cholesky_{name}", lambda x: tf.linalg.band_part(raw.Cholesky(input=x), -1, 0), a)
    case(f"odd_solve_{name}", lambda x, y: raw.MatrixSolve(matrix=x, rhs=y), a, np.ones((len(a), 1), f32))
    case(f"odd_triangular_{name}", lambda x, y: raw.MatrixTriangularSolve(matrix=x, rhs=y), a, np.ones((len(a), 1), f32))
case("odd_triangular_zero", lambda x, y: raw.MatrixTriangularSolve(matrix=x, rhs=y), f32([[0, 1], [1, 1]]), np.ones((2, 1), f32))
case("odd_lu_singular", lambda x: tuple(raw.Lu(input=x)), SINGULAR)
case("odd_svd_singular", svd, SINGULAR)
case("odd_svd_nan", lambda x: raw.Svd(input=x, compute_uv=False)[0], BROKEN)
case("odd_svd_zero", lambda x: raw.Svd(input=x, compute_uv=False)[0], np.zeros((3, 4), f32))
case("odd_least_singular", lambda x, y: raw.MatrixSolveLs(matrix=x, rhs=y, l2_regularizer=np.float64(0)), SINGULAR, np.ones((2, 1), f32))
case("odd_solve_heads", lambda x, y: raw.MatrixSolve(matrix=x, rhs=y), regular(1, 2, 2), draw(3, 2, 1))
case("triangular_broadcast", lambda x, y: raw.MatrixTriangularSolve(matrix=x, rhs=y), regular(1, 3, 3), draw(4, 3, 2))
case("lu_wide_order", lambda x: tuple(raw.Lu(input=x, output_idx_type=tf.int64)), regular(3, 3))

# In a batch of another size than 1 a matrix's own dimensions are not the batch.
# --- Roots, logarithms, complex factors ---------------------------------------------------------------

both = lambda y: (tf.math.real(y), tf.math.imag(y))
for dtype in (np.float32, np.float64):
    d = np.dtype(dtype).name
    for key, a in {"definite": definite(3, 4, 4, dtype=dtype), "turned": np.array([[2, -1.5, 0], [1.5, 2, 0.5], [0, 0.25, 1]], dtype), "one": np.array([[9]], dtype),
                   "far": np.diag([1e-3, 5, 4e3]).astype(dtype) + np.triu(np.ones((3, 3), dtype), 1), "none": np.zeros((2, 0, 0), dtype)}.items():
        case(f"sqrtm_{key}_{d}", lambda x: tf.linalg.sqrtm(x), a)
        turn = dtype(0.3) * np.triu(np.ones(a.shape[-2:], dtype), 1)
        hermitian = turn - turn.T
        case(f"det_complex_{key}_{d}", lambda x, y: both(tf.linalg.det(tf.complex(x, y))), a, turn + 0 * a)
        if key == "none":
            continue
        case(f"sqrtm_complex_{key}_{d}", lambda x, y: both(tf.linalg.sqrtm(tf.complex(x, y))), a, turn + 0 * a)
        case(f"logm_{key}_{d}", lambda x, y: both(tf.linalg.logm(tf.complex(x, y))), a, turn + 0 * a)
        if key in ("definite", "one"):
            case(f"cholesky_complex_{key}_{d}", lambda x, y: both(tf.linalg.cholesky(tf.complex(x, y))), a, hermitian + 0 * a)
        square = key in ("definite", "turned", "one")
        case(f"logdet_complex_{key}_{d}", lambda x, y: (*both((z := raw.LogMatrixDeterminant(input=tf.complex(x, y)))[0]), *both(z[1])), a, turn + 0 * a)
        for lower in (True, False) if square else ():
            for adjoint in (True, False):
                case(f"triangular_complex_{key}_{lower}_{adjoint}_{d}", lambda x, y, b, lower=lower, adjoint=adjoint: both(raw.MatrixTriangularSolve(
                    matrix=tf.complex(x, y), rhs=tf.complex(b, 1 - b), lower=lower, adjoint=adjoint)), a, turn + 0 * a, draw(*a.shape[:-1], 2, dtype=dtype))
                case(f"solve_complex_{key}_{lower}_{adjoint}_{d}", lambda x, y, b, lower=lower, adjoint=adjoint: both(raw.MatrixSolve(
                    matrix=tf.complex(x, y), rhs=tf.complex(b, 1 - b), adjoint=adjoint)), a, turn + 0 * a, draw(*a.shape[:-1], 2, dtype=dtype))
    for rows in (3, 5):
        case(f"least_complex_{rows}_{d}", lambda x, y, b: both(raw.MatrixSolveLs(matrix=tf.complex(x, y), rhs=tf.complex(b, 1 - b), l2_regularizer=np.float64(0.1), fast=True)),
             draw(2, rows, 4, dtype=dtype), draw(2, rows, 4, dtype=dtype), draw(2, rows, 3, dtype=dtype))
case("logdet_complex_singular", lambda x, y: (*both((z := raw.LogMatrixDeterminant(input=tf.complex(x, y)))[0]), *both(z[1])), np.zeros((2, 2), np.float32), np.zeros((2, 2), np.float32))
case("logdet_complex_far", lambda x, y: (*both((z := raw.LogMatrixDeterminant(input=tf.complex(x, y)))[0]), *both(z[1])), regular(12, 12) * np.float32(1e6), regular(12, 12) * np.float32(1e6))
case("det_complex_zero", lambda x, y: both(tf.linalg.det(tf.complex(x, y))), np.ones((2, 2), np.float32), np.ones((2, 2), np.float32))


# --- Factors of complex matrices ----------------------------------------------------------------------

heads = lambda x: tf.cast(x, tf.complex128) if x.dtype in (tf.float64, tf.complex128) else tf.cast(x, tf.complex64)


def rebuilt(u, s, v):
    return tf.matmul(u[..., :s.shape[-1]] * heads(s)[..., None, :], v[..., :s.shape[-1]], adjoint_b=True)


def hermitian_eig(x):
    """The angles of the vectors are open."""
    e, v = raw.SelfAdjointEigV2(input=x)
    return *both(e), tf.abs(v), *both(rebuilt(v, e, v)), *both(tf.matmul(v, v, adjoint_a=True))


def complex_svd(x, full=False):
    s, u, v = raw.Svd(input=x, full_matrices=full)
    p = s.shape[-1]
    return *both(s), tf.abs(u[..., :p]), tf.abs(v[..., :p]), *both(rebuilt(u, s, v)), *both(tf.matmul(u, u, adjoint_a=True)), *both(tf.matmul(v, v, adjoint_a=True))


def slope(f):
    """The gradient of f, which TensorFlow makes of other operators."""
    def run(x, y):
        with tf.GradientTape() as tape:
            z = tf.reshape(tf.complex(x, y), [2, 4, 4])
            tape.watch(z)
            out = f(z)
        return both(tape.gradient(out, z))
    return run


for dtype in (np.float32, np.float64):
    d = np.dtype(dtype).name
    for shape in ((4, 4), (2, 3, 3), (1, 1), (2, 0, 0), (0, 3, 3), (2, 9, 9)):
        name, a = f"{d}_{'x'.join(map(str, shape))}", draw(*shape, dtype=dtype)
        case(f"eigh_complex_{name}", lambda x, y: hermitian_eig(tf.complex(x, y)), a, draw(*shape, dtype=dtype))
        case(f"eigh_complex_values_{name}", lambda x, y: both(raw.SelfAdjointEigV2(input=tf.complex(x, y), compute_v=False)[0]), a, draw(*shape, dtype=dtype))
    for shape in ((4, 4), (5, 3), (3, 5), (2, 6, 3), (2, 3, 6), (1, 1), (3, 1), (1, 3), (4, 0), (0, 4), (0, 3, 2)):
        name, a = f"{d}_{'x'.join(map(str, shape))}", draw(*shape, dtype=dtype)
        if 0 not in shape[-2:]:
            for full in (False, True):
                case(f"svd_complex_{full}_{name}", lambda x, y, f=full: complex_svd(tf.complex(x, y), f), a, draw(*shape, dtype=dtype))
        case(f"svd_complex_values_{name}", lambda x, y: both(raw.Svd(input=tf.complex(x, y), compute_uv=False)[0]), a, draw(*shape, dtype=dtype))
        for full in (False, True):
            case(f"qr_complex_{full}_{name}", lambda x, y, f=full: sum(map(both, raw.Qr(input=tf.complex(x, y), full_matrices=f)[f:]), ()), a, draw(*shape, dtype=dtype))
    a, b = draw(2, 4, 4, dtype=dtype), draw(2, 4, 4, dtype=dtype)
    case(f"slope_qr_complex_{d}", slope(lambda z: tf.reduce_sum(tf.abs(raw.Qr(input=z)[0] + raw.Qr(input=z)[1]) ** 2)), a, b)
    case(f"slope_eigh_complex_{d}", slope(lambda z: tf.reduce_sum(tf.math.real(tf.linalg.eigh(z + tf.linalg.adjoint(z))[0]) ** 3)), a, b)
    case(f"slope_svd_complex_{d}", slope(lambda z: tf.reduce_sum(tf.linalg.svd(z, compute_uv=False) ** 3)), a, b)
    case(f"pinv_complex_{d}", lambda x, y: both(tf.linalg.lstsq(tf.complex(x, y), tf.complex(x, 1 - y))), draw(5, 3, dtype=dtype), draw(5, 3, dtype=dtype))
# (where an element is no number, TensorFlow's values are 0, and ours no numbers, too)
for key, a in {"zero": np.zeros((3, 4), np.float32), "one": np.ones((4, 3), np.float32), "far": np.float32([[1e30, 1], [1, 1e-30]])}.items():
    case(f"odd_svd_complex_{key}", lambda x, y: both(raw.Svd(input=tf.complex(x, y), compute_uv=False)[0]), a, a)
    case(f"odd_svd_complex_{key}_rebuilt", lambda x, y: both(rebuilt(*(y := raw.Svd(input=tf.complex(x, y)))[1::-1], y[2])), a, a)
case("odd_qr_complex_zero", lambda x, y: sum(map(both, raw.Qr(input=tf.complex(x, y))), ()), np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32))
case("odd_eigh_complex_equal", lambda x, y: both(rebuilt((z := raw.SelfAdjointEigV2(input=tf.complex(x, y)))[1], z[0], z[1])), np.eye(4, dtype=np.float32), np.zeros((4, 4), np.float32))
case("odd_eigh_complex_rectangle", lambda x, y: both(raw.SelfAdjointEigV2(input=tf.complex(x, y))[0]), RECTANGLE, RECTANGLE)


# --- General values and vectors ------------------------------------------------------------------------

def eig(x, vectors=True):
    """What the order of values and the angles of vectors leave open is made equal."""
    e, v = raw.Eig(input=x, compute_v=vectors, Tout=tf.complex128 if x.dtype.size > 8 or x.dtype == tf.float64 else tf.complex64)
    order = tf.argsort(tf.round((2 * tf.math.real(e) + tf.math.imag(e)) * 1e3))
    e = tf.gather(e, order, batch_dims=e.shape.rank - 1)
    if not vectors:
        return both(e)
    v = tf.gather(tf.linalg.matrix_transpose(v), order, batch_dims=e.shape.rank - 1)
    first = v[..., :1]
    v = v * tf.math.conj(first) / tf.cast(tf.abs(first), v.dtype)
    return *both(e), *both(v)


for dtype in (np.float32, np.float64):
    d = np.dtype(dtype).name
    for key, a in {"any": draw(3, 5, 5, dtype=dtype), "turned": np.array([[2, -1.5, 0], [1.5, 2, 0.5], [0, 0.25, 1]], dtype), "one": np.array([[-9]], dtype),
                   "triangle": np.array([[1, 2, 3], [0, -4, 5], [0, 0, 6]], dtype), "circle": np.roll(np.eye(4, dtype=dtype), 1, 0) * dtype(1.5),
                   "large": (draw(2, 12, 12, dtype=dtype) * 1e6).astype(dtype), "none": np.zeros((2, 0, 0), dtype)}.items():
        # the vectors of the circle, whose values have one size, are compared through what they make
        if key == "none":
            case(f"eig_any_none_{d}", lambda x: (*both((y := raw.Eig(input=x, Tout=tf.complex128 if x.dtype.size > 4 else tf.complex64))[0]), *both(y[1])), a)
            continue
        case(f"eig_any_{key}_{d}", lambda x: eig(x), a)
        case(f"eig_any_values_{key}_{d}", lambda x: eig(x, False), a)
        case(f"eig_any_complex_{key}_{d}", lambda x, y: eig(tf.complex(x, y)), a, draw(*a.shape, dtype=dtype) * np.abs(a).max())
# the order is TensorFlow's, and not by size: of matrices far from those whose order hangs on rounding
for key, a in {"order": draw(8, 4, 4), "order_exact": draw(8, 6, 6, dtype=np.float64), "order_blocks": np.float64(
        [[0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1], [3, -2, 0, 5, 1]]), "order_one": np.float32([[3, 1], [1, -2]])}.items():
    out = tf.complex128 if a.dtype == np.float64 else tf.complex64
    case(f"eig_any_{key}", lambda x, t=out: both(raw.Eig(input=x, compute_v=False, Tout=t)[0]), a)
    case(f"eig_any_{key}_vectors", lambda x, t=out: (*both((y := raw.Eig(input=x, Tout=t))[0]), tf.abs(y[1])), a)
case("eig_any_order_complex", lambda x, y: both(raw.Eig(input=tf.complex(x, y), compute_v=False, Tout=tf.complex64)[0]), draw(8, 4, 4), draw(8, 4, 4))
case("eig_any_defective", lambda x: both(raw.Eig(input=x, compute_v=False, Tout=tf.complex128)[0]), np.float64([[2, 1, 0], [0, 2, 0], [0, 0, 3]]))
case("eig_any_zero", lambda x: both(raw.Eig(input=x, compute_v=False, Tout=tf.complex64)[0]), np.zeros((3, 3), np.float32))


STATIC = {name for name in CASES if CASES[name][1][0].ndim == 2 or name.startswith(("triangular_broadcast", "diag_k", "set_diag", "diag_part"))}
UNKNOWN_RANK = ["inverse_False_float32_2x3x3", "solve_False_float32_2x3x3", "cholesky_float32_2x3x3", "diag_part_k1_RIGHT_LEFT", "diag_float32"]


def rounding(name, theirs):
    """Of float32, whose rounding errors the condition of a matrix multiplies."""
    finite = np.abs(theirs[np.isfinite(theirs)]).max(initial=0) if theirs.dtype.kind == "f" else 0
    return 0 if name.startswith(("diag_", "set_")) else {"float32": 2e-4}.get(theirs.dtype.name, 1e-8) * max(finite, 1 if "svd" in name or "eig" in name else 0)


def main():
    return function_cases.main(CASES, 100, lambda cases: function_cases.run(cases, STATIC, atol=rounding), UNKNOWN_RANK)


if __name__ == "__main__":
    sys.exit(main())
