/* conv2d_grad_filter: the gradient of conv2d with respect to its filter.
 *
 *   dw[i,j,c,f] = sum over n,p,q of
 *                 x[n, p sh - top + i dh, q sw - left + j dw, g C + c] dy[n,p,q,f]
 *
 *   x        [N,H,W,groups C], a float type
 *   dy       [N,H',W',F]
 *   size     {KH, KW} of dw; the other attributes are conv2d's
 *   wide     f16 and bf16 operands give f32, the type of the accumulator
 *   returns  [KH,KW,C,F]
 *
 * It sums over the batch: the results of shards are added. It is linear in both: dx =
 * conv2d_grad_input(dy, g), d(dy) = conv2d(x, g).
 * Errors   INVALID_ARGUMENT  as conv2d; the shape of dy does not match
 * Numbers  as conv2d
 * Source   TensorFlow Conv2DBackpropFilter */
#include "graph/ops/common.h"
#include "graph/ops/conv_geometry.h"

static const sx_attr_def conv2d_grad_filter_attrs[] = {
    SX_ATTR(sx_conv2d_attrs, strides, SX_ATTR_INTS),
    SX_ATTR(sx_conv2d_attrs, dilations, SX_ATTR_INTS),
    SX_ATTR_NAMES(sx_conv2d_attrs, padding, sx_padding_names),
    SX_ATTR(sx_conv2d_attrs, pads, SX_ATTR_INTS),
    SX_ATTR(sx_conv2d_attrs, groups, SX_ATTR_INT),
    SX_ATTR(sx_conv2d_attrs, size, SX_ATTR_INTS),
    SX_ATTR(sx_conv2d_attrs, wide, SX_ATTR_BOOL),
    SX_ATTR(sx_conv2d_attrs, bf16_operands, SX_ATTR_BOOL),
};

static sx_status conv2d_grad_filter_infer(sx_infer_context *c)
{
    const sx_conv2d_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0], *dy = &c->inputs[1];
    SX_TRY(sx_require_rank("x", x, 4, "[N,H,W,C]"));
    SX_TRY(sx_require_rank("dy", dy, 4, "[N,H,W,C]"));
    int64_t channels = x->dims[3] / SX_MAX(attrs->groups, 1);
    sx_type filter =
        sx_type_of(x->dtype, attrs->size.v[0], attrs->size.v[1], channels, dy->dims[3]);
    sx_conv_geometry g;
    SX_TRY(sx_conv_geometry_of(attrs, x, &filter, &g));
    sx_type y = sx_type_of(x->dtype, g.n, g.h.out, g.w.out, g.groups * g.o);
    SX_TRY(sx_require_equal("dy", dy, "x", &y));
    c->outputs[0] = filter;
    c->outputs[0].dtype = attrs->wide ? sx_accumulator_dtype(x->dtype) : x->dtype;
    return SX_OK;
}

static void conv2d_grad_filter_grad(sx_grad *g)
{
    sx_conv2d_attrs attrs = *(const sx_conv2d_attrs *)g->attrs;
    sx_type x = sx_type_of_value(g->b, g->x[0]);
    sx_value dy = sx_cast_like(g->b, g->dy[0], g->x[0]);
    attrs.wide = false;
    if (g->needed[0]) {
        attrs.size = sx_ints_of(2, &x.dims[1]);
        g->dx[0] = sx_build_op(g->b, conv2d_grad_input, &attrs, g->x[1], dy);
    }
    if (g->needed[1]) {
        attrs.size = (sx_ints){0};
        g->dx[1] = sx_build_op(g->b, conv2d, &attrs, g->x[0], dy);
    }
}

static sx_status conv2d_grad_filter_host(const sx_kernel_call *c)
{
    sx_host_fill(c, 0, 0);
    sx_conv_walk(c->attrs, &c->in[0], &c->out[0], &c->in[1], sx_conv_into_filter);
    return SX_OK;
}

#define NN        SX_FILL_NORMAL
#define CONV(...) (&(const sx_conv2d_attrs){__VA_ARGS__})
static const sx_op_sample conv2d_grad_filter_samples[] = {
    {.name = "valid",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 7, 6, 3), SX_SAMPLE_F32(NN, SX_BATCH, 5, 4, 4)},
     .n_inputs = 2,
     .attrs = CONV(.size = {2, {3, 3}})},
    {.name = "same",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 7, 6, 3), SX_SAMPLE_F32(NN, SX_BATCH, 7, 6, 4)},
     .n_inputs = 2,
     .attrs = CONV(.padding = SX_SAME, .size = {2, {3, 3}})},
    {.name = "same_stride2",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 8, 7, 2), SX_SAMPLE_F32(NN, SX_BATCH, 4, 4, 3)},
     .n_inputs = 2,
     .attrs = CONV(.strides = {2, {2, 2}}, .padding = SX_SAME, .size = {2, {3, 5}})},
    {.name = "pointwise_stride2",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 5, 5, 4), SX_SAMPLE_F32(NN, SX_BATCH, 3, 3, 6)},
     .n_inputs = 2,
     .attrs = CONV(.strides = {2, {2, 2}}, .size = {2, {1, 1}})},
    {.name = "dilated",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 9, 9, 2), SX_SAMPLE_F32(NN, SX_BATCH, 9, 9, 2)},
     .n_inputs = 2,
     .attrs = CONV(.dilations = {2, {2, 3}}, .padding = SX_SAME, .size = {2, {3, 3}})},
    {.name = "depthwise",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 6, 6, 3), SX_SAMPLE_F32(NN, SX_BATCH, 6, 6, 6)},
     .n_inputs = 2,
     .attrs = CONV(.padding = SX_SAME, .groups = 3, .size = {2, {3, 3}})},
    {.name = "depthwise_5x5",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 8, 7, 21), SX_SAMPLE_F32(NN, SX_BATCH, 4, 4, 21)},
     .n_inputs = 2,
     .attrs = CONV(.strides = {2, {2, 2}}, .padding = SX_SAME, .groups = 21, .size = {2, {5, 5}}),
     .no_grad_check = true}, /* "depthwise" has it; these are a vector kernel's cases */
    {.name = "depthwise_7x4",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 11, 9, 35), SX_SAMPLE_F32(NN, SX_BATCH, 6, 8, 35)},
     .n_inputs = 2,
     .attrs = CONV(.dilations = {2, {1, 2}}, .padding = SX_EXPLICIT, .pads = {4, {0, 1, 2, 3}},
                   .groups = 35, .size = {2, {7, 4}}),
     .no_grad_check = true},
    /* as conv2d's */
    {.name = "channels",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 6, 5, 16), SX_SAMPLE_F32(NN, SX_BATCH, 3, 3, 24)},
     .n_inputs = 2,
     .attrs = CONV(.strides = {2, {2, 2}}, .padding = SX_SAME, .size = {2, {3, 3}}),
     .no_grad_check = true},
    {.name = "tail_not_read",
     .inputs = {SX_SAMPLE_F32(NN, 2, 7, 6, 1), SX_SAMPLE_F32(NN, 2, 2, 2, 1)},
     .n_inputs = 2,
     .attrs = CONV(.strides = {2, {3, 3}}, .size = {2, {2, 2}})},
};

static double conv2d_grad_filter_flops(const sx_type *in, const sx_type *out)
{
    const sx_type *filter = &out[0];
    return 2.0 * (double)sx_type_elems(&in[1]) * (double)filter->dims[0] * (double)filter->dims[1] *
           (double)filter->dims[2];
}

/* Zeros in dy add nothing. */
static void conv2d_grad_filter_parts(const sx_parts *p)
{
    p->in_used[1].dims[1] = p->in_nonzero[1].dims[1];
    p->in_used[1].dims[2] = p->in_nonzero[1].dims[2];
    sx_conv_image_part(p->attrs, &p->in[0], &p->out[0], &p->in_used[1], &p->in_used[0]);
}

const sx_op_def sx_op_conv2d_grad_filter = {
    SX_OP_NAMED(conv2d_grad_filter),
    .n_in = 2,
    .n_out = 1,
    .batch_rule = SX_RULE_SUM,
    .bf16 = 0x3,
    .flags = SX_OP_SUM | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_conv2d_attrs, conv2d_grad_filter_attrs),
    .bf16_operands = &conv2d_grad_filter_attrs[7],
    .infer = conv2d_grad_filter_infer,
    .grad = conv2d_grad_filter_grad,
    .host = conv2d_grad_filter_host,
    .flops = conv2d_grad_filter_flops,
    .parts = conv2d_grad_filter_parts,
    SX_OP_SAMPLES(conv2d_grad_filter_samples),
};
