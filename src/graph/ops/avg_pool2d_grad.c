/* avg_pool2d_grad: the gradient of avg_pool2d: each dy, divided by the count of its window's
 * elements in the image, goes to each of them.
 *
 *   dy       [N,H',W',C], a float type
 *   size     {H, W} of dx; window, strides and padding as avg_pool2d
 *   returns  [N,H,W,C]
 *
 * It is linear: d(dy) = avg_pool2d(g).
 * Errors   INVALID_ARGUMENT  as avg_pool2d; the shape of dy does not match
 * Numbers  as avg_pool2d
 * Source   TensorFlow AvgPoolGrad */
#include "graph/ops/common.h"
#include "graph/ops/conv_geometry.h"

static const sx_attr_def avg_pool2d_grad_attrs[] = {
    SX_ATTR(sx_pool2d_attrs, window, SX_ATTR_INTS),
    SX_ATTR(sx_pool2d_attrs, strides, SX_ATTR_INTS),
    SX_ATTR_NAMES(sx_pool2d_attrs, padding, sx_padding_names),
    SX_ATTR(sx_pool2d_attrs, size, SX_ATTR_INTS),
};

static sx_status avg_pool2d_grad_infer(sx_infer_context *c)
{
    const sx_pool2d_attrs *attrs = c->attrs;
    const sx_type *dy = &c->inputs[0];
    SX_TRY(sx_require_rank("dy", dy, 4, "[N,H,W,C]"));
    sx_type x = sx_type_of(dy->dtype, dy->dims[0], attrs->size.v[0], attrs->size.v[1], dy->dims[3]);
    sx_pool_geometry g;
    SX_TRY(sx_pool_geometry_of(attrs, &x, &g));
    sx_type y = sx_type_of(dy->dtype, g.n, g.h.out, g.w.out, g.c);
    SX_TRY(sx_require_equal("dy", dy, "the image's size", &y));
    c->outputs[0] = x;
    return SX_OK;
}

static void avg_pool2d_grad_grad(sx_grad *g)
{
    sx_pool2d_attrs attrs = *(const sx_pool2d_attrs *)g->attrs;
    attrs.size = (sx_ints){0};
    g->dx[0] = sx_build_op(g->b, avg_pool2d, &attrs, g->dy[0]);
}

static void give_share(void *user, int64_t count, double *x, double *y)
{
    (void)user;
    *x += *y / (double)count;
}

static sx_status avg_pool2d_grad_host(const sx_kernel_call *c)
{
    sx_host_fill(c, 0, 0);
    sx_pool_walk(c->attrs, &c->out[0], &c->in[0], give_share, NULL);
    return SX_OK;
}

#define NN        SX_FILL_NORMAL
#define POOL(...) (&(const sx_pool2d_attrs){__VA_ARGS__})
static const sx_op_sample avg_pool2d_grad_samples[] = {
    {.name = "half",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 3, 2, 3)},
     .n_inputs = 1,
     .attrs = POOL(.window = {2, {2, 2}}, .size = {2, {6, 4}})},
    {.name = "overlap_same",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 4, 3, 2)},
     .n_inputs = 1,
     .attrs = POOL(.window = {2, {3, 3}}, .strides = {2, {2, 2}}, .padding = SX_SAME,
                   .size = {2, {7, 6}})},
    {.name = "global",
     .inputs = {SX_SAMPLE_F32(NN, 2, 1, 1, 5)},
     .n_inputs = 1,
     .attrs = POOL(.window = {2, {4, 3}}, .size = {2, {4, 3}})},
};

/* Windows whose dy is zero are not read and give zeros. */
static void avg_pool2d_grad_parts(const sx_parts *p)
{
    p->in_used[0].dims[0] = p->out_used[0].dims[0];
    p->in_used[0].dims[1] = p->in_nonzero[0].dims[1];
    p->in_used[0].dims[2] = p->in_nonzero[0].dims[2];
    p->in_used[0].dims[3] = p->out_used[0].dims[3];
    sx_pool_image_part(p->attrs, &p->out[0], &p->in_nonzero[0], &p->out_nonzero[0]);
}

const sx_op_def sx_op_avg_pool2d_grad = {
    SX_OP_NAMED(avg_pool2d_grad),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .flags = SX_OP_SUM | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_pool2d_attrs, avg_pool2d_grad_attrs),
    .infer = avg_pool2d_grad_infer,
    .grad = avg_pool2d_grad_grad,
    .host = avg_pool2d_grad_host,
    .parts = avg_pool2d_grad_parts,
    .parts_fit = sx_pool_parts_fit,
    SX_OP_SAMPLES(avg_pool2d_grad_samples),
};
