/* What the batch-norm operators share: see batch_norm.h. */
#include "graph/ops/batch_norm.h"

sx_status sx_check_batch_norm(const sx_batch_norm_attrs *attrs, const sx_type *x,
                              const sx_type *statistics, int n)
{
    SX_TRY(sx_require_float("x", x));
    if (x->rank >= 1 && sx_dim_is_batch(x->dims[x->rank - 1])) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the last dimension of x %s is the batch, expected the channels; add "
                        "sx_transpose()",
                        SX_TEXT(x));
    }
    if (x->rank < 2 || !(attrs->epsilon >= 0 && isfinite(attrs->epsilon))) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "x is %s and epsilon is %g, expected x [...,C] of rank 2 or more and an "
                        "epsilon of 0 or more",
                        SX_TEXT(x), attrs->epsilon);
    }
    for (int i = 0; i < n; i++) {
        SX_TRY(sx_require_vector("a statistic", &statistics[i], sx_accumulator_dtype(x->dtype),
                                 x->dims[x->rank - 1]));
    }
    return SX_OK;
}

sx_status sx_infer_batch_norm(sx_infer_context *c)
{
    SX_TRY(sx_check_batch_norm(c->attrs, &c->inputs[0], &c->inputs[1], 4));
    c->outputs[0] = c->inputs[0];
    return SX_OK;
}

sx_status sx_host_batch_norm(const sx_kernel_call *c)
{
    const sx_batch_norm_attrs *attrs = c->attrs;
    const double *x = c->in[0].f, *scale = c->in[1].f, *offset = c->in[2].f;
    const double *mean = c->in[3].f, *variance = c->in[4].f;
    int64_t n = sx_type_elems(&c->in[0].type), channels = c->in[1].type.dims[0];
    for (int64_t i = 0; i < n; i++) {
        int64_t k = i % channels;
        double s = 1 / sqrt(variance[k] + attrs->epsilon);
        c->out[0].f[i] = (x[i] - mean[k]) * s * scale[k] + offset[k];
    }
    return SX_OK;
}

/* FusedBatchNormV3 requires rank 4; for other ranks, writes the arithmetic. */
void sx_batch_norm_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_batch_norm_attrs *attrs = op->attrs;
    sx_dtype dtype = op->in_types[0].dtype, wide = op->in_types[1].dtype;
    const sx_tf_value *in = op->in; /* x, scale, offset, mean, variance */
    if (op->in_types[0].rank == 4 && wide == SX_F32) {
        const sx_tf_attr list[] = {sx_tf_attr_type("T", (int)dtype),
                                   sx_tf_attr_type("U", (int)wide),
                                   sx_tf_attr_bool("is_training", false),
                                   sx_tf_attr_float("epsilon", (float)attrs->epsilon)};
        bool is_default = (float)attrs->epsilon == 1e-4f;
        op->out[0] = sx_tf_add(w, "FusedBatchNormV3", NULL, (sx_tf_values){in, op->n_in},
                               (sx_tf_attr_list){list, is_default ? 3 : 4});
        return;
    }
    sx_tf_attr_list t = sx_tf_attrs(sx_tf_attr_type("T", (int)wide));
    sx_tf_value x = sx_tf_cast(w, in[0], dtype, wide);
    sx_tf_value epsilon = sx_tf_scalar(w, "epsilon", wide, attrs->epsilon);
    sx_tf_value shifted = sx_tf_add(w, "AddV2", NULL, sx_tf_in(in[4], epsilon), t);
    sx_tf_value s = sx_tf_add(w, "Rsqrt", NULL, sx_tf_in(shifted), t);
    sx_tf_value slope = sx_tf_add(w, "Mul", NULL, sx_tf_in(s, in[1]), t);
    sx_tf_value centred = sx_tf_add(w, "Sub", NULL, sx_tf_in(x, in[3]), t);
    sx_tf_value scaled = sx_tf_add(w, "Mul", NULL, sx_tf_in(centred, slope), t);
    sx_tf_value y = sx_tf_add(w, "AddV2", NULL, sx_tf_in(scaled, in[2]), t);
    op->out[0] = sx_tf_cast(w, y, wide, dtype);
}

sx_value sx_batch_norm_formula(sx_builder *b, const void *attrs, sx_value dy, sx_value x,
                               sx_value mean, sx_value variance, sx_value *out_normal,
                               sx_value *out_s)
{
    const sx_value epsilon = sx_scalar_like(b, mean, ((const sx_batch_norm_attrs *)attrs)->epsilon);
    *out_s = sx_build_op(b, rsqrt, NULL, sx_build_op(b, add, NULL, variance, epsilon));
    *out_normal = sx_build_op(b, mul, NULL,
                              sx_build_op(b, sub, NULL, sx_cast_like(b, x, mean), mean), *out_s);
    return sx_cast_like(b, dy, mean);
}
