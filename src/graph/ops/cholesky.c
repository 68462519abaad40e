/* cholesky: y, lower triangular, where x = y yᵀ.
 *
 *   x        [...,n,n], any float, symmetric and positive definite; the lower triangle is read
 *   returns  x's type; of a matrix that is not positive definite NaN in the lower triangle
 *
 * Errors   INVALID_ARGUMENT  no float, not square
 * Source   TensorFlow tf.linalg.cholesky */
#include "graph/ops/linear_algebra.h"

static void cholesky_op_grad(sx_grad *g)
{
    g->dx[0] = sx_build_op(g->b, cholesky_grad, NULL, g->y[0], g->dy[0]);
}

static sx_status cholesky_host(const sx_kernel_call *c)
{
    const sx_matrices x = sx_matrices_of(&c->in[0].type);
    const int64_t n = x.rows;
    for (int64_t p = 0; p < x.count; p++) {
        double *y = c->out[0].f + p * n * n;
        SX_TRY(sx_cancel_check(c->cancel));
        memcpy(y, c->in[0].f + p * n * n, (size_t)(n * n) * sizeof(*y));
        const bool definite = sx_cholesky_factor(y, n);
        for (int64_t k = 0; k < n * n && !definite; k++) {
            y[k] = k % n <= k / n ? NAN : 0;
        }
    }
    return SX_OK;
}

static void cholesky_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Cholesky");
}

static const double numbers[] = {4, 1, 0.5, 1, 3, 0, 0.5, 0, 5};
static const sx_op_sample cholesky_samples[] = {
    /* the gradient is that of symmetric matrices, of which one triangle is read */
    {.name = "stack",
     .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 2, 3, 3)},
     .n_inputs = 1,
     .no_grad_check = true},
};

const sx_op_def sx_op_cholesky = {
    SX_OP_NAMED(cholesky),
    .n_in = 1,
    .n_out = 1,
    .flags = SX_OP_HOST,
    .infer = sx_infer_square,
    .grad = cholesky_op_grad,
    .host = cholesky_host,
    .to_tf = cholesky_to_tf,
    SX_FROM_TF({.op = "Cholesky"}),
    SX_OP_SAMPLES(cholesky_samples),
};
