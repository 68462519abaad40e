/* self_adjoint_eig: x = v diag(e) vᵀ of symmetric matrices, e in ascending order.
 *
 *   x          [...,n,n], any float; the lower triangle is read
 *   compute_v  otherwise v is [0]
 *   returns    e [...,n], v [...,n,n] with orthonormal columns
 *
 * Errors   INVALID_ARGUMENT  no float, not square
 * Numbers  by Jacobi's rotations; the signs of the vectors, and those of equal values, are ours;
 *          NaN or infinity in a matrix gives NaN
 * Source   TensorFlow tf.linalg.eigh */
#include <float.h>

#include "graph/ops/linear_algebra.h"

typedef struct sx_self_adjoint_eig_attrs {
    bool compute_v;
} sx_self_adjoint_eig_attrs;

static const sx_attr_def self_adjoint_eig_attrs[] = {
    SX_ATTR_TF(sx_self_adjoint_eig_attrs, compute_v, SX_ATTR_BOOL, .tf_number = 1)};

static sx_status self_adjoint_eig_infer(sx_infer_context *c)
{
    const sx_self_adjoint_eig_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    SX_TRY(sx_require_square("x", x));
    c->outputs[0] = sx_heads_of(x, 1);
    c->outputs[1] = attrs->compute_v ? *x : sx_type_of(x->dtype, 0);
    return SX_OK;
}

/* Rotates rows and columns p and q of a, and rows of v, so that a[p,q] is 0. */
static void rotate(double *a, double *v, int64_t n, int64_t p, int64_t q)
{
    const double half = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
    const double t = copysign(1, half) / (fabs(half) + hypot(1, half));
    const double cosine = 1 / hypot(1, t), sine = cosine * t;
    for (int64_t k = 0; k < n; k++) {
        const double x = a[k * n + p], y = a[k * n + q];
        a[k * n + p] = cosine * x - sine * y;
        a[k * n + q] = sine * x + cosine * y;
    }
    for (int64_t k = 0; k < n; k++) {
        const double x = a[p * n + k], y = a[q * n + k];
        a[p * n + k] = cosine * x - sine * y;
        a[q * n + k] = sine * x + cosine * y;
    }
    for (int64_t k = 0; k < n; k++) {
        const double x = v[p * n + k], y = v[q * n + k];
        v[p * n + k] = cosine * x - sine * y;
        v[q * n + k] = sine * x + cosine * y;
    }
}

static sx_status self_adjoint_eig_host(const sx_kernel_call *c)
{
    enum { MOST_SWEEPS = 60 };
    const sx_self_adjoint_eig_attrs *attrs = c->attrs;
    const sx_matrices x = sx_matrices_of(&c->in[0].type);
    const int64_t n = x.rows;
    double *a = sx_matrix_room(c, n * n), *v = sx_matrix_room(c, n * n);
    int64_t *order = sx_arena_array(c->arena, n + 1, int64_t);
    if (a == NULL || v == NULL || order == NULL) {
        return sx_no_memory("for the rotations of a matrix");
    }
    for (int64_t m = 0; m < x.count; m++) {
        const double *from = c->in[0].f + m * n * n;
        double *e = c->out[0].f + m * n, scale = 0;
        bool finite = true, moved = true;
        for (int64_t k = 0; k < n * n; k++) {
            const int64_t i = SX_MAX(k / n, k % n), j = SX_MIN(k / n, k % n);
            a[k] = from[i * n + j];
            finite = finite && isfinite(a[k]);
            scale = fmax(scale, fabs(a[k]));
            v[k] = k / n == k % n;
        }
        scale = scale > 0 ? scale : 1;
        for (int64_t k = 0; k < n * n; k++) {
            a[k] /= scale; /* squares neither overflow nor vanish */
        }
        for (int sweep = 0; sweep < MOST_SWEEPS && moved && finite; sweep++) {
            moved = false;
            for (int64_t p = 0; p < n; p++) {
                SX_TRY(sx_cancel_check(c->cancel));
                for (int64_t q = p + 1; q < n; q++) {
                    if (fabs(a[p * n + q]) > DBL_MIN &&
                        fabs(a[p * n + q]) >
                            DBL_EPSILON / 8 * sqrt(fabs(a[p * n + p])) * sqrt(fabs(a[q * n + q]))) {
                        rotate(a, v, n, p, q);
                        moved = true;
                    }
                }
            }
        }
        for (int64_t i = 0; i < n; i++) { /* by insertion, ascending */
            const double value = finite ? a[i * n + i] * scale : NAN;
            int64_t at = i;
            for (; at > 0 && e[at - 1] > value; at--) {
                e[at] = e[at - 1];
                order[at] = order[at - 1];
            }
            e[at] = value;
            order[at] = i;
        }
        for (int64_t k = 0; k < n * n && attrs->compute_v; k++) {
            c->out[1].f[m * n * n + k] = finite ? v[order[k % n] * n + k / n] : NAN;
        }
    }
    return SX_OK;
}

/* s = v (diag(de) + f (vᵀ dv)) vᵀ, f[i,j] = 1 / (e[j] - e[i]), 0 on the diagonal; dx is in the
 * lower triangle, which is what x is read from: that of s + sᵀ, and the diagonal of s. */
static void self_adjoint_eig_grad(sx_grad *g)
{
    const sx_self_adjoint_eig_attrs *attrs = g->attrs;
    sx_builder *b = g->b;
    sx_value e = g->y[0], v = g->y[1], inner = SX_NO_VALUE;
    if (!attrs->compute_v) {
        const sx_value both = sx_build_op(b, self_adjoint_eig,
                                          &(sx_self_adjoint_eig_attrs){.compute_v = true}, g->x[0]);
        v = sx_output_of(both, 1);
    }
    if (attrs->compute_v && sx_value_is(g->dy[1])) {
        sx_value f = sx_build_op(b, sub, NULL, sx_as_row(b, e), sx_as_column(b, e));
        f = sx_clear_diagonal(b, sx_safe_reciprocal(b, f));
        inner = sx_build_op(b, mul, NULL, f, sx_product(b, v, true, g->dy[1], false));
        inner = sx_product(b, sx_product(b, v, false, inner, false), false, v, true);
    }
    if (sx_value_is(g->dy[0])) { /* v diag(de) is v with its columns multiplied */
        const sx_value scaled = sx_build_op(b, mul, NULL, v, sx_as_row(b, g->dy[0]));
        inner = sx_add_maybe(b, inner, sx_product(b, scaled, false, v, true));
    }
    const sx_value both = sx_build_op(b, add, NULL, inner, sx_transposed(b, inner));
    g->dx[0] = sx_build_op(b, sub, NULL, sx_triangle(b, both, true), sx_keep_diagonal(b, inner));
}

static void self_adjoint_eig_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_self_adjoint_eig, "SelfAdjointEigV2",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double numbers[] = {4, 1, 0.5, 1, 3, 0, 0.5, 0, 5};
static const sx_op_sample self_adjoint_eig_samples[] = {
    {.name = "values", .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 2, 3, 3)}, .n_inputs = 1},
};

const sx_op_def sx_op_self_adjoint_eig = {
    SX_OP_NAMED(self_adjoint_eig),
    .n_in = 1,
    .n_out = 2,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_self_adjoint_eig_attrs, self_adjoint_eig_attrs),
    .infer = self_adjoint_eig_infer,
    .grad = self_adjoint_eig_grad,
    .host = self_adjoint_eig_host,
    .to_tf = self_adjoint_eig_to_tf,
    SX_FROM_TF({.op = "SelfAdjointEigV2"}),
    SX_OP_SAMPLES(self_adjoint_eig_samples),
};
