/* svd: x = u diag(s) vᵀ with orthonormal columns of u and v, s >= 0 in descending order.
 *
 *   x              [...,m,n], any float
 *   compute_uv     otherwise u and v are [0]
 *   full_matrices  u [...,m,m], v [...,n,n]; otherwise [...,m,p] and [...,n,p] with p = min(m, n)
 *   returns        s [...,p], u, v
 *
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
    for (int64_t k = 0; k < x.count; k++) {
        SX_TRY(sx_svd_factor(c, c->in[0].f + k * m * n, m, n, attrs->full_matrices,
                             c->out[0].f + k * p, attrs->compute_uv ? c->out[1].f + k * of_u : NULL,
                             attrs->compute_uv ? c->out[2].f + k * of_v : NULL));
    }
    return SX_OK;
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
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_svd_attrs, svd_attrs),
    .infer = svd_infer,
    .host = svd_host,
    .host_types = svd_host_types,
    .to_tf = svd_to_tf,
    SX_FROM_TF({.op = "Svd"}),
    SX_OP_SAMPLES(svd_samples),
};
