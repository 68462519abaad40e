/* batch_norm: normalization by given statistics, for inference.
 *
 *   y = (x - mean) s scale + offset,  s = 1 / sqrt(variance + epsilon)
 *
 *   doffset = sum dy,  dscale = sum dy (x - mean) s       over all but the last axis
 *   dx = dy scale s,  dmean = -scale s doffset,  dvariance = -scale s² dscale / 2
 *
 *   x        [..., C], rank 2 or more, a float type
 *   scale, offset, mean, variance   [C]; f64 for x f64, else f32
 *   epsilon  0 or more
 *   returns  x's type
 *
 * Errors   INVALID_ARGUMENT  ranks, dtypes, C differs, negative epsilon
 * Numbers  computed in f32 for f16, bf16, f32
 * Source   TensorFlow tf.nn.batch_normalization, FusedBatchNormV3 with is_training false */
#ifdef SX_PUBLIC
/* (x - mean) rsqrt(variance + epsilon) scale + offset, each [C]; for inference. */
sx_value sx_nn_batch_norm(sx_builder *b, sx_value x, sx_value scale, sx_value offset, sx_value mean,
                          sx_value variance, double epsilon);
#endif
#ifdef SX_ATTRS
/* batch_norm, batch_norm_train and its two gradients */
typedef struct sx_batch_norm_attrs {
    double epsilon;
    /* In training, where replicas share the batch: normalizes by the moments of the replica's part,
     * as TensorFlow does; the moving averages use the mean of the parts' moments. */
    bool own_moments;
} sx_batch_norm_attrs;
#endif

#include "graph/ops/batch_norm.h"

static const sx_attr_def batch_norm_attrs[] = {
    SX_ATTR(sx_batch_norm_attrs, epsilon, SX_ATTR_FLOAT),
};

/* s, as nodes */
static sx_value inverse_deviation(sx_builder *b, sx_value variance, double epsilon)
{
    sx_value shifted = sx_build_op(b, add, NULL, variance, sx_scalar_like(b, variance, epsilon));
    return sx_build_op(b, rsqrt, NULL, shifted);
}

static void batch_norm_grad(sx_grad *g)
{
    const sx_batch_norm_attrs *attrs = g->attrs;
    sx_value x = g->x[0], scale = g->x[1], mean = g->x[3], variance = g->x[4], dy = g->dy[0];
    sx_value s = inverse_deviation(g->b, variance, attrs->epsilon);
    sx_value slope = sx_build_op(g->b, mul, NULL, scale, s);
    if (g->needed[0]) {
        sx_value wide = sx_cast_like(g->b, dy, slope);
        sx_value product = sx_build_op(g->b, mul, NULL, wide, slope);
        g->dx[0] = sx_cast_like(g->b, product, x);
    }
    sx_value dscale = sx_build_op(g->b, batch_norm_train_grad_sums, attrs, dy, x, mean, variance);
    sx_value doffset = sx_output_of(dscale, 1);
    g->dx[1] = dscale;
    g->dx[2] = doffset;
    if (g->needed[3]) {
        sx_value product = sx_build_op(g->b, mul, NULL, slope, doffset);
        g->dx[3] = sx_build_op(g->b, neg, NULL, product);
    }
    if (g->needed[4]) {
        sx_value steep = sx_build_op(g->b, mul, NULL, slope, s);
        sx_value product = sx_build_op(g->b, mul, NULL, steep, dscale);
        g->dx[4] = sx_times(g->b, product, -0.5);
    }
}

static sx_status batch_norm_from_tf(const sx_tf_node *n, void *out)
{
    sx_batch_norm_attrs *attrs = out;
    attrs->epsilon = sx_tf_read_float(n, "epsilon", 1e-4);
    return sx_tf_read_bool(n, "is_training", true)
               ? sx_error(SX_UNIMPLEMENTED, "is_training is true")
               : SX_OK;
}

#define NN SX_FILL_NORMAL
#define STATISTICS(c_)                                                   \
    SX_SAMPLE_F32(NN, c_), SX_SAMPLE_F32(NN, c_), SX_SAMPLE_F32(NN, c_), \
        SX_SAMPLE_F32(SX_FILL_POSITIVE, c_)
#define EPSILON(value) (&(const sx_batch_norm_attrs){.epsilon = (value)})
/* The mean is large compared with the deviation, so x - mean must be computed first. */
#define FAR SX_FILL_FAR
#define FAR_STATISTICS(c_)                                                \
    SX_SAMPLE_F32(NN, c_), SX_SAMPLE_F32(NN, c_), SX_SAMPLE_F32(FAR, c_), \
        SX_SAMPLE_F32(SX_FILL_POSITIVE, c_)
static const sx_op_sample batch_norm_samples[] = {
    {.name = "image",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 3, 4, 2), STATISTICS(2)},
     .n_inputs = 5,
     .attrs = EPSILON(1e-3)},
    {.name = "dense",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 7), STATISTICS(7)},
     .n_inputs = 5,
     .attrs = EPSILON(1e-3)},
    {.name = "far_image",
     .inputs = {SX_SAMPLE_F32(FAR, SX_BATCH, 3, 4, 2), FAR_STATISTICS(2)},
     .n_inputs = 5,
     .attrs = EPSILON(1e-3)},
    {.name = "far_dense",
     .inputs = {SX_SAMPLE_F32(FAR, SX_BATCH, 7), FAR_STATISTICS(7)},
     .n_inputs = 5,
     .attrs = EPSILON(1e-3)},
    {.name = "one",
     .inputs = {SX_SAMPLE_F32(NN, 1, 1, 1, 1), STATISTICS(1)},
     .n_inputs = 5,
     .attrs = EPSILON(1e-4)},
};

sx_value sx_nn_batch_norm_at(sx_builder *b, sx_value x, sx_value scale, sx_value offset,
                             sx_value mean, sx_value variance, double epsilon, const char *file,
                             int line)
{
    sx_batch_norm_attrs attrs = {.epsilon = epsilon};
    return sx_build_at(b, &sx_op_batch_norm, &attrs,
                       (const sx_value[]){x, scale, offset, mean, variance}, 5, file, line);
}

const sx_op_def sx_op_batch_norm = {
    SX_OP_NAMED(batch_norm),
    .n_in = 5,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    SX_OP_ATTRS(sx_batch_norm_attrs, batch_norm_attrs),
    .infer = sx_infer_batch_norm,
    .grad = batch_norm_grad,
    .host = sx_host_batch_norm,
    .to_tf = sx_batch_norm_to_tf,
    SX_FROM_TF({.op = "FusedBatchNormV3", .attrs = batch_norm_from_tf}),
    SX_OP_SAMPLES(batch_norm_samples),
};
