/* Matrix products and convolutions. */
#include "graph/lower/stablehlo/rows.h"

#include "graph/ops/conv_geometry.h"
#include "graph/ops/common.h"

void sx_hlo_lower_matmul(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_matmul_attrs *attrs = op->attrs;
    sx_hlo in[2] = {op->in[0], op->in[1]};
    const sx_type *out = &op->out_types[0];
    for (int i = 0; i < 2; i++) { /* the same stack of matrices on both sides */
        sx_type type = *out;
        for (int d = 1; d <= 2; d++) {
            type.dims[type.rank - d] = op->in_types[i].dims[op->in_types[i].rank - d];
        }
        in[i] = sx_hlo_broadcast_to(w, in[i], &type);
    }
    sx_hlo y = sx_hlo_matmul(w, in[0], attrs->transpose_a, in[1], attrs->transpose_b);
    op->out[0] = sx_hlo_convert(w, y, op->out_types[0].dtype);
}

void sx_hlo_lower_conv2d(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_conv_geometry g;
    sx_status status = sx_conv_geometry_of(op->attrs, &op->in_types[0], &op->in_types[1], &g);
    if (status != SX_OK) {
        sx_hlo_fail(w, status);
        return;
    }
    const sx_hlo_conv conv = {
        .strides = {g.h.stride, g.w.stride},
        .pads = {{g.h.pad_before, g.h.pad_after}, {g.w.pad_before, g.w.pad_after}},
        .x_dilation = {1, 1},
        .filter_dilation = {g.h.dilation, g.w.dilation},
        .groups = g.groups,
    };
    sx_hlo y = sx_hlo_convolution(w, op->in[0], op->in[1], &conv);
    op->out[0] = sx_hlo_convert(w, y, op->out_types[0].dtype);
}

/* The filter reversed, its inputs and outputs exchanged within each group: [KH,KW,O,groups C]. */
static sx_hlo turned_filter(sx_hlo_writer *w, sx_hlo filter, const sx_conv_geometry *g)
{
    const int64_t spatial[2] = {0, 1}, exchange[5] = {0, 1, 4, 3, 2};
    sx_dtype dtype = sx_hlo_type(w, filter).dtype;
    sx_type split = sx_type_of(dtype, g->h.kernel, g->w.kernel, g->c, g->groups, g->o);
    sx_type whole = sx_type_of(dtype, g->h.kernel, g->w.kernel, g->o, g->groups * g->c);
    sx_hlo turned = sx_hlo_reverse(w, filter, 2, spatial);
    turned = sx_hlo_transpose(w, sx_hlo_reshape(w, turned, &split), exchange);
    return sx_hlo_reshape(w, turned, &whole);
}

/* dx is the convolution of dy, with stride - 1 zeros between its elements, with the reversed
 * filter: along one axis, with span = (kernel - 1) dilation + 1 and length = (out - 1) stride + 1,
 *   in = before + length + after - span + 1,  before = span - 1 - pad_before */
void sx_hlo_lower_conv2d_grad_input(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_conv_geometry g;
    sx_status status = sx_conv_geometry_of(op->attrs, &op->out_types[0], &op->in_types[1], &g);
    if (status != SX_OK) {
        sx_hlo_fail(w, status);
        return;
    }
    const sx_conv_window *axes[2] = {&g.h, &g.w};
    sx_hlo_conv conv = {.strides = {1, 1}, .groups = g.groups};
    for (int i = 0; i < 2; i++) {
        const sx_conv_window *a = axes[i];
        conv.x_dilation[i] = a->stride;
        conv.filter_dilation[i] = a->dilation;
        conv.pads[i][0] = (a->kernel - 1) * a->dilation - a->pad_before;
        conv.pads[i][1] = a->in - ((a->out - 1) * a->stride + 1) + a->pad_before;
    }
    sx_hlo y = sx_hlo_convolution(w, op->in[0], turned_filter(w, op->in[1], &g), &conv);
    op->out[0] = sx_hlo_convert(w, y, op->out_types[0].dtype);
}

/* x with channels as examples and examples as channels, group by group: [C,H,W,groups N]. */
static sx_hlo exchanged_image(sx_hlo_writer *w, sx_hlo x, const sx_conv_geometry *g)
{
    const int64_t exchange[5] = {4, 1, 2, 3, 0};
    sx_dtype dtype = sx_hlo_type(w, x).dtype;
    sx_type split = sx_type_of(dtype, g->n, g->h.in, g->w.in, g->groups, g->c);
    sx_type whole = sx_type_of(dtype, g->c, g->h.in, g->w.in, g->groups * g->n);
    return sx_hlo_reshape(w, sx_hlo_transpose(w, sx_hlo_reshape(w, x, &split), exchange), &whole);
}

/* dw is the plain convolution of the exchanged image with dy as the filter, [H',W',N,F], with its
 * elements `stride` apart and moved by `dilation`; the result [C,KH,KW,F] is transposed. The part
 * of x that no window reads is cropped by negative padding. */
void sx_hlo_lower_conv2d_grad_filter(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const int64_t to_filter[4] = {1, 2, 0, 3};
    sx_conv_geometry g;
    sx_status status = sx_conv_geometry_of(op->attrs, &op->in_types[0], &op->out_types[0], &g);
    if (status != SX_OK) {
        sx_hlo_fail(w, status);
        return;
    }
    const sx_conv_window *axes[2] = {&g.h, &g.w};
    sx_hlo_conv conv = {.x_dilation = {1, 1}, .groups = g.groups};
    for (int i = 0; i < 2; i++) {
        const sx_conv_window *a = axes[i];
        int64_t reach = (a->out - 1) * a->stride + (a->kernel - 1) * a->dilation + 1;
        conv.strides[i] = a->dilation;
        conv.filter_dilation[i] = a->stride;
        conv.pads[i][0] = a->pad_before;
        conv.pads[i][1] = reach - a->in - a->pad_before;
    }
    sx_hlo x = exchanged_image(w, op->in[0], &g);
    sx_hlo dy = sx_hlo_transpose(w, op->in[1], to_filter);
    sx_hlo dw = sx_hlo_transpose(w, sx_hlo_convolution(w, x, dy, &conv), to_filter);
    op->out[0] = sx_hlo_convert(w, dw, op->out_types[0].dtype);
}
