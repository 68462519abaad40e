/* matrix_solve_ls: x for which |a x - b|² + l2 |x|² is least; of several, that of least |x|.
 *
 *   a               [...,m,n], any float
 *   b               [...,m,k] of its dtype, with the same dimensions in front
 *   l2_regularizer  float64 scalar, not negative
 *   fast            by the normal equations; otherwise by singular values, where l2 does not count
 *   returns         [...,n,k]
 *
 * Errors   INVALID_ARGUMENT  dtypes, shapes; (running) fast: a matrix is not of full rank
 * Numbers  singular values below those that the dtype can tell from 0 count as 0
 * Source   TensorFlow tf.linalg.lstsq */
#include <float.h>

#include "graph/ops/linear_algebra.h"
#include "graph/ops/matrix_loops.h"

typedef struct sx_matrix_solve_ls_attrs {
    bool fast;
} sx_matrix_solve_ls_attrs;

static const sx_attr_def matrix_solve_ls_attrs[] = {
    SX_ATTR_TF(sx_matrix_solve_ls_attrs, fast, SX_ATTR_BOOL, .tf_number = 1)};

static sx_status matrix_solve_ls_infer(sx_infer_context *c)
{
    const sx_type *a = &c->inputs[0], *b = &c->inputs[1];
    SX_TRY(sx_require_matrices("a", a));
    SX_TRY(sx_require_matrices("b", b));
    SX_TRY(sx_require_dtype("b", b, a->dtype));
    SX_TRY(sx_require_maybe("l2_regularizer", &c->inputs[2], SX_F64, 0, "a scalar"));
    const sx_type heads = sx_heads_of(b, 2);
    c->outputs[0] = sx_matrices_type(&heads, sx_matrix_dim(a, 1), sx_matrix_dim(b, 1));
    return SX_OK;
}

/* out [n,k] = op(a) b, a [n,m] or, transposed, [m,n] */
static void multiply(const double *a, bool transposed, int64_t m, int64_t n, const double *b,
                     int64_t k, double *out)
{
    memset(out, 0, (size_t)(n * k) * sizeof(*out));
    sx_matrix_add_product(out, k, n, k, m, 1,
                          (sx_matrix_view){a, transposed ? 1 : m, transposed ? n : 1},
                          (sx_matrix_view){b, k, 1});
}

/* Of the normal equations: x = (aT a + l2 I)^-1 aT b, or, of wide matrices, aT (a aT + l2 I)^-1 b.
 */
static void matrix_solve_ls_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_matrix_solve_ls_attrs *attrs = g->attrs;
    const sx_value a = g->x[0];
    const sx_type type = sx_type_of_value(b, a);
    const int64_t m = type.dims[type.rank - 2], n = type.dims[type.rank - 1];
    if (!attrs->fast) {
        sx_builder_fail(b, sx_error(SX_UNIMPLEMENTED,
                                    "least squares by singular values have no gradient; solve them "
                                    "by the normal equations (tf.linalg.lstsq(fast=True))"));
        return;
    }
    const int64_t size = SX_MIN(m, n);
    const sx_value number = sx_numbers_to(b, size);
    const sx_value eye = sx_cast_like(
        b, sx_build_op(b, equal, NULL, sx_as_column(b, number), sx_as_row(b, number)), a);
    const sx_value square =
        m >= n ? sx_product(b, a, true, a, false) : sx_product(b, a, false, a, true);
    const sx_value system = sx_build_op(
        b, add, NULL, square, sx_build_op(b, mul, NULL, eye, sx_cast_like(b, g->x[2], a)));
    const sx_adjoint_attrs plain = {false};
    const sx_value x =
        m >= n
            ? sx_build_op(b, matrix_solve, &plain, system, sx_product(b, a, true, g->x[1], false))
            : sx_product(b, a, true, sx_build_op(b, matrix_solve, &plain, system, g->x[1]), false);
    sx_grad_of_formula(g, &x);
}

static sx_status matrix_solve_ls_host(const sx_kernel_call *c)
{
    const sx_matrix_solve_ls_attrs *attrs = c->attrs;
    const sx_matrices of_a = sx_matrices_of(&c->in[0].type), of_b = sx_matrices_of(&c->in[1].type);
    const int64_t m = of_a.rows, n = of_a.columns, k = of_b.columns, rank = SX_MIN(m, n);
    const double l2 = c->in[2].f[0];
    double *square = sx_matrix_room(c, rank * rank), *part = sx_matrix_room(c, rank * k);
    double *u = sx_matrix_room(c, m * rank), *v = sx_matrix_room(c, n * rank);
    double *s = sx_matrix_room(c, rank);
    sx_svd *room = NULL;
    if (square == NULL || part == NULL || u == NULL || v == NULL || s == NULL) {
        return sx_no_memory("for normal equations");
    }
    SX_TRY(sx_require_heads("a", &c->in[0].type, "b", &c->in[1].type));
    if (of_b.rows != m || !(l2 >= 0)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "a is %s, b is %s and l2_regularizer %g, expected "
                        "equally many rows and 0 or more",
                        SX_TEXT(&c->in[0].type), SX_TEXT(&c->in[1].type), l2);
    }
    if (!attrs->fast) {
        SX_TRY(sx_svd_prepare(c, m, n, false, &room));
    }
    for (int64_t p = 0; p < of_b.count; p++) {
        const double *a = c->in[0].f + p * m * n, *b = c->in[1].f + p * m * k;
        double *x = c->out[0].f + p * n * k;
        SX_TRY(sx_cancel_check(c->cancel));
        if (!attrs->fast) {
            const double least = c->in[0].type.dtype == SX_F64 ? DBL_EPSILON : FLT_EPSILON;
            SX_TRY(sx_svd_factor(c, room, a, s, u, v));
            multiply(u, true, m, rank, b, k, part);
            for (int64_t i = 0; i < rank * k; i++) {
                const double value = s[i / k];
                part[i] = value > least * (double)rank * s[0] ? part[i] / value : 0;
            }
            multiply(v, false, rank, n, part, k, x);
            continue;
        }
        /* aᵀ a, or a aᵀ where a is wide */
        const sx_matrix_view rows = {a, n, 1}, columns = {a, 1, n};
        memset(square, 0, (size_t)(rank * rank) * sizeof(*square));
        for (int64_t i = 0; i < rank; i++) {
            square[i * rank + i] = l2;
        }
        sx_matrix_add_product(square, rank, rank, rank, SX_MAX(m, n), 1, m >= n ? columns : rows,
                              m >= n ? rows : columns);
        if (!sx_cholesky_factor(square, rank)) {
            return sx_error(SX_INVALID_ARGUMENT, "matrix %lld is not of full rank", (long long)p);
        }
        if (m >= n) {
            multiply(a, true, m, n, b, k, x);
        } else {
            memcpy(part, b, (size_t)(m * k) * sizeof(*part));
        }
        double *y = m >= n ? x : part;
        sx_triangular_solve(square, rank, true, false, y, k);
        sx_triangular_solve(square, rank, true, true, y, k);
        if (m < n) {
            multiply(a, true, m, n, part, k, x);
        }
    }
    return SX_OK;
}

static void matrix_solve_ls_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_matrix_solve_ls, "MatrixSolveLs",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double l2[] = {0.5};
static const sx_op_sample matrix_solve_ls_samples[] = {
    {.name = "tall",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 4, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 4, 2),
                SX_SAMPLE_ONE(SX_F64, l2)},
     .n_inputs = 3,
     .attrs = &(const sx_matrix_solve_ls_attrs){.fast = true}},
};

const sx_op_def sx_op_matrix_solve_ls = {
    SX_OP_NAMED(matrix_solve_ls),
    .n_in = 3,
    .n_out = 1,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_matrix_solve_ls_attrs, matrix_solve_ls_attrs),
    .infer = matrix_solve_ls_infer,
    .grad = matrix_solve_ls_gradient,
    .host = matrix_solve_ls_host,
    .to_tf = matrix_solve_ls_to_tf,
    SX_FROM_TF({.op = "MatrixSolveLs"}),
    SX_OP_SAMPLES(matrix_solve_ls_samples),
};
