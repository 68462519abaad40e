/* avg_pool2d: y = the mean of each window, over the elements that lie in the image;
 * dx = avg_pool2d_grad(dy)
 *
 *   x        [N,H,W,C], a float type
 *   window   {h, w}
 *   strides  {h, w}, the window by default
 *   padding  SX_VALID or SX_SAME; padding does not count
 *   returns  [N,H',W',C]: see conv_geometry.h for H', W'
 *
 * Errors   INVALID_ARGUMENT  rank, dtype, a window larger than the image
 * Numbers  accumulates in f32 for f16, bf16, f32
 * Source   TensorFlow tf.nn.avg_pool2d */
#ifdef SX_PUBLIC
/* x [N,H,W,C]: the mean of each window, without padding. */
sx_value sx_nn_avg_pool2d(sx_builder *b, sx_value x, const sx_nn_pool2d_args *args);
#endif

#include "graph/ops/common.h"
#include "graph/ops/conv_geometry.h"

static const sx_attr_def avg_pool2d_attrs[] = {
    SX_ATTR(sx_pool2d_attrs, window, SX_ATTR_INTS),
    SX_ATTR(sx_pool2d_attrs, strides, SX_ATTR_INTS),
    SX_ATTR_NAMES(sx_pool2d_attrs, padding, sx_padding_names),
};

static sx_status avg_pool2d_infer(sx_infer_context *c)
{
    sx_pool_geometry g;
    SX_TRY(sx_pool_geometry_of(c->attrs, &c->inputs[0], &g));
    c->outputs[0] = sx_type_of(c->inputs[0].dtype, g.n, g.h.out, g.w.out, g.c);
    return SX_OK;
}

static void avg_pool2d_grad(sx_grad *g)
{
    sx_pool2d_attrs attrs = *(const sx_pool2d_attrs *)g->attrs;
    sx_type x = sx_type_of_value(g->b, g->x[0]);
    attrs.size = sx_ints_of(2, &x.dims[1]);
    g->dx[0] = sx_build_op(g->b, avg_pool2d_grad, &attrs, g->dy[0]);
}

static void add_share(void *user, int64_t count, double *x, double *y)
{
    (void)user;
    *y += *x / (double)count;
}

static sx_status avg_pool2d_host(const sx_kernel_call *c)
{
    sx_host_fill(c, 0, 0);
    sx_pool_walk(c->attrs, &c->in[0], &c->out[0], add_share, NULL);
    return SX_OK;
}

static void avg_pool2d_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_pool(w, op, "AvgPool");
}

static const sx_op_sample avg_pool2d_samples[] = {
    SX_SAMPLES_POOL(SX_FILL_NORMAL),
};

sx_value sx_nn_avg_pool2d_at(sx_builder *b, sx_value x, const sx_nn_pool2d_args *args,
                             const char *file, int line)
{
    return sx_build_pool(b, &sx_op_avg_pool2d, x, args, file, line);
}

static void avg_pool2d_parts(const sx_parts *p)
{
    sx_pool_image_part(p->attrs, &p->in[0], &p->out_used[0], &p->in_used[0]);
}

const sx_op_def sx_op_avg_pool2d = {
    SX_OP_NAMED(avg_pool2d),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .flags = SX_OP_SUM,
    SX_OP_ATTRS(sx_pool2d_attrs, avg_pool2d_attrs),
    .infer = avg_pool2d_infer,
    .grad = avg_pool2d_grad,
    .host = avg_pool2d_host,
    .to_tf = avg_pool2d_to_tf,
    SX_FROM_TF({.op = "AvgPool", .attrs = sx_tf_read_pool}),
    .parts = avg_pool2d_parts,
    .parts_fit = sx_pool_parts_fit,
    SX_OP_SAMPLES(avg_pool2d_samples),
};
