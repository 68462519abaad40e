/* cholesky_grad: of y = cholesky(x): dx = (s + sᵀ) / 2, where s = y⁻ᵀ φ y⁻¹, and φ is the lower
 * triangle of yᵀ dy, its diagonal halved.
 *
 *   y, dy    [...,n,n], any float, of one type; of each the lower triangle is read
 *   returns  their type, symmetric
 *
 * Errors   INVALID_ARGUMENT  no float, not square, types differ
 * Source   TensorFlow CholeskyGrad; I. Murray, "Differentiation of the Cholesky decomposition",
 * 2016 */
#include "graph/ops/linear_algebra.h"

static sx_status cholesky_grad_infer(sx_infer_context *c)
{
    SX_TRY(sx_require_square("y", &c->inputs[0]));
    SX_TRY(sx_require_square("dy", &c->inputs[1]));
    SX_TRY(sx_require_dtype("dy", &c->inputs[1], c->inputs[0].dtype));
    return sx_merge_shapes("y", &c->inputs[0], "dy", &c->inputs[1], &c->outputs[0]);
}

static void cholesky_grad_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_triangular_attrs turned = {.lower = true, .adjoint = true};
    const sx_value y = sx_triangle(b, g->x[0], true), dy = sx_triangle(b, g->x[1], true);
    sx_value phi = sx_triangle(b, sx_product(b, y, true, dy, false), true);
    phi = sx_build_op(b, sub, NULL, phi, sx_times(b, sx_keep_diagonal(b, phi), 0.5));
    sx_value s = sx_build_op(b, matrix_triangular_solve, &turned, y, phi);
    s = sx_build_op(b, matrix_triangular_solve, &turned, y, sx_transposed(b, s));
    s = sx_times(b, sx_build_op(b, add, NULL, s, sx_transposed(b, s)), 0.5);
    sx_grad_of_formula(g, &s);
}

static sx_status cholesky_grad_host(const sx_kernel_call *c)
{
    const sx_matrices of_y = sx_matrices_of(&c->in[0].type);
    const int64_t n = of_y.rows;
    double *s = sx_matrix_room(c, n * n), *turned = sx_matrix_room(c, n * n);
    if (s == NULL || turned == NULL) {
        return sx_no_memory("for a gradient of matrices");
    }
    SX_TRY(sx_require_heads("y", &c->in[0].type, "dy", &c->in[1].type));
    for (int64_t p = 0; p < of_y.count; p++) {
        const double *y = c->in[0].f + p * n * n, *dy = c->in[1].f + p * n * n;
        SX_TRY(sx_cancel_check(c->cancel));
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t k = i; k < n && j <= i; k++) {
                    sum += y[k * n + i] * dy[k * n + j];
                }
                s[i * n + j] = i == j ? sum / 2 : sum;
            }
        }
        sx_triangular_solve(y, n, true, true, s, n);
        for (int64_t k = 0; k < n * n; k++) {
            turned[k] = s[k % n * n + k / n];
        }
        sx_triangular_solve(y, n, true, true, turned, n);
        for (int64_t k = 0; k < n * n; k++) {
            c->out[0].f[p * n * n + k] = (turned[k] + turned[k % n * n + k / n]) / 2;
        }
    }
    return SX_OK;
}

static void cholesky_grad_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "CholeskyGrad");
}

static const double numbers[] = {4, 0, 0, 1, 3, 0, 0.5, 0, 5};
static const sx_op_sample cholesky_grad_samples[] = {
    {.name = "stack",
     .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 2, 3, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 3)},
     .n_inputs = 2},
};

const sx_op_def sx_op_cholesky_grad = {
    SX_OP_NAMED(cholesky_grad),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST,
    .infer = cholesky_grad_infer,
    .grad = cholesky_grad_gradient,
    .host = cholesky_grad_host,
    .to_tf = cholesky_grad_to_tf,
    SX_FROM_TF({.op = "CholeskyGrad"}),
    SX_OP_SAMPLES(cholesky_grad_samples),
};
