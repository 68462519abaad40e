/* batch_norm_train: normalization by the moments of x itself, for training.
 *
 *   mean, variance = moments(x) over all but the last axis      (a node of its own)
 *   y = (x - mean) s scale + offset,  s = 1 / sqrt(variance + epsilon)
 *
 * Its gradient with respect to x includes the terms through mean and variance, which get no
 * gradient themselves. So the gradient of a training batch norm is two nodes (and the number of
 * elements):
 *
 *   dscale, doffset = batch_norm_train_grad_sums(dy, x, mean, variance)
 *   dx              = batch_norm_train_grad_input(dy, x, mean, variance, scale, dscale, doffset, M)
 *
 * Do not pass other statistics; use batch_norm for these.
 *
 *   x        [..., C], rank 2 or more, a float type
 *   scale, offset, mean, variance   [C]; f64 for x f64, else f32
 *   epsilon  0 or more
 *   own_moments   where replicas share the batch: the moments of the part (attrs.h)
 *   returns  x's type
 *
 * Errors   INVALID_ARGUMENT  ranks, dtypes, C differs, negative epsilon
 * Numbers  computed in f32 for f16, bf16, f32
 * Source   TensorFlow FusedBatchNormV3, FusedBatchNormGradV3 with is_training true */
#ifdef SX_PUBLIC
/* The same with mean and variance being the moments of x over all but the last axis; the gradient
 * with respect to x includes them. */
sx_value sx_nn_batch_norm_train(sx_builder *b, sx_value x, sx_value scale, sx_value offset,
                                sx_value mean, sx_value variance, double epsilon);
#endif

#include "graph/ops/batch_norm.h"

static const sx_attr_def batch_norm_train_attrs[] = {
    SX_ATTR(sx_batch_norm_attrs, epsilon, SX_ATTR_FLOAT),
    SX_ATTR(sx_batch_norm_attrs, own_moments, SX_ATTR_BOOL),
};

static void batch_norm_train_grad(sx_grad *g)
{
    sx_value x = g->x[0], scale = g->x[1], mean = g->x[3], variance = g->x[4], dy = g->dy[0];
    sx_value dscale =
        sx_build_op(g->b, batch_norm_train_grad_sums, g->attrs, dy, x, mean, variance);
    sx_value doffset = sx_output_of(dscale, 1);
    g->dx[1] = dscale;
    g->dx[2] = doffset;
    if (g->needed[0]) {
        sx_reduce_args along = {.struct_size = sizeof(along),
                                .axes = {.n = sx_type_of_value(g->b, x).rank - 1}};
        for (int i = 0; i < along.axes.n; i++) {
            along.axes.v[i] = i;
        }
        sx_value count = sx_size_at(g->b, x, &along, NULL, 0);
        g->dx[0] = sx_build_op(g->b, batch_norm_train_grad_input, g->attrs, dy, x, mean, variance,
                               scale, dscale, doffset, count);
    }
}

/* A sample's mean and variance are not its x's, so central differences do not apply: see
 * tests/graph/test_op_batch_norm.c, which differentiates moments and this together. */
#define NN SX_FILL_NORMAL
#define STATISTICS(c_)                                                   \
    SX_SAMPLE_F32(NN, c_), SX_SAMPLE_F32(NN, c_), SX_SAMPLE_F32(NN, c_), \
        SX_SAMPLE_F32(SX_FILL_POSITIVE, c_)
#define EPSILON(value) (&(const sx_batch_norm_attrs){.epsilon = (value)})
/* The mean is large compared with the deviation, so x - mean must be computed first. */
#define FAR SX_FILL_FAR
static const sx_op_sample batch_norm_train_samples[] = {
    {.name = "far",
     .inputs = {SX_SAMPLE_F32(FAR, SX_BATCH, 7), SX_SAMPLE_F32(NN, 7), SX_SAMPLE_F32(NN, 7),
                SX_SAMPLE_F32(FAR, 7), SX_SAMPLE_F32(SX_FILL_POSITIVE, 7)},
     .n_inputs = 5,
     .attrs = EPSILON(1e-3),
     .no_grad_check = true},
    {.name = "image",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 3, 4, 2), STATISTICS(2)},
     .n_inputs = 5,
     .attrs = EPSILON(1e-3),
     .no_grad_check = true},
    {.name = "dense",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 7), STATISTICS(7)},
     .n_inputs = 5,
     .attrs = EPSILON(1e-3),
     .no_grad_check = true},
};

sx_value sx_nn_batch_norm_train_at(sx_builder *b, sx_value x, sx_value scale, sx_value offset,
                                   sx_value mean, sx_value variance, double epsilon,
                                   const char *file, int line)
{
    sx_batch_norm_attrs attrs = {.epsilon = epsilon};
    return sx_build_at(b, &sx_op_batch_norm_train, &attrs,
                       (const sx_value[]){x, scale, offset, mean, variance}, 5, file, line);
}

const sx_op_def sx_op_batch_norm_train = {
    SX_OP_NAMED(batch_norm_train),
    .n_in = 5,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    SX_OP_ATTRS(sx_batch_norm_attrs, batch_norm_train_attrs),
    .own_part = &batch_norm_train_attrs[1],
    .infer = sx_infer_batch_norm,
    .grad = batch_norm_train_grad,
    .host = sx_host_batch_norm,
    .to_tf = sx_batch_norm_to_tf,
    SX_OP_SAMPLES(batch_norm_train_samples),
};
