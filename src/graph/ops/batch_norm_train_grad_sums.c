/* batch_norm_train_grad_sums: the gradients of a batch norm with respect to its scale and offset.
 *
 *   dscale = sum dy (x - mean) s,  doffset = sum dy,  s = 1 / sqrt(variance + epsilon)
 *   over all but the last axis
 *
 *   dy, x    [..., C], rank 2 or more, one float type
 *   mean, variance   [C]; f64 for x f64, else f32
 *   returns  dscale, doffset: [C] of that dtype
 *
 * Over the batch, the sums of shards are added. Gradient: that of the formula.
 * Errors   INVALID_ARGUMENT  ranks, dtypes, C differs, negative epsilon
 * Numbers  accumulates in f32 for f16, bf16, f32
 * Source   TensorFlow FusedBatchNormGradV3 */
#include "graph/ops/batch_norm.h"

static const sx_attr_def batch_norm_train_grad_sums_attrs[] = {
    SX_ATTR(sx_batch_norm_attrs, epsilon, SX_ATTR_FLOAT),
    SX_ATTR(sx_batch_norm_attrs, own_moments, SX_ATTR_BOOL),
};

static sx_status batch_norm_train_grad_sums_infer(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[1];
    SX_TRY(sx_check_batch_norm(c->attrs, x, &c->inputs[2], 2));
    SX_TRY(sx_require_equal("dy", &c->inputs[0], "x", x));
    c->outputs[0] = c->outputs[1] = c->inputs[2];
    return SX_OK;
}

static void batch_norm_train_grad_sums_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    sx_value normal, s;
    const sx_value dy =
        sx_batch_norm_formula(b, g->attrs, g->x[0], g->x[1], g->x[2], g->x[3], &normal, &s);
    sx_reduce_attrs rows = {.axes = {.n = sx_type_of_value(b, dy).rank - 1}};
    for (int i = 0; i < rows.axes.n; i++) {
        rows.axes.v[i] = i;
    }
    const sx_value sums[] = {
        sx_build_op(b, reduce_sum, &rows, sx_build_op(b, mul, NULL, dy, normal)),
        sx_build_op(b, reduce_sum, &rows, dy)};
    sx_grad_of_formula(g, sums);
}

static sx_status batch_norm_train_grad_sums_host(const sx_kernel_call *c)
{
    const sx_batch_norm_attrs *attrs = c->attrs;
    const double *dy = c->in[0].f, *x = c->in[1].f;
    const double *mean = c->in[2].f, *variance = c->in[3].f;
    int64_t n = sx_type_elems(&c->in[1].type), channels = c->in[2].type.dims[0];
    for (int64_t k = 0; k < channels; k++) {
        c->out[0].f[k] = c->out[1].f[k] = 0;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t k = i % channels;
        c->out[0].f[k] += dy[i] * (x[i] - mean[k]) / sqrt(variance[k] + attrs->epsilon);
        c->out[1].f[k] += dy[i];
    }
    return SX_OK;
}

#define NN SX_FILL_NORMAL
#define INPUTS(c_, ...)                                                                        \
    {                                                                                          \
        SX_SAMPLE_F32(NN, __VA_ARGS__), SX_SAMPLE_F32(NN, __VA_ARGS__), SX_SAMPLE_F32(NN, c_), \
            SX_SAMPLE_F32(SX_FILL_POSITIVE, c_)                                                \
    }
#define EPSILON(value) (&(const sx_batch_norm_attrs){.epsilon = (value)})
static const sx_op_sample batch_norm_train_grad_sums_samples[] = {
    {.name = "image",
     .inputs = INPUTS(2, SX_BATCH, 3, 4, 2),
     .n_inputs = 4,
     .attrs = EPSILON(1e-3)},
    {.name = "dense", .inputs = INPUTS(7, SX_BATCH, 7), .n_inputs = 4, .attrs = EPSILON(1e-3)},
    {.name = "blocks",
     .inputs = INPUTS(70, SX_BATCH, 70),
     .n_inputs = 4,
     .attrs = EPSILON(1e-3),
     .batch = 67}, /* more rows and columns than a block of a vector kernel, with a rest */
};

const sx_op_def sx_op_batch_norm_train_grad_sums = {
    SX_OP_NAMED(batch_norm_train_grad_sums),
    .n_in = 4,
    .n_out = 2,
    .batch_rule = SX_RULE_SUM,
    .bf16 = 0x3,
    .flags = SX_OP_SUM | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_batch_norm_attrs, batch_norm_train_grad_sums_attrs),
    .own_part = &batch_norm_train_grad_sums_attrs[1],
    .infer = batch_norm_train_grad_sums_infer,
    .grad = batch_norm_train_grad_sums_gradient,
    .host = batch_norm_train_grad_sums_host,
    SX_OP_SAMPLES(batch_norm_train_grad_sums_samples),
};
