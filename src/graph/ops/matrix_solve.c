/* matrix_solve: x where a x = b, or aᵀ x = b.
 *
 *   a        [...,n,n], any float
 *   b        [...,n,k] of its dtype, with the same dimensions in front
 *   adjoint  of the transpose of a
 *   returns  b's type
 *
 * Errors   INVALID_ARGUMENT  dtypes, shapes; (running) a matrix has no inverse
 * Numbers  by LU factors, with the largest pivots of each column
 * Source   TensorFlow tf.linalg.solve */
#include "graph/ops/linear_algebra.h"

static sx_status matrix_solve_infer(sx_infer_context *c)
{
    const sx_type *a = &c->inputs[0], *b = &c->inputs[1];
    SX_TRY(sx_require_square("a", a));
    SX_TRY(sx_require_matrices("b", b));
    SX_TRY(sx_require_dtype("b", b, a->dtype));
    c->outputs[0] = *b;
    return SX_OK;
}

/* db = the solution of the transpose for dy, da = -db yᵀ, or that transposed */
static void matrix_solve_grad(sx_grad *g)
{
    const sx_adjoint_attrs *attrs = g->attrs, other = {.adjoint = !attrs->adjoint};
    const sx_matmul_attrs outer = {.transpose_b = true};
    sx_value db = sx_build_op(g->b, matrix_solve, &other, g->x[0], g->dy[0]);
    sx_value da = attrs->adjoint ? sx_build_op(g->b, matmul, &outer, g->y[0], db)
                                 : sx_build_op(g->b, matmul, &outer, db, g->y[0]);
    g->dx[0] = sx_build_op(g->b, neg, NULL, da);
    g->dx[1] = db;
}

static sx_status matrix_solve_host(const sx_kernel_call *c)
{
    const sx_adjoint_attrs *attrs = c->attrs;
    const sx_matrices b = sx_matrices_of(&c->in[1].type);
    const int64_t n = b.rows, k = b.columns;
    double *lu = sx_matrix_room(c, n * n);
    int64_t *order = sx_arena_array(c->arena, n + 1, int64_t);
    if (lu == NULL || order == NULL) {
        return sx_no_memory("for the factors of a matrix");
    }
    SX_TRY(sx_require_heads("a", &c->in[0].type, "b", &c->in[1].type));
    if (sx_matrices_of(&c->in[0].type).rows != n) {
        return sx_error(SX_INVALID_ARGUMENT, "a is %s and b is %s, expected equally many rows",
                        SX_TEXT(&c->in[0].type), SX_TEXT(&c->in[1].type));
    }
    for (int64_t p = 0; p < b.count; p++) {
        SX_TRY(sx_lu_of(c, p, n, attrs->adjoint, lu, order));
        sx_lu_solve(lu, order, n, c->in[1].f + p * n * k, c->out[0].f + p * n * k, k);
    }
    return SX_OK;
}

static void matrix_solve_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_matrix_solve, "MatrixSolve",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double numbers[] = {4, 1, 0.5, -1, 3, 0, 2, 0.5, 5};
static const sx_op_sample matrix_solve_samples[] = {
    {.name = "stack",
     .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 2, 3, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 2)},
     .n_inputs = 2},
    {.name = "adjoint",
     .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 3, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 3, 1)},
     .n_inputs = 2,
     .attrs = &(const sx_adjoint_attrs){.adjoint = true}},
};

const sx_op_def sx_op_matrix_solve = {
    SX_OP_NAMED(matrix_solve),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_adjoint_attrs, sx_adjoint_rows),
    .infer = matrix_solve_infer,
    .grad = matrix_solve_grad,
    .host = matrix_solve_host,
    .to_tf = matrix_solve_to_tf,
    SX_FROM_TF({.op = "MatrixSolve"}),
    SX_OP_SAMPLES(matrix_solve_samples),
};
