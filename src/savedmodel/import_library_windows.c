/* Imports convolutions and pooling: in both layouts, of one, two and three spatial dimensions, from
 * those of images [N,H,W,C].
 *
 *   channels first   transposed in front and behind; neighbours' transposes cancel
 *   depth            [N,D,H,W,C] is [N D,H,W,C]: a pool along the depth is one of [N,D,H W,C]; the
 *                    slices that a convolution reads along the depth lie beside one another in the
 *                    channels of a convolution of two dimensions
 *   dilated          between SpaceToBatchND and BatchToSpaceND: one dilated convolution */
#include "savedmodel/import_library_ops.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "graph/ops/conv_geometry.h"

/* ---- Layouts ---- */

/* v with its channels moved behind (`last`) or in front of the spatial axes. */
static sx_status move_channels(const sx_tf_op_node *x, sx_value v, bool last, sx_value *out)
{
    const sx_type type = sx_type_of_value(x->b, v);
    sx_transpose_attrs attrs = {.perm = {.n = type.rank}};
    if (type.rank == SX_UNKNOWN_RANK || type.rank < 2) {
        return sx_tf_unsupported("channels in front of the image in an input of rank %d",
                                 type.rank);
    }
    for (int d = 1; d < type.rank; d++) {
        attrs.perm.v[d] = last ? (d == type.rank - 1 ? 1 : d + 1) : d == 1 ? type.rank - 1 : d - 1;
    }
    return sx_tf_build(x, &sx_op_transpose, &attrs, out, 1, &v);
}

/* Input i with its channels behind. */
static sx_status image_operand(const sx_tf_op_node *x, int i, sx_value *out)
{
    SX_TRY(sx_tf_operand(x, i, out));
    return sx_tf_channels_first(&x->tf.head) ? move_channels(x, *out, true, out) : SX_OK;
}

/* Output 0 from a value with its channels behind. */
static sx_status set_image(sx_tf_op_node *x, sx_value v)
{
    if (sx_tf_channels_first(&x->tf.head)) {
        SX_TRY(move_channels(x, v, false, &v));
    }
    sx_tf_set(x, 0, v);
    return SX_OK;
}

/* ---- Axes ---- */

static bool dims_known(const sx_type *t)
{
    bool known = true;
    for (int d = 0; d < t->rank; d++) {
        known = known && (t->dims[d] >= 0 || sx_dim_is_batch(t->dims[d]));
    }
    return known;
}

sx_status sx_tf_sizes_of(const sx_tf_op_node *x, sx_value v, int first, int count, sx_value *out)
{
    const sx_slice_attrs part = {.begin = {1, {first}}, .size = {1, {count}}};
    SX_TF_BUILD(x, out, shape, (&(sx_cast_attrs){SX_I64}), v);
    return sx_tf_build(x, &sx_op_slice, &part, out, 1, out);
}

/* v in the shape of three lists behind one another: of head, middle and tail. `type` is what is
 * known of it. */
static sx_status reshape_parts(const sx_tf_op_node *x, sx_value v, const sx_value parts[3],
                               const sx_type *type, sx_value *out)
{
    sx_value list[3], shape = SX_NO_VALUE;
    int n = 0;
    for (int i = 0; i < 3; i++) {
        if (sx_type_of_value(x->b, parts[i]).dims[0] != 0) {
            list[n++] = parts[i];
        }
    }
    SX_TRY(sx_tf_build(x, &sx_op_concat, &(sx_axis_attrs){0}, &shape, n, list));
    return sx_tf_reshape_as(x, v, shape, type, out);
}

sx_status sx_tf_join_axes(const sx_tf_op_node *x, sx_value v, int axis, sx_value *out)
{
    const sx_type from = sx_type_of_value(x->b, v);
    sx_type type = from;
    const int64_t a = from.dims[axis], b = from.dims[axis + 1];
    const bool known = dims_known(&from);
    type.rank--;
    for (int d = axis + 1; d < type.rank; d++) {
        type.dims[d] = from.dims[d + 1];
    }
    type.dims[axis] = SX_UNKNOWN_DIM;
    if (known && (a >= 0 || b >= 0) && !sx_mul_i64(a, b, &type.dims[axis])) {
        return sx_tf_unsupported("its image is too large");
    }
    if (known) {
        const sx_shape_attrs attrs = {.shape = sx_ints_of(type.rank, type.dims)};
        return sx_tf_build(x, &sx_op_reshape, &attrs, out, 1, &v);
    }
    const sx_reduce_attrs product = {.axes = {1, {0}}, .keep_dims = true};
    sx_value parts[3];
    SX_TRY(sx_tf_sizes_of(x, v, 0, axis, &parts[0]));
    SX_TRY(sx_tf_sizes_of(x, v, axis, 2, &parts[1]));
    SX_TF_BUILD(x, &parts[1], reduce_prod, &product, parts[1]);
    SX_TRY(sx_tf_sizes_of(x, v, axis + 2, from.rank - axis - 2, &parts[2]));
    return reshape_parts(x, v, parts, &type, out);
}

/* v with its axis `axis` as the two axes that `like` has there. */
static sx_status split_axis(const sx_tf_op_node *x, sx_value v, int axis, sx_value like,
                            sx_value *out)
{
    const sx_type from = sx_type_of_value(x->b, v), other = sx_type_of_value(x->b, like);
    sx_type type = from;
    type.rank++;
    for (int d = axis; d < type.rank; d++) {
        type.dims[d] = d < axis + 2 ? other.dims[d] : from.dims[d - 1];
    }
    if (dims_known(&type)) {
        const sx_shape_attrs attrs = {.shape = sx_ints_of(type.rank, type.dims)};
        return sx_tf_build(x, &sx_op_reshape, &attrs, out, 1, &v);
    }
    sx_value parts[3];
    SX_TRY(sx_tf_sizes_of(x, v, 0, axis, &parts[0]));
    SX_TRY(sx_tf_sizes_of(x, like, axis, 2, &parts[1]));
    SX_TRY(sx_tf_sizes_of(x, v, axis + 1, from.rank - axis - 1, &parts[2]));
    return reshape_parts(x, v, parts, &type, out);
}

/* ---- Two dimensions ---- */

/* The number of groups follows from the channels; where they are not known, it is one. */
static sx_status import_conv2d(sx_tf_op_node *x)
{
    sx_value in[2], y = SX_NO_VALUE;
    sx_conv2d_attrs attrs = {.groups = 1};
    SX_TRY(image_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_operand(x, 1, &in[1]));
    SX_TRY(sx_tf_read_conv(&x->tf.head, &attrs));
    const sx_type image = sx_type_of_value(x->b, in[0]), *filter = &x->tf.head.types[1];
    if (image.rank == 4 && filter->rank == 4 && image.dims[3] > 0 && filter->dims[2] > 0 &&
        image.dims[3] % filter->dims[2] == 0) {
        attrs.groups = image.dims[3] / filter->dims[2];
    }
    if (image.rank == 4 && filter->rank == 4 &&
        (image.dims[3] < 0 || filter->dims[0] < 0 || filter->dims[1] < 0)) { /* no guess fits */
        const sx_type out =
            sx_type_of(image.dtype, image.dims[0], SX_UNKNOWN_DIM, SX_UNKNOWN_DIM, filter->dims[3]);
        const sx_shape_attrs scalar = {.shape = {.n = 0}};
        sx_value groups = SX_NO_VALUE, by = SX_NO_VALUE;
        SX_TRY(sx_tf_sizes_of(x, in[0], 3, 1, &groups));
        SX_TRY(sx_tf_sizes_of(x, in[1], 2, 1, &by));
        SX_TF_BUILD(x, &groups, floor_div, NULL, groups, by);
        SX_TF_BUILD(x, &groups, reshape, &scalar, groups);
        const sx_attr_operand open = {sx_tf_attr_row(&sx_op_conv2d, "groups"), groups};
        y = sx_tf_build_as(x, &sx_op_conv2d, &attrs, in, 2, &open, image.dims[3] < 0, &out);
        return set_image(x, y);
    }
    SX_TRY(sx_tf_build(x, &sx_op_conv2d, &attrs, &y, 2, in));
    return set_image(x, y);
}

/* filter [KH, KW, C, M] is that of C groups of M filters each: [KH, KW, 1, C·M]. */
static sx_status import_depthwise(sx_tf_op_node *x)
{
    sx_value in[2], y = SX_NO_VALUE;
    sx_conv2d_attrs attrs = {0};
    int64_t filters;
    SX_TRY(image_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_operand(x, 1, &in[1]));
    SX_TRY(sx_tf_read_conv(&x->tf.head, &attrs));
    const sx_type *kernel = &x->tf.head.types[1];
    if (kernel->rank != 4 && kernel->rank != SX_UNKNOWN_RANK) {
        return sx_error(SX_DATA_LOSS, "the filter has rank %d, expected 4", kernel->rank);
    }
    if (kernel->rank != 4) {
        return sx_tf_unsupported("the rank of the filter is unknown");
    }
    if (!sx_type_is_static(kernel)) { /* C is known where it runs */
        const sx_shape_attrs scalar = {.shape = {.n = 0}};
        const sx_type image = sx_type_of_value(x->b, in[0]);
        sx_value groups = SX_NO_VALUE;
        sx_type out = sx_type_of(kernel->dtype, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM,
                                 SX_UNKNOWN_DIM);
        out.dims[0] = image.rank == 4 ? image.dims[0] : SX_UNKNOWN_DIM;
        SX_TRY(sx_tf_sizes_of(x, in[1], 2, 1, &groups));
        SX_TF_BUILD(x, &groups, reshape, &scalar, groups);
        SX_TRY(sx_tf_join_axes(x, in[1], 2, &in[1]));
        SX_TRY(sx_tf_expand(x, in[1], 2, &in[1]));
        const sx_attr_operand open = {sx_tf_attr_row(&sx_op_conv2d, "groups"), groups};
        y = sx_tf_build_as(x, &sx_op_conv2d, &attrs, in, 2, &open, 1, &out);
        return set_image(x, y);
    }
    if (!sx_mul_i64(kernel->dims[2], kernel->dims[3], &filters)) {
        return sx_tf_unsupported("its filter is too large");
    }
    const sx_shape_attrs shape = {.shape = {4, {kernel->dims[0], kernel->dims[1], 1, filters}}};
    attrs.groups = kernel->dims[2];
    SX_TF_BUILD(x, &in[1], reshape, &shape, in[1]);
    SX_TRY(sx_tf_build(x, &sx_op_conv2d, &attrs, &y, 2, in));
    return set_image(x, y);
}

/* Conv2DBackpropInput(sizes, filter, dy), as forward pass. Of the sizes only height and width say
 * something new. */
static sx_status import_transposed2d(sx_tf_op_node *x)
{
    const int first = sx_tf_channels_first(&x->tf.head) ? 2 : 1;
    sx_value in[2], sizes = SX_NO_VALUE, y = SX_NO_VALUE;
    sx_conv2d_attrs attrs = {0};
    SX_TRY(sx_tf_operand(x, 0, &sizes));
    SX_TRY(sx_tf_operand(x, 1, &in[1]));
    SX_TRY(image_operand(x, 2, &in[0]));
    SX_TRY(sx_tf_read_conv(&x->tf.head, &attrs));
    const sx_type *kernel = &x->tf.head.types[1], from = sx_type_of_value(x->b, in[0]);
    const int64_t n = from.rank == 4 ? from.dims[0] : SX_UNKNOWN_DIM;
    if (kernel->rank != 4 || !sx_type_is_static(kernel) ||
        (from.rank != 4 && from.rank != SX_UNKNOWN_RANK)) {
        return sx_tf_unsupported("the shape of its filter is unknown, or its input is no image");
    }
    if (x->tf.head.values[0] != NULL && from.rank == 4) {
        sx_ints known = {0};
        SX_TRY(sx_tf_operand_ints(x, 0, &known));
        if (known.n != 4 && known.n != 2) {
            return sx_error(SX_DATA_LOSS, "%d sizes, expected 4", known.n);
        }
        attrs.size = sx_ints_of(2, known.v + (known.n == 4 ? first : 0));
        SX_TRY(sx_tf_build(x, &sx_op_conv2d_grad_input, &attrs, &y, 2, in));
        return set_image(x, y);
    }
    const sx_slice_attrs middle = {.begin = {1, {first}}, .size = {1, {2}}};
    sx_type out = sx_type_of(from.dtype, n, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM, kernel->dims[2]);
    for (int d = 0; d < 2; d++) {
        int64_t size = 0;
        bool is_dim = false;
        const bool known = sx_tf_peek(x->b, sizes, first + d, &is_dim, &size) && size >= 0;
        out.dims[1 + d] = known ? size : SX_UNKNOWN_DIM;
    }
    SX_TF_BUILD(x, &sizes, slice, &middle, sizes);
    const sx_attr_operand open = {sx_tf_attr_row(&sx_op_conv2d_grad_input, "size"), sizes};
    y = sx_tf_build_as(x, &sx_op_conv2d_grad_input, &attrs, in, 2, &open, 1, &out);
    return set_image(x, y);
}

/* MaxPool, AvgPool; MaxPoolV2(x, window, strides). Explicit padding is smaller than any element. */
static sx_status import_pool2d(sx_tf_op_node *x)
{
    const bool max = strncmp(x->n->node->op, "MaxPool", 7) == 0;
    const int first = sx_tf_channels_first(&x->tf.head) ? 4 : 2;
    sx_pool2d_attrs attrs = {0};
    sx_value v = SX_NO_VALUE;
    int64_t pads[8];
    SX_TRY(image_operand(x, 0, &v));
    if (x->n->n_in == 3) {
        if (first != 2) {
            return sx_tf_unsupported("its channels are in front of the image");
        }
        SX_TRY(sx_tf_operand_windows(x, 1, &attrs.window, &attrs.strides));
        SX_TRY(sx_tf_read_padding(&x->tf.head, &attrs.padding));
    } else {
        SX_TRY(sx_tf_read_pool(&x->tf.head, &attrs));
    }
    if (attrs.padding == SX_EXPLICIT) {
        if (!max || !sx_tf_read_ints(&x->tf.head, "explicit_paddings", 8, pads)) {
            return sx_error(SX_DATA_LOSS, "padding is EXPLICIT, but explicit_paddings is missing");
        }
        const sx_pad_attrs around = {.before = {4, {0, pads[first], pads[first + 2], 0}},
                                     .after = {4, {0, pads[first + 1], pads[first + 3], 0}},
                                     .value = -INFINITY};
        SX_TF_BUILD(x, &v, pad, &around, v);
        attrs.padding = SX_VALID;
    }
    SX_TRY(sx_tf_build(x, max ? &sx_op_max_pool2d : &sx_op_avg_pool2d, &attrs, &v, 1, &v));
    return set_image(x, v);
}

/* BiasAdd in front of the image. */
static sx_status import_bias(sx_tf_op_node *x)
{
    sx_value in[2], y = SX_NO_VALUE;
    SX_TRY(image_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_operand(x, 1, &in[1]));
    SX_TRY(sx_tf_build(x, &sx_op_bias_add, NULL, &y, 2, in));
    return set_image(x, y);
}

/* x, scale, offset, mean, variance */
static sx_status import_batch_norm(sx_tf_op_node *x)
{
    const sx_batch_norm_attrs attrs = {.epsilon = sx_tf_read_float(&x->tf.head, "epsilon", 1e-4)};
    sx_value in[5], y = SX_NO_VALUE;
    if (sx_tf_read_bool(&x->tf.head, "is_training", true)) {
        return sx_tf_import_batch_moments(x);
    }
    SX_TRY(image_operand(x, 0, &in[0]));
    for (int i = 1; i < 5; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    SX_TRY(sx_tf_build(x, &sx_op_batch_norm, &attrs, &y, 5, in));
    for (int i = 1; i < x->n->n_out; i++) { /* the moments, and again for the gradient */
        sx_tf_set(x, i, in[i % 2 == 1 ? 3 : 4]);
    }
    return set_image(x, y);
}

/* ---- Three dimensions ---- */

static sx_status volume_operand(const sx_tf_op_node *x, int i, sx_value *out)
{
    SX_TRY(image_operand(x, i, out));
    const int rank = sx_type_of_value(x->b, *out).rank;
    return rank == 5 ? SX_OK : sx_tf_unsupported("input %d has rank %d, expected 5", i, rank);
}

/* MaxPool3D, AvgPool3D: over height and width, then along the depth. The average leaves out the
 * padding, so that it is the average of averages. */
static sx_status import_pool3d(sx_tf_op_node *x)
{
    const sx_op_def *op =
        strcmp(x->n->node->op, "MaxPool3D") == 0 ? &sx_op_max_pool2d : &sx_op_avg_pool2d;
    sx_ints window = {0}, strides = {0};
    sx_pool2d_attrs within = {0}, along = {0};
    sx_value v = SX_NO_VALUE, whole = SX_NO_VALUE;
    SX_TRY(volume_operand(x, 0, &v));
    SX_TRY(sx_tf_read_spatial(&x->tf.head, "ksize", true, 3, &window));
    SX_TRY(sx_tf_read_spatial(&x->tf.head, "strides", true, 3, &strides));
    SX_TRY(sx_tf_read_padding(&x->tf.head, &within.padding));
    within.window = sx_ints_of(2, window.v + 1);
    within.strides = sx_ints_of(2, strides.v + 1);
    whole = v;
    SX_TRY(sx_tf_join_axes(x, v, 0, &v));
    SX_TRY(sx_tf_build(x, op, &within, &v, 1, &v));
    SX_TRY(split_axis(x, v, 0, whole, &v));
    if (window.v[0] != 1 || strides.v[0] != 1) {
        along = (sx_pool2d_attrs){.window = {2, {window.v[0], 1}},
                                  .strides = {2, {strides.v[0], 1}},
                                  .padding = within.padding};
        whole = v;
        SX_TRY(sx_tf_join_axes(x, v, 2, &v));
        SX_TRY(sx_tf_build(x, op, &along, &v, 1, &v));
        SX_TRY(split_axis(x, v, 2, whole, &v));
    }
    return set_image(x, v);
}

/* What a convolution of three dimensions is along the depth, and in height and width. */
typedef struct volume_conv {
    sx_conv2d_attrs plane;
    sx_conv_window depth; /* `in` with its padding */
    int64_t pad_before, pad_after;
    sx_value rows; /* int64 [D', KD]: the depths that each depth of the result reads */
    int64_t c, f;  /* channels and filters */
    /* of a depth that is computed, int64 [1], instead of `in` and pads: */
    sx_value in, before, after;
} volume_conv;

/* The windows of a depth that is computed, int64 [1]. */
static sx_status open_depth(const sx_tf_op_node *x, sx_value depth, int64_t stride,
                            int64_t dilation, volume_conv *out)
{
    const sx_tf_windows w = {.kernel = out->depth.kernel,
                             .stride = stride,
                             .dilation = dilation,
                             .same = out->plane.padding == SX_SAME};
    sx_value total = SX_NO_VALUE;
    SX_TRY(sx_tf_window_places(x, &w, depth, &out->rows, &out->before, &total));
    SX_TF_BUILD(x, &out->after, sub, NULL, total, out->before);
    SX_TF_BUILD(x, &out->in, add, NULL, depth, total);
    return SX_OK;
}

/* A list of five numbers, zeros but for the depth's. */
static sx_status along_depth(const sx_tf_op_node *x, sx_value number, sx_value *out)
{
    sx_value parts[3] = {SX_NO_VALUE, number, SX_NO_VALUE};
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {0}}, &parts[0]));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){3, {0, 0, 0}}, &parts[2]));
    return sx_tf_build(x, &sx_op_concat, &(sx_axis_attrs){0}, out, 3, parts);
}

/* `depth`: of the volume that is convolved; if that is -1 it is `computed`, int64 [1]. filter
 * [KD,KH,KW,C,F] becomes [KH,KW,KD C,F]. */
static sx_status read_volume_conv(const sx_tf_op_node *x, int64_t depth, sx_value computed,
                                  sx_value *filter, volume_conv *out)
{
    enum { MOST_READS = 1 << 16 };
    const sx_type kernel = sx_type_of_value(x->b, *filter);
    sx_ints strides = {0}, dilations = {0};
    SX_TRY(sx_tf_read_spatial(&x->tf.head, "strides", true, 3, &strides));
    SX_TRY(sx_tf_read_spatial(&x->tf.head, "dilations", false, 3, &dilations));
    SX_TRY(sx_tf_read_padding(&x->tf.head, &out->plane.padding));
    if (kernel.rank != 5 || !sx_type_is_static(&kernel)) {
        return sx_tf_unsupported("the shape of its filter is unknown");
    }
    out->plane.strides = sx_ints_of(2, strides.v + 1);
    out->plane.dilations = sx_ints_of(2, dilations.v + 1);
    out->plane.groups = 1;
    out->c = kernel.dims[3];
    out->f = kernel.dims[4];
    int64_t channels = 0;
    if (!sx_mul_i64(kernel.dims[0], out->c, &channels)) {
        return sx_tf_unsupported("its filter is too large");
    }
    const sx_transpose_attrs inward = {.perm = {5, {1, 2, 0, 3, 4}}};
    const sx_shape_attrs flat = {.shape = {4, {kernel.dims[1], kernel.dims[2], channels, out->f}}};
    SX_TF_BUILD(x, filter, transpose, &inward, *filter);
    SX_TRY(sx_tf_build(x, &sx_op_reshape, &flat, filter, 1, filter));
    if (depth < 0) {
        out->depth.kernel = kernel.dims[0];
        return open_depth(x, computed, strides.v[0], dilations.n > 0 ? dilations.v[0] : 1, out);
    }
    /* the depth's windows are those of an image of that height */
    const sx_conv2d_attrs along = {.strides = {2, {strides.v[0], 1}},
                                   .dilations = {2, {dilations.v[0], 1}},
                                   .padding = out->plane.padding,
                                   .groups = 1};
    const sx_type line = sx_type_of(SX_F32, 1, depth, 1, 1),
                  taps = sx_type_of(SX_F32, kernel.dims[0], 1, 1, 1);
    sx_conv_geometry g;
    SX_TRY(sx_conv_geometry_of(&along, &line, &taps, &g));
    int64_t reads = 0;
    if (!sx_mul_i64(g.h.out, g.h.kernel, &reads) || reads > MOST_READS) {
        return sx_tf_unsupported("its depth is above %d", MOST_READS);
    }
    out->depth = g.h;
    const int64_t last = (g.h.out - 1) * g.h.stride + (g.h.kernel - 1) * g.h.dilation + 1;
    out->pad_before = g.h.pad_before;
    out->pad_after = SX_MAX(last - g.h.pad_before - g.h.in, 0);
    out->depth.in += out->pad_before + out->pad_after;
    int64_t *rows = sx_arena_array(&x->im->arena, reads + 1, int64_t);
    if (rows == NULL) {
        return sx_import_memory();
    }
    for (int64_t i = 0; i < reads; i++) {
        rows[i] = i / g.h.kernel * g.h.stride + i % g.h.kernel * g.h.dilation;
    }
    return sx_tf_constant(x, sx_type_of(SX_I64, g.h.out, g.h.kernel), rows, &out->rows);
}

/* The depths that a result reads lie beside one another in its channels: [N,D,H,W,C] is
 * [N D',H,W,KD C], or for G groups of channels [N D',H,W,G KD C/G]. */
static sx_status import_conv3d(sx_tf_op_node *x)
{
    static const sx_transpose_attrs inward = {.perm = {6, {0, 1, 3, 4, 2, 5}}},
                                    by_groups = {.perm = {7, {0, 1, 3, 4, 5, 2, 6}}};
    const sx_gather_attrs along = {.axis = 1};
    volume_conv conv = {.c = 0};
    sx_value v = SX_NO_VALUE, filter = SX_NO_VALUE, y = SX_NO_VALUE, reads = SX_NO_VALUE;
    sx_value depth = SX_NO_VALUE;
    SX_TRY(volume_operand(x, 0, &v));
    SX_TRY(sx_tf_operand(x, 1, &filter));
    sx_type type = sx_type_of_value(x->b, v);
    if (type.dims[1] < 0) {
        SX_TRY(sx_tf_sizes_of(x, v, 1, 1, &depth));
    }
    SX_TRY(read_volume_conv(x, SX_MAX(type.dims[1], -1), depth, &filter, &conv));
    if (type.dims[4] >= 0 && type.dims[4] != conv.c) {
        conv.plane.groups = conv.c > 0 ? type.dims[4] / conv.c : 0;
        if (conv.plane.groups < 1 || type.dims[4] % conv.c != 0 ||
            conv.f % conv.plane.groups != 0) {
            return sx_error(SX_DATA_LOSS, "%lld channels for %lld filters of %lld",
                            (long long)type.dims[4], (long long)conv.f, (long long)conv.c);
        }
    }
    const sx_pad_attrs around = {.before = {5, {0, conv.pad_before}},
                                 .after = {5, {0, conv.pad_after}}};
    if (type.dims[1] < 0) {
        sx_value before = SX_NO_VALUE, after = SX_NO_VALUE;
        sx_type padded = type;
        padded.dims[1] = SX_UNKNOWN_DIM;
        SX_TRY(along_depth(x, conv.before, &before));
        SX_TRY(along_depth(x, conv.after, &after));
        const sx_attr_operand open[2] = {{sx_tf_attr_row(&sx_op_pad, "before"), before},
                                         {sx_tf_attr_row(&sx_op_pad, "after"), after}};
        v = sx_tf_build_as(x, &sx_op_pad, &(sx_pad_attrs){.value = 0}, &v, 1, open, 2, &padded);
    } else {
        SX_TF_BUILD(x, &v, pad, &around, v);
    }
    SX_TF_BUILD(x, &v, gather, &along, v, conv.rows);
    if (conv.plane.groups > 1) {
        SX_TRY(sx_tf_divide_axis(x, v, 5, conv.plane.groups, conv.c, &v));
        SX_TF_BUILD(x, &v, transpose, &by_groups, v);
        SX_TRY(sx_tf_join_axes(x, v, 5, &v));
    } else {
        SX_TF_BUILD(x, &v, transpose, &inward, v);
    }
    SX_TRY(sx_tf_join_axes(x, v, 4, &v));
    reads = v; /* [N,D',H,W,KD C] */
    SX_TRY(sx_tf_join_axes(x, v, 0, &v));
    SX_TF_BUILD(x, &y, conv2d, &conv.plane, v, filter);
    SX_TRY(split_axis(x, y, 0, reads, &y));
    return set_image(x, y);
}

/* Conv3DBackpropInputV2(sizes, filter, dy), as forward pass: the same backwards. */
static sx_status import_transposed3d(sx_tf_op_node *x)
{
    static const sx_transpose_attrs outward = {.perm = {6, {0, 1, 4, 2, 3, 5}}};
    const int first = sx_tf_channels_first(&x->tf.head) ? 2 : 1;
    volume_conv conv = {.c = 0};
    sx_value sizes = SX_NO_VALUE, filter = SX_NO_VALUE, dy = SX_NO_VALUE, y = SX_NO_VALUE;
    sx_value depth = SX_NO_VALUE, plane = SX_NO_VALUE;
    int64_t size[3];
    int n_out = 0;
    SX_TRY(sx_tf_operand(x, 0, &sizes));
    SX_TRY(sx_tf_operand(x, 1, &filter));
    SX_TRY(volume_operand(x, 2, &dy));
    for (int d = 0; d < 3; d++) {
        bool is_dim = false;
        if (!sx_tf_peek(x->b, sizes, first + d, &is_dim, &size[d]) || size[d] < 0) {
            size[d] = SX_UNKNOWN_DIM;
        }
    }
    const sx_slice_attrs of_depth = {.begin = {1, {first}}, .size = {1, {1}}},
                         of_plane = {.begin = {1, {first + 1}}, .size = {1, {2}}};
    SX_TF_BUILD(x, &plane, slice, &of_plane, sizes);
    SX_TF_BUILD(x, &depth, cast, (&(sx_cast_attrs){SX_I64}), sizes);
    SX_TF_BUILD(x, &depth, slice, &of_depth, depth);
    SX_TRY(read_volume_conv(x, SX_MAX(size[0], -1), depth, &filter, &conv));
    const sx_type from = sx_type_of_value(x->b, dy);
    sx_type whole = sx_type_of(from.dtype, from.dims[0], from.dims[1], size[1], size[2],
                               conv.depth.kernel, conv.c);
    SX_TRY(sx_tf_join_axes(x, dy, 0, &y));
    if (size[1] >= 0 && size[2] >= 0) {
        const sx_type images = sx_type_of_value(x->b, y);
        const sx_type out =
            sx_type_of(from.dtype, images.dims[0], size[1], size[2], conv.depth.kernel * conv.c);
        conv.plane.size = sx_ints_of(2, size + 1);
        if (dims_known(&images)) {
            SX_TF_BUILD(x, &y, conv2d_grad_input, &conv.plane, y, filter);
        } else {
            const sx_value in[2] = {y, filter};
            y = sx_tf_build_as(x, &sx_op_conv2d_grad_input, &conv.plane, in, 2, NULL, 0, &out);
        }
    } else {
        const sx_value in[2] = {y, filter};
        const sx_attr_operand open = {sx_tf_attr_row(&sx_op_conv2d_grad_input, "size"), plane};
        const sx_type out = sx_type_of(from.dtype, sx_type_of_value(x->b, y).dims[0], size[1],
                                       size[2], conv.depth.kernel * conv.c);
        y = sx_tf_build_as(x, &sx_op_conv2d_grad_input, &conv.plane, in, 2, &open, 1, &out);
    }
    SX_TRY(split_axis(x, y, 0, dy, &y)); /* [N,D',H,W,KD C] */
    if (dims_known(&whole)) {
        const sx_shape_attrs attrs = {.shape = sx_ints_of(6, whole.dims)};
        SX_TF_BUILD(x, &y, reshape, &attrs, y);
    } else {
        SX_TRY(sx_tf_divide_axis(x, y, 4, conv.depth.kernel, conv.c, &y));
    }
    SX_TF_BUILD(x, &y, transpose, &outward, y);
    if (size[0] >= 0) {
        const sx_gather_grad_attrs along = {.rows = conv.depth.in, .axis = 1};
        SX_TF_BUILD(x, &y, gather_grad, &along, conv.rows, y);
        SX_TRY(sx_tf_cut_axis(x, y, 1, conv.pad_before, size[0], &y));
        return set_image(x, y);
    }
    /* the sums of all padded depths, and of those the depths */
    const sx_gather_grad_attrs along = {.axis = 1};
    const sx_gather_attrs cut = {.axis = 1};
    const sx_iota_attrs count = {.dtype = SX_I64};
    const sx_shape_attrs scalar = {.shape = {.n = 0}};
    const sx_value in[2] = {conv.rows, y};
    sx_value places = SX_NO_VALUE;
    SX_TF_BUILD(x, &conv.in, reshape, &scalar, conv.in);
    const sx_attr_operand open = {sx_tf_attr_row(&sx_op_gather_grad, "rows"), conv.in},
                          long_as = {sx_tf_attr_row(&sx_op_iota, "shape"), depth};
    const sx_type sums =
        sx_type_of(from.dtype, from.dims[0], SX_UNKNOWN_DIM, size[1], size[2], conv.c);
    y = sx_tf_build_as(x, &sx_op_gather_grad, &along, in, 2, &open, 1, &sums);
    SX_TRY(sx_tf_add_node(x, &sx_op_iota, &count, NULL, 0, &long_as, 1, &places, &n_out));
    SX_TF_BUILD(x, &places, add, NULL, places, conv.before);
    SX_TF_BUILD(x, &y, gather, &cut, y, places);
    return set_image(x, y);
}

/* ---- Blocks ---- */

/* SpaceToBatchND, BatchToSpaceND(x, block, pads); those of TensorFlow 1 have one size for both axes
 * as an attribute. */
static sx_status build_blocks(const sx_tf_op_node *x, const sx_op_def *op, sx_value *out)
{
    const bool old = x->n->n_in == 2;
    const int pads = old ? 1 : 2;
    const int64_t size = sx_tf_read_int(&x->tf.head, "block_size", 0);
    sx_blocks_attrs attrs = {.block = {2, {size, size}}};
    sx_value v = SX_NO_VALUE, around = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_operand(x, pads, &around));
    const bool known = old || x->tf.head.values[1] != NULL;
    attrs.block.n = 2;
    sx_value block = SX_NO_VALUE;
    if (!old) {
        const sx_type *sizes = &x->tf.head.types[1];
        SX_TRY(sx_tf_operand(x, 1, &block));
        if (sizes->rank != 1 || sizes->dims[0] < 0 || sizes->dims[0] > SX_MAX_RANK) {
            return sx_tf_unsupported("the number of blocked axes is unknown");
        }
        attrs.block.n = (int)sizes->dims[0];
    }
    if (!old && known) {
        SX_TRY(sx_tf_operand_ints(x, 1, &attrs.block));
    }
    SX_TRY(sx_tf_require_rank(x, 0));
    const sx_shape_attrs list = {.shape = {1, {2 * attrs.block.n}}};
    SX_TF_BUILD(x, &around, reshape, &list, around);
    const sx_attr_operand open[2] = {{sx_tf_attr_row(op, "block"), block},
                                     {sx_tf_attr_row(op, "pads"), around}};
    sx_type type = x->tf.head.types[0];
    for (int d = 0; d <= attrs.block.n && d < type.rank; d++) {
        type.dims[d] = SX_UNKNOWN_DIM;
    }
    *out = known ? sx_tf_build_as(x, op, &attrs, &v, 1, open + 1, 1, &type)
                 : sx_tf_build_as(x, op, NULL, &v, 1, open, 2, &type);
    return SX_OK;
}

static sx_status import_space_to_batch(sx_tf_op_node *x)
{
    sx_value y = SX_NO_VALUE;
    SX_TRY(build_blocks(x, &sx_op_space_to_batch, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* What lies between SpaceToBatchND and BatchToSpaceND: a convolution of windows without gaps, maybe
 * one of sequences as images of height 1. */
typedef struct between {
    sx_value from, pads, filter; /* pads: the list of 2 M numbers */
    sx_blocks_attrs blocks;
    sx_conv2d_attrs conv;
    bool sequence;
} between;

/* v is what goes into BatchToSpaceND. */
static bool find_dilated(const sx_builder *b, sx_value v, const sx_ints *block, between *out)
{
    const sx_node *n = sx_builder_maker(b, v);
    const bool squeezed = n != NULL && n->op == &sx_op_reshape;
    n = squeezed ? sx_builder_maker(b, n->inputs[0]) : n;
    if (n == NULL || n->op != &sx_op_conv2d || n->n_attr_operands > 0) {
        return false;
    }
    const sx_conv2d_attrs *conv = n->attrs;
    const sx_type image = sx_type_of_value(b, n->inputs[0]);
    *out = (between){.filter = n->inputs[1], .conv = *conv, .sequence = squeezed};
    n = sx_builder_maker(b, n->inputs[0]);
    if (squeezed) {
        const sx_type line = n != NULL && n->op == &sx_op_reshape
                                 ? sx_type_of_value(b, n->inputs[0])
                                 : (sx_type){.rank = 0};
        if (line.rank != 3 || image.rank != 4 || image.dims[1] != 1) {
            return false;
        }
        n = sx_builder_maker(b, n->inputs[0]);
    }
    bool fits = n != NULL && n->op == &sx_op_space_to_batch && n->n_attr_operands == 1 &&
                conv->padding == SX_VALID;
    for (int i = 0; i < 2; i++) {
        fits = fits && (conv->strides.n == 0 || conv->strides.v[i] == 1) &&
               (conv->dilations.n == 0 || conv->dilations.v[i] == 1);
    }
    if (!fits) {
        return false;
    }
    out->blocks = *(const sx_blocks_attrs *)n->attrs;
    out->from = n->inputs[0];
    out->pads = n->attr_operands[0].value;
    fits = out->blocks.block.n == block->n && block->n <= (squeezed ? 1 : 2);
    for (int i = 0; fits && i < block->n; i++) {
        fits = out->blocks.block.v[i] == block->v[i];
    }
    return fits;
}

/* A list of one number for each axis of `rank`: column `side` of pads, {before, after} of the axes
 * 1 .. m, and `other` for the other axes. int64 */
static sx_status pads_of_side(const sx_tf_op_node *x, sx_value pads, int m, int side, int rank,
                              int64_t other, sx_value *out)
{
    const sx_shape_attrs rows = {.shape = {2, {m, 2}}}, line = {.shape = {1, {m}}};
    const sx_slice_attrs column = {.begin = {2, {0, side}}, .size = {2, {m, 1}}};
    const sx_ints first = {1, {other}};
    sx_ints rest = {.n = rank - 1 - m};
    sx_value parts[3];
    for (int i = 0; i < rest.n; i++) {
        rest.v[i] = other;
    }
    SX_TF_BUILD(x, &parts[1], cast, (&(sx_cast_attrs){SX_I64}), pads);
    SX_TF_BUILD(x, &parts[1], reshape, &rows, parts[1]);
    SX_TF_BUILD(x, &parts[1], slice, &column, parts[1]);
    SX_TF_BUILD(x, &parts[1], reshape, &line, parts[1]);
    SX_TRY(sx_tf_int64s(x, &first, &parts[0]));
    SX_TRY(sx_tf_int64s(x, &rest, &parts[2]));
    return sx_tf_build(x, &sx_op_concat, &(sx_axis_attrs){0}, out, rest.n > 0 ? 3 : 2, parts);
}

/* The convolution with its windows dilated by the blocks' sizes: of what is known, its padding less
 * what is cropped; else of the padded image, and then cropped. */
static sx_status build_dilated(const sx_tf_op_node *x, const between *found, sx_value crops,
                               sx_value *out)
{
    const int m = found->blocks.block.n, at = found->sequence ? 1 : 0;
    const sx_type from = sx_type_of_value(x->b, found->from);
    sx_conv2d_attrs conv = found->conv;
    sx_value v = found->from, before = SX_NO_VALUE, after = SX_NO_VALUE;
    bool known = true, is_dim = false;
    conv.dilations = (sx_ints){2, {1, 1}};
    conv.padding = SX_EXPLICIT;
    conv.pads = (sx_ints){.n = 4};
    for (int i = 0; i < m; i++) {
        conv.dilations.v[at + i] = found->blocks.block.v[i];
    }
    for (int i = 0; i < 2 * m && known; i++) {
        int64_t pad = 0, crop = 0;
        known = sx_tf_peek(x->b, found->pads, i, &is_dim, &pad) && !is_dim &&
                sx_tf_peek(x->b, crops, i, &is_dim, &crop) && !is_dim && crop >= 0 && pad >= crop;
        conv.pads.v[2 * at + i] = pad - crop;
    }
    if (!known) {
        sx_type padded = from;
        conv.padding = SX_VALID;
        conv.pads.n = 0;
        for (int d = 1; d <= m; d++) {
            padded.dims[d] = SX_UNKNOWN_DIM;
        }
        SX_TRY(pads_of_side(x, found->pads, m, 0, from.rank, 0, &before));
        SX_TRY(pads_of_side(x, found->pads, m, 1, from.rank, 0, &after));
        const sx_attr_operand open[2] = {{sx_tf_attr_row(&sx_op_pad, "before"), before},
                                         {sx_tf_attr_row(&sx_op_pad, "after"), after}};
        v = sx_tf_build_as(x, &sx_op_pad, &(sx_pad_attrs){.value = 0}, &v, 1, open, 2, &padded);
    }
    if (found->sequence) {
        SX_TRY(sx_tf_expand(x, v, 1, &v));
    }
    SX_TF_BUILD(x, &v, conv2d, &conv, v, found->filter);
    if (found->sequence) {
        SX_TRY(sx_tf_reshape_dims(x, v, &(sx_ints){3, {0, 2, 3}}, &v));
    }
    *out = v;
    if (known) {
        return SX_OK;
    }
    sx_value sizes = SX_NO_VALUE;
    sx_type cropped = sx_type_of_value(x->b, v);
    for (int d = 1; d <= m && cropped.rank > m; d++) {
        cropped.dims[d] = SX_UNKNOWN_DIM;
    }
    SX_TRY(pads_of_side(x, crops, m, 0, from.rank, 0, &before));
    SX_TRY(pads_of_side(x, crops, m, 1, from.rank, 0, &after));
    SX_TF_BUILD(x, &sizes, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TF_BUILD(x, &sizes, sub, NULL, sizes, before);
    SX_TF_BUILD(x, &sizes, sub, NULL, sizes, after);
    const sx_attr_operand open[2] = {{sx_tf_attr_row(&sx_op_slice, "begin"), before},
                                     {sx_tf_attr_row(&sx_op_slice, "size"), sizes}};
    *out =
        sx_tf_build_as(x, &sx_op_slice, &(sx_slice_attrs){.begin = {0}}, &v, 1, open, 2, &cropped);
    return SX_OK;
}

static sx_status import_batch_to_space(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE, crops = SX_NO_VALUE, y = SX_NO_VALUE;
    sx_ints block = {0};
    between found;
    SX_TRY(sx_tf_operand(x, 0, &v));
    if (x->n->n_in == 3 && x->tf.head.values[1] != NULL) {
        SX_TRY(sx_tf_operand_ints(x, 1, &block));
        SX_TRY(sx_tf_operand(x, 2, &crops));
        const sx_shape_attrs list = {.shape = {1, {2 * block.n}}};
        SX_TF_BUILD(x, &crops, reshape, &list, crops);
    }
    if (block.n > 0 && find_dilated(x->b, v, &block, &found)) {
        SX_TRY(build_dilated(x, &found, crops, &y));
    } else {
        SX_TRY(build_blocks(x, &sx_op_batch_to_space, &y));
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_window_rows[] = {
    {"Conv2D", import_conv2d, NULL},
    {"DepthwiseConv2dNative", import_depthwise, NULL},
    {"Conv2DBackpropInput", import_transposed2d, NULL},
    {"MaxPool", import_pool2d, NULL},
    {"MaxPoolV2", import_pool2d, NULL},
    {"AvgPool", import_pool2d, NULL},
    {"BiasAdd", import_bias, NULL},
    {"BiasAddV1", import_bias, NULL},
    {"FusedBatchNormV3", import_batch_norm, NULL},
    {"FusedBatchNormV2", import_batch_norm, NULL},
    {"FusedBatchNorm", import_batch_norm, NULL},
    {"MaxPool3D", import_pool3d, NULL},
    {"AvgPool3D", import_pool3d, NULL},
    {"Conv3D", import_conv3d, NULL},
    {"Conv3DBackpropInputV2", import_transposed3d, NULL},
    {"SpaceToBatchND", import_space_to_batch, NULL},
    {"SpaceToBatch", import_space_to_batch, NULL},
    {"BatchToSpaceND", import_batch_to_space, NULL},
    {"BatchToSpace", import_batch_to_space, NULL},
    {NULL, NULL, NULL},
};
