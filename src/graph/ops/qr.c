/* qr: x = q r with orthonormal columns of q, and r upper triangular.
 *
 *   x              [...,m,n], any float
 *   full_matrices  q [...,m,m] and r [...,m,n]; otherwise q [...,m,p] and r [...,p,n] with
 *                  p = min(m, n)
 *
 * Gradient none of full matrices with more rows than columns
 * Errors   INVALID_ARGUMENT  no float, rank below 2
 * Numbers  by Householder's reflections: a diagonal element of r has the sign that the column did
 *          not begin with, but the last one of a matrix that is not tall
 * Source   TensorFlow tf.linalg.qr */
#include "graph/ops/linear_algebra.h"
#include "graph/ops/matrix_loops.h"
#include "graph/ops/reflections.h"

typedef struct sx_qr_attrs {
    bool full_matrices;
} sx_qr_attrs;

static const sx_attr_def qr_attrs[] = {SX_ATTR_TF(sx_qr_attrs, full_matrices, SX_ATTR_BOOL)};

static sx_status qr_infer(sx_infer_context *c)
{
    const sx_qr_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    SX_TRY(sx_require_matrices("x", x));
    const sx_type heads = sx_heads_of(x, 2);
    const int64_t m = sx_matrix_dim(x, 2), n = sx_matrix_dim(x, 1);
    const int64_t p = attrs->full_matrices ? m : m < 0 || n < 0 ? SX_UNKNOWN_DIM : SX_MIN(m, n);
    c->outputs[0] = sx_matrices_type(&heads, m, p);
    c->outputs[1] = sx_matrices_type(&heads, p, n);
    return SX_OK;
}

static sx_status qr_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    return sx_host_types_inferred(c, qr_infer, 2, out_types);
}

/* a [m,n] becomes r, numbers below its diagonal aside; the reflections of rows v [min(m,n),m], of
 * which q is the product. */
static void make_triangular(double *a, int64_t m, int64_t n, double *v, double *factors,
                            double *room)
{
    const int64_t steps = SX_MIN(m, n);
    for (int64_t first = 0; first < steps; first += SX_REFLECTIONS_BLOCK) {
        const int64_t last = SX_MIN(first + SX_REFLECTIONS_BLOCK, steps);
        double *rows = v + first * m; /* the block's columns, until they are reflections */
        sx_matrix_transpose(rows + first, m, a + first * n + first, n, m - first, last - first);
        for (int64_t k = first; k < last; k++) {
            double *own = v + k * m;
            factors[k] = sx_reflection(own + k, m - k, &a[k * n + k]);
            for (int64_t j = k + 1; j < last; j++) {
                double *other = v + j * m;
                const double dot = sx_row_dot(own + k, other + k, m - k);
                sx_row_add(other + k, -factors[k] * dot, own + k, m - k);
            }
            for (int64_t i = first; i < k; i++) {
                a[i * n + k] = own[i];
            }
            memset(own, 0, (size_t)k * sizeof(*own));
        }
        const sx_reflections block = {rows, factors + first, last - first, m, first};
        sx_reflect(&block, true, a + last, n, n - last, room);
    }
}

static sx_status qr_host(const sx_kernel_call *c)
{
    const sx_matrices x = sx_matrices_of(&c->in[0].type), of_q = sx_matrices_of(&c->out[0].type);
    const int64_t m = x.rows, n = x.columns, p = of_q.columns, steps = SX_MIN(m, n);
    double *a = sx_matrix_room(c, m * n), *v = sx_matrix_room(c, m * steps);
    double *factors = sx_matrix_room(c, steps);
    double *room = sx_matrix_room(c, sx_reflections_room(SX_MAX(n, p)));
    if (a == NULL || v == NULL || factors == NULL || room == NULL) {
        return sx_no_memory("for the reflections of a matrix");
    }
    for (int64_t at = 0; at < x.count; at++) {
        const double *from = c->in[0].f + at * m * n;
        double *q = c->out[0].f + at * m * p, *r = c->out[1].f + at * p * n, most = 0;
        SX_TRY(sx_cancel_check(c->cancel));
        for (int64_t k = 0; k < m * n; k++) {
            most = fmax(most, fabs(from[k]));
        }
        const double scale = isfinite(most) ? sx_scale_of(most) : 1;
        for (int64_t k = 0; k < m * n; k++) {
            a[k] = from[k] / scale;
        }
        make_triangular(a, m, n, v, factors, room);
        memset(r, 0, (size_t)(p * n) * sizeof(*r));
        for (int64_t i = 0; i < steps; i++) {
            for (int64_t j = i; j < n; j++) {
                r[i * n + j] = a[i * n + j] * scale;
            }
        }
        const sx_reflections all = {v, factors, steps, m, 0};
        sx_reflections_product(&all, q, p, room);
    }
    return SX_OK;
}

/* x r⁻ᵀ */
static sx_value divide_by(sx_builder *b, sx_value x, sx_value r)
{
    const sx_value turned =
        sx_build_op(b, matrix_triangular_solve, &(sx_triangular_attrs){0}, r, sx_transposed(b, x));
    return sx_transposed(b, turned);
}

/* Of x = q r with as many columns as rows, or fewer: with t the lower triangle of
 * (qᵀ dq - dqᵀ q) + (r drᵀ - dr rᵀ),
 *
 *   dx = q (dr + t r⁻ᵀ) + (dq - q qᵀ dq) r⁻ᵀ */
static sx_value grad_of_tall(sx_builder *b, sx_value q, sx_value r, sx_value dq, sx_value dr)
{
    const sx_value qdq = sx_product(b, q, true, dq, false), rdr = sx_product(b, r, false, dr, true);
    sx_value t = sx_build_op(b, add, NULL, sx_build_op(b, sub, NULL, qdq, sx_transposed(b, qdq)),
                             sx_build_op(b, sub, NULL, rdr, sx_transposed(b, rdr)));
    t = divide_by(b, sx_triangle(b, t, true), r);
    const sx_value first = sx_product(b, q, false, sx_build_op(b, add, NULL, dr, t), false);
    const sx_value rest = sx_build_op(b, sub, NULL, dq, sx_product(b, q, false, qdq, false));
    return sx_build_op(b, add, NULL, first, divide_by(b, rest, r));
}

/* Of x = [x1 x2] with m rows and more columns, x1 = q r1 and x2 = q r2: dx2 = q dr2, and dq of x1
 * has x2 dr2ᵀ beside its own. */
static void qr_grad(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_type x = sx_type_of_value(b, g->x[0]), of_q = sx_type_of_value(b, g->y[0]);
    if (sx_builder_failed(b)) {
        return;
    }
    const int64_t m = sx_matrix_dim(&x, 2), n = sx_matrix_dim(&x, 1);
    if (sx_matrix_dim(&of_q, 1) > n) {
        sx_builder_fail(b, sx_error(SX_UNIMPLEMENTED,
                                    "no gradient of qr with full_matrices of more rows than "
                                    "columns"));
        return;
    }
    const sx_value q = g->y[0], r = g->y[1];
    const sx_value dq = sx_value_is(g->dy[0]) ? g->dy[0] : sx_zeros_of(b, q),
                   dr = sx_value_is(g->dy[1]) ? g->dy[1] : sx_zeros_of(b, r);
    if (m >= n) {
        g->dx[0] = grad_of_tall(b, q, r, dq, dr);
        return;
    }
    const sx_value x2 = sx_columns(b, g->x[0], m, n - m), dr2 = sx_columns(b, dr, m, n - m);
    const sx_value dq1 = sx_build_op(b, add, NULL, dq, sx_product(b, x2, false, dr2, true));
    const sx_value dx1 = grad_of_tall(b, q, sx_columns(b, r, 0, m), dq1, sx_columns(b, dr, 0, m));
    g->dx[0] = sx_build_op(b, concat, &(sx_axis_attrs){.axis = x.rank - 1}, dx1,
                           sx_product(b, q, false, dr2, false));
}

static void qr_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_qr, "Qr",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const sx_op_sample qr_samples[] = {
    {.name = "tall", .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 4, 3)}, .n_inputs = 1},
    {.name = "full", /* of more rows it has no gradient */
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3, 3)},
     .n_inputs = 1,
     .attrs = &(const sx_qr_attrs){.full_matrices = true}},
    {.name = "wide", .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 4)}, .n_inputs = 1},
};

const sx_op_def sx_op_qr = {
    SX_OP_NAMED(qr),
    .n_in = 1,
    .n_out = 2,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_qr_attrs, qr_attrs),
    .infer = qr_infer,
    .grad = qr_grad,
    .host = qr_host,
    .host_types = qr_host_types,
    .to_tf = qr_to_tf,
    SX_FROM_TF({.op = "Qr"}),
    SX_OP_SAMPLES(qr_samples),
};
