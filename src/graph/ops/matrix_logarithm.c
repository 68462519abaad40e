/* matrix_logarithm: y with exp(y) = x whose eigenvalues have imaginary parts within pi, of each
 * square matrix.
 *
 *   x        [...,n,n], any float
 *   returns  x's type
 *
 * The square root is taken s times, until the matrix is near 1; of that, with
 * z = (a - 1) (a + 1)^-1,  log a = 2 (z + z^3 / 3 + z^5 / 5 + ...),  and log x = 2^s log a.
 *
 * Errors   INVALID_ARGUMENT  no float, not square; (running) a matrix without an inverse, or with
 *                            a real eigenvalue that is negative
 * Numbers  in double; NaN or infinity in a matrix gives NaN
 * Source   TensorFlow tf.linalg.logm, which has it for complex numbers only */
#include "graph/ops/linear_algebra.h"
#include "graph/ops/matrix_loops.h"

/* out = a b; of n x n. */
static void multiply(const double *a, const double *b, double *out, int64_t n)
{
    memset(out, 0, (size_t)(n * n) * sizeof(*out));
    sx_matrix_add_product(out, n, n, n, n, 1, (sx_matrix_view){a, n, 1}, (sx_matrix_view){b, n, 1});
}

/* The greatest sum of a row of |a - 1|; NaN if there is one. */
static double distance_from_one(const double *a, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            sum += fabs(a[i * n + j] - (i == j));
        }
        most = sum > most || isnan(sum) ? sum : most;
    }
    return most;
}

/* room [4 n n], order [n] */
static sx_status logarithm_of(const sx_kernel_call *c, int64_t index, double *a, int64_t n,
                              double *room, int64_t *order)
{
    enum { MOST_ROOTS = 1100, TERMS = 14 };
    const double near = 0.4; /* |z| is at most 1/4 then, and z^29 below double's precision */
    const int64_t size = n * n;
    double *z = room, *square = z + size, *power = square + size, *next = power + size, scale = 2;
    int sign;
    bool regular;
    for (int s = 0; s < MOST_ROOTS && distance_from_one(a, n) > near; s++, scale *= 2) {
        SX_TRY(sx_matrix_square_root(c, index, n, a, room, order));
    }
    /* z = (a + 1)^-1 (a - 1), which is the same */
    memcpy(next, a, (size_t)size * sizeof(*next));
    for (int64_t i = 0; i < n; i++) {
        next[i * n + i] += 1;
        a[i * n + i] -= 1;
    }
    SX_TRY(sx_lu_factor(c, next, n, order, &sign, &regular));
    sx_lu_solve(next, order, n, a, z, n);
    multiply(z, z, square, n);
    memcpy(power, z, (size_t)size * sizeof(*z));
    memcpy(a, z, (size_t)size * sizeof(*z));
    for (int term = 1; term < TERMS; term++) {
        multiply(power, square, next, n);
        memcpy(power, next, (size_t)size * sizeof(*next));
        for (int64_t k = 0; k < size; k++) {
            a[k] += power[k] / (2 * term + 1);
        }
    }
    for (int64_t k = 0; k < size; k++) {
        a[k] *= scale;
    }
    return SX_OK;
}

static sx_status matrix_logarithm_host(const sx_kernel_call *c)
{
    const sx_matrices x = sx_matrices_of(&c->in[0].type);
    const int64_t size = x.rows * x.rows;
    double *room = sx_matrix_room(c, 4 * size);
    int64_t *order = sx_arena_array(c->arena, x.rows + 1, int64_t);
    if (room == NULL || order == NULL) {
        return sx_no_memory("for the powers of a matrix");
    }
    for (int64_t m = 0; m < x.count; m++) {
        double *y = c->out[0].f + m * size;
        memcpy(y, c->in[0].f + m * size, (size_t)size * sizeof(*y));
        SX_TRY(logarithm_of(c, m, y, x.rows, room, order));
    }
    return SX_OK;
}

static const double numbers[] = {4, 1, 0.5, -1, 3, 0, 2, 0.5, 5};
static const sx_op_sample matrix_logarithm_samples[] = {
    {.name = "stack", .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 2, 3, 3)}, .n_inputs = 1},
};

const sx_op_def sx_op_matrix_logarithm = {
    SX_OP_NAMED(matrix_logarithm),
    .n_in = 1,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_REFUSES_GRAD | SX_OP_NO_TF,
    .infer = sx_infer_square,
    .host = matrix_logarithm_host,
    SX_FROM_TF({.op = "MatrixLogarithm"}),
    SX_OP_SAMPLES(matrix_logarithm_samples),
};
