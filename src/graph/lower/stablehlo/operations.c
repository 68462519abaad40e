/* StableHLO operations with their attributes and result types, over the writer of stablehlo.c:
 * elementwise, shapes, reductions, products, replicas. */
#include "graph/lower/stablehlo/writer.h"

#include <math.h>
#include <string.h>

/* ---- Elementwise ---- */

sx_hlo sx_hlo_unary(sx_hlo_writer *w, const char *op, sx_hlo x)
{
    sx_type type = sx_hlo_type(w, x);
    return sx_hlo_emit(w, op, &x, 1, &type, 1);
}

sx_hlo sx_hlo_binary(sx_hlo_writer *w, const char *op, sx_hlo x, sx_hlo y)
{
    sx_type type = sx_hlo_type(w, x);
    return sx_hlo_emit(w, op, (const sx_hlo[]){x, y}, 2, &type, 1);
}

sx_hlo sx_hlo_compare(sx_hlo_writer *w, const char *direction, sx_hlo x, sx_hlo y)
{
    sx_type type = sx_hlo_type(w, x);
    sx_hlo_attr(w, "comparison_direction", "#stablehlo<comparison_direction %s>", direction);
    sx_hlo_attr(w, "compare_type", "#stablehlo<comparison_type %s>",
                sx_hlo_dtype_of(type.dtype)->compare);
    type.dtype = SX_BOOL;
    return sx_hlo_emit(w, "compare", (const sx_hlo[]){x, y}, 2, &type, 1);
}

sx_hlo sx_hlo_select(sx_hlo_writer *w, sx_hlo cond, sx_hlo x, sx_hlo y)
{
    sx_type type = sx_hlo_type(w, x);
    return sx_hlo_emit(w, "select", (const sx_hlo[]){cond, x, y}, 3, &type, 1);
}

sx_hlo sx_hlo_convert(sx_hlo_writer *w, sx_hlo x, sx_dtype dtype)
{
    sx_type type = sx_hlo_type(w, x);
    if (type.dtype == dtype) {
        return x;
    }
    type.dtype = dtype;
    return sx_hlo_emit(w, "convert", &x, 1, &type, 1);
}

sx_hlo sx_hlo_widen(sx_hlo_writer *w, sx_hlo x)
{
    return sx_hlo_is_narrow(sx_hlo_type(w, x).dtype) ? sx_hlo_convert(w, x, SX_F32) : x;
}

sx_hlo sx_hlo_with(sx_hlo_writer *w, const char *op, sx_hlo x, double value)
{
    return sx_hlo_binary(w, op, x, sx_hlo_like(w, x, value));
}

sx_hlo sx_hlo_clamp(sx_hlo_writer *w, sx_hlo x, double low, double high)
{
    sx_type type = sx_hlo_type(w, x);
    sx_hlo limits[2] = {sx_hlo_scalar(w, type.dtype, low), sx_hlo_scalar(w, type.dtype, high)};
    return sx_hlo_emit(w, "clamp", (const sx_hlo[]){limits[0], x, limits[1]}, 3, &type, 1);
}

/* ---- Shapes ---- */

static bool same_dims(const sx_type *a, const sx_type *b)
{
    return a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(a->dims[0])) == 0;
}

sx_hlo sx_hlo_broadcast_in(sx_hlo_writer *w, sx_hlo x, const sx_type *to, const int64_t *map)
{
    sx_type from = sx_hlo_type(w, x), type = *to;
    type.dtype = from.dtype;
    sx_hlo_attr_i64s(w, "broadcast_dimensions", from.rank, map);
    return sx_hlo_emit(w, "broadcast_in_dim", &x, 1, &type, 1);
}

sx_hlo sx_hlo_broadcast_to(sx_hlo_writer *w, sx_hlo x, const sx_type *to)
{
    sx_type from = sx_hlo_type(w, x);
    int64_t map[SX_MAX_RANK];
    if (same_dims(&from, to)) {
        return x;
    }
    for (int i = 0; i < from.rank; i++) {
        map[i] = to->rank - from.rank + i;
    }
    return sx_hlo_broadcast_in(w, x, to, map);
}

sx_hlo sx_hlo_repeat(sx_hlo_writer *w, sx_hlo x, const sx_type *to, int axis)
{
    int64_t map[SX_MAX_RANK];
    for (int i = 0; i + 1 < to->rank; i++) {
        map[i] = i < axis ? i : i + 1;
    }
    return sx_hlo_broadcast_in(w, x, to, map);
}

sx_hlo sx_hlo_reshape(sx_hlo_writer *w, sx_hlo x, const sx_type *to)
{
    sx_type from = sx_hlo_type(w, x), type = *to;
    type.dtype = from.dtype;
    return same_dims(&from, &type) ? x : sx_hlo_emit(w, "reshape", &x, 1, &type, 1);
}

sx_hlo sx_hlo_transpose(sx_hlo_writer *w, sx_hlo x, const int64_t *perm)
{
    sx_type from = sx_hlo_type(w, x), type = from;
    bool moves = false;
    for (int i = 0; i < from.rank; i++) {
        type.dims[i] = from.dims[perm[i]];
        moves = moves || perm[i] != i;
    }
    if (!moves) {
        return x;
    }
    sx_hlo_attr_i64s(w, "permutation", from.rank, perm);
    return sx_hlo_emit(w, "transpose", &x, 1, &type, 1);
}

sx_hlo sx_hlo_reverse(sx_hlo_writer *w, sx_hlo x, int n, const int64_t *axes)
{
    sx_hlo_attr_i64s(w, "dimensions", n, axes);
    return sx_hlo_unary(w, "reverse", x);
}

sx_hlo sx_hlo_slice(sx_hlo_writer *w, sx_hlo x, const int64_t *begin, const int64_t *size)
{
    sx_type from = sx_hlo_type(w, x), type = from;
    int64_t limits[SX_MAX_RANK], ones[SX_MAX_RANK];
    for (int i = 0; i < from.rank; i++) {
        type.dims[i] = size[i];
        limits[i] = begin[i] + size[i];
        ones[i] = 1;
    }
    if (same_dims(&from, &type)) {
        return x;
    }
    sx_hlo_attr_i64s(w, "start_indices", from.rank, begin);
    sx_hlo_attr_i64s(w, "limit_indices", from.rank, limits);
    sx_hlo_attr_i64s(w, "strides", from.rank, ones);
    return sx_hlo_emit(w, "slice", &x, 1, &type, 1);
}

sx_hlo sx_hlo_pad(sx_hlo_writer *w, sx_hlo x, double value, const int64_t *low, const int64_t *high,
                  const int64_t *interior)
{
    static const int64_t zeros[SX_MAX_RANK];
    sx_type from = sx_hlo_type(w, x), type = from;
    interior = interior == NULL ? zeros : interior;
    for (int i = 0; i < from.rank; i++) {
        int64_t between = from.dims[i] > 1 ? (from.dims[i] - 1) * interior[i] : 0;
        type.dims[i] = low[i] + from.dims[i] + between + high[i];
    }
    if (same_dims(&from, &type) && memcmp(low, zeros, (size_t)from.rank * sizeof(*low)) == 0) {
        return x;
    }
    sx_hlo with[2] = {x, sx_hlo_scalar(w, from.dtype, value)};
    sx_hlo_attr_i64s(w, "edge_padding_low", from.rank, low);
    sx_hlo_attr_i64s(w, "edge_padding_high", from.rank, high);
    sx_hlo_attr_i64s(w, "interior_padding", from.rank, interior);
    return sx_hlo_emit(w, "pad", with, 2, &type, 1);
}

sx_hlo sx_hlo_concat(sx_hlo_writer *w, const sx_hlo *xs, int n, int axis)
{
    sx_type type = sx_hlo_type(w, xs[0]);
    for (int i = 1; i < n; i++) {
        type.dims[axis] += sx_hlo_type(w, xs[i]).dims[axis];
    }
    if (n == 1) {
        return xs[0];
    }
    sx_hlo_attr(w, "dimension", "%d : i64", axis);
    return sx_hlo_emit(w, "concatenate", xs, n, &type, 1);
}

sx_hlo sx_hlo_iota(sx_hlo_writer *w, sx_type type, int axis)
{
    sx_hlo_attr(w, "iota_dimension", "%d : i64", axis);
    return sx_hlo_emit(w, "iota", NULL, 0, &type, 1);
}

/* ---- Reductions ---- */

/* The neutral element of `op`. */
static double neutral_of(const char *op)
{
    return strcmp(op, "maximum") == 0                              ? -INFINITY
           : strcmp(op, "minimum") == 0                            ? INFINITY
           : strcmp(op, "and") == 0 || strcmp(op, "multiply") == 0 ? 1
                                                                   : 0;
}

sx_hlo sx_hlo_reduce(sx_hlo_writer *w, const char *op, sx_hlo x, int n, const int64_t *axes,
                     bool kept)
{
    if (sx_hlo_failed(w)) { /* x has no shape then */
        return SX_HLO_NONE;
    }
    sx_type from = sx_hlo_type(w, x), type = {.rank = 0}, with_ones = from;
    bool reduced[SX_MAX_RANK] = {false};
    const bool rounds = strcmp(op, "add") == 0 || strcmp(op, "multiply") == 0;
    sx_hlo wide = rounds ? sx_hlo_widen(w, x) : x;
    for (int i = 0; i < n; i++) {
        reduced[axes[i]] = true;
        with_ones.dims[axes[i]] = 1;
    }
    for (int i = 0; i < from.rank; i++) {
        if (!reduced[i]) {
            type.dims[type.rank++] = from.dims[i];
        }
    }
    type.dtype = sx_hlo_type(w, wide).dtype;
    if (n > 0) {
        sx_hlo in[2] = {wide, sx_hlo_scalar(w, type.dtype, neutral_of(op))};
        wide = sx_hlo_begin(w, "reduce", in, 2, &type, 1);
        sx_hlo_region_binary(w, op, type.dtype);
        sx_hlo_attr_i64s(w, "dimensions", n, axes);
        sx_hlo_end(w);
    }
    sx_hlo y = sx_hlo_convert(w, wide, from.dtype);
    return kept ? sx_hlo_reshape(w, y, &with_ones) : y;
}

sx_hlo sx_hlo_reduce_last(sx_hlo_writer *w, const char *op, sx_hlo x)
{
    const int64_t last = sx_hlo_type(w, x).rank - 1;
    return sx_hlo_reduce(w, op, x, 1, &last, true);
}

void sx_hlo_attr_window(sx_hlo_writer *w, const sx_hlo_window *window)
{
    const int64_t size[4] = {1, window->size[0], window->size[1], 1};
    const int64_t strides[4] = {1, window->strides[0], window->strides[1], 1};
    sx_hlo_attr_i64s(w, "window_dimensions", 4, size);
    sx_hlo_attr_i64s(w, "window_strides", 4, strides);
    sx_hlo_attr(w, "padding",
                "dense<[[0, 0], [%lld, %lld], [%lld, %lld], [0, 0]]> : tensor<4x2xi64>",
                (long long)window->pads[0][0], (long long)window->pads[0][1],
                (long long)window->pads[1][0], (long long)window->pads[1][1]);
}

sx_hlo sx_hlo_reduce_window(sx_hlo_writer *w, const char *op, sx_hlo x, const sx_hlo_window *window,
                            const sx_type *out)
{
    sx_type type = *out;
    sx_dtype dtype = sx_hlo_type(w, x).dtype;
    sx_hlo wide = strcmp(op, "add") == 0 ? sx_hlo_widen(w, x) : x;
    type.dtype = sx_hlo_type(w, wide).dtype;
    sx_hlo in[2] = {wide, sx_hlo_scalar(w, type.dtype, neutral_of(op))};
    sx_hlo y = sx_hlo_begin(w, "reduce_window", in, 2, &type, 1);
    sx_hlo_region_binary(w, op, type.dtype);
    sx_hlo_attr_window(w, window);
    sx_hlo_end(w);
    return sx_hlo_convert(w, y, dtype);
}

/* ---- Products ---- */

/* Converts the operand according to the options. */
static sx_hlo product_operand(sx_hlo_writer *w, sx_hlo x)
{
    bool narrow = w->options.bf16_products && sx_hlo_type(w, x).dtype == SX_F32;
    x = narrow ? sx_hlo_convert(w, x, SX_BF16) : x;
    return w->options.wide_products ? sx_hlo_widen(w, x) : x;
}

/* A product of bf16 operands is exact in one pass. */
static void attr_precision(sx_hlo_writer *w, sx_hlo operand)
{
    const char *asked = w->options.precision != NULL ? w->options.precision : "HIGHEST";
    const char *p = sx_hlo_is_narrow(sx_hlo_type(w, operand).dtype) ? "DEFAULT" : asked;
    sx_hlo_attr(w, "precision_config", "[#stablehlo<precision %s>, #stablehlo<precision %s>]", p,
                p);
}

sx_hlo sx_hlo_matmul(sx_hlo_writer *w, sx_hlo a, bool transpose_a, sx_hlo b, bool transpose_b)
{
    sx_type ta = sx_hlo_type(w, a), tb = sx_hlo_type(w, b), type = ta;
    const int head = ta.rank - 2;
    if (head < 0 || tb.rank != ta.rank) { /* after an error, operands have no type */
        return SX_HLO_NONE;
    }
    type.dtype = ta.dtype == SX_F64 || !sx_dtype_is_float(ta.dtype) ? ta.dtype : SX_F32;
    type.dims[head] = ta.dims[head + transpose_a];
    type.dims[head + 1] = tb.dims[head + !transpose_b];
    sx_hlo in[2] = {product_operand(w, a), product_operand(w, b)};
    char stacked[SX_HLO_NUMBERS];
    sx_hlo_numbers(0, head, stacked);
    sx_hlo_attr(w, "dot_dimension_numbers",
                "#stablehlo.dot<lhs_batching_dimensions = [%s], rhs_batching_dimensions = [%s], "
                "lhs_contracting_dimensions = [%d], rhs_contracting_dimensions = [%d]>",
                stacked, stacked, head + !transpose_a, head + transpose_b);
    attr_precision(w, in[0]);
    return sx_hlo_emit(w, "dot_general", in, 2, &type, 1);
}

/* Crops the dilated image for negative pads, which few implementations of convolution support. */
static sx_hlo cut_image(sx_hlo_writer *w, sx_hlo x, sx_hlo_conv *conv)
{
    int64_t low[4] = {0}, high[4] = {0}, interior[4] = {0};
    bool cut = false;
    for (int i = 0; i < 2; i++) {
        cut = cut || conv->pads[i][0] < 0 || conv->pads[i][1] < 0;
    }
    for (int i = 0; i < 2 && cut; i++) {
        low[1 + i] = conv->pads[i][0] < 0 ? conv->pads[i][0] : 0;
        high[1 + i] = conv->pads[i][1] < 0 ? conv->pads[i][1] : 0;
        interior[1 + i] = conv->x_dilation[i] - 1;
        conv->pads[i][0] -= low[1 + i];
        conv->pads[i][1] -= high[1 + i];
        conv->x_dilation[i] = 1;
    }
    return cut ? sx_hlo_pad(w, x, 0, low, high, interior) : x;
}

static int64_t conv_extent(const sx_hlo_conv *c, int i, int64_t in, int64_t kernel)
{
    int64_t span = (kernel - 1) * c->filter_dilation[i] + 1;
    int64_t room = (in - 1) * c->x_dilation[i] + 1 + c->pads[i][0] + c->pads[i][1] - span;
    return room / c->strides[i] + 1;
}

sx_hlo sx_hlo_convolution(sx_hlo_writer *w, sx_hlo x, sx_hlo filter, const sx_hlo_conv *conv)
{
    sx_hlo_conv c = *conv;
    x = cut_image(w, x, &c);
    sx_type tx = sx_hlo_type(w, x), tf = sx_hlo_type(w, filter);
    sx_type type = sx_type_of(tx.dtype == SX_F64 ? SX_F64 : SX_F32, tx.dims[0],
                              conv_extent(&c, 0, tx.dims[1], tf.dims[0]),
                              conv_extent(&c, 1, tx.dims[2], tf.dims[1]), tf.dims[3]);
    sx_hlo in[2] = {product_operand(w, x), product_operand(w, filter)};
    sx_hlo_attr_i64s(w, "window_strides", 2, c.strides);
    sx_hlo_attr(w, "padding", "dense<[[%lld, %lld], [%lld, %lld]]> : tensor<2x2xi64>",
                (long long)c.pads[0][0], (long long)c.pads[0][1], (long long)c.pads[1][0],
                (long long)c.pads[1][1]);
    sx_hlo_attr_i64s(w, "lhs_dilation", 2, c.x_dilation);
    sx_hlo_attr_i64s(w, "rhs_dilation", 2, c.filter_dilation);
    sx_hlo_attr(w, "window_reversal", "array<i1: false, false>");
    sx_hlo_attr(w, "dimension_numbers",
                "#stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, "
                "input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, "
                "kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], "
                "output_batch_dimension = 0, output_feature_dimension = 3, "
                "output_spatial_dimensions = [1, 2]>");
    sx_hlo_attr(w, "feature_group_count", "%lld : i64", (long long)c.groups);
    sx_hlo_attr(w, "batch_group_count", "1 : i64");
    attr_precision(w, in[0]);
    return sx_hlo_emit(w, "convolution", in, 2, &type, 1);
}

/* ---- Replicas ---- */

/* One group of all replicas, on a channel of its own. */
static void attr_replicas(sx_hlo_writer *w, int replicas)
{
    sx_hlo_begin_attr(w, "replica_groups");
    sx_buf_puts(&w->attrs, "dense<[[");
    for (int i = 0; i < replicas; i++) {
        sx_buf_printf(&w->attrs, "%s%d", i > 0 ? ", " : "", i);
    }
    sx_buf_printf(&w->attrs, "]]> : tensor<1x%dxi64>", replicas);
    sx_hlo_attr(w, "channel_handle", "#stablehlo.channel_handle<handle = %d, type = 0>",
                ++w->channels);
    sx_hlo_attr(w, "use_global_device_ids", "unit");
}

sx_hlo sx_hlo_all_reduce(sx_hlo_writer *w, const char *op, sx_hlo x, int n)
{
    sx_type type = sx_hlo_type(w, x);
    sx_hlo y = sx_hlo_begin(w, "all_reduce", &x, 1, &type, 1);
    sx_hlo_region_binary(w, op, type.dtype);
    attr_replicas(w, n);
    sx_hlo_end(w);
    return y;
}

sx_hlo sx_hlo_all_gather(sx_hlo_writer *w, sx_hlo x, int axis, int replicas)
{
    sx_type type = sx_hlo_type(w, x);
    type.dims[axis] *= replicas;
    sx_hlo_attr(w, "all_gather_dim", "%d : i64", axis);
    attr_replicas(w, replicas);
    return sx_hlo_emit(w, "all_gather", &x, 1, &type, 1);
}
