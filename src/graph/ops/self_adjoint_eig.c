/* self_adjoint_eig: x = v diag(e) vᵀ of symmetric matrices, e in ascending order.
 *
 *   x          [...,n,n], any float; the lower triangle is read
 *   compute_v  otherwise v is [0]
 *   returns    e [...,n], v [...,n,n] with orthonormal columns
 *
 * Errors   INVALID_ARGUMENT  no float, not square
 * Numbers  in double, by reflections and the QR algorithm; the signs of the vectors, and those of
 *          equal values, are ours; NaN or infinity in a matrix gives NaN
 * Source   TensorFlow tf.linalg.eigh */
#include <float.h>

#include "graph/ops/linear_algebra.h"
#include "graph/ops/matrix_loops.h"
#include "graph/ops/reflections.h"

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

/* Of the symmetric a [n,n], whose upper triangle is read and overwritten, the diagonal d[n] and the
 * one beside it, e[n], of hᵀ a h, h the product of the reflections of rows v [n - 2,n]. room [3 n]
 */
static void to_tridiagonal(double *a, int64_t n, double *d, double *e, double *v, double *factors,
                           double *room)
{
    double *last = room, *w = last + n, *y = w + n;
    memset(room, 0, (size_t)(2 * n) * sizeof(*room)); /* nothing to subtract from the first row */
    for (int64_t k = 0; k < n; k++) {
        const int64_t rest = n - k - 1;
        double *row = a + k * n, *next = v + k * n;
        for (int64_t j = k; j < n; j++) {
            row[j] -= last[k] * w[j] + w[k] * last[j];
        }
        d[k] = row[k];
        if (rest < 2) {
            e[k] = rest == 1 ? row[k + 1] : 0;
            continue;
        }
        memset(next, 0, (size_t)(k + 1) * sizeof(*next));
        memcpy(next + k + 1, row + k + 1, (size_t)rest * sizeof(*next));
        factors[k] = sx_reflection(next + k + 1, rest, &e[k]);
        memset(y + k + 1, 0, (size_t)rest * sizeof(*y));
        for (int64_t i = k + 1; i < n; i++) {
            sx_symmetric_row_update(a + i * n + i, last + i, w + i, next + i, y + i, n - i);
        }
        /* (1 - f vᵀ v) a (1 - f vᵀ v) = a - vᵀ w - wᵀ v, w = f (y - f (y v) v / 2) */
        const double half = factors[k] / 2 * sx_row_dot(y + k + 1, next + k + 1, rest);
        for (int64_t j = k + 1; j < n; j++) {
            last[j] = next[j];
            w[j] = factors[k] * (y[j] - half * next[j]);
        }
    }
}

/* Rotations [first, last) with the shift `shift`, of rows and columns of the tridiagonal matrix. */
static void qr_step(double *d, double *e, int64_t first, int64_t last, double shift,
                    double *cosines, double *sines)
{
    double x = d[first] - shift, beside = e[first]; /* what the next rotation makes 0 */
    for (int64_t k = first; k < last; k++) {
        const double length = sqrt(x * x + beside * beside);
        const double c = length > 0 ? x / length : 1, s = length > 0 ? beside / length : 0;
        const double difference = d[k] - d[k + 1], move = s * (s * difference - 2 * c * e[k]);
        if (k > first) {
            e[k - 1] = length;
        }
        e[k] = c * (c * e[k] - s * difference) - s * s * e[k];
        d[k] -= move;
        d[k + 1] += move;
        x = e[k];
        if (k + 1 < last) {
            beside = s * e[k + 1];
            e[k + 1] *= c;
        }
        cosines[k] = c;
        sines[k] = s;
    }
}

enum { MOST_SWEEPS = 16 }; /* that wait until the vectors turn */

/* The values of a tridiagonal matrix, d; rows of turned [n,n], unless it is NULL, turn with those
 * of the matrix. *out_found: whether it ended. room [MOST_SWEEPS 2 n] */
static sx_status to_diagonal(const sx_kernel_call *c, double *d, double *e, int64_t n,
                             double *turned, double *room, bool *out_found)
{
    enum { MOST_TRIES = 100 };   /* for one value */
    const double least = 1e-140; /* squares do not vanish; values are about 1 */
    sx_row_sweep sweeps[MOST_SWEEPS];
    int64_t tries = 0;
    int waiting = 0;
    *out_found = true;
    for (int64_t last = n - 1; last > 0;) {
        int64_t first = last;
        while (first > 0 && fabs(e[first - 1]) > least &&
               fabs(e[first - 1]) > DBL_EPSILON * (fabs(d[first - 1]) + fabs(d[first]))) {
            first--;
        }
        if (first == last) {
            last--;
            tries = 0;
            continue;
        }
        if (++tries > MOST_TRIES) {
            *out_found = false;
            return SX_OK;
        }
        SX_TRY(sx_cancel_check(c->cancel));
        /* Wilkinson's: the value of the last two rows that is next to the last element */
        const double half = (d[last - 1] - d[last]) / 2, beside = e[last - 1];
        const double far = half + copysign(hypot(half, beside), half);
        double *cosines = room + waiting * 2 * n, *sines = cosines + n;
        qr_step(d, e, first, last, d[last] - beside / far * beside, cosines, sines);
        sweeps[waiting] = (sx_row_sweep){first, last, cosines, sines};
        waiting += turned != NULL;
        if (waiting == MOST_SWEEPS) {
            sx_rows_rotate(turned, sx_row_apart(n), n, sweeps, waiting);
            waiting = 0;
        }
    }
    sx_rows_rotate(turned, sx_row_apart(n), n, sweeps, waiting);
    return SX_OK;
}

static sx_status self_adjoint_eig_host(const sx_kernel_call *c)
{
    const sx_self_adjoint_eig_attrs *attrs = c->attrs;
    const sx_matrices x = sx_matrices_of(&c->in[0].type);
    const int64_t n = x.rows, size = n * n, apart = sx_row_apart(n);
    double *a = sx_matrix_room(c, n * apart), *v = sx_matrix_room(c, size);
    double *d = sx_matrix_room(c, n), *e = sx_matrix_room(c, n), *factors = sx_matrix_room(c, n);
    double *room = sx_matrix_room(c, MOST_SWEEPS * 2 * n + sx_reflections_room(n));
    int64_t *order = sx_arena_array(c->arena, n + 1, int64_t);
    if (a == NULL || v == NULL || d == NULL || e == NULL || factors == NULL || room == NULL ||
        order == NULL) {
        return sx_no_memory("for the rotations of a matrix");
    }
    for (int64_t m = 0; m < x.count; m++) {
        const double *from = c->in[0].f + m * size;
        double *values = c->out[0].f + m * n, scale = 0;
        double *vectors = attrs->compute_v ? c->out[1].f + m * size : NULL;
        bool finite = true, found = true;
        SX_TRY(sx_cancel_check(c->cancel));
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j <= i; j++) {
                finite = finite && isfinite(from[i * n + j]);
                scale = fmax(scale, fabs(from[i * n + j]));
            }
        }
        if (!finite) {
            for (int64_t i = 0; i < n; i++) {
                values[i] = NAN;
            }
            for (int64_t k = 0; k < size && attrs->compute_v; k++) {
                vectors[k] = NAN;
            }
            continue;
        }
        scale = sx_scale_of(scale);
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j <= i; j++) {
                a[j * n + i] = from[i * n + j] / scale;
            }
        }
        to_tridiagonal(a, n, d, e, v, factors, room);
        if (attrs->compute_v) { /* a becomes the transposed product of the reflections */
            const sx_reflections r = {v, factors, SX_MAX(n - 2, 0), n, 1};
            sx_reflections_product(&r, vectors, n, room);
            sx_matrix_transpose(a, apart, vectors, n, n, n);
        }
        SX_TRY(to_diagonal(c, d, e, n, attrs->compute_v ? a : NULL, room, &found));
        if (!found) {
            return sx_error(SX_INVALID_ARGUMENT, "the values of matrix %lld are not found",
                            (long long)m);
        }
        for (int64_t i = 0; i < n; i++) { /* by insertion, ascending */
            const double value = d[i] * scale;
            int64_t at = i;
            for (; at > 0 && values[at - 1] > value; at--) {
                values[at] = values[at - 1];
                order[at] = order[at - 1];
            }
            values[at] = value;
            order[at] = i;
        }
        if (attrs->compute_v) {
            for (int64_t i = 0; i < n; i++) {
                memcpy(v + i * n, a + order[i] * apart, (size_t)n * sizeof(*v));
            }
            sx_matrix_transpose(vectors, n, v, n, n, n);
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
