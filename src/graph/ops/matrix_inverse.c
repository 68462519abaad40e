/* matrix_inverse: the inverse of each square matrix, or of its transpose.
 *
 *   x        [...,n,n], any float
 *   adjoint  of the transpose
 *   returns  x's type
 *
 * Errors   INVALID_ARGUMENT  no float, not square; (running) a matrix has no inverse
 * Numbers  by LU factors, with the largest pivots of each column
 * Source   TensorFlow tf.linalg.inv */
#include "graph/ops/linear_algebra.h"

/* dx = -yᵀ dy yᵀ; of the adjoint that transposed */
static void matrix_inverse_grad(sx_grad *g)
{
    const sx_adjoint_attrs *attrs = g->attrs;
    const sx_matmul_attrs first = {.transpose_a = true}, second = {.transpose_b = true};
    sx_value y = g->y[0], dy = g->dy[0];
    if (attrs->adjoint) { /* y dyᵀ y */
        dy = sx_build_op(g->b, matmul, &second, y, dy);
        dy = sx_build_op(g->b, matmul, NULL, dy, y);
    } else {
        dy = sx_build_op(g->b, matmul, &first, y, dy);
        dy = sx_build_op(g->b, matmul, &second, dy, y);
    }
    g->dx[0] = sx_build_op(g->b, neg, NULL, dy);
}

static sx_status matrix_inverse_host(const sx_kernel_call *c)
{
    const sx_adjoint_attrs *attrs = c->attrs;
    const sx_matrices x = sx_matrices_of(&c->in[0].type);
    const int64_t n = x.rows;
    double *lu = sx_matrix_room(c, n * n), *unit = sx_matrix_room(c, n * n);
    int64_t *order = sx_arena_array(c->arena, n + 1, int64_t);
    if (lu == NULL || unit == NULL || order == NULL) {
        return sx_no_memory("for the factors of a matrix");
    }
    memset(unit, 0, (size_t)(n * n) * sizeof(*unit));
    for (int64_t i = 0; i < n; i++) {
        unit[i * n + i] = 1;
    }
    for (int64_t p = 0; p < x.count; p++) {
        SX_TRY(sx_lu_of(c, p, n, attrs->adjoint, lu, order));
        sx_lu_solve(lu, order, n, unit, c->out[0].f + p * n * n, n);
    }
    return SX_OK;
}

static void matrix_inverse_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_matrix_inverse, "MatrixInverse",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double numbers[] = {4, 1, 0.5, -1, 3, 0, 2, 0.5, 5};
static const sx_op_sample matrix_inverse_samples[] = {
    {.name = "stack", .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 2, 3, 3)}, .n_inputs = 1},
    {.name = "adjoint",
     .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 3, 3)},
     .n_inputs = 1,
     .attrs = &(const sx_adjoint_attrs){.adjoint = true}},
};

const sx_op_def sx_op_matrix_inverse = {
    SX_OP_NAMED(matrix_inverse),
    .n_in = 1,
    .n_out = 1,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_adjoint_attrs, sx_adjoint_rows),
    .infer = sx_infer_square,
    .grad = matrix_inverse_grad,
    .host = matrix_inverse_host,
    .to_tf = matrix_inverse_to_tf,
    SX_FROM_TF({.op = "MatrixInverse"}),
    SX_OP_SAMPLES(matrix_inverse_samples),
};
