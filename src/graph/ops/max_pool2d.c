/* max_pool2d: y = the greatest of each window;  dx = max_pool2d_grad(x, y, dy)
 *
 *   x        [N,H,W,C], a float type
 *   window   {h, w}
 *   strides  {h, w}, the window by default
 *   padding  SX_VALID, SX_SAME, or SX_EXPLICIT with pads {top, bottom, left, right}, each less
 *            than the window; padding is ignored
 *   returns  [N,H',W',C]: see conv_geometry.h for H', W'
 *
 * Errors   INVALID_ARGUMENT  rank, dtype, a window larger than the image
 * Numbers  exact
 * Source   TensorFlow tf.nn.max_pool2d */
#ifdef SX_PUBLIC
typedef struct sx_nn_pool2d_args {
    size_t struct_size;
    int window[2];      /* {h, w}; {2} = {2, 2} */
    int strides[2];     /* default: the window */
    sx_padding padding; /* SX_VALID or SX_SAME */
} sx_nn_pool2d_args;

/* x [N,H,W,C]: the maximum of each window. */
sx_value sx_nn_max_pool2d(sx_builder *b, sx_value x, const sx_nn_pool2d_args *args);
#endif
#ifdef SX_ATTRS
/* max_pool2d, max_pool2d_grad, avg_pool2d, avg_pool2d_grad */
typedef struct sx_pool2d_attrs {
    sx_ints window;  /* {h, w} */
    sx_ints strides; /* {h, w}; empty = the window */
    int32_t padding; /* sx_padding */
    sx_ints pads;    /* SX_EXPLICIT only: {top, bottom, left, right} */
    sx_ints size;    /* avg_pool2d_grad: {h, w} of the image that it makes */
} sx_pool2d_attrs;
#endif

#include "graph/ops/common.h"
#include "graph/ops/conv_geometry.h"

static const sx_attr_def max_pool2d_attrs[] = {
    SX_ATTR(sx_pool2d_attrs, window, SX_ATTR_INTS),
    SX_ATTR(sx_pool2d_attrs, strides, SX_ATTR_INTS),
    SX_ATTR_NAMES(sx_pool2d_attrs, padding, sx_padding_names),
    SX_ATTR(sx_pool2d_attrs, pads, SX_ATTR_INTS),
};

static sx_status max_pool2d_infer(sx_infer_context *c)
{
    sx_pool_geometry g;
    SX_TRY(sx_pool_geometry_of(c->attrs, &c->inputs[0], &g));
    c->outputs[0] = sx_type_of(c->inputs[0].dtype, g.n, g.h.out, g.w.out, g.c);
    return SX_OK;
}

static void max_pool2d_grad(sx_grad *g)
{
    g->dx[0] = sx_build_op(g->b, max_pool2d_grad, g->attrs, g->x[0], g->y[0], g->dy[0]);
}

static void take_greatest(void *user, int64_t count, double *x, double *y)
{
    (void)user;
    (void)count;
    *y = *x > *y || isnan(*x) ? *x : *y;
}

static sx_status max_pool2d_host(const sx_kernel_call *c)
{
    sx_host_fill(c, 0, -INFINITY);
    sx_pool_walk(c->attrs, &c->in[0], &c->out[0], take_greatest, NULL);
    return SX_OK;
}

static void max_pool2d_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_pool(w, op, "MaxPool");
}

static const sx_op_sample max_pool2d_samples[] = {
    SX_SAMPLES_POOL(SX_FILL_DISTINCT),
    SX_SAMPLE_POOL_("explicit",
                    SX_POOL_LITERAL_(.window = {2, {3, 3}}, .strides = {2, {2, 2}},
                                     .padding = SX_EXPLICIT, .pads = {4, {1, 1, 2, 0}}),
                    SX_SAMPLE_F32(SX_FILL_DISTINCT, SX_BATCH, 6, 5, 2)),
};

sx_value sx_nn_max_pool2d_at(sx_builder *b, sx_value x, const sx_nn_pool2d_args *args,
                             const char *file, int line)
{
    return sx_build_pool(b, &sx_op_max_pool2d, x, args, file, line);
}

static void max_pool2d_parts(const sx_parts *p)
{
    sx_pool_image_part(p->attrs, &p->in[0], &p->out_used[0], &p->in_used[0]);
}

const sx_op_def sx_op_max_pool2d = {
    SX_OP_NAMED(max_pool2d),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .flags = SX_OP_EXACT,
    SX_OP_ATTRS(sx_pool2d_attrs, max_pool2d_attrs),
    .infer = max_pool2d_infer,
    .grad = max_pool2d_grad,
    .host = max_pool2d_host,
    .to_tf = max_pool2d_to_tf,
    SX_FROM_TF({.op = "MaxPool", .attrs = sx_tf_read_pool}),
    .parts = max_pool2d_parts,
    .parts_fit = sx_pool_parts_fit,
    SX_OP_SAMPLES(max_pool2d_samples),
};
