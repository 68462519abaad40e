/* batch_norm_train_grad_input: the gradient of a training batch norm with respect to its input,
 * including the terms through mean and variance.
 *
 *   dx = scale s (dy - (doffset + (x - mean) s dscale) / M),  s = 1 / sqrt(variance + epsilon)
 *
 *   dy, x    [..., C], rank 2 or more, one float type
 *   mean, variance, scale, dscale, doffset   [C]; f64 for x f64, else f32: the last two from
 *                                            batch_norm_train_grad_sums, of the whole batch
 *   count    M, scalar of that dtype: elements for each channel in the whole batch (size)
 *   returns  x's type
 *
 * Gradient: that of the formula.
 * Errors   INVALID_ARGUMENT  ranks, dtypes, C differs, negative epsilon
 * Numbers  computed in f32 for f16, bf16, f32
 * Source   TensorFlow FusedBatchNormGradV3 with is_training true; Ioffe, Szegedy 2015, section 3 */
#include "graph/ops/batch_norm.h"

static const sx_attr_def batch_norm_train_grad_input_attrs[] = {
    SX_ATTR(sx_batch_norm_attrs, epsilon, SX_ATTR_FLOAT),
    SX_ATTR(sx_batch_norm_attrs, own_moments, SX_ATTR_BOOL),
};

static sx_status batch_norm_train_grad_input_infer(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[1];
    SX_TRY(sx_check_batch_norm(c->attrs, x, &c->inputs[2], 5));
    SX_TRY(sx_require_equal("dy", &c->inputs[0], "x", x));
    SX_TRY(sx_require_scalar("count", &c->inputs[7], c->inputs[2].dtype));
    c->outputs[0] = *x;
    return SX_OK;
}

static void batch_norm_train_grad_input_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    sx_value normal, s;
    const sx_value dy =
        sx_batch_norm_formula(b, g->attrs, g->x[0], g->x[1], g->x[2], g->x[3], &normal, &s);
    const sx_value doffset = g->x[6], dscale = g->x[5], count = g->x[7];
    const sx_value mean = sx_build_op(
        b, div, NULL, sx_build_op(b, add, NULL, doffset, sx_build_op(b, mul, NULL, normal, dscale)),
        count);
    const sx_value by = sx_build_op(b, mul, NULL, g->x[4], s);
    const sx_value dx = sx_cast_like(
        b, sx_build_op(b, mul, NULL, by, sx_build_op(b, sub, NULL, dy, mean)), g->x[1]);
    sx_grad_of_formula(g, &dx);
}

static sx_status batch_norm_train_grad_input_host(const sx_kernel_call *c)
{
    const sx_batch_norm_attrs *attrs = c->attrs;
    const double *dy = c->in[0].f, *x = c->in[1].f, *mean = c->in[2].f;
    const double *variance = c->in[3].f, *scale = c->in[4].f;
    const double *dscale = c->in[5].f, *doffset = c->in[6].f, count = c->in[7].f[0];
    int64_t n = sx_type_elems(&c->in[1].type), channels = c->in[2].type.dims[0];
    for (int64_t i = 0; i < n; i++) {
        int64_t k = i % channels;
        double s = 1 / sqrt(variance[k] + attrs->epsilon), normal = (x[i] - mean[k]) * s;
        c->out[0].f[i] = scale[k] * s * (dy[i] - (doffset[k] + normal * dscale[k]) / count);
    }
    return SX_OK;
}

#define NN SX_FILL_NORMAL
#define INPUTS(c_, ...)                                                                        \
    {                                                                                          \
        SX_SAMPLE_F32(NN, __VA_ARGS__), SX_SAMPLE_F32(NN, __VA_ARGS__), SX_SAMPLE_F32(NN, c_), \
            SX_SAMPLE_F32(SX_FILL_POSITIVE, c_), SX_SAMPLE_F32(NN, c_), SX_SAMPLE_F32(NN, c_), \
            SX_SAMPLE_F32(NN, c_), SX_SAMPLE_SCALAR(SX_F32, SX_FILL_POSITIVE)                  \
    }
#define EPSILON(value) (&(const sx_batch_norm_attrs){.epsilon = (value)})
static const sx_op_sample batch_norm_train_grad_input_samples[] = {
    {.name = "image",
     .inputs = INPUTS(2, SX_BATCH, 3, 4, 2),
     .n_inputs = 8,
     .attrs = EPSILON(1e-3)},
    {.name = "dense", .inputs = INPUTS(7, SX_BATCH, 7), .n_inputs = 8, .attrs = EPSILON(1e-3)},
    /* the mean is large compared with the deviation: x - mean must be computed first */
    {.name = "far",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 7), SX_SAMPLE_F32(SX_FILL_FAR, SX_BATCH, 7),
                SX_SAMPLE_F32(SX_FILL_FAR, 7), SX_SAMPLE_F32(SX_FILL_POSITIVE, 7),
                SX_SAMPLE_F32(NN, 7), SX_SAMPLE_F32(NN, 7), SX_SAMPLE_F32(NN, 7),
                SX_SAMPLE_SCALAR(SX_F32, SX_FILL_POSITIVE)},
     .n_inputs = 8,
     .attrs = EPSILON(1e-3)},
};

const sx_op_def sx_op_batch_norm_train_grad_input = {
    SX_OP_NAMED(batch_norm_train_grad_input),
    .n_in = 8,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x3,
    .flags = SX_OP_NO_TF,
    SX_OP_ATTRS(sx_batch_norm_attrs, batch_norm_train_grad_input_attrs),
    .own_part = &batch_norm_train_grad_input_attrs[1],
    .infer = batch_norm_train_grad_input_infer,
    .grad = batch_norm_train_grad_input_gradient,
    .host = batch_norm_train_grad_input_host,
    SX_OP_SAMPLES(batch_norm_train_grad_input_samples),
};
