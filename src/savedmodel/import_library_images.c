/* Imports what resizes images and rearranges their pixels, from operators that move and add. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "savedmodel/import_library_ops.h"

enum { MOST_PIXELS = 1 << 16 }; /* along an axis */

/* The image of input 0, [N,H,W,C], whose height and width must be known. */
static sx_status read_image(const sx_tf_op_node *x, sx_value *out, sx_type *out_type)
{
    SX_TRY(sx_tf_operand(x, 0, out));
    *out_type = x->tf.head.types[0];
    if (!sx_tf_read_is(&x->tf.head, "data_format", "NHWC", true)) {
        return sx_tf_unsupported("data_format is not NHWC");
    }
    for (int d = 1; d < 4; d++) {
        if (out_type->rank != 4 || out_type->dims[d] < 1 || out_type->dims[d] > MOST_PIXELS) {
            return sx_tf_unsupported("the size of its image is unknown, or above %d", MOST_PIXELS);
        }
    }
    return SX_OK;
}

/* ---- Resizing ---- */

/* Where each of `out` pixels along an axis comes from, in the arithmetic of TensorFlow: between
 * pixels `low` and `high`, `share` of the way. */
typedef struct source {
    int64_t *low, *high;
    float *share;
} source;

static sx_status find_sources(const sx_tf_op_node *x, int64_t in, int64_t out, bool nearest,
                              source *s)
{
    const bool align = sx_tf_read_bool(&x->tf.head, "align_corners", false),
               half = sx_tf_read_bool(&x->tf.head, "half_pixel_centers", false);
    const float scale =
        align && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
    s->low = sx_arena_array(&x->im->arena, out, int64_t);
    s->high = sx_arena_array(&x->im->arena, out, int64_t);
    s->share = sx_arena_array(&x->im->arena, out, float);
    if (s->low == NULL || s->high == NULL || s->share == NULL) {
        return sx_import_memory();
    }
    for (int64_t i = 0; i < out; i++) {
        if (nearest) {
            const float at = (half ? (float)i + 0.5F : (float)i) * scale;
            const float place = align ? roundf(at) : floorf(at);
            s->low[i] = SX_MIN(SX_MAX((int64_t)place, 0), in - 1);
            continue;
        }
        const float at = half ? ((float)i + 0.5F) * scale - 0.5F : (float)i * scale;
        s->low[i] = SX_MAX((int64_t)floorf(at), 0);
        s->high[i] = SX_MIN((int64_t)ceilf(at), in - 1);
        s->low[i] = SX_MIN(s->low[i], in - 1);
        s->share[i] = at - floorf(at);
    }
    return SX_OK;
}

/* Moved, and added by shares, where the sizes are known; else resize_image, on the host. Width,
 * then height, as TensorFlow does, which leaves an image of this size as it is; where only one axis
 * has the size, infinities less themselves are NaN. */
static sx_status import_resize(sx_tf_op_node *x)
{
    const sx_type *image = &x->tf.head.types[0];
    bool known = x->n->n_in == 2 && x->tf.head.values[1] != NULL && image->rank == 4;
    for (int d = 1; d < 4 && known; d++) {
        known = image->dims[d] > 0 && image->dims[d] <= MOST_PIXELS;
    }
    if (!known) {
        return sx_tf_import_one(x);
    }
    const bool nearest = strcmp(x->n->node->op, "ResizeNearestNeighbor") == 0;
    sx_value v = SX_NO_VALUE;
    sx_ints size = {0};
    sx_type type;
    SX_TRY(read_image(x, &v, &type));
    SX_TRY(sx_tf_operand_ints(x, 1, &size));
    if (size.n != 2 || size.v[0] < 1 || size.v[1] < 1 || size.v[0] > MOST_PIXELS ||
        size.v[1] > MOST_PIXELS) {
        return sx_tf_unsupported("its size is not a height and a width of 1 to %d", MOST_PIXELS);
    }
    if (!nearest && type.dtype != SX_F32) {
        SX_TF_BUILD(x, &v, cast, (&(sx_cast_attrs){SX_F32}), v);
    }
    const bool stays = size.v[0] == type.dims[1] && size.v[1] == type.dims[2];
    for (int d = 2; d >= 1; d--) {
        const int64_t n = size.v[d - 1];
        const sx_gather_attrs along = {.axis = d};
        sx_value low = SX_NO_VALUE, high = SX_NO_VALUE, share = SX_NO_VALUE, a = SX_NO_VALUE,
                 b = SX_NO_VALUE;
        source s;
        if (n == type.dims[d]) {
            if (!nearest && !stays) {
                SX_TF_BUILD(x, &b, sub, NULL, v, v);
                SX_TF_BUILD(x, &v, add, NULL, v, b);
            }
            continue;
        }
        SX_TRY(find_sources(x, type.dims[d], n, nearest, &s));
        SX_TRY(sx_tf_constant(x, sx_type_of(SX_I64, n), s.low, &low));
        SX_TF_BUILD(x, &a, gather, &along, v, low);
        if (nearest) {
            v = a;
            continue;
        }
        SX_TRY(sx_tf_constant(x, sx_type_of(SX_I64, n), s.high, &high));
        SX_TRY(sx_tf_constant(x, d == 1 ? sx_type_of(SX_F32, n, 1, 1) : sx_type_of(SX_F32, n, 1),
                              s.share, &share));
        SX_TF_BUILD(x, &b, gather, &along, v, high);
        SX_TF_BUILD(x, &b, sub, NULL, b, a);
        SX_TF_BUILD(x, &b, mul, NULL, b, share);
        SX_TF_BUILD(x, &v, add, NULL, a, b);
    }
    sx_tf_set(x, 0, v);
    return SX_OK;
}

/* ResizeNearestNeighborGrad(dy, size), ResizeBilinearGrad(dy, image): dy is added to the pixels
 * that each pixel of the larger or smaller image was made of, by their shares. */
static sx_status import_resize_grad(sx_tf_op_node *x)
{
    const bool nearest = strcmp(x->n->node->op, "ResizeNearestNeighborGrad") == 0;
    sx_value v = SX_NO_VALUE;
    sx_ints size = {0};
    sx_type type;
    SX_TRY(read_image(x, &v, &type));
    if (nearest) {
        SX_TRY(sx_tf_operand_ints(x, 1, &size));
    } else if (x->tf.head.types[1].rank == 4) {
        size = sx_ints_of(2, x->tf.head.types[1].dims + 1);
    }
    if (size.n != 2 || size.v[0] < 1 || size.v[1] < 1 || size.v[0] > MOST_PIXELS ||
        size.v[1] > MOST_PIXELS) {
        return sx_tf_unsupported("the height and width of the image are unknown, or not 1 to %d",
                                 MOST_PIXELS);
    }
    for (int d = 1; d <= 2; d++) {
        const int64_t n = type.dims[d], rows = size.v[d - 1];
        const sx_gather_grad_attrs along = {.rows = rows, .axis = d};
        sx_value low = SX_NO_VALUE, high = SX_NO_VALUE, share = SX_NO_VALUE, upper = SX_NO_VALUE;
        source s;
        if (n == rows) {
            continue;
        }
        SX_TRY(find_sources(x, rows, n, nearest, &s));
        SX_TRY(sx_tf_constant(x, sx_type_of(SX_I64, n), s.low, &low));
        if (nearest) {
            SX_TF_BUILD(x, &v, gather_grad, &along, low, v);
            continue;
        }
        SX_TRY(sx_tf_constant(x, sx_type_of(SX_I64, n), s.high, &high));
        SX_TRY(sx_tf_constant(x, d == 1 ? sx_type_of(SX_F32, n, 1, 1) : sx_type_of(SX_F32, n, 1),
                              s.share, &share));
        SX_TF_BUILD(x, &upper, mul, NULL, v, share);
        SX_TF_BUILD(x, &v, sub, NULL, v, upper);
        SX_TF_BUILD(x, &v, gather_grad, &along, low, v);
        SX_TF_BUILD(x, &upper, gather_grad, &along, high, upper);
        SX_TF_BUILD(x, &v, add, NULL, v, upper);
    }
    sx_tf_set(x, 0, v);
    return SX_OK;
}

/* ---- Rearranging ---- */

/* The same of an image whose sizes are computed. */
static sx_status blocks_open(sx_tf_op_node *x, bool to_depth, int64_t b)
{
    const sx_transpose_attrs swap = {{6, {0, 1, 3, 2, 4, 5}}};
    const sx_slice_attrs front = {.begin = {1, {0}}, .size = {1, {3}}};
    sx_type type = x->tf.head.types[0];
    sx_value v = SX_NO_VALUE, shape = SX_NO_VALUE, factors = SX_NO_VALUE, rest = SX_NO_VALUE;
    if (type.rank != 4 || b < 1) {
        return sx_tf_unsupported("block_size %lld and an input of rank %d", (long long)b,
                                 type.rank);
    }
    if (!sx_tf_read_is(&x->tf.head, "data_format", "NHWC", true)) {
        return sx_tf_unsupported("data_format is not NHWC");
    }
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TF_BUILD(x, &shape, slice, &front, shape);
    SX_TRY(sx_tf_int64s(x, &(sx_ints){3, {1, b, b}}, &factors));
    if (to_depth) {
        SX_TF_BUILD(x, &shape, floor_div, NULL, shape, factors);
        SX_TRY(sx_tf_divide_axis(x, v, 1, -1, b, &v));
        SX_TRY(sx_tf_divide_axis(x, v, 3, -1, b, &v));
    } else {
        SX_TF_BUILD(x, &shape, mul, NULL, shape, factors);
        SX_TRY(sx_tf_divide_axis(x, v, 3, b, -1, &v));
        SX_TRY(sx_tf_divide_axis(x, v, 4, b, -1, &v));
    }
    SX_TF_BUILD(x, &v, transpose, &swap, v);
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {-1}}, &rest));
    SX_TF_BUILD(x, &shape, concat, (&(sx_axis_attrs){0}), shape, rest);
    for (int d = 1; d < 3; d++) {
        type.dims[d] = type.dims[d] < 0 ? SX_UNKNOWN_DIM
                       : to_depth       ? type.dims[d] / b
                                        : type.dims[d] * b;
    }
    type.dims[3] = type.dims[3] < 0 ? SX_UNKNOWN_DIM
                   : to_depth       ? type.dims[3] * b * b
                                    : type.dims[3] / (b * b);
    SX_TRY(sx_tf_reshape_as(x, v, shape, &type, &v));
    sx_tf_set(x, 0, v);
    return SX_OK;
}

/* SpaceToDepth [N, H, W, C] -> [N, H/b, W/b, b b C], and back. */
static sx_status import_blocks(sx_tf_op_node *x)
{
    const bool to_depth = strcmp(x->n->node->op, "SpaceToDepth") == 0;
    const int64_t b = sx_tf_read_int(&x->tf.head, "block_size", 0);
    sx_value v = SX_NO_VALUE;
    sx_type type = x->tf.head.types[0];
    if (type.rank != 4 || type.dims[1] < 0 || type.dims[2] < 0 || type.dims[3] < 0) {
        return blocks_open(x, to_depth, b);
    }
    SX_TRY(read_image(x, &v, &type));
    const int64_t n = type.dims[0], h = type.dims[1], w = type.dims[2], c = type.dims[3];
    int64_t area = 0, product = 0; /* of a block; the largest size of the result */
    if (b < 1 || !sx_mul_i64(b, b, &area) ||
        !sx_mul_i64(to_depth ? c : SX_MAX(h, w), area, &product) ||
        (to_depth ? h % b != 0 || w % b != 0 : c % area != 0)) {
        return sx_error(SX_DATA_LOSS, "block_size is %lld for an image [%lld,%lld,%lld]",
                        (long long)b, (long long)h, (long long)w, (long long)c);
    }
    if (n < 0 && !sx_dim_is_batch(n)) {
        return sx_tf_unsupported("the number of its images is unknown");
    }
    const sx_transpose_attrs swap = {{6, {0, 1, 3, 2, 4, 5}}};
    const sx_shape_attrs parts = to_depth ? (sx_shape_attrs){{6, {n, h / b, b, w / b, b, c}}}
                                          : (sx_shape_attrs){{6, {n, h, w, b, b, c / area}}};
    const sx_shape_attrs whole = to_depth ? (sx_shape_attrs){{4, {n, h / b, w / b, area * c}}}
                                          : (sx_shape_attrs){{4, {n, h * b, w * b, c / area}}};
    SX_TF_BUILD(x, &v, reshape, &parts, v);
    SX_TF_BUILD(x, &v, transpose, &swap, v);
    SX_TF_BUILD(x, &v, reshape, &whole, v);
    sx_tf_set(x, 0, v);
    return SX_OK;
}

/* ImageProjectiveTransformV2, which fills with 0. */
static sx_status import_transform(sx_tf_op_node *x)
{
    sx_transform_image_attrs attrs = {.fill_mode = "CONSTANT"};
    sx_value in[4], y = SX_NO_VALUE;
    if (x->n->n_in != 3) {
        return sx_error(SX_DATA_LOSS, "it has %d inputs, expected 3", x->n->n_in);
    }
    static const char *const modes[] = {"CONSTANT", "REFLECT", "WRAP", "NEAREST"};
    attrs.interpolation =
        sx_tf_read_is(&x->tf.head, "interpolation", "NEAREST", false) ? "NEAREST" : "BILINEAR";
    for (size_t k = 0; k < SX_COUNT(modes); k++) {
        if (sx_tf_read_is(&x->tf.head, "fill_mode", modes[k], false)) {
            attrs.fill_mode = modes[k];
        }
    }
    for (int i = 0; i < 3; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    SX_TRY(sx_tf_number(x, SX_F32, 0, &in[3]));
    SX_TRY(sx_tf_build(x, &sx_op_transform_image, &attrs, &y, 4, in));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- Normalization ---- */

/* The sum of v's channels that are at most `radius` away from each. */
static sx_status sum_near(const sx_tf_op_node *x, sx_value v, int64_t radius, sx_value *out)
{
    enum { MOST_RADIUS = 64 };
    const sx_type type = sx_type_of_value(x->b, v);
    sx_value channels = SX_NO_VALUE;
    if (type.rank != 4 || radius < 0 || radius > MOST_RADIUS) {
        return sx_tf_unsupported("its input is not of rank 4, or depth_radius is not 0 to %d",
                                 MOST_RADIUS);
    }
    if (type.dims[3] < 0) {
        SX_TRY(sx_tf_sizes_of(x, v, 3, 1, &channels));
    }
    const sx_pad_attrs around = {.before = {4, {0, 0, 0, radius}}, .after = {4, {0, 0, 0, radius}}};
    SX_TF_BUILD(x, &v, pad, &around, v);
    for (int64_t i = 0; i <= 2 * radius; i++) {
        sx_value near = SX_NO_VALUE, from = SX_NO_VALUE;
        if (type.dims[3] >= 0) {
            SX_TRY(sx_tf_cut_axis(x, v, 3, i, type.dims[3], &near));
        } else {
            SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {i}}, &from));
            SX_TRY(sx_tf_cut_axis_open(x, v, 3, from, channels, -1, &near));
        }
        if (i == 0) {
            *out = near;
        } else {
            SX_TF_BUILD(x, out, add, NULL, *out, near);
        }
    }
    return SX_OK;
}

/* LRN: x norm^-beta, norm = bias + alpha s, where s is the sum of the squares of the channels that
 * are at most depth_radius away.
 *
 * LRNGrad(dy, x, y): dy norm^-beta - 2 alpha beta x (the sum of dy y / norm of these channels) */
static sx_status import_lrn(sx_tf_op_node *x)
{
    const bool backwards = strcmp(x->n->node->op, "LRNGrad") == 0;
    const int64_t radius = sx_tf_read_int(&x->tf.head, "depth_radius", 5);
    const double bias = sx_tf_read_float(&x->tf.head, "bias", 1),
                 alpha = sx_tf_read_float(&x->tf.head, "alpha", 1),
                 beta = sx_tf_read_float(&x->tf.head, "beta", 0.5);
    sx_value v = SX_NO_VALUE, norm = SX_NO_VALUE, power = SX_NO_VALUE, out = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, backwards ? 1 : 0, &v));
    SX_TF_BUILD(x, &norm, square, NULL, v);
    SX_TRY(sum_near(x, norm, radius, &norm));
    SX_TRY(sx_tf_with_number(x, &sx_op_mul, norm, alpha, &norm));
    SX_TRY(sx_tf_with_number(x, &sx_op_add, norm, bias, &norm));
    SX_TRY(sx_tf_with_number(x, &sx_op_pow, norm, -beta, &power));
    if (!backwards) {
        SX_TF_BUILD(x, &out, mul, NULL, v, power);
        sx_tf_set(x, 0, out);
        return SX_OK;
    }
    sx_value dy = SX_NO_VALUE, y = SX_NO_VALUE, near = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &dy));
    SX_TRY(sx_tf_operand(x, 2, &y));
    SX_TF_BUILD(x, &near, mul, NULL, dy, y);
    SX_TF_BUILD(x, &near, div, NULL, near, norm);
    SX_TRY(sum_near(x, near, radius, &near));
    SX_TF_BUILD(x, &near, mul, NULL, near, v);
    SX_TRY(sx_tf_with_number(x, &sx_op_mul, near, 2 * alpha * beta, &near));
    SX_TF_BUILD(x, &out, mul, NULL, dy, power);
    SX_TF_BUILD(x, &out, sub, NULL, out, near);
    sx_tf_set(x, 0, out);
    return SX_OK;
}

/* ---- Boxes ---- */

/* NonMaxSuppression, V2 to V4 and WithOverlaps: those that lack thresholds have TensorFlow's. V5 is
 * ours. */
static sx_status import_suppression(sx_tf_op_node *x)
{
    const char *op = x->n->node->op;
    const bool v4 = strcmp(op, "NonMaxSuppressionV4") == 0;
    const sx_non_max_suppression_attrs attrs = {
        .overlaps = strcmp(op, "NonMaxSuppressionWithOverlaps") == 0,
        .pad_to_max_output_size = sx_tf_read_bool(&x->tf.head, "pad_to_max_output_size", false)};
    sx_value in[6], first = SX_NO_VALUE;
    int n_out = 0;
    if (x->n->n_in < 3 || x->n->n_in > 5) {
        return sx_error(SX_DATA_LOSS, "it has %d inputs, expected 3 to 5", x->n->n_in);
    }
    for (int i = 0; i < x->n->n_in; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    if (x->n->n_in < 4) {
        SX_TRY(
            sx_tf_number(x, SX_F32, sx_tf_read_float(&x->tf.head, "iou_threshold", 0.5), &in[3]));
    }
    if (x->n->n_in < 5) {
        SX_TRY(sx_tf_number(x, SX_F32, -INFINITY, &in[4]));
    }
    SX_TRY(sx_tf_number(x, SX_F32, 0, &in[5]));
    SX_TRY(sx_tf_add_node(x, &sx_op_non_max_suppression, &attrs, in, 6, NULL, 0, &first, &n_out));
    sx_tf_set(x, 0, first);
    if (v4) {
        sx_tf_set(x, 1, sx_output_of(first, 2));
    }
    return SX_OK;
}

/* ExtractGlimpse, V2(x [N,H,W,C], size [2], offsets [N,2]): of each image the window around its
 * offset, of which the first axis is the height's; outside of the image are zeros. Of V2 the offset
 * is that of the window's corner, but for one that is centered and normalized. */
static sx_status import_glimpse(sx_tf_op_node *x)
{
    const sx_tf_node *n = &x->tf.head;
    const bool centered = sx_tf_read_bool(n, "centered", true),
               normalized = sx_tf_read_bool(n, "normalized", true),
               zeros = sx_tf_read_is(n, "noise", "zero", false),
               corner =
                   !(centered && normalized) && strcmp(x->n->node->op, "ExtractGlimpseV2") == 0;
    sx_value v = SX_NO_VALUE, offsets = SX_NO_VALUE, size = SX_NO_VALUE, inside[2];
    sx_ints sizes = {0};
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_operand_ints(x, 1, &sizes));
    SX_TRY(sx_tf_operand(x, 2, &offsets));
    if (n->types[0].rank != 4 || sizes.n != 2) {
        return sx_tf_unsupported("its input has rank %d, its size %d numbers, expected 4 and 2",
                                 n->types[0].rank, sizes.n);
    }
    if (!zeros) {
        return sx_tf_unsupported("what is outside of the image is drawn at random; save the model "
                                 "with noise=\"zero\"");
    }
    for (int d = 0; d < 2; d++) {
        const sx_gather_attrs along = {.axis = 1 + d, .batch_dims = 1};
        static const sx_ints as[2] = {{4, {0, 1, -1, -1}}, {4, {0, -1, 1, -1}}};
        const sx_slice_attrs column = {.begin = {2, {0, d}}, .size = {2, {-1, 1}}};
        sx_value at = SX_NO_VALUE, taps = SX_NO_VALUE, length = SX_NO_VALUE, zero = SX_NO_VALUE,
                 below = SX_NO_VALUE, real = SX_NO_VALUE;
        SX_TRY(sx_tf_sizes_of(x, v, 1 + d, 1, &length));
        SX_TF_BUILD(x, &real, cast, (&(sx_cast_attrs){SX_F32}), length);
        SX_TF_BUILD(x, &at, slice, &column, offsets); /* [N,1] */
        if (normalized) {
            SX_TF_BUILD(x, &at, mul, NULL, at, real);
        }
        if (corner && centered) {
            SX_TRY(sx_tf_with_number(x, &sx_op_mul, real, 0.5, &real));
            SX_TF_BUILD(x, &at, add, NULL, at, real);
        } else if (centered) { /* from the middle, half of what the offset says */
            SX_TF_BUILD(x, &at, add, NULL, at, real);
            SX_TRY(sx_tf_with_number(x, &sx_op_mul, at, 0.5, &at));
        }
        if (!corner) {
            SX_TRY(sx_tf_with_number(x, &sx_op_sub, at, (double)sizes.v[d] / 2, &at));
        }
        SX_TF_BUILD(x, &at, cast, (&(sx_cast_attrs){SX_I64}), at);
        const sx_iota_attrs count = {.shape = {1, {sizes.v[d]}}, .dtype = SX_I64};
        SX_TRY(sx_tf_build(x, &sx_op_iota, &count, &taps, 0, NULL));
        SX_TF_BUILD(x, &at, add, NULL, at, taps); /* [N,size] */
        SX_TRY(sx_tf_number(x, SX_I64, 0, &zero));
        SX_TF_BUILD(x, &inside[d], greater_equal, NULL, at, zero);
        SX_TF_BUILD(x, &below, less, NULL, at, length);
        SX_TF_BUILD(x, &inside[d], logical_and, NULL, inside[d], below);
        SX_TRY(sx_tf_reshape_dims(x, inside[d], &as[d], &inside[d]));
        SX_TF_BUILD(x, &v, gather, &along, v, at);
    }
    SX_TRY(sx_tf_number(x, n->types[0].dtype, 0, &size));
    SX_TF_BUILD(x, &inside[0], logical_and, NULL, inside[0], inside[1]);
    SX_TF_BUILD(x, &v, select, NULL, inside[0], v, size);
    sx_tf_set(x, 0, v);
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_image_rows[] = {
    {"ExtractGlimpse", import_glimpse, NULL},
    {"ExtractGlimpseV2", import_glimpse, NULL},
    {"ResizeBilinear", import_resize, NULL},
    {"ResizeNearestNeighbor", import_resize, NULL},
    {"ResizeBilinearGrad", import_resize_grad, NULL},
    {"ResizeNearestNeighborGrad", import_resize_grad, NULL},
    {"SpaceToDepth", import_blocks, NULL},
    {"DepthToSpace", import_blocks, NULL},
    {"LRN", import_lrn, NULL},
    {"LRNGrad", import_lrn, NULL},
    {"ImageProjectiveTransformV2", import_transform, NULL},
    {"NonMaxSuppression", import_suppression, NULL},
    {"NonMaxSuppressionV2", import_suppression, NULL},
    {"NonMaxSuppressionV3", import_suppression, NULL},
    {"NonMaxSuppressionV4", import_suppression, NULL},
    {"NonMaxSuppressionWithOverlaps", import_suppression, NULL},
    {NULL, NULL, NULL},
};
