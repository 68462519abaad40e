/* complex_self_adjoint_eig: x = v diag(e) vᴴ of Hermitian matrices, e in ascending order.
 *
 *   re, im     [...,n,n] of one type, any float: the parts of x; the lower triangle is read
 *   compute_v  otherwise v is [0]
 *   returns    e [...,n], and the parts of v, [...,n,n], with orthonormal columns
 *
 * Errors   INVALID_ARGUMENT  no float, not square, types that differ
 * Numbers  in double, by Jacobi's rotations; the angles of the vectors, and those of equal values,
 *          are ours; NaN or infinity in a matrix gives NaN
 * Source   TensorFlow tf.linalg.eigh of complex numbers; G. Golub, C. Van Loan, Matrix
 *          Computations, 8.5 */
#ifdef SX_ATTRS
typedef struct sx_complex_self_adjoint_eig_attrs {
    bool compute_v;
} sx_complex_self_adjoint_eig_attrs;
#endif

#include <complex.h>
#include <float.h>

#include "graph/ops/linear_algebra.h"
#include "graph/ops/rotations.h"

static const sx_attr_def complex_self_adjoint_eig_attrs[] = {
    SX_ATTR(sx_complex_self_adjoint_eig_attrs, compute_v, SX_ATTR_BOOL)};

static sx_status complex_self_adjoint_eig_infer(sx_infer_context *c)
{
    const sx_complex_self_adjoint_eig_attrs *attrs = c->attrs;
    sx_type both;
    SX_TRY(sx_require_parts(c, sx_require_square, &both));
    c->outputs[0] = sx_heads_of(&both, 1);
    c->outputs[1] = c->outputs[2] = attrs->compute_v ? both : sx_type_of(both.dtype, 0);
    return SX_OK;
}

/* Makes a [n,n], which is jᴴ a j for the product j of the rotations, a diagonal; v becomes v j. */
static void make_diagonal(double complex *a, double complex *v, int64_t n)
{
    bool turned = true;
    for (int sweep = 0; sweep < SX_MOST_SWEEPS && turned; sweep++) {
        turned = false;
        for (int64_t p = 0; p < n; p++) {
            for (int64_t q = p + 1; q < n; q++) {
                const double left = creal(a[p * n + p]), right = creal(a[q * n + q]);
                const double complex between = a[p * n + q];
                if (!(cabs(between) > DBL_EPSILON / 1024)) { /* the greatest is 1 or more */
                    continue;
                }
                const sx_rotation r = sx_rotation_of(left, right, between);
                turned = true;
                sx_rotate(&r, a + p, a + q, n, n);
                sx_rotate(&r, v + p, v + q, n, n);
                const sx_rotation back = {r.c, conj(r.s)};
                sx_rotate(&back, a + p * n, a + q * n, n, 1);
                a[p * n + q] = a[q * n + p] = 0;
            }
        }
    }
}

static sx_status complex_self_adjoint_eig_host(const sx_kernel_call *c)
{
    const sx_complex_self_adjoint_eig_attrs *attrs = c->attrs;
    const sx_matrices x = sx_matrices_of(&c->in[0].type);
    const int64_t n = x.rows, size = n * n;
    double complex *a = sx_arena_array(c->arena, size + 1, double complex),
                   *v = sx_arena_array(c->arena, size + 1, double complex);
    int64_t *order = sx_arena_array(c->arena, n + 1, int64_t);
    if (a == NULL || v == NULL || order == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t at = 0; at < x.count; at++) {
        double most = 0, *e = c->out[0].f + at * n;
        bool finite = true;
        SX_TRY(sx_cancel_check(c->cancel));
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j <= i; j++) {
                const int64_t k = at * size + i * n + j;
                const double re = c->in[0].f[k], im = i == j ? 0 : c->in[1].f[k];
                finite = finite && isfinite(re) && isfinite(im);
                most = fmax(most, fmax(fabs(re), fabs(im)));
                a[i * n + j] = re + im * I;
                a[j * n + i] = re - im * I;
                v[i * n + j] = v[j * n + i] = i == j;
            }
        }
        const double scale = sx_scale_of(most);
        for (int64_t k = 0; k < size; k++) {
            a[k] = finite ? a[k] / scale : 0;
        }
        make_diagonal(a, v, n);
        for (int64_t i = 0; i < n; i++) {
            order[i] = i;
            for (int64_t k = i;
                 k > 0 && creal(a[order[k] * (n + 1)]) < creal(a[order[k - 1] * (n + 1)]); k--) {
                const int64_t later = order[k - 1];
                order[k - 1] = order[k];
                order[k] = later;
            }
        }
        for (int64_t j = 0; j < n; j++) {
            e[j] = finite ? creal(a[order[j] * (n + 1)]) * scale : (double)NAN;
            for (int64_t i = 0; i < n && attrs->compute_v; i++) {
                const double complex z = v[i * n + order[j]];
                c->out[1].f[at * size + i * n + j] = finite ? creal(z) : (double)NAN;
                c->out[2].f[at * size + i * n + j] = finite ? cimag(z) : (double)NAN;
            }
        }
    }
    return SX_OK;
}

static const sx_op_sample complex_self_adjoint_eig_samples[] = {
    {.name = "values", /* the angles of vectors are open */
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 3)},
     .n_inputs = 2},
};

const sx_op_def sx_op_complex_self_adjoint_eig = {
    SX_OP_NAMED(complex_self_adjoint_eig),
    .n_in = 2,
    .n_out = 3,
    .flags = SX_OP_HOST | SX_OP_REFUSES_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_complex_self_adjoint_eig_attrs, complex_self_adjoint_eig_attrs),
    .infer = complex_self_adjoint_eig_infer,
    .host = complex_self_adjoint_eig_host,
    SX_OP_SAMPLES(complex_self_adjoint_eig_samples),
};
