/* complex_determinant: the determinant of each square matrix of complex numbers.
 *
 *   re, im   [...,n,n] of one type, any float: the parts
 *   returns  the parts of the determinants, [...]
 *
 * Errors   INVALID_ARGUMENT  no float, not square, types that differ
 * Numbers  by elimination in double, with the largest pivots of each column; of no element it is 1
 * Source   TensorFlow tf.linalg.det of complex numbers */
#include <complex.h>

#include "graph/ops/linear_algebra.h"

static sx_status complex_determinant_infer(sx_infer_context *c)
{
    sx_type both;
    SX_TRY(sx_require_parts(c, sx_require_square, &both));
    c->outputs[0] = c->outputs[1] = sx_heads_of(&both, 2);
    return SX_OK;
}

/* Of a [n,n], which is overwritten. */
static double complex determinant_of(double complex *a, int64_t n)
{
    double complex product = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++) {
            pivot = cabs(a[i * n + k]) > cabs(a[pivot * n + k]) ? i : pivot;
        }
        for (int64_t j = 0; j < n && pivot != k; j++) {
            const double complex v = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = v;
        }
        product *= pivot != k ? -a[k * n + k] : a[k * n + k];
        if (a[k * n + k] == 0) {
            return 0;
        }
        for (int64_t i = k + 1; i < n; i++) {
            const double complex factor = a[i * n + k] / a[k * n + k];
            for (int64_t j = k + 1; j < n; j++) {
                a[i * n + j] -= factor * a[k * n + j];
            }
        }
    }
    return product;
}

static sx_status complex_determinant_host(const sx_kernel_call *c)
{
    const sx_matrices x = sx_matrices_of(&c->in[0].type);
    const int64_t size = x.rows * x.rows;
    double complex *a = sx_arena_array(c->arena, size + 1, double complex);
    if (a == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t m = 0; m < x.count; m++) {
        SX_TRY(sx_cancel_check(c->cancel));
        for (int64_t k = 0; k < size; k++) {
            a[k] = c->in[0].f[m * size + k] + c->in[1].f[m * size + k] * I;
        }
        const double complex y = determinant_of(a, x.rows);
        c->out[0].f[m] = creal(y);
        c->out[1].f[m] = cimag(y);
    }
    return SX_OK;
}

static const double numbers[] = {4, 1, 0.5, -1, 3, 0, 2, 0.5, 5};
static const sx_op_sample complex_determinant_samples[] = {
    {.name = "stack",
     .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 2, 3, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 3)},
     .n_inputs = 2},
};

const sx_op_def sx_op_complex_determinant = {
    SX_OP_NAMED(complex_determinant),
    .n_in = 2,
    .n_out = 2,
    .flags = SX_OP_HOST | SX_OP_REFUSES_GRAD | SX_OP_NO_TF,
    .infer = complex_determinant_infer,
    .host = complex_determinant_host,
    SX_OP_SAMPLES(complex_determinant_samples),
};
