/* moments: mean and variance of x over axes.
 *
 *   mean = sum x / M,  variance = sum (x - mean)² / M,  M = elements along the axes
 *   dx   = (dmean + 2 dvariance (x - mean)) / M
 *
 *   x        any shape, a float type
 *   axes     normalized
 *   returns  mean, variance: x's shape without the axes; f64 for x f64, else f32
 *
 * Over the batch, shards' moments meet by Chan's formula: with counts a, b and d = mean_b - mean_a,
 *   mean = mean_a + d b / (a + b),  M2 = M2_a + M2_b + d² a b / (a + b)
 *
 * Errors   INVALID_ARGUMENT  not a float type, an axis is out of range
 * Numbers  two passes, or one with compensation or of distances from a value near the mean: no
 *          cancellation
 * Source   TensorFlow tf.nn.moments; Chan, Golub, LeVeque 1979 */
#ifdef SX_PUBLIC
/* The mean (output 0) and population variance (output 1) over the axes, which are dropped. */
sx_value sx_moments(sx_builder *b, sx_value x, const sx_reduce_args *args);
#endif

#include "graph/ops/common.h"

static const sx_attr_def moments_attrs[] = {
    SX_ATTR_MEANS(sx_axes_attrs, axes, SX_ATTR_INTS, SX_MEANS_AXES)};

static sx_status moments_infer(sx_infer_context *c)
{
    const sx_axes_attrs *attrs = c->attrs;
    SX_TRY(sx_require_float("x", &c->inputs[0]));
    SX_TRY(sx_infer_reduce(&c->inputs[0], &attrs->axes, false, &c->outputs[0]));
    c->outputs[0].dtype = sx_accumulator_dtype(c->inputs[0].dtype);
    c->outputs[1] = c->outputs[0];
    return SX_OK;
}

static void moments_grad(sx_grad *g)
{
    const sx_axes_attrs *attrs = g->attrs;
    sx_type type = sx_type_of_value(g->b, g->x[0]);
    sx_type kept = sx_reduced_type(&type, &attrs->axes, true);
    sx_value x = sx_cast_like(g->b, g->x[0], g->y[0]), sum = SX_NO_VALUE;
    if (sx_value_is(g->dy[0])) {
        sum = sx_reshape_to(g->b, g->dy[0], &kept);
    }
    if (sx_value_is(g->dy[1])) {
        sx_value mean = sx_reshape_to(g->b, g->y[0], &kept);
        sx_value centred = sx_build_op(g->b, sub, NULL, x, mean);
        sx_value twice = sx_times(g->b, sx_reshape_to(g->b, g->dy[1], &kept), 2);
        sum = sx_add_maybe(g->b, sum, sx_build_op(g->b, mul, NULL, twice, centred));
    }
    sx_reduce_args along = {.struct_size = sizeof(along), .axes = {.n = attrs->axes.n}};
    for (int i = 0; i < attrs->axes.n; i++) {
        along.axes.v[i] = (int)attrs->axes.v[i];
    }
    sx_value count = attrs->axes.n == 0 ? sx_scalar_like(g->b, sum, 1)
                                        : sx_size_at(g->b, g->x[0], &along, NULL, 0);
    sx_value mean = sx_build_op(g->b, div, NULL, sum, count);
    sx_shape_attrs full = {.shape = sx_ints_of(type.rank, type.dims)};
    g->dx[0] = sx_cast_like(g->b, sx_build_op(g->b, broadcast_to, &full, mean), g->x[0]);
}

static sx_status moments_host(const sx_kernel_call *c)
{
    const sx_axes_attrs *attrs = c->attrs;
    const sx_host_tensor *x = &c->in[0], *mean = &c->out[0], *variance = &c->out[1];
    int64_t n = sx_type_elems(&x->type), m = sx_type_elems(&mean->type);
    double count = (double)n / (double)m;
    for (int64_t i = 0; i < m; i++) { /* those of no elements are NaN, as 0 / 0 is */
        mean->f[i] = variance->f[i] = n > 0 ? 0 : NAN;
    }
    for (int64_t i = 0; i < n; i++) {
        mean->f[sx_reduce_offset(&x->type, &attrs->axes, i)] += x->f[i] / count;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t at = sx_reduce_offset(&x->type, &attrs->axes, i);
        double d = x->f[i] - mean->f[at];
        variance->f[at] += d * d / count;
    }
    return SX_OK;
}

static void moments_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_axes_attrs *attrs = op->attrs;
    const int dtype = (int)op->out_types[0].dtype;
    const sx_tf_attr_list t = sx_tf_attrs(sx_tf_attr_type("T", dtype));
    const sx_tf_value x = sx_tf_cast(w, op->in[0], op->in_types[0].dtype, op->out_types[0].dtype);
    const sx_tf_value axes = sx_tf_ints(w, "axes", &attrs->axes);
    const sx_tf_attr_list kept =
        sx_tf_attrs(sx_tf_attr_type("T", dtype), sx_tf_attr_type("Tidx", SX_I32),
                    sx_tf_attr_bool("keep_dims", true));
    const sx_tf_value mean = sx_tf_add(w, "Mean", "kept_mean", sx_tf_in(x, axes), kept);
    const sx_tf_value square = sx_tf_add(w, "SquaredDifference", NULL, sx_tf_in(x, mean), t);
    const sx_tf_attr_list dropped =
        sx_tf_attrs(sx_tf_attr_type("T", dtype), sx_tf_attr_type("Tidx", SX_I32));
    op->out[0] = sx_tf_add(w, "Mean", "mean", sx_tf_in(x, axes), dropped);
    op->out[1] = sx_tf_add(w, "Mean", "variance", sx_tf_in(square, axes), dropped);
}

#define OVER(...) (&(const sx_axes_attrs){.axes = {__VA_ARGS__}})
static const sx_op_sample moments_samples[] = {
    {.name = "dense",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 7)},
     .n_inputs = 1,
     .attrs = OVER(1, {0})},
    {.name = "image",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3, 5, 2)},
     .n_inputs = 1,
     .attrs = OVER(3, {0, 1, 2})},
    {.name = "blocks",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 70)},
     .n_inputs = 1,
     .attrs = OVER(1, {0}),
     .batch = 67},
    {.name = "layer",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 7)},
     .n_inputs = 1,
     .attrs = OVER(1, {1})},
    {.name = "all",
     .inputs = {SX_SAMPLE_F32(SX_FILL_POSITIVE, 4, 1)},
     .n_inputs = 1,
     .attrs = OVER(2, {0, 1})},
    {.name = "batch_inside",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, -2, 3)},
     .n_inputs = 1,
     .attrs = OVER(2, {0, 1})},
    {.name = "beside_the_batch",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, -2, 3)},
     .n_inputs = 1,
     .attrs = OVER(2, {0, 2})},
};

sx_value sx_moments_at(sx_builder *b, sx_value x, const sx_reduce_args *args, const char *file,
                       int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_reduce_args, args);
    sx_axes_attrs attrs = {.axes = sx_normalize_axes(args->axes, sx_type_of_value(b, x).rank)};
    return sx_build_at(b, &sx_op_moments, &attrs, &x, 1, file, line);
}

const sx_op_def sx_op_moments = {
    SX_OP_NAMED(moments),
    .n_in = 1,
    .n_out = 2,
    .batch_rule = SX_RULE_MOMENTS,
    .bf16 = 0x1,
    SX_OP_ATTRS(sx_axes_attrs, moments_attrs),
    .infer = moments_infer,
    .grad = moments_grad,
    .host = moments_host,
    .to_tf = moments_to_tf,
    SX_OP_SAMPLES(moments_samples),
};
