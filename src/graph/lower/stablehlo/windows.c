/* Pooling, and its gradients. */
#include "graph/lower/stablehlo/rows.h"

#include "graph/ops/conv_geometry.h"
#include "base/memory.h"
#include "graph/ops/common.h"

/* False after an error, which the writer keeps. */
static bool pool_geometry(sx_hlo_writer *w, const sx_pool2d_attrs *attrs, const sx_type *x,
                          sx_pool_geometry *out)
{
    sx_status status = sx_pool_geometry_of(attrs, x, out);
    if (status != SX_OK) {
        sx_hlo_fail(w, status);
    }
    return status == SX_OK;
}

static sx_hlo_window pool_window(const sx_pool_geometry *g)
{
    return (sx_hlo_window){
        .size = {g->h.kernel, g->w.kernel},
        .strides = {g->h.stride, g->w.stride},
        .pads = {{g->h.pad_before, g->h.pad_after}, {g->w.pad_before, g->w.pad_after}},
    };
}

/* The counts along one axis, as a vector of `dtype` repeated along the others of `type`. */
static sx_hlo counts_along(sx_hlo_writer *w, const sx_conv_window *window, int64_t axis,
                           const sx_type *type)
{
    sx_type vector = sx_type_of(SX_F32, window->out);
    float *counts = sx_alloc((size_t)window->out, sizeof(*counts));
    if (counts == NULL) {
        sx_hlo_fail(w, sx_no_memory("for a pool's counts"));
        return SX_HLO_NONE;
    }
    for (int64_t o = 0; o < window->out; o++) {
        counts[o] = (float)sx_conv_window_count(window, o);
    }
    sx_hlo v = sx_hlo_constant(w, &(sx_tensor){.type = vector, .data = counts});
    sx_free(counts);
    return sx_hlo_broadcast_in(w, sx_hlo_convert(w, v, type->dtype), type, &axis);
}

/* The number of image elements in each window, in the type of y. */
static sx_hlo pool_counts(sx_hlo_writer *w, const sx_pool_geometry *g, sx_hlo y)
{
    sx_type type = sx_hlo_type(w, y);
    sx_hlo rows = counts_along(w, &g->h, 1, &type);
    return sx_hlo_binary(w, "multiply", rows, counts_along(w, &g->w, 2, &type));
}

void sx_hlo_lower_max_pool2d(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_pool_geometry g;
    if (pool_geometry(w, op->attrs, &op->in_types[0], &g)) {
        sx_hlo_window window = pool_window(&g);
        op->out[0] = sx_hlo_reduce_window(w, "maximum", op->in[0], &window, &op->out_types[0]);
    }
}

/* Select-and-scatter selects the first element that no later one exceeds, which is the first
 * maximum. It does not use y; if y is not the maximum, the gradient is not assigned. */
void sx_hlo_lower_max_pool2d_grad(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_pool_geometry g;
    if (!pool_geometry(w, op->attrs, &op->in_types[0], &g)) {
        return;
    }
    sx_hlo_window window = pool_window(&g);
    sx_hlo x = op->in[0], dy = op->in[2];
    sx_dtype dtype = op->in_types[0].dtype;
    const sx_type scalars[2] = {sx_scalar_type(dtype), sx_scalar_type(dtype)};
    sx_hlo greatest = sx_hlo_reduce_window(w, "maximum", x, &window, &op->in_types[1]);
    sx_hlo chosen = sx_hlo_compare(w, "EQ", op->in[1], greatest), a[2];
    sx_hlo given = sx_hlo_select(w, chosen, dy, sx_hlo_like(w, dy, 0));
    sx_hlo in[3] = {x, given, sx_hlo_scalar(w, dtype, 0)};
    op->out[0] = sx_hlo_begin(w, "select_and_scatter", in, 3, &op->out_types[0], 1);
    sx_hlo_region(w, scalars, 2, a);
    sx_hlo keep = sx_hlo_compare(w, "GE", a[0], a[1]);
    sx_hlo_region_end(w, &keep, 1);
    sx_hlo_region_binary(w, "add", dtype);
    sx_hlo_attr_window(w, &window);
    sx_hlo_end(w);
}

void sx_hlo_lower_avg_pool2d(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_pool_geometry g;
    if (!pool_geometry(w, op->attrs, &op->in_types[0], &g)) {
        return;
    }
    sx_hlo_window window = pool_window(&g);
    sx_hlo x = sx_hlo_widen(w, op->in[0]);
    sx_hlo sum = sx_hlo_reduce_window(w, "add", x, &window, &op->out_types[0]);
    sx_hlo mean = sx_hlo_binary(w, "divide", sum, pool_counts(w, &g, sum));
    op->out[0] = sx_hlo_convert(w, mean, op->out_types[0].dtype);
}

/* Each share, stride - 1 zeros between them, summed over the windows that reach an element: along
 * one axis, with length = (out - 1) stride + 1, in = before + length + after - kernel + 1,  before
 * = kernel - 1 - pad_before */
void sx_hlo_lower_avg_pool2d_grad(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_pool_geometry g;
    if (!pool_geometry(w, op->attrs, &op->out_types[0], &g)) {
        return;
    }
    const sx_conv_window *axes[2] = {&g.h, &g.w};
    int64_t before[4] = {0}, after[4] = {0}, between[4] = {0};
    for (int i = 0; i < 2; i++) {
        const sx_conv_window *a = axes[i];
        before[1 + i] = a->kernel - 1 - a->pad_before;
        after[1 + i] = a->in - ((a->out - 1) * a->stride + 1) + a->pad_before;
        between[1 + i] = a->stride - 1;
    }
    const sx_hlo_window window = {.size = {g.h.kernel, g.w.kernel}, .strides = {1, 1}};
    sx_hlo dy = sx_hlo_widen(w, op->in[0]);
    sx_hlo share = sx_hlo_binary(w, "divide", dy, pool_counts(w, &g, dy));
    share = sx_hlo_pad(w, share, 0, before, after, between);
    sx_hlo dx = sx_hlo_reduce_window(w, "add", share, &window, &op->out_types[0]);
    op->out[0] = sx_hlo_convert(w, dx, op->out_types[0].dtype);
}
