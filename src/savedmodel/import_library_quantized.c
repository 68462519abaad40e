/* Imports nodes that convert between floats and the integers of a range. TensorFlow's quantized
 * types are the plain ones with as many bits; what such a node computes is written in float32 step
 * by step as its kernels do, so that the same numbers fall on the same integers. */
#include "savedmodel/import_library_ops.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Expressions ---- */

/* Builds nodes of one output; after an error it builds no more. */
typedef struct expression {
    const sx_tf_op_node *x;
    sx_status status;
} expression;

static sx_value node(expression *e, const sx_op_def *op, const void *attrs, int n,
                     const sx_value *in)
{
    sx_value y = SX_NO_VALUE;
    if (e->status == SX_OK) {
        e->status = sx_tf_build(e->x, op, attrs, &y, n, in);
    }
    return y;
}

static sx_value number_of(expression *e, sx_dtype dtype, double value)
{
    sx_value y = SX_NO_VALUE;
    if (e->status == SX_OK) {
        e->status = sx_tf_number(e->x, dtype, value, &y);
    }
    return y;
}

static sx_value operand(expression *e, int i)
{
    sx_value y = SX_NO_VALUE;
    if (e->status == SX_OK) {
        e->status = sx_tf_operand(e->x, i, &y);
    }
    return y;
}

static sx_value cast_to(expression *e, sx_value v, sx_dtype dtype)
{
    return node(e, &sx_op_cast, &(sx_cast_attrs){dtype}, 1, &v);
}

#define NUMBER(value)      number_of(e, SX_F32, (value))
#define MAP(op_name, a)    node(e, &sx_op_##op_name, NULL, 1, (const sx_value[]){(a)})
#define ZIP(op_name, a, b) node(e, &sx_op_##op_name, NULL, 2, (const sx_value[]){(a), (b)})
#define CHOOSE(c, a, b)    node(e, &sx_op_select, NULL, 3, (const sx_value[]){(c), (a), (b)})

/* To the nearest integer, halves away from 0. */
static sx_value round_away(expression *e, sx_value v, sx_dtype dtype)
{
    const sx_value size = MAP(abs, v), whole = MAP(floor, size);
    const sx_value up = ZIP(greater_equal, ZIP(sub, size, whole), number_of(e, dtype, 0.5));
    const sx_value rounded = CHOOSE(up, ZIP(add, whole, number_of(e, dtype, 1)), whole);
    return CHOOSE(ZIP(less, v, number_of(e, dtype, 0)), MAP(neg, rounded), rounded);
}

/* ---- Integers ---- */

typedef struct integers {
    sx_dtype dtype;
    double lowest, highest;
    double steps; /* how many there are, less one */
    bool is_signed;
} integers;

static sx_status integers_of(const sx_tf_op_node *x, const char *name, sx_dtype otherwise,
                             integers *out)
{
    const sx_dtype dtype = sx_tf_read_dtype(&x->tf.head, name, otherwise);
    const bool is_signed = dtype == SX_I8 || dtype == SX_I16 || dtype == SX_I32;
    if (!is_signed && dtype != SX_U8 && dtype != SX_U16) {
        return sx_tf_unsupported("its integers are %s", sx_dtype_name(dtype));
    }
    const double count = ldexp(1, 8 * (int)sx_dtype_bytes(dtype));
    *out = (integers){.dtype = dtype,
                      .lowest = is_signed ? -count / 2 : 0,
                      .highest = is_signed ? count / 2 - 1 : count - 1,
                      .steps = count - 1,
                      .is_signed = is_signed};
    return SX_OK;
}

typedef enum mode { MIN_COMBINED, MIN_FIRST, SCALED } mode;

static sx_status mode_of(const sx_tf_op_node *x, mode *out)
{
    static const char *const names[] = {"MIN_COMBINED", "MIN_FIRST", "SCALED"};
    for (int i = 0; i < 3; i++) {
        if (sx_tf_read_is(&x->tf.head, "mode", names[i], i == MIN_COMBINED)) {
            *out = (mode)i;
            return SX_OK;
        }
    }
    return sx_tf_unsupported("an unknown mode");
}

/* A number for each element along the axis, in a shape that broadcasts with x; -1: one for all. */
static sx_value along_axis(expression *e, sx_value v, int64_t axis, int rank)
{
    for (int64_t d = axis + 1; axis >= 0 && d < rank && e->status == SX_OK; d++) {
        e->status = sx_tf_expand(e->x, v, -1, &v);
    }
    return v;
}

static sx_status axis_of(const sx_tf_op_node *x, int64_t *out)
{
    const int rank = x->tf.head.types[0].rank;
    *out = sx_tf_read_int(&x->tf.head, "axis", -1);
    if (*out >= 0) {
        SX_TRY(sx_tf_require_rank(x, 0));
    }
    return *out < -1 || (*out >= 0 && *out >= rank)
               ? sx_error(SX_DATA_LOSS, "axis is %lld for rank %d", (long long)*out, rank)
               : SX_OK;
}

/* ---- Quantize, Dequantize ---- */

/* x in MIN_FIRST's integers: round(x scale) - (round(low scale) - lowest), which are floats. */
static sx_value quantize_min_first(expression *e, const integers *q, sx_value v, sx_value low,
                                   sx_value high)
{
    const sx_value span = ZIP(sub, high, low);
    const sx_value none = ZIP(equal, high, low), zero = NUMBER(0);
    const sx_value scale = CHOOSE(none, zero, ZIP(div, NUMBER(q->steps), span));
    const sx_value first = round_away(e, ZIP(mul, low, scale), SX_F32);
    const sx_value y =
        ZIP(sub, round_away(e, ZIP(mul, v, scale), SX_F32), ZIP(sub, first, NUMBER(q->lowest)));
    const double most = q->dtype == SX_I32 ? 2147483520.0 : q->highest; /* of float32 */
    return ZIP(minimum, ZIP(maximum, y, NUMBER(q->lowest)), NUMBER(most));
}

/* MIN_FIRST's integers, as floats, as numbers of the range. */
static sx_value dequantize_min_first(expression *e, const integers *q, sx_value v, sx_value low,
                                     sx_value high)
{
    const sx_value scale = ZIP(div, ZIP(sub, high, low), NUMBER(q->steps));
    const sx_value rounded = ZIP(mul, round_away(e, ZIP(div, low, scale), SX_F32), scale);
    const sx_value first = CHOOSE(ZIP(equal, high, low), low, rounded);
    const sx_value zero = ZIP(sub, first, ZIP(mul, NUMBER(q->lowest), scale));
    return ZIP(add, zero, ZIP(mul, v, scale));
}

/* QuantizeV2(x, low, high): the integers, and the range that they stand for */
static sx_status import_quantize(sx_tf_op_node *x)
{
    const sx_tf_node *n = &x->tf.head;
    const bool even = sx_tf_read_is(n, "round_mode", "HALF_TO_EVEN", false);
    const double least = sx_tf_read_float(n, "ensure_minimum_range", (double)0.01f);
    expression at = {.x = x}, *e = &at;
    integers q = {0};
    mode by = MIN_COMBINED;
    int64_t axis = -1;
    SX_TRY(integers_of(x, "T", SX_DTYPE_NONE, &q));
    SX_TRY(mode_of(x, &by));
    SX_TRY(axis_of(x, &axis));
    const int rank = n->types[0].rank;
    const sx_value v = operand(e, 0), given_low = operand(e, 1), given_high = operand(e, 2);
    const sx_value zero = NUMBER(0);
    /* A range without 0, or too narrow, is widened. */
    sx_value low = ZIP(minimum, zero, given_low);
    const sx_value size = ZIP(maximum, MAP(abs, given_low), MAP(abs, given_high));
    const sx_value margin = ZIP(mul, ZIP(maximum, NUMBER(1), size), NUMBER(least));
    sx_value high = ZIP(maximum, given_high, ZIP(add, low, margin));
    high = ZIP(maximum, zero, high);
    sx_value y = SX_NO_VALUE;
    if (by == SCALED) {
        const double first = q.lowest + (sx_tf_read_bool(n, "narrow_range", false) ? 1 : 0);
        const sx_value none = NUMBER((double)FLT_MAX), least_int = NUMBER(first),
                       most_int = NUMBER(q.highest);
        const sx_value from_low =
            CHOOSE(ZIP(greater, ZIP(mul, least_int, low), zero), ZIP(div, least_int, low), none);
        const sx_value from_high =
            CHOOSE(ZIP(greater, ZIP(mul, most_int, high), zero), ZIP(div, most_int, high), none);
        const sx_value scale = ZIP(minimum, from_low, from_high);
        low = ZIP(div, least_int, scale);
        low = CHOOSE(ZIP(less, MAP(abs, low), NUMBER((double)FLT_MIN)), zero, low); /* as flushed */
        high = ZIP(div, most_int, scale);
        y = ZIP(minimum, v, along_axis(e, high, axis, rank));
        y = ZIP(maximum, y, along_axis(e, low, axis, rank));
        y = ZIP(mul, y, along_axis(e, scale, axis, rank));
        y = even ? MAP(round, y) : round_away(e, y, SX_F32);
    } else if (even) {
        return sx_tf_unsupported("round_mode HALF_TO_EVEN in another mode than SCALED");
    } else if (by == MIN_FIRST) {
        if (axis >= 0) {
            return sx_tf_unsupported("mode MIN_FIRST with an axis");
        }
        y = quantize_min_first(e, &q, v, low, high);
    } else {
        const sx_value first = along_axis(e, low, axis, rank),
                       scale = ZIP(div, NUMBER(q.steps), ZIP(sub, high, low));
        y = ZIP(maximum, ZIP(minimum, v, along_axis(e, high, axis, rank)), first);
        y = ZIP(mul, ZIP(sub, y, first), along_axis(e, scale, axis, rank));
        y = q.is_signed ? round_away(e, ZIP(sub, y, NUMBER((q.steps + 1) / 2)), SX_F32)
                        : ZIP(add, y, NUMBER(0.5));
    }
    sx_tf_set(x, 0, cast_to(e, y, q.dtype));
    sx_tf_set(x, 1, low);
    sx_tf_set(x, 2, high);
    return at.status;
}

/* Dequantize(integers, low, high) */
static sx_status import_dequantize(sx_tf_op_node *x)
{
    const sx_tf_node *n = &x->tf.head;
    expression at = {.x = x}, *e = &at;
    integers q = {0};
    mode by = MIN_COMBINED;
    int64_t axis = -1;
    SX_TRY(integers_of(x, "T", SX_DTYPE_NONE, &q));
    SX_TRY(mode_of(x, &by));
    SX_TRY(axis_of(x, &axis));
    const int rank = n->types[0].rank;
    const sx_value low = operand(e, 1), high = operand(e, 2);
    sx_value y = cast_to(e, operand(e, 0), SX_F32);
    if (by == MIN_FIRST) {
        if (axis >= 0) {
            return sx_tf_unsupported("mode MIN_FIRST with an axis");
        }
        y = dequantize_min_first(e, &q, y, low, high);
    } else if (by == SCALED) {
        const double first = q.lowest + (sx_tf_read_bool(n, "narrow_range", false) ? 1 : 0);
        sx_value scale = ZIP(div, high, NUMBER(q.highest));
        if (q.is_signed) {
            scale = ZIP(maximum, ZIP(div, low, NUMBER(first)), scale);
        }
        y = ZIP(mul, y, along_axis(e, scale, axis, rank));
    } else {
        const sx_value scale = ZIP(div, ZIP(sub, high, low), NUMBER(q.steps));
        y = q.is_signed ? ZIP(add, y, NUMBER((q.steps + 1) / 2)) : y;
        y = ZIP(mul, y, along_axis(e, scale, axis, rank));
        y = ZIP(add, y, along_axis(e, low, axis, rank));
    }
    sx_tf_set(x, 0, cast_to(e, y, sx_tf_read_dtype(n, "dtype", SX_F32)));
    return at.status;
}

/* ---- Integers of one range in another ---- */

#define WIDE(value) number_of(e, SX_F64, (value))

/* int32 [low, high] -> uint8 [to_low, to_high], in fixed-point numbers with 16 bits of fraction. */
static sx_value requantize_fixed(expression *e, sx_value v, sx_value low, sx_value high,
                                 sx_value to_low, sx_value to_high)
{
    enum { FRACTION = 65536 };
    const sx_value span = ZIP(sub, to_high, to_low), none = ZIP(equal, span, NUMBER(0));
    const sx_value reciprocal = CHOOSE(none, NUMBER(0), ZIP(div, NUMBER(255), span));
    const sx_value middle = ZIP(div, ZIP(add, low, high), NUMBER(2));
    const sx_value from = cast_to(e, ZIP(sub, high, low), SX_F64), to = cast_to(e, span, SX_F64);
    const sx_value no_scale = number_of(e, SX_I64, 0);
    sx_value scale = ZIP(div, ZIP(mul, WIDE(255.0 * FRACTION), from), to);
    scale = CHOOSE(none, no_scale, cast_to(e, scale, SX_I64));
    const sx_value offset =
        cast_to(e, ZIP(mul, ZIP(mul, middle, reciprocal), NUMBER(FRACTION)), SX_I64);
    sx_value start = ZIP(mul, cast_to(e, to_low, SX_F64), WIDE(255));
    start = ZIP(div, ZIP(mul, WIDE(FRACTION), start), to);
    start = CHOOSE(none, no_scale, cast_to(e, start, SX_I64));
    sx_value y = ZIP(mul, cast_to(e, v, SX_I64), scale);
    y = ZIP(floor_div, y, number_of(e, SX_I64, 0x1p32));
    const sx_value half = number_of(e, SX_I64, FRACTION / 2.0);
    y = ZIP(add, y, ZIP(add, ZIP(sub, offset, start), half));
    y = ZIP(floor_div, y, number_of(e, SX_I64, FRACTION));
    y = ZIP(minimum, ZIP(maximum, y, no_scale), number_of(e, SX_I64, 255));
    return cast_to(e, y, SX_U8);
}

static sx_value requantize(expression *e, const integers *from, const integers *to, sx_value v,
                           sx_value low, sx_value high, sx_value to_low, sx_value to_high)
{
    if (from->dtype == SX_I32 && to->dtype == SX_U8) {
        return requantize_fixed(e, v, low, high, to_low, to_high);
    }
    const sx_value y = dequantize_min_first(e, from, cast_to(e, v, SX_F32), low, high);
    return cast_to(e, quantize_min_first(e, to, y, to_low, to_high), to->dtype);
}

/* Requantize(integers, low, high, to_low, to_high): the integers, to_low, to_high */
static sx_status import_requantize(sx_tf_op_node *x)
{
    expression at = {.x = x}, *e = &at;
    integers from = {0}, to = {0};
    SX_TRY(integers_of(x, "Tinput", SX_DTYPE_NONE, &from));
    SX_TRY(integers_of(x, "out_type", SX_DTYPE_NONE, &to));
    const sx_value to_low = operand(e, 3), to_high = operand(e, 4);
    sx_tf_set(
        x, 0,
        requantize(e, &from, &to, operand(e, 0), operand(e, 1), operand(e, 2), to_low, to_high));
    sx_tf_set(x, 1, to_low);
    sx_tf_set(x, 2, to_high);
    return at.status;
}

/* An integer of the range as a number, in float64 as TensorFlow does here. */
static sx_value number_in_range(expression *e, const integers *q, sx_value v, sx_value low,
                                sx_value high)
{
    const sx_value span = cast_to(e, ZIP(sub, high, low), SX_F64);
    const sx_value scale =
        ZIP(div, ZIP(mul, span, WIDE((q->steps + 1) / q->steps)), WIDE(q->steps + 1));
    const sx_value narrow = cast_to(e, scale, SX_F32);
    const sx_value first = ZIP(mul, round_away(e, ZIP(div, low, narrow), SX_F32), narrow);
    const sx_value place = ZIP(sub, cast_to(e, v, SX_F64), WIDE(q->lowest));
    const sx_value y = ZIP(add, cast_to(e, first, SX_F64), ZIP(mul, place, scale));
    return CHOOSE(ZIP(equal, low, high), low, cast_to(e, y, SX_F32));
}

/* The range that the integers of input 0 use, from at most 0 on. */
static sx_status used_range(sx_tf_op_node *x, expression *e, const integers *q, sx_value out[2])
{
    const int rank = x->tf.head.types[0].rank;
    sx_reduce_attrs all = {.axes = {.n = 0}};
    SX_TRY(sx_tf_require_rank(x, 0));
    for (int d = 0; d < rank; d++) {
        all.axes.v[all.axes.n++] = d;
    }
    const sx_value v = operand(e, 0), low = operand(e, 1), high = operand(e, 2);
    const sx_value least = node(e, &sx_op_reduce_min, &all, 1, &v),
                   most = node(e, &sx_op_reduce_max, &all, 1, &v);
    out[0] = ZIP(minimum, NUMBER(0), number_in_range(e, q, least, low, high));
    out[1] = number_in_range(e, q, most, low, high);
    return e->status;
}

/* RequantizationRange(integers, low, high) */
static sx_status import_requantization_range(sx_tf_op_node *x)
{
    expression at = {.x = x};
    integers q = {0};
    sx_value range[2];
    SX_TRY(integers_of(x, "Tinput", SX_DTYPE_NONE, &q));
    SX_TRY(used_range(x, &at, &q, range));
    sx_tf_set(x, 0, range[0]);
    sx_tf_set(x, 1, range[1]);
    return SX_OK;
}

/* QuantizeDownAndShrinkRange(integers, low, high): Requantize to the range that is used */
static sx_status import_shrink_range(sx_tf_op_node *x)
{
    expression at = {.x = x}, *e = &at;
    integers from = {0}, to = {0};
    sx_value range[2];
    SX_TRY(integers_of(x, "Tinput", SX_DTYPE_NONE, &from));
    SX_TRY(integers_of(x, "out_type", SX_DTYPE_NONE, &to));
    SX_TRY(used_range(x, e, &from, range));
    sx_tf_set(
        x, 0,
        requantize(e, &from, &to, operand(e, 0), operand(e, 1), operand(e, 2), range[0], range[1]));
    sx_tf_set(x, 1, range[0]);
    sx_tf_set(x, 2, range[1]);
    return at.status;
}

/* ---- Arithmetic of integers ----
 *
 * Inputs are integers and, after all of them, the low and the high end of each one's range; outputs
 * the integers and their range. */

/* The node as operator `tf_op` of its first n inputs, which are in[n]. */
static sx_value as(expression *e, const char *tf_op, int n, const sx_value *in)
{
    sx_tf_op_node of = *e->x;
    sx_tf_import_node cut = *e->x->n;
    sx_value y = SX_NO_VALUE;
    cut.n_in = n;
    of.n = &cut;
    if (e->status == SX_OK) {
        e->status = sx_tf_import_as(&of, tf_op, in, n, &y);
    }
    return y;
}

/* A double as an integer of the range, which it may lie outside of; int32, as double. */
static sx_value place_of(expression *e, const integers *q, sx_value number, sx_value low,
                         sx_value high)
{
    const double count = q->steps + 1;
    sx_value range = cast_to(e, ZIP(sub, high, low), SX_F64);
    range = ZIP(mul, range, WIDE(count / q->steps));
    const sx_value scale = ZIP(div, WIDE(count), range);
    const sx_value from = ZIP(mul, cast_to(e, low, SX_F64), scale), at = ZIP(mul, number, scale);
    sx_value y = ZIP(sub, round_away(e, at, SX_F64), round_away(e, from, SX_F64));
    y = ZIP(add, y, WIDE(q->lowest));
    return CHOOSE(ZIP(equal, low, high), WIDE(q->lowest), y);
}

static sx_value within(expression *e, const integers *q, sx_value place)
{
    return ZIP(minimum, ZIP(maximum, place, WIDE(q->lowest)), WIDE(q->highest));
}

/* Sets outputs 1 and 2 to the range of products of integers: those of int32, times the product of
 * what one step is worth. `at`: where the ranges begin. */
static void set_product_range(sx_tf_op_node *x, expression *e, const integers *a, const integers *b,
                              int at)
{
    const sx_value of_a = ZIP(div, ZIP(sub, operand(e, at + 1), operand(e, at)), NUMBER(a->steps)),
                   of_b =
                       ZIP(div, ZIP(sub, operand(e, at + 3), operand(e, at + 2)), NUMBER(b->steps));
    const sx_value step = ZIP(mul, of_a, of_b);
    sx_tf_set(x, 1, ZIP(mul, step, NUMBER(-0x1p31)));
    sx_tf_set(x, 2, ZIP(mul, step, NUMBER(0x1p31)));
}

/* Input i less the integer that stands for 0, as `dtype`. `at`: where its range begins. */
static sx_value from_zero(expression *e, const integers *q, int i, int at, sx_dtype dtype)
{
    const sx_value zero = place_of(e, q, WIDE(0), operand(e, at), operand(e, at + 1));
    return ZIP(sub, cast_to(e, operand(e, i), dtype), cast_to(e, zero, dtype));
}

/* QuantizedMatMul(a, b), QuantizedMul(x, y), QuantizedConv2D(input, filter): products in int32;
 * padding stands for 0. */
static sx_status import_product(sx_tf_op_node *x)
{
    static const struct {
        const char *op;
        const char *dtypes[2];
        const char *as; /* of double, whose sums are exact; NULL: of int32, which wraps */
    } of[] = {{"QuantizedMatMul", {"T1", "T2"}, NULL},
              {"QuantizedMul", {"T1", "T2"}, NULL},
              {"QuantizedConv2D", {"Tinput", "Tfilter"}, "Conv2D"}};
    expression at = {.x = x}, *e = &at;
    integers a = {0}, b = {0};
    size_t k = 0;
    while (k + 1 < SX_COUNT(of) && strcmp(of[k].op, x->n->node->op) != 0) {
        k++;
    }
    SX_TRY(integers_of(x, of[k].dtypes[0], SX_DTYPE_NONE, &a));
    SX_TRY(integers_of(x, of[k].dtypes[1], SX_DTYPE_NONE, &b));
    const sx_dtype dtype = of[k].as != NULL ? SX_F64 : SX_I32;
    const sx_value in[] = {from_zero(e, &a, 0, 2, dtype), from_zero(e, &b, 1, 4, dtype)};
    const sx_matmul_attrs turned = {
        .transpose_a = sx_tf_read_bool(&x->tf.head, "transpose_a", false),
        .transpose_b = sx_tf_read_bool(&x->tf.head, "transpose_b", false)};
    sx_value y = of[k].as != NULL ? as(e, of[k].as, 2, in)
                 : k == 0         ? node(e, &sx_op_matmul, &turned, 2, in)
                                  : node(e, &sx_op_mul, NULL, 2, in);
    sx_tf_set(x, 0, cast_to(e, y, SX_I32));
    set_product_range(x, e, &a, &b, 2);
    return at.status;
}

/* The range of sums of int32 in which there is room for `room` times the largest of both ranges. */
static void set_sum_range(sx_tf_op_node *x, expression *e, double room, sx_value range[2])
{
    const sx_value most = ZIP(maximum, ZIP(maximum, operand(e, 3), MAP(neg, operand(e, 2))),
                              ZIP(maximum, operand(e, 5), MAP(neg, operand(e, 4))));
    range[1] = ZIP(mul, most, NUMBER(room));
    range[0] = MAP(neg, range[1]);
    sx_tf_set(x, 1, range[0]);
    sx_tf_set(x, 2, range[1]);
}

/* Integers v of a range in that of `to`, int32, as double. */
static sx_value in_new_range(expression *e, const integers *q, sx_value v, sx_value low,
                             sx_value high, const integers *to, const sx_value range[2])
{
    const sx_value number = number_in_range(e, q, v, low, high);
    return place_of(e, to, cast_to(e, number, SX_F64), range[0], range[1]);
}

/* QuantizedBiasAdd(x, bias): both in int32, added. */
static sx_status import_bias_add(sx_tf_op_node *x)
{
    enum { ROOM = 1 << 17 };
    expression at = {.x = x}, *e = &at;
    integers to = {0};
    sx_value range[2], of[2];
    SX_TRY(integers_of(x, "out_type", SX_I32, &to));
    set_sum_range(x, e, ROOM, range);
    for (int i = 0; i < 2; i++) {
        integers q = {0};
        SX_TRY(integers_of(x, i == 0 ? "T1" : "T2", SX_DTYPE_NONE, &q));
        const sx_value place = in_new_range(e, &q, operand(e, i), operand(e, 2 + 2 * i),
                                            operand(e, 3 + 2 * i), &to, range);
        of[i] = cast_to(e, within(e, &to, place), to.dtype);
    }
    sx_tf_set(x, 0, node(e, &sx_op_add, NULL, 2, of));
    return at.status;
}

/* QuantizedAdd(x, y): the same, but the step from one integer to the next is that from 0 to 1 for
 * all, unless a single integer is added to the others. */
static sx_status import_quantized_add(sx_tf_op_node *x)
{
    enum { ROOM = 1 << 14 };
    expression at = {.x = x}, *e = &at;
    integers to = {0};
    sx_value range[2], of[2], single = SX_NO_VALUE;
    SX_TRY(integers_of(x, "Toutput", SX_I32, &to));
    set_sum_range(x, e, ROOM, range);
    for (int i = 0; i < 2; i++) {
        static const sx_reduce_attrs all = {.axes = {1, {0}}};
        integers q = {0};
        SX_TRY(integers_of(x, i == 0 ? "T1" : "T2", SX_DTYPE_NONE, &q));
        const sx_value v = operand(e, i), low = operand(e, 2 + 2 * i), high = operand(e, 3 + 2 * i);
        sx_value size = node(e, &sx_op_shape, &(sx_cast_attrs){SX_I64}, 1, &v);
        size = node(e, &sx_op_reduce_prod, &all, 1, &size);
        const sx_value one = ZIP(equal, size, number_of(e, SX_I64, 1));
        /* of two single ones, the first */
        const sx_value alone = i == 0 ? one : ZIP(logical_and, one, MAP(logical_not, single));
        single = one;
        const sx_value exact = in_new_range(e, &q, v, low, high, &to, range);
        const sx_value first = in_new_range(e, &q, number_of(e, q.dtype, 0), low, high, &to, range);
        const sx_value second =
            in_new_range(e, &q, number_of(e, q.dtype, 1), low, high, &to, range);
        const sx_value even =
            ZIP(add, first, ZIP(mul, cast_to(e, v, SX_F64), ZIP(sub, second, first)));
        of[i] = cast_to(e, within(e, &to, CHOOSE(alone, exact, even)), to.dtype);
    }
    sx_tf_set(x, 0, node(e, &sx_op_add, NULL, 2, of));
    return at.status;
}

/* Outputs 1 and 2 are inputs `from` and the next. */
static void keep_range(sx_tf_op_node *x, expression *e, int from)
{
    sx_tf_set(x, 1, operand(e, from));
    sx_tf_set(x, 2, operand(e, from + 1));
}

/* QuantizedRelu(x, low, high), QuantizedRelu6 */
static sx_status import_quantized_relu(sx_tf_op_node *x)
{
    const bool to_six = strcmp(x->n->node->op, "QuantizedRelu6") == 0;
    expression at = {.x = x}, *e = &at;
    integers q = {0};
    SX_TRY(integers_of(x, "Tinput", SX_DTYPE_NONE, &q));
    const sx_value low = operand(e, 1), high = operand(e, 2);
    sx_value y = cast_to(e, operand(e, 0), SX_F64);
    y = ZIP(maximum, y, within(e, &q, place_of(e, &q, WIDE(0), low, high)));
    if (to_six) {
        y = ZIP(minimum, y, within(e, &q, place_of(e, &q, WIDE(6), low, high)));
    }
    sx_tf_set(x, 0, cast_to(e, y, q.dtype));
    keep_range(x, e, 1);
    return at.status;
}

/* QuantizedMaxPool(x, low, high), QuantizedAvgPool, whose quotients are cut. */
static sx_status import_quantized_pool(sx_tf_op_node *x)
{
    const bool max = strcmp(x->n->node->op, "QuantizedMaxPool") == 0;
    expression at = {.x = x}, *e = &at;
    integers q = {0};
    SX_TRY(integers_of(x, "T", SX_DTYPE_NONE, &q));
    if (q.dtype == SX_I32) {
        return sx_tf_unsupported("its integers are int32");
    }
    const sx_value v = cast_to(e, operand(e, 0), max ? SX_F32 : SX_F64);
    sx_value y = as(e, max ? "MaxPool" : "AvgPool", 1, &v);
    if (!max) { /* a quotient that should be whole may lie just below */
        y = ZIP(add, y, ZIP(mul, MAP(sign, y), WIDE(0x1p-20)));
    }
    sx_tf_set(x, 0, cast_to(e, y, q.dtype));
    keep_range(x, e, 1);
    return at.status;
}

/* QuantizedReshape(x, shape, low, high) */
static sx_status import_quantized_reshape(sx_tf_op_node *x)
{
    expression at = {.x = x}, *e = &at;
    const sx_value in[] = {operand(e, 0), operand(e, 1)};
    sx_tf_set(x, 0, as(e, "Reshape", 2, in));
    keep_range(x, e, 2);
    return at.status;
}

/* QuantizedConcat(axis, values..., lows..., highs...): all in the range that has room for each. */
static sx_status import_quantized_concat(sx_tf_op_node *x)
{
    const int n = (x->n->n_in - 1) / 3;
    const int64_t said = sx_tf_read_int(&x->tf.head, "N", 0);
    expression at = {.x = x}, *e = &at;
    integers q = {0};
    SX_TRY(integers_of(x, "T", SX_DTYPE_NONE, &q));
    if (n < 1 || x->n->n_in != 1 + 3 * n || said != n) {
        return sx_error(SX_DATA_LOSS, "it has %d inputs for N of %lld", x->n->n_in,
                        (long long)said);
    }
    sx_value low = operand(e, 1 + n), high = operand(e, 1 + 2 * n);
    sx_value *in = sx_arena_array(&x->im->arena, n + 1, sx_value);
    if (in == NULL) {
        return sx_import_memory();
    }
    for (int i = 1; i < n; i++) {
        low = ZIP(minimum, low, operand(e, 1 + n + i));
        high = ZIP(maximum, high, operand(e, 1 + 2 * n + i));
    }
    if (!q.is_signed) { /* 0 is a number of the range */
        low = ZIP(minimum, low, NUMBER(0));
    } else { /* the range is as far below 0 as above */
        const sx_value most = ZIP(maximum, MAP(neg, low), high);
        low = MAP(neg, most);
        high = most;
    }
    in[0] = operand(e, 0);
    for (int i = 0; i < n; i++) {
        const sx_value from = operand(e, 1 + n + i), to = operand(e, 1 + 2 * n + i),
                       v = operand(e, 1 + i);
        const sx_value number = dequantize_min_first(e, &q, cast_to(e, v, SX_F32), from, to);
        const sx_value other = cast_to(e, quantize_min_first(e, &q, number, low, high), q.dtype);
        const sx_value same = ZIP(logical_and, ZIP(equal, from, low), ZIP(equal, to, high));
        in[1 + i] = CHOOSE(same, v, other);
    }
    sx_tf_set(x, 0, as(e, "Concat", 1 + n, in));
    sx_tf_set(x, 1, low);
    sx_tf_set(x, 2, high);
    return at.status;
}

/* ---- There and back ---- */

static sx_fake_quant_attrs fake_quant_attrs(const sx_tf_node *n)
{
    return (sx_fake_quant_attrs){.num_bits = sx_tf_read_int(n, "num_bits", 8),
                                 .narrow_range = sx_tf_read_bool(n, "narrow_range", false)};
}

/* FakeQuantWithMinMaxArgs(x) {min, max} */
static sx_status import_fake_quant(sx_tf_op_node *x)
{
    const sx_tf_node *n = &x->tf.head;
    const sx_fake_quant_attrs attrs = fake_quant_attrs(n);
    expression at = {.x = x}, *e = &at;
    const sx_value in[] = {operand(e, 0), NUMBER(sx_tf_read_float(n, "min", -6)),
                           NUMBER(sx_tf_read_float(n, "max", 6))};
    sx_tf_set(x, 0, node(e, &sx_op_fake_quant, &attrs, 3, in));
    return at.status;
}

/* FakeQuantWithMinMaxArgsGradient(dy, x) {min, max} */
static sx_status import_fake_quant_grad(sx_tf_op_node *x)
{
    const sx_tf_node *n = &x->tf.head;
    const sx_fake_quant_attrs attrs = fake_quant_attrs(n);
    expression at = {.x = x}, *e = &at;
    const sx_value in[] = {operand(e, 0), operand(e, 1), NUMBER(sx_tf_read_float(n, "min", -6)),
                           NUMBER(sx_tf_read_float(n, "max", 6))};
    sx_value dx = SX_NO_VALUE;
    int n_out = 0;
    SX_TRY(at.status);
    SX_TRY(sx_tf_add_node(x, &sx_op_fake_quant_grad, &attrs, in, 4, NULL, 0, &dx, &n_out));
    sx_tf_set(x, 0, dx);
    return SX_OK;
}

/* QuantizeAndDequantizeV2, V3, V4 without a given range: that of x. V3 has num_bits as input 3. */
static sx_status import_quantize_dequantize(sx_tf_op_node *x)
{
    const sx_tf_node *n = &x->tf.head;
    const char *op = x->n->node->op;
    sx_quantize_dequantize_attrs attrs = {
        .num_bits = sx_tf_read_int(n, "num_bits", 8),
        .signed_input = sx_tf_read_bool(n, "signed_input", true),
        .narrow_range = sx_tf_read_bool(n, "narrow_range", false),
        .half_up = sx_tf_read_is(n, "round_mode", "HALF_UP", false),
        .straight_through = strcmp(op, "QuantizeAndDequantizeV4") != 0};
    if (sx_tf_read_bool(n, "range_given", strcmp(op, "QuantizeAndDequantizeV3") == 0)) {
        return sx_tf_import_one(x);
    }
    SX_TRY(sx_tf_require_rank(x, 0));
    SX_TRY(axis_of(x, &attrs.axis));
    if (strcmp(op, "QuantizeAndDequantizeV3") == 0) {
        sx_ints bits = {0};
        SX_TRY(sx_tf_operand_ints(x, 3, &bits));
        if (bits.n != 1) {
            return sx_error(SX_DATA_LOSS, "num_bits has %d numbers, expected 1", bits.n);
        }
        attrs.num_bits = bits.v[0];
    }
    expression at = {.x = x}, *e = &at;
    sx_reduce_attrs all = {.axes = {.n = 0}};
    for (int d = 0; d < n->types[0].rank; d++) {
        if (d != attrs.axis) {
            all.axes.v[all.axes.n++] = d;
        }
    }
    const sx_value v = operand(e, 0);
    const sx_value in[] = {v, node(e, &sx_op_reduce_min, &all, 1, &v),
                           node(e, &sx_op_reduce_max, &all, 1, &v)};
    const bool masked = !attrs.straight_through;
    attrs.straight_through = true;
    sx_value y = node(e, &sx_op_quantize_dequantize, &attrs, 3, in);
    if (masked) { /* V4's gradient passes in the range that the value does without */
        const int rank = n->types[0].rank;
        const sx_value above =
                           ZIP(greater_equal, v, along_axis(e, operand(e, 1), attrs.axis, rank)),
                       below = ZIP(less_equal, v, along_axis(e, operand(e, 2), attrs.axis, rank));
        y = CHOOSE(ZIP(logical_and, above, below), y, MAP(stop_gradient, y));
    }
    sx_tf_set(x, 0, y);
    return at.status;
}

/* QuantizeAndDequantizeV4Grad(dy, x, low, high): dy where low <= x <= high; none to low and high */
static sx_status import_quantize_dequantize_grad(sx_tf_op_node *x)
{
    const sx_dtype dtype = x->tf.head.types[1].dtype;
    const int rank = x->tf.head.types[1].rank;
    const int64_t axis = sx_tf_read_int(&x->tf.head, "axis", -1);
    expression at = {.x = x}, *e = &at;
    if (axis >= 0) {
        SX_TRY(sx_tf_require_rank(x, 1));
    }
    const sx_value dy = operand(e, 0), v = operand(e, 1), low = operand(e, 2), high = operand(e, 3),
                   zero = number_of(e, dtype, 0);
    const sx_value above = ZIP(greater_equal, v, along_axis(e, low, axis, rank)),
                   below = ZIP(less_equal, v, along_axis(e, high, axis, rank));
    sx_tf_set(x, 0, CHOOSE(ZIP(logical_and, above, below), dy, zero));
    sx_tf_set(x, 1, ZIP(mul_no_nan, low, zero));
    sx_tf_set(x, 2, ZIP(mul_no_nan, high, zero));
    return at.status;
}

/* ---- Uniform quantization ----
 *
 * Each tensor of integers has a scale and the integer that stands for 0, or those of each index of
 * an axis. */

/* UniformQuantize(x, scales, zeros): x / scale, rounded half up, + zero, within the bounds */
static sx_status import_uniform_quantize(sx_tf_op_node *x)
{
    const sx_tf_node *n = &x->tf.head;
    const int64_t axis = sx_tf_read_int(n, "quantization_axis", -1);
    const double least = (double)sx_tf_read_int(n, "quantization_min_val", 0),
                 most = (double)sx_tf_read_int(n, "quantization_max_val", 0);
    expression at = {.x = x}, *e = &at;
    integers q = {0};
    SX_TRY(integers_of(x, "Tout", SX_DTYPE_NONE, &q));
    if (axis >= 0) {
        SX_TRY(sx_tf_require_rank(x, 0));
    }
    const int rank = n->types[0].rank;
    const sx_value v = operand(e, 0), scale = along_axis(e, operand(e, 1), axis, rank),
                   zero = along_axis(e, cast_to(e, operand(e, 2), SX_F32), axis, rank);
    sx_value y = ZIP(mul, v, MAP(reciprocal, scale));
    y = ZIP(add, MAP(floor, ZIP(add, y, NUMBER(0.5))), zero);
    y = ZIP(minimum, ZIP(maximum, y, NUMBER(least)), NUMBER(most));
    sx_tf_set(x, 0, cast_to(e, y, q.dtype));
    return at.status;
}

/* UniformDequantize(x, scales, zeros): (x - zero) scale */
static sx_status import_uniform_dequantize(sx_tf_op_node *x)
{
    const int64_t axis = sx_tf_read_int(&x->tf.head, "quantization_axis", -1);
    expression at = {.x = x}, *e = &at;
    if (axis >= 0) {
        SX_TRY(sx_tf_require_rank(x, 0));
    }
    const int rank = x->tf.head.types[0].rank;
    const sx_value v = cast_to(e, operand(e, 0), SX_I32),
                   scale = along_axis(e, operand(e, 1), axis, rank),
                   zero = along_axis(e, operand(e, 2), axis, rank);
    sx_tf_set(x, 0, ZIP(mul, cast_to(e, ZIP(sub, v, zero), SX_F32), scale));
    return at.status;
}

/* A tensor of integers: which inputs say what they stand for. */
typedef struct uniform {
    int scales, zeros;      /* inputs */
    int64_t axis;           /* -1: one scale and zero */
    double least, most;     /* of its integers */
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
static sx_value zeros_of(expression *e, const uniform *u, int rank, sx_dtype dtype)
{
    return along_axis(e, cast_to(e, operand(e, u->zeros), dtype), u->axis, rank);
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
static sx_value rescale(expression *e, sx_value sum, const uniform *const *from, int n,
                        const uniform *to, int64_t axis, int rank)
{
    enum { BITS = 31 };
    int64_t count = scale_count(to);
    for (int i = 0; i < n; i++) {
        count = SX_MAX(count, scale_count(from[i]));
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
        v[i] = along_axis(e, v[i], one ? -1 : axis, rank);
    }
    return ZIP(floor_div, ZIP(add, ZIP(mul, sum, v[0]), v[1]), v[2]);
}

/* An int64 within the bounds of a tensor's integers. */
static sx_value within_bounds(expression *e, const uniform *u, sx_value v)
{
    v = ZIP(maximum, v, number_of(e, SX_I64, u->least));
    return ZIP(minimum, v, number_of(e, SX_I64, u->most));
}

/* Input i of `u` in the scale of `to`, an int64. */
static sx_value uniform_in_scale(expression *e, int i, const uniform *u, const uniform *to)
{
    const int rank = e->x->tf.head.types[i].rank;
    const int64_t axis = u->axis >= 0 ? u->axis : to->axis;
    sx_value v = cast_to(e, operand(e, i), SX_I64);
    v = ZIP(sub, v, zeros_of(e, u, rank, SX_I64));
    v = rescale(e, v, (const uniform *const[]){u}, 1, to, axis, rank);
    return within_bounds(e, to, ZIP(add, v, zeros_of(e, to, rank, SX_I64)));
}

/* UniformRequantize(x, scales, zeros, to_scales, to_zeros) */
static sx_status import_uniform_requantize(sx_tf_op_node *x)
{
    expression at = {.x = x}, *e = &at;
    integers q = {0};
    uniform from, to;
    SX_TRY(integers_of(x, "Tout", SX_DTYPE_NONE, &q));
    SX_TRY(read_uniform(x, "input", 1, &from));
    SX_TRY(read_uniform(x, "output", 3, &to));
    SX_TRY(sx_tf_require_rank(x, 0));
    sx_tf_set(x, 0, cast_to(e, uniform_in_scale(e, 0, &from, &to), q.dtype));
    return at.status;
}

/* UniformQuantizedAdd(a, b, a_scales, a_zeros, b_scales, b_zeros, to_scales, to_zeros): both in the
 * scale of the result, added. */
static sx_status import_uniform_add(sx_tf_op_node *x)
{
    expression at = {.x = x}, *e = &at;
    integers q = {0};
    uniform of[2], to;
    sx_value in[2], zero = SX_NO_VALUE;
    SX_TRY(integers_of(x, "T", SX_DTYPE_NONE, &q));
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
    sx_tf_set(x, 0,
              cast_to(e, within_bounds(e, &to, ZIP(sub, ZIP(add, in[0], in[1]), zero)), q.dtype));
    return at.status;
}

/* UniformQuantizedDot(a, b, a_scales, a_zeros, b_scales, b_zeros, to_scales, to_zeros): the product
 * of matrices, in int32, in the scale of the result. */
static sx_status import_uniform_dot(sx_tf_op_node *x)
{
    expression at = {.x = x}, *e = &at;
    integers q = {0};
    uniform a, b, to;
    SX_TRY(integers_of(x, "Tout", SX_DTYPE_NONE, &q));
    SX_TRY(read_uniform(x, "lhs", 2, &a));
    SX_TRY(read_uniform(x, "rhs", 4, &b));
    SX_TRY(read_uniform(x, "output", 6, &to));
    const sx_value left = ZIP(sub, cast_to(e, operand(e, 0), SX_I32), operand(e, a.zeros)),
                   right = ZIP(sub, cast_to(e, operand(e, 1), SX_I32), zeros_of(e, &b, 2, SX_I32));
    const sx_matmul_attrs plain = {.transpose_a = false};
    const sx_value sum =
        cast_to(e, node(e, &sx_op_matmul, &plain, 2, (const sx_value[]){left, right}), SX_I64);
    const sx_value y = rescale(e, sum, (const uniform *const[]){&a, &b}, 2, &to, 1, 2);
    sx_tf_set(x, 0,
              cast_to(e, within_bounds(e, &to, ZIP(add, y, zeros_of(e, &to, 2, SX_I64))), q.dtype));
    return at.status;
}

/* UniformQuantizedDotHybrid(a, b, scales, zeros): the product of a matrix of floats, of which each
 * row becomes integers of 8 bits in its own range, and one of integers. */
static sx_status import_uniform_dot_hybrid(sx_tf_op_node *x)
{
    static const sx_reduce_attrs of_row = {.axes = {1, {1}}, .keep_dims = true};
    static const sx_matmul_attrs plain = {.transpose_a = false};
    expression at = {.x = x}, *e = &at;
    uniform b;
    SX_TRY(read_uniform(x, "rhs", 2, &b));
    const sx_value v = operand(e, 0), none = NUMBER(0), least = WIDE(-128), most = WIDE(127);
    const sx_value low =
        cast_to(e, ZIP(minimum, none, node(e, &sx_op_reduce_min, &of_row, 1, &v)), SX_F64);
    const sx_value high =
        cast_to(e, ZIP(maximum, none, node(e, &sx_op_reduce_max, &of_row, 1, &v)), SX_F64);
    const sx_value span = ZIP(sub, high, low);
    const sx_value scale = cast_to(e, ZIP(div, span, WIDE(255)), SX_F32),
                   empty = ZIP(equal, scale, none);
    const sx_value step = CHOOSE(empty, NUMBER(1), scale), wide = cast_to(e, step, SX_F64);
    /* The zero is counted from the end of the range that is nearer to it. */
    const sx_value below = ZIP(div, low, wide), above = ZIP(div, high, wide);
    const sx_value nearer =
        ZIP(less, ZIP(add, WIDE(128), MAP(abs, below)), ZIP(add, WIDE(127), MAP(abs, above)));
    sx_value zero = CHOOSE(nearer, ZIP(sub, least, below), ZIP(sub, most, above));
    zero = ZIP(minimum, ZIP(maximum, round_away(e, zero, SX_F64), least), most);
    zero = CHOOSE(empty, WIDE(0), zero);
    const sx_value steps = cast_to(e, ZIP(div, WIDE(255), span), SX_F32);
    sx_value q = MAP(floor, ZIP(add, ZIP(mul, v, CHOOSE(empty, none, steps)), NUMBER(0.5)));
    q = ZIP(add, cast_to(e, q, SX_F64), zero);
    q = ZIP(sub, ZIP(minimum, ZIP(maximum, q, least), most), zero);
    const sx_value right = ZIP(sub, cast_to(e, operand(e, 1), SX_I32), zeros_of(e, &b, 2, SX_I32));
    const sx_value sum =
        node(e, &sx_op_matmul, &plain, 2, (const sx_value[]){cast_to(e, q, SX_I32), right});
    const sx_value scales = along_axis(e, operand(e, b.scales), b.axis, 2);
    sx_tf_set(x, 0, ZIP(mul, cast_to(e, sum, SX_F32), ZIP(mul, step, scales)));
    return at.status;
}

/* UniformQuantizedClipByValue(x, low, high, scales, zeros) */
static sx_status import_uniform_clip(sx_tf_op_node *x)
{
    const int64_t axis = sx_tf_read_int(&x->tf.head, "quantization_axis", -1);
    expression at = {.x = x}, *e = &at;
    if (axis >= 0) {
        SX_TRY(sx_tf_require_rank(x, 0));
    }
    const int rank = x->tf.head.types[0].rank;
    const sx_value low = along_axis(e, operand(e, 1), axis, rank),
                   high = along_axis(e, operand(e, 2), axis, rank);
    sx_tf_set(x, 0, ZIP(minimum, ZIP(maximum, operand(e, 0), low), high));
    return at.status;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_quantized_rows[] = {
    {"QuantizeV2", import_quantize, NULL},
    {"Dequantize", import_dequantize, NULL},
    {"Requantize", import_requantize, NULL},
    {"RequantizationRange", import_requantization_range, NULL},
    {"QuantizeDownAndShrinkRange", import_shrink_range, NULL},
    {"QuantizedMatMul", import_product, NULL},
    {"QuantizedMul", import_product, NULL},
    {"QuantizedConv2D", import_product, NULL},
    {"QuantizedAdd", import_quantized_add, NULL},
    {"QuantizedBiasAdd", import_bias_add, NULL},
    {"QuantizedRelu", import_quantized_relu, NULL},
    {"QuantizedRelu6", import_quantized_relu, NULL},
    {"QuantizedMaxPool", import_quantized_pool, NULL},
    {"QuantizedAvgPool", import_quantized_pool, NULL},
    {"QuantizedReshape", import_quantized_reshape, NULL},
    {"QuantizedConcat", import_quantized_concat, NULL},
    {"UniformQuantize", import_uniform_quantize, NULL},
    {"UniformDequantize", import_uniform_dequantize, NULL},
    {"UniformRequantize", import_uniform_requantize, NULL},
    {"UniformQuantizedAdd", import_uniform_add, NULL},
    {"UniformQuantizedDot", import_uniform_dot, NULL},
    {"UniformQuantizedDotHybrid", import_uniform_dot_hybrid, NULL},
    {"UniformQuantizedClipByValue", import_uniform_clip, NULL},
    {"FakeQuantWithMinMaxArgs", import_fake_quant, NULL},
    {"FakeQuantWithMinMaxArgsGradient", import_fake_quant_grad, NULL},
    {"QuantizeAndDequantizeV2", import_quantize_dequantize, NULL},
    {"QuantizeAndDequantizeV3", import_quantize_dequantize, NULL},
    {"QuantizeAndDequantizeV4", import_quantize_dequantize, NULL},
    {"QuantizeAndDequantizeV4Grad", import_quantize_dequantize_grad, NULL},
    {NULL, NULL, NULL},
};
