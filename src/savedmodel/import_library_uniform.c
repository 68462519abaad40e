/* Imports TensorFlow's uniform quantization. Each tensor of integers has a scale and the integer
 * that stands for 0, or those of each index of an axis. */
#include "savedmodel/import_library_quantized.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/wire.h"

/* UniformQuantize(x, scales, zeros): x / scale, rounded half up, + zero, within the bounds */
static sx_status import_uniform_quantize(sx_tf_op_node *x)
{
    const sx_tf_node *n = &x->tf.head;
    const int64_t axis = sx_tf_read_int(n, "quantization_axis", -1);
    const double least = (double)sx_tf_read_int(n, "quantization_min_val", 0),
                 most = (double)sx_tf_read_int(n, "quantization_max_val", 0);
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_tf_integers q = {0};
    SX_TRY(sx_tf_integers_of(x, "Tout", SX_DTYPE_NONE, &q));
    if (axis >= 0) {
        SX_TRY(sx_tf_require_rank(x, 0));
    }
    const int rank = n->types[0].rank;
    const sx_value v = sx_tf_input_of(e, 0),
                   scale = sx_tf_along_axis(e, sx_tf_input_of(e, 1), axis, rank),
                   zero = sx_tf_along_axis(e, sx_tf_cast_of(e, sx_tf_input_of(e, 2), SX_F32), axis,
                                           rank);
    sx_value y = ZIP(mul, v, MAP(reciprocal, scale));
    y = ZIP(add, MAP(floor, ZIP(add, y, NUMBER(0.5))), zero);
    y = ZIP(minimum, ZIP(maximum, y, NUMBER(least)), NUMBER(most));
    sx_tf_set(x, 0, sx_tf_cast_of(e, y, q.dtype));
    return at.status;
}

/* UniformDequantize(x, scales, zeros): (x - zero) scale */
static sx_status import_uniform_dequantize(sx_tf_op_node *x)
{
    const int64_t axis = sx_tf_read_int(&x->tf.head, "quantization_axis", -1);
    sx_tf_expression at = {.x = x}, *e = &at;
    if (axis >= 0) {
        SX_TRY(sx_tf_require_rank(x, 0));
    }
    const int rank = x->tf.head.types[0].rank;
    const sx_value v = sx_tf_cast_of(e, sx_tf_input_of(e, 0), SX_I32),
                   scale = sx_tf_along_axis(e, sx_tf_input_of(e, 1), axis, rank),
                   zero = sx_tf_along_axis(e, sx_tf_input_of(e, 2), axis, rank);
    sx_tf_set(x, 0, ZIP(mul, sx_tf_cast_of(e, ZIP(sub, v, zero), SX_F32), scale));
    return at.status;
}

/* A tensor of integers: which inputs say what they stand for. */
typedef struct uniform {
    int scales, zeros;      /* inputs */
    int64_t axis;           /* -1: one scale and zero */
    double least, most;     /* of its sx_tf_integers */
    const sx_tensor *known; /* its scales */
} uniform;

/* Scales must be known, since the multipliers of integers are made of them. */
static sx_status read_uniform(const sx_tf_op_node *x, const char *name, int scales, uniform *out)
{
    const sx_tf_node *n = &x->tf.head;
    char attr[64];
    *out = (uniform){.scales = scales, .zeros = scales + 1};
    const struct {
        const char *what;
        int64_t otherwise;
    } of[] = {{"axis", -1}, {"min_val", 0}, {"max_val", 0}};
    int64_t v[3];
    for (int i = 0; i < 3; i++) {
        (void)snprintf(attr, sizeof(attr), "%s%squantization_%s", name, *name != 0 ? "_" : "",
                       of[i].what);
        v[i] = sx_tf_read_int(n, attr, of[i].otherwise);
    }
    out->axis = v[0];
    out->least = (double)v[1];
    out->most = (double)v[2];
    if (scales + 1 >= x->n->n_in) {
        return sx_error(SX_DATA_LOSS, "it has %d inputs, expected %d or more", x->n->n_in,
                        scales + 2);
    }
    out->known = n->values[scales];
    if (out->known == NULL || out->known->type.dtype != SX_F32 || out->known->type.rank > 1) {
        return sx_tf_unsupported("input %d, its scales, is not a constant", scales);
    }
    return SX_OK;
}

/* The zeros of a tensor, beside its `rank` axes. */
static sx_value zeros_of(sx_tf_expression *e, const uniform *u, int rank, sx_dtype dtype)
{
    return sx_tf_along_axis(e, sx_tf_cast_of(e, sx_tf_input_of(e, u->zeros), dtype), u->axis, rank);
}

static int64_t scale_count(const uniform *u)
{
    return u->known->type.rank == 0 ? 1 : u->known->type.dims[0];
}

static double scale_at(const uniform *u, int64_t i)
{
    return (double)((const float *)u->known->data)[scale_count(u) == 1 ? 0 : i];
}

/* sum, an int64 of `rank` axes, times the product of the scales from[n] by that of `to`, rounded
 * half up: as an integer of 31 bits and a power of two, which TensorFlow's kernels make of it. */
static sx_value rescale(sx_tf_expression *e, sx_value sum, const uniform *const *from, int n,
                        const uniform *to, int64_t axis, int rank)
{
    enum { BITS = 31 };
    int64_t count = scale_count(to);
    for (int i = 0; i < n; i++) {
        count = SX_MAX(count, scale_count(from[i]));
    }
    for (int i = 0; i <= n && e->status == SX_OK; i++) {
        const int64_t own = scale_count(i < n ? from[i] : to);
        if (own != 1 && own != count) {
            e->status = sx_error(SX_INVALID_ARGUMENT,
                                 "one tensor has %lld scales, another %lld; expected 1 or as many "
                                 "as the other",
                                 (long long)own, (long long)count);
        }
    }
    if (e->status != SX_OK) {
        return SX_NO_VALUE;
    }
    sx_arena *arena = &e->x->im->arena;
    int64_t *factor = sx_arena_array(arena, count + 1, int64_t),
            *half = sx_arena_array(arena, count + 1, int64_t),
            *unit = sx_arena_array(arena, count + 1, int64_t);
    if (factor == NULL || half == NULL || unit == NULL) {
        e->status = e->status == SX_OK ? sx_import_memory() : e->status;
        return SX_NO_VALUE;
    }
    for (int64_t i = 0; i < count; i++) {
        double ratio = 1;
        int shift = 0;
        for (int k = 0; k < n; k++) {
            ratio *= scale_at(from[k], i);
        }
        ratio /= scale_at(to, i);
        if (!(ratio > 0) || isinf(ratio)) {
            e->status = e->status == SX_OK
                            ? sx_error(SX_INVALID_ARGUMENT, "a ratio of scales is %g", ratio)
                            : e->status;
            return SX_NO_VALUE;
        }
        factor[i] = (int64_t)round(frexp(ratio, &shift) * 0x1p31);
        if (factor[i] == (int64_t)1 << BITS) {
            factor[i] /= 2;
            shift++;
        }
        if (shift < -BITS || shift >= BITS) {
            factor[i] = shift < 0 ? 0 : INT32_MAX;
            shift = shift < 0 ? 0 : BITS - 1;
        }
        unit[i] = (int64_t)1 << (BITS - shift);
        half[i] = unit[i] / 2;
    }
    const bool one = axis < 0 || count == 1;
    const sx_type type = one ? sx_type_of(SX_I64) : sx_type_of(SX_I64, count);
    const int64_t *const lists[] = {factor, half, unit};
    sx_value v[3] = {SX_NO_VALUE, SX_NO_VALUE, SX_NO_VALUE};
    for (int i = 0; i < 3; i++) {
        if (e->status == SX_OK) {
            e->status = sx_tf_constant(e->x, type, lists[i], &v[i]);
        }
        v[i] = sx_tf_along_axis(e, v[i], one ? -1 : axis, rank);
    }
    return ZIP(floor_div, ZIP(add, ZIP(mul, sum, v[0]), v[1]), v[2]);
}

/* An int64 within the bounds of a tensor's integers. */
static sx_value within_bounds(sx_tf_expression *e, const uniform *u, sx_value v)
{
    v = ZIP(maximum, v, sx_tf_number_of(e, SX_I64, u->least));
    return ZIP(minimum, v, sx_tf_number_of(e, SX_I64, u->most));
}

/* Input i of `u` in the scale of `to`, an int64. */
static sx_value uniform_in_scale(sx_tf_expression *e, int i, const uniform *u, const uniform *to)
{
    const int rank = e->x->tf.head.types[i].rank;
    const int64_t axis = u->axis >= 0 ? u->axis : to->axis;
    sx_value v = sx_tf_cast_of(e, sx_tf_input_of(e, i), SX_I64);
    v = ZIP(sub, v, zeros_of(e, u, rank, SX_I64));
    v = rescale(e, v, (const uniform *const[]){u}, 1, to, axis, rank);
    return within_bounds(e, to, ZIP(add, v, zeros_of(e, to, rank, SX_I64)));
}

/* UniformRequantize(x, scales, zeros, to_scales, to_zeros) */
static sx_status import_uniform_requantize(sx_tf_op_node *x)
{
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_tf_integers q = {0};
    uniform from, to;
    SX_TRY(sx_tf_integers_of(x, "Tout", SX_DTYPE_NONE, &q));
    SX_TRY(read_uniform(x, "input", 1, &from));
    SX_TRY(read_uniform(x, "output", 3, &to));
    SX_TRY(sx_tf_require_rank(x, 0));
    sx_tf_set(x, 0, sx_tf_cast_of(e, uniform_in_scale(e, 0, &from, &to), q.dtype));
    return at.status;
}

/* UniformQuantizedAdd(a, b, a_scales, a_zeros, b_scales, b_zeros, to_scales, to_zeros): both in the
 * scale of the result, added. */
static sx_status import_uniform_add(sx_tf_op_node *x)
{
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_tf_integers q = {0};
    uniform of[2], to;
    sx_value in[2], zero = SX_NO_VALUE;
    SX_TRY(sx_tf_integers_of(x, "T", SX_DTYPE_NONE, &q));
    SX_TRY(read_uniform(x, "lhs", 2, &of[0]));
    SX_TRY(read_uniform(x, "rhs", 4, &of[1]));
    SX_TRY(read_uniform(x, "output", 6, &to));
    SX_TRY(sx_tf_require_rank(x, 0));
    SX_TRY(sx_tf_require_rank(x, 1));
    const int ranks[2] = {x->tf.head.types[0].rank, x->tf.head.types[1].rank};
    const int rank = SX_MAX(ranks[0], ranks[1]);
    for (int i = 0; i < 2; i++) { /* the result's axis, counted from the end, is each operand's */
        uniform own = to;
        own.axis = to.axis < 0 ? -1 : to.axis - (rank - ranks[i]);
        in[i] = uniform_in_scale(e, i, &of[i], &own);
    }
    zero = zeros_of(e, &to, rank, SX_I64);
    sx_tf_set(
        x, 0,
        sx_tf_cast_of(e, within_bounds(e, &to, ZIP(sub, ZIP(add, in[0], in[1]), zero)), q.dtype));
    return at.status;
}

/* UniformQuantizedDot(a, b, a_scales, a_zeros, b_scales, b_zeros, to_scales, to_zeros): the product
 * of matrices, in int32, in the scale of the result. */
static sx_status import_uniform_dot(sx_tf_op_node *x)
{
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_tf_integers q = {0};
    uniform a, b, to;
    SX_TRY(sx_tf_integers_of(x, "Tout", SX_DTYPE_NONE, &q));
    SX_TRY(read_uniform(x, "lhs", 2, &a));
    SX_TRY(read_uniform(x, "rhs", 4, &b));
    SX_TRY(read_uniform(x, "output", 6, &to));
    const sx_value left = ZIP(sub, sx_tf_cast_of(e, sx_tf_input_of(e, 0), SX_I32),
                              sx_tf_input_of(e, a.zeros)),
                   right = ZIP(sub, sx_tf_cast_of(e, sx_tf_input_of(e, 1), SX_I32),
                               zeros_of(e, &b, 2, SX_I32));
    const sx_matmul_attrs plain = {.transpose_a = false};
    const sx_value sum = sx_tf_cast_of(
        e, sx_tf_node_of(e, &sx_op_matmul, &plain, 2, (const sx_value[]){left, right}), SX_I64);
    const sx_value y = rescale(e, sum, (const uniform *const[]){&a, &b}, 2, &to, 1, 2);
    sx_tf_set(
        x, 0,
        sx_tf_cast_of(e, within_bounds(e, &to, ZIP(add, y, zeros_of(e, &to, 2, SX_I64))), q.dtype));
    return at.status;
}

/* v, of which each part along the axes of `part` has its own range, as integers of 8 bits less the
 * one that stands for 0, float64; *out_scale, of its axes, is what one of them is. */
static sx_value quantize_in_range(sx_tf_expression *e, sx_value v, const sx_reduce_attrs *part,
                                  sx_value *out_scale)
{
    const sx_value none = NUMBER(0), least = WIDE(-128), most = WIDE(127);
    const sx_value low = sx_tf_cast_of(
        e, ZIP(minimum, none, sx_tf_node_of(e, &sx_op_reduce_min, part, 1, &v)), SX_F64);
    const sx_value high = sx_tf_cast_of(
        e, ZIP(maximum, none, sx_tf_node_of(e, &sx_op_reduce_max, part, 1, &v)), SX_F64);
    const sx_value span = ZIP(sub, high, low);
    const sx_value scale = sx_tf_cast_of(e, ZIP(div, span, WIDE(255)), SX_F32),
                   empty = ZIP(equal, scale, none);
    const sx_value step = CHOOSE(empty, NUMBER(1), scale), wide = sx_tf_cast_of(e, step, SX_F64);
    /* The zero is counted from the end of the range that is nearer to it. */
    const sx_value below = ZIP(div, low, wide), above = ZIP(div, high, wide);
    const sx_value nearer =
        ZIP(less, ZIP(add, WIDE(128), MAP(abs, below)), ZIP(add, WIDE(127), MAP(abs, above)));
    sx_value zero = CHOOSE(nearer, ZIP(sub, least, below), ZIP(sub, most, above));
    zero = ZIP(minimum, ZIP(maximum, sx_tf_round_away(e, zero, SX_F64), least), most);
    zero = CHOOSE(empty, WIDE(0), zero);
    const sx_value steps = sx_tf_cast_of(e, ZIP(div, WIDE(255), span), SX_F32);
    sx_value q = MAP(floor, ZIP(add, ZIP(mul, v, CHOOSE(empty, none, steps)), NUMBER(0.5)));
    q = ZIP(add, sx_tf_cast_of(e, q, SX_F64), zero);
    *out_scale = step;
    return ZIP(sub, ZIP(minimum, ZIP(maximum, q, least), most), zero);
}

/* UniformQuantizedDotHybrid(a, b, scales, zeros): the product of a matrix of floats, of which each
 * row becomes integers of 8 bits in its own range, and one of integers. */
static sx_status import_uniform_dot_hybrid(sx_tf_op_node *x)
{
    static const sx_reduce_attrs of_row = {.axes = {1, {1}}, .keep_dims = true};
    static const sx_matmul_attrs plain = {.transpose_a = false};
    sx_tf_expression at = {.x = x}, *e = &at;
    uniform b;
    sx_value step = SX_NO_VALUE;
    SX_TRY(read_uniform(x, "rhs", 2, &b));
    const sx_value q = quantize_in_range(e, sx_tf_input_of(e, 0), &of_row, &step);
    const sx_value right =
        ZIP(sub, sx_tf_cast_of(e, sx_tf_input_of(e, 1), SX_I32), zeros_of(e, &b, 2, SX_I32));
    const sx_value sum = sx_tf_node_of(e, &sx_op_matmul, &plain, 2,
                                       (const sx_value[]){sx_tf_cast_of(e, q, SX_I32), right});
    const sx_value scales = sx_tf_along_axis(e, sx_tf_input_of(e, b.scales), b.axis, 2);
    sx_tf_set(x, 0, ZIP(mul, sx_tf_cast_of(e, sum, SX_F32), ZIP(mul, step, scales)));
    return at.status;
}

/* ---- Convolution ---- */

enum { CONV_AXES = 4, CONV_FEATURE = 3 }; /* of two dimensions of space */

/* Which axes of the three tensors are [N,H,W,C], [KH,KW,in,out] and [N,H,W,C]. */
typedef struct conv_layout {
    int64_t image[CONV_AXES], filter[CONV_AXES], result[CONV_AXES];
} conv_layout;

static bool read_axis(sx_bytes value, sx_wire_type type, int64_t *to, int most, int *n)
{
    sx_wire wire = sx_wire_over(value);
    uint64_t axis = 0;
    while (sx_wire_more(&wire)) {
        if (!sx_wire_varint(&wire, &axis) || *n >= most) {
            return false;
        }
        to[(*n)++] = (int64_t)axis;
        if (type == SX_WIRE_VARINT) {
            break;
        }
    }
    return true;
}

static bool is_order(const int64_t axes[CONV_AXES])
{
    unsigned seen = 0;
    for (int i = 0; i < CONV_AXES; i++) {
        seen |= axes[i] >= 0 && axes[i] < CONV_AXES ? 1U << axes[i] : 0;
    }
    return seen == (1U << CONV_AXES) - 1;
}

/* The attribute dimension_numbers: a message UniformQuantizedConvolutionDimensionNumbersAttr;
 * empty: batch and features, or features out and in, come before space. */
static sx_status read_layout(const sx_tf_op_node *x, conv_layout *out)
{
    const Tensorflow__AttrValue *a = sx_tf_node_attr(x->n->node, "dimension_numbers");
    const bool said = a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_S && a->s.len > 0;
    if (!said) {
        *out = (conv_layout){{0, 2, 3, 1}, {2, 3, 1, 0}, {0, 2, 3, 1}};
        return SX_OK;
    }
    *out = (conv_layout){{0}, {0}, {0}};
    const struct {
        int64_t *to;
        int most;
    } fields[] = {{&out->image[0], 1},  {&out->image[3], 1},  {&out->image[1], 2},
                  {&out->filter[2], 1}, {&out->filter[3], 1}, {&out->filter[0], 2},
                  {&out->result[0], 1}, {&out->result[3], 1}, {&out->result[1], 2}};
    int n[SX_COUNT(fields)] = {0};
    sx_wire wire = sx_wire_over((sx_bytes){a->s.data, a->s.len});
    sx_wire_field field;
    bool sound = true;
    while (sound && sx_wire_more(&wire)) {
        sound = sx_wire_next(&wire, &field);
        const uint32_t k = field.number - 1;
        if (sound && k < SX_COUNT(fields)) {
            n[k] = fields[k].most == 1 ? 0 : n[k];
            sound = read_axis(field.value, field.type, fields[k].to, fields[k].most, &n[k]);
        }
    }
    return sound && is_order(out->image) && is_order(out->filter) && is_order(out->result)
               ? SX_OK
               : sx_tf_unsupported(
                     "its dimension_numbers are not those of two dimensions of space");
}

/* v with axis order[i] as its axis i; `back`: the other way round. */
static sx_value ordered(sx_tf_expression *e, sx_value v, const int64_t order[CONV_AXES], bool back)
{
    sx_transpose_attrs turn = {.perm = {.n = CONV_AXES}};
    for (int i = 0; i < CONV_AXES; i++) {
        turn.perm.v[back ? order[i] : i] = back ? i : order[i];
    }
    return sx_tf_node_of(e, &sx_op_transpose, &turn, 1, &v);
}

/* The list `name` of two integers, 1 where it is empty. */
static sx_ints pair_of(const sx_tf_op_node *x, const char *name)
{
    sx_ints v = {2, {1, 1}};
    return sx_tf_read_ints(&x->tf.head, name, 2, v.v) ? v : (sx_ints){2, {1, 1}};
}

/* The convolution of an image and a filter less their zeros, float64 in the layout of the result,
 * whose numbers are whole. */
static sx_status convolve(sx_tf_expression *e, const conv_layout *l, sx_value image,
                          sx_value filter, sx_value *out)
{
    const sx_tf_node *tf = &e->x->tf.head;
    const sx_ints dilated = pair_of(e->x, "lhs_dilation");
    sx_conv2d_attrs attrs = {.strides = pair_of(e->x, "window_strides"),
                             .dilations = pair_of(e->x, "rhs_dilation"),
                             .groups = sx_tf_read_int(tf, "feature_group_count", 1)};
    if (tf->types[0].rank != CONV_AXES || tf->types[1].rank != CONV_AXES) {
        return sx_tf_unsupported("its tensors are %s and %s, expected two dimensions of space",
                                 SX_TEXT(&tf->types[0]), SX_TEXT(&tf->types[1]));
    }
    if (dilated.v[0] != 1 || dilated.v[1] != 1 || sx_tf_read_int(tf, "batch_group_count", 1) != 1) {
        return sx_tf_unsupported("lhs_dilation or batch_group_count is not 1");
    }
    if (sx_tf_read_is(tf, "padding", "EXPLICIT", false)) {
        attrs.padding = SX_EXPLICIT;
        attrs.pads.n = 4;
        if (!sx_tf_read_ints(tf, "explicit_padding", 4, attrs.pads.v)) {
            return sx_tf_unsupported("explicit_padding has not 4 numbers");
        }
    } else {
        attrs.padding = sx_tf_read_is(tf, "padding", "SAME", false) ? SX_SAME : SX_VALID;
    }
    const sx_value in[] = {ordered(e, image, l->image, false),
                           ordered(e, filter, l->filter, false)};
    SX_TRY(e->status);
    const sx_type a = sx_type_of_value(e->x->b, in[0]), b = sx_type_of_value(e->x->b, in[1]);
    sx_value y = SX_NO_VALUE;
    if (a.dims[3] < 0 || b.dims[0] < 0 || b.dims[1] < 0 || b.dims[2] < 0) { /* no guess fits */
        const sx_type made =
            sx_type_of(a.dtype, a.dims[0], SX_UNKNOWN_DIM, SX_UNKNOWN_DIM, b.dims[3]);
        y = sx_tf_build_as(e->x, &sx_op_conv2d, &attrs, in, 2, NULL, 0, &made);
    } else {
        y = sx_tf_node_of(e, &sx_op_conv2d, &attrs, 2, in);
    }
    *out = ordered(e, y, l->result, true);
    return SX_OK;
}

/* UniformQuantizedConvolution(a, b, a_scales, a_zeros, b_scales, b_zeros, to_scales, to_zeros) */
static sx_status import_uniform_conv(sx_tf_op_node *x)
{
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_tf_integers q = {0};
    uniform a, b, to;
    conv_layout l;
    sx_value y = SX_NO_VALUE;
    SX_TRY(sx_tf_integers_of(x, "Tout", SX_DTYPE_NONE, &q));
    SX_TRY(read_uniform(x, "lhs", 2, &a));
    SX_TRY(read_uniform(x, "rhs", 4, &b));
    SX_TRY(read_uniform(x, "output", 6, &to));
    SX_TRY(read_layout(x, &l));
    const sx_value left = ZIP(sub, sx_tf_cast_of(e, sx_tf_input_of(e, 0), SX_F64),
                              zeros_of(e, &a, CONV_AXES, SX_F64)),
                   right = ZIP(sub, sx_tf_cast_of(e, sx_tf_input_of(e, 1), SX_F64),
                               zeros_of(e, &b, CONV_AXES, SX_F64));
    SX_TRY(convolve(e, &l, left, right, &y));
    y = rescale(e, sx_tf_cast_of(e, y, SX_I64), (const uniform *const[]){&a, &b}, 2, &to,
                l.result[CONV_FEATURE], CONV_AXES);
    y = ZIP(add, y, zeros_of(e, &to, CONV_AXES, SX_I64));
    sx_tf_set(x, 0, sx_tf_cast_of(e, within_bounds(e, &to, y), q.dtype));
    return at.status;
}

/* UniformQuantizedConvolutionHybrid(a, b, scales, zeros): an image of floats, of which each example
 * becomes integers of 8 bits in its own range, and a filter of integers. */
static sx_status import_uniform_conv_hybrid(sx_tf_op_node *x)
{
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_reduce_attrs example = {.keep_dims = true};
    uniform b;
    conv_layout l;
    sx_value scale, q, y = SX_NO_VALUE;
    SX_TRY(read_uniform(x, "rhs", 2, &b));
    SX_TRY(read_layout(x, &l));
    for (int d = 0; d < CONV_AXES; d++) {
        if (d != l.image[0]) {
            example.axes.v[example.axes.n++] = d;
        }
    }
    q = quantize_in_range(e, sx_tf_input_of(e, 0), &example, &scale);
    const sx_value right = ZIP(sub, sx_tf_cast_of(e, sx_tf_input_of(e, 1), SX_F64),
                               zeros_of(e, &b, CONV_AXES, SX_F64));
    SX_TRY(convolve(e, &l, q, right, &y));
    uniform of_result = b;
    of_result.axis = b.axis < 0 ? -1 : l.result[CONV_FEATURE];
    const sx_value scales =
        sx_tf_along_axis(e, sx_tf_input_of(e, b.scales), of_result.axis, CONV_AXES);
    scale = ordered(e, ordered(e, scale, l.image, false), l.result, true);
    sx_tf_set(x, 0, ZIP(mul, sx_tf_cast_of(e, y, SX_F32), ZIP(mul, scale, scales)));
    return at.status;
}

/* UniformQuantizedClipByValue(x, low, high, scales, zeros) */
static sx_status import_uniform_clip(sx_tf_op_node *x)
{
    const int64_t axis = sx_tf_read_int(&x->tf.head, "quantization_axis", -1);
    sx_tf_expression at = {.x = x}, *e = &at;
    if (axis >= 0) {
        SX_TRY(sx_tf_require_rank(x, 0));
    }
    const int rank = x->tf.head.types[0].rank;
    const sx_value low = sx_tf_along_axis(e, sx_tf_input_of(e, 1), axis, rank),
                   high = sx_tf_along_axis(e, sx_tf_input_of(e, 2), axis, rank);
    sx_tf_set(x, 0, ZIP(minimum, ZIP(maximum, sx_tf_input_of(e, 0), low), high));
    return at.status;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_uniform_rows[] = {
    {"UniformQuantize", import_uniform_quantize, NULL},
    {"UniformDequantize", import_uniform_dequantize, NULL},
    {"UniformRequantize", import_uniform_requantize, NULL},
    {"UniformQuantizedAdd", import_uniform_add, NULL},
    {"UniformQuantizedDot", import_uniform_dot, NULL},
    {"UniformQuantizedDotHybrid", import_uniform_dot_hybrid, NULL},
    {"UniformQuantizedConvolution", import_uniform_conv, NULL},
    {"UniformQuantizedConvolutionHybrid", import_uniform_conv_hybrid, NULL},
    {"UniformQuantizedClipByValue", import_uniform_clip, NULL},
    {NULL, NULL, NULL},
};
