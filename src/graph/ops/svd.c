/* svd: x = u diag(s) vᵀ with orthonormal columns of u and v, s >= 0 in descending order.
 *
 *   x              [...,m,n], any float
 *   compute_uv     otherwise u and v are [0]
 *   full_matrices  u [...,m,m], v [...,n,n]; otherwise [...,m,p] and [...,n,p] with p = min(m, n)
 *   returns        s [...,p], u, v
 *
 * Gradient as TensorFlow's: with full matrices only where m and n differ by at most 1; of equal
 *          singular values 0 where it would be infinite
 * Errors   INVALID_ARGUMENT  no float, rank below 2
 * Numbers  the signs of singular vectors, and those of equal singular values, are ours; NaN or
 *          infinity in a matrix gives NaN
 * Source   TensorFlow tf.linalg.svd */
#include "graph/ops/linear_algebra.h"

typedef struct sx_svd_attrs {
    bool compute_uv, full_matrices;
} sx_svd_attrs;

static const sx_attr_def svd_attrs[] = {
    SX_ATTR_TF(sx_svd_attrs, compute_uv, SX_ATTR_BOOL, .tf_number = 1),
    SX_ATTR_TF(sx_svd_attrs, full_matrices, SX_ATTR_BOOL, .tf_number = 0),
};

static sx_status svd_infer(sx_infer_context *c)
{
    const sx_svd_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    SX_TRY(sx_require_matrices("x", x));
    const sx_type heads = sx_heads_of(x, 2);
    const int64_t m = sx_matrix_dim(x, 2), n = sx_matrix_dim(x, 1);
    const int64_t p = m < 0 || n < 0 ? SX_UNKNOWN_DIM : SX_MIN(m, n);
    c->outputs[0] = heads;
    if (heads.rank >= 0) {
        c->outputs[0].dims[c->outputs[0].rank++] = p;
    }
    c->outputs[1] = c->outputs[2] = sx_type_of(x->dtype, 0);
    if (attrs->compute_uv) {
        c->outputs[1] = sx_matrices_type(&heads, m, attrs->full_matrices ? m : p);
        c->outputs[2] = sx_matrices_type(&heads, n, attrs->full_matrices ? n : p);
    }
    return SX_OK;
}

static sx_status svd_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    return sx_host_types_inferred(c, svd_infer, 3, out_types);
}

static sx_status svd_host(const sx_kernel_call *c)
{
    const sx_svd_attrs *attrs = c->attrs;
    const sx_matrices x = sx_matrices_of(&c->in[0].type);
    const int64_t m = x.rows, n = x.columns, p = SX_MIN(m, n);
    const int64_t of_u = m * (attrs->full_matrices ? m : p);
    const int64_t of_v = n * (attrs->full_matrices ? n : p);
    sx_svd *room = NULL;
    SX_TRY(sx_svd_prepare(c, m, n, attrs->full_matrices && attrs->compute_uv, &room));
    for (int64_t k = 0; k < x.count; k++) {
        SX_TRY(sx_svd_factor(c, room, c->in[0].f + k * m * n, c->out[0].f + k * p,
                             attrs->compute_uv ? c->out[1].f + k * of_u : NULL,
                             attrs->compute_uv ? c->out[2].f + k * of_v : NULL));
    }
    return SX_OK;
}

/* Of a = u diag(s) vᵀ [m,n], m <= n, u [m,m], v [n,m] or, with full matrices, [n,n] with n = m + 1:
 *
 *   da = u (diag(ds) + (e + eᵀ) diag(s) + diag(s) (h + hᵀ)) v1ᵀ + u diag(s)⁻¹ (dv1ᵀ - w)
 *
 *   v1, dv1 the first m columns of v, dv;  e = f (uᵀ du),  h = f (v1ᵀ dv1)
 *   f[i,j] = 1 / (s[j]² - s[i]²), 0 on the diagonal
 *   w = dv1ᵀ v1 v1ᵀ, and + v1ᵀ dv2 v2ᵀ of the other column of full matrices; only where m < n */
static sx_value grad_of_wide(sx_builder *b, sx_value s, sx_value u, sx_value v, sx_value ds,
                             sx_value du, sx_value dv, int64_t m, int64_t n)
{
    const sx_type of_v = sx_type_of_value(b, v);
    const int64_t columns = sx_builder_failed(b) ? m : sx_matrix_dim(&of_v, 1);
    const sx_value v1 = columns > m ? sx_columns(b, v, 0, m) : v,
                   dv1 = columns > m ? sx_columns(b, dv, 0, m) : dv;
    const sx_value squares = sx_build_op(b, square, NULL, s);
    sx_value f = sx_build_op(b, sub, NULL, sx_as_row(b, squares), sx_as_column(b, squares));
    f = sx_clear_diagonal(b, sx_safe_reciprocal(b, f));
    sx_value e = sx_build_op(b, mul, NULL, f, sx_product(b, u, true, du, false));
    sx_value h = sx_build_op(b, mul, NULL, f, sx_product(b, v1, true, dv1, false));
    e = sx_build_op(b, add, NULL, e, sx_transposed(b, e));
    h = sx_build_op(b, add, NULL, h, sx_transposed(b, h));
    sx_value inner = sx_build_op(b, add, NULL, sx_build_op(b, mul, NULL, e, sx_as_row(b, s)),
                                 sx_build_op(b, mul, NULL, h, sx_as_column(b, s)));
    /* u (inner + diag(ds)) */
    inner = sx_build_op(b, add, NULL, sx_product(b, u, false, inner, false),
                        sx_build_op(b, mul, NULL, u, sx_as_row(b, ds)));
    sx_value da = sx_product(b, inner, false, v1, true);
    if (m < n) {
        sx_value w = sx_product(b, sx_product(b, dv1, true, v1, false), false, v1, true);
        if (columns > m) {
            const sx_value v2 = sx_columns(b, v, m, n - m), dv2 = sx_columns(b, dv, m, n - m);
            w = sx_build_op(b, add, NULL, w,
                            sx_product(b, sx_product(b, v1, true, dv2, false), false, v2, true));
        }
        w = sx_build_op(b, sub, NULL, sx_transposed(b, dv1), w);
        const sx_value scaled =
            sx_build_op(b, mul, NULL, u, sx_as_row(b, sx_safe_reciprocal(b, s)));
        da = sx_build_op(b, add, NULL, da, sx_product(b, scaled, false, w, false));
    }
    return da;
}

static void svd_grad(sx_grad *g)
{
    const sx_svd_attrs *attrs = g->attrs;
    sx_builder *b = g->b;
    const sx_type x = sx_type_of_value(b, g->x[0]);
    sx_value u = g->y[1], v = g->y[2];
    if (sx_builder_failed(b)) {
        return;
    }
    const int64_t m = sx_matrix_dim(&x, 2), n = sx_matrix_dim(&x, 1);
    if (!attrs->compute_uv) { /* u diag(ds) vᵀ */
        const sx_value all = sx_build_op(b, svd, &(sx_svd_attrs){.compute_uv = true}, g->x[0]);
        u = sx_build_op(b, mul, NULL, sx_output_of(all, 1), sx_as_row(b, g->dy[0]));
        g->dx[0] = sx_product(b, u, false, sx_output_of(all, 2), true);
        return;
    }
    if (attrs->full_matrices && (m - n > 1 || n - m > 1)) {
        sx_builder_fail(b, sx_error(SX_UNIMPLEMENTED,
                                    "no gradient of svd with full_matrices of "
                                    "%lldx%lld: the sizes differ by more than 1",
                                    (long long)m, (long long)n));
        return;
    }
    sx_value d[3];
    for (int i = 0; i < 3; i++) {
        d[i] = sx_value_is(g->dy[i]) ? g->dy[i] : sx_zeros_of(b, g->y[i]);
    }
    g->dx[0] = m <= n ? grad_of_wide(b, g->y[0], u, v, d[0], d[1], d[2], m, n)
                      : sx_transposed(b, grad_of_wide(b, g->y[0], v, u, d[0], d[2], d[1], n, m));
}

static void svd_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_svd, "Svd",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const sx_op_sample svd_samples[] = {
    {.name = "values", .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 4, 3)}, .n_inputs = 1},
};

const sx_op_def sx_op_svd = {
    SX_OP_NAMED(svd),
    .n_in = 1,
    .n_out = 3,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_svd_attrs, svd_attrs),
    .infer = svd_infer,
    .grad = svd_grad,
    .host = svd_host,
    .host_types = svd_host_types,
    .to_tf = svd_to_tf,
    SX_FROM_TF({.op = "Svd"}),
    SX_OP_SAMPLES(svd_samples),
};
