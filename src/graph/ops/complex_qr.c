/* complex_qr: x = q r of matrices of complex numbers, with orthonormal columns of q, and r upper
 * triangular.
 *
 *   re, im         [...,m,n] of one type, any float: the parts of x
 *   full_matrices  q [...,m,m] and r [...,m,n]; otherwise q [...,m,p] and r [...,p,n] with
 *                  p = min(m, n)
 *   returns        the parts of q, and of r
 *
 * Errors   INVALID_ARGUMENT  no float, rank below 2, types that differ
 * Numbers  by Householder's reflections in double: the diagonal of r is real, each number with the
 *          sign that the real part of the column did not begin with
 * Source   TensorFlow tf.linalg.qr of complex numbers */
#ifdef SX_ATTRS
typedef struct sx_complex_qr_attrs {
    bool full_matrices;
} sx_complex_qr_attrs;
#endif

#include <complex.h>

#include "graph/ops/linear_algebra.h"

static const sx_attr_def complex_qr_attrs[] = {
    SX_ATTR(sx_complex_qr_attrs, full_matrices, SX_ATTR_BOOL)};

static sx_status complex_qr_infer(sx_infer_context *c)
{
    const sx_complex_qr_attrs *attrs = c->attrs;
    sx_type both;
    SX_TRY(sx_require_parts(c, sx_require_matrices, &both));
    const sx_type heads = sx_heads_of(&both, 2);
    const int64_t m = sx_matrix_dim(&both, 2), n = sx_matrix_dim(&both, 1);
    const int64_t p = attrs->full_matrices ? m : m < 0 || n < 0 ? SX_UNKNOWN_DIM : SX_MIN(m, n);
    c->outputs[0] = c->outputs[1] = sx_matrices_type(&heads, m, p);
    c->outputs[2] = c->outputs[3] = sx_matrices_type(&heads, p, n);
    return SX_OK;
}

/* The reflection 1 - factor v vᴴ that makes x[n], whose elements are `step` apart, its length and
 * zeros: v, whose first element is 1, takes the place of x, and *out_first is the length. */
static double complex reflection_of(double complex *x, int64_t n, int64_t step,
                                    double complex *out_first)
{
    double rest = 0;
    for (int64_t i = 1; i < n; i++) {
        rest += creal(x[i * step] * conj(x[i * step]));
    }
    const double complex first = x[0];
    *out_first = first;
    x[0] = 1;
    if (rest == 0 && cimag(first) == 0) {
        return 0;
    }
    const double size = sqrt(creal(first * conj(first)) + rest);
    const double length = creal(first) >= 0 ? -size : size;
    for (int64_t i = 1; i < n; i++) {
        x[i * step] /= first - length;
    }
    *out_first = length;
    return conj((length - first) / length);
}

/* Column y[n] less factor v (vᴴ y). */
static void reflect(double complex factor, const double complex *v, int64_t v_step,
                    double complex *y, int64_t y_step, int64_t n)
{
    double complex dot = 0;
    for (int64_t i = 0; i < n; i++) {
        dot += conj(v[i * v_step]) * y[i * y_step];
    }
    for (int64_t i = 0; i < n; i++) {
        y[i * y_step] -= factor * dot * v[i * v_step];
    }
}

static sx_status complex_qr_host(const sx_kernel_call *c)
{
    const sx_matrices x = sx_matrices_of(&c->in[0].type), of_q = sx_matrices_of(&c->out[0].type);
    const int64_t m = x.rows, n = x.columns, p = of_q.columns, steps = SX_MIN(m, n);
    double complex *a = sx_arena_array(c->arena, m * n + 1, double complex),
                   *q = sx_arena_array(c->arena, m * p + 1, double complex),
                   *factors = sx_arena_array(c->arena, steps + 1, double complex),
                   *diagonal = sx_arena_array(c->arena, steps + 1, double complex);
    if (a == NULL || q == NULL || factors == NULL || diagonal == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t at = 0; at < x.count; at++) {
        SX_TRY(sx_cancel_check(c->cancel));
        for (int64_t k = 0; k < m * n; k++) {
            a[k] = c->in[0].f[at * m * n + k] + c->in[1].f[at * m * n + k] * I;
        }
        for (int64_t k = 0; k < steps; k++) {
            double complex *own = a + k * n + k;
            factors[k] = reflection_of(own, m - k, n, &diagonal[k]);
            for (int64_t j = 1; j < n - k; j++) {
                reflect(factors[k], own, n, own + j, n, m - k);
            }
        }
        for (int64_t k = 0; k < m * p; k++) {
            q[k] = k / p == k % p;
        }
        for (int64_t k = steps - 1; k >= 0; k--) {
            for (int64_t j = k; j < p; j++) {
                reflect(conj(factors[k]), a + k * n + k, n, q + k * p + j, p, m - k);
            }
        }
        for (int64_t k = 0; k < m * p; k++) {
            c->out[0].f[at * m * p + k] = creal(q[k]);
            c->out[1].f[at * m * p + k] = cimag(q[k]);
        }
        for (int64_t k = 0; k < p * n; k++) {
            const int64_t i = k / n, j = k % n;
            const double complex r = j > i ? a[k] : j == i ? diagonal[i] : 0;
            c->out[2].f[at * p * n + k] = creal(r);
            c->out[3].f[at * p * n + k] = cimag(r);
        }
    }
    return SX_OK;
}

static const sx_op_sample complex_qr_samples[] = {
    {.name = "tall",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 4, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 4, 3)},
     .n_inputs = 2},
    {.name = "full",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 3)},
     .n_inputs = 2,
     .attrs = &(const sx_complex_qr_attrs){.full_matrices = true}},
    {.name = "wide",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 4), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 4)},
     .n_inputs = 2},
};

const sx_op_def sx_op_complex_qr = {
    SX_OP_NAMED(complex_qr),
    .n_in = 2,
    .n_out = 4,
    .flags = SX_OP_HOST | SX_OP_REFUSES_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_complex_qr_attrs, complex_qr_attrs),
    .infer = complex_qr_infer,
    .host = complex_qr_host,
    SX_OP_SAMPLES(complex_qr_samples),
};
