/* Imports nodes that convert between floats and the integers of a range. TensorFlow's quantized
 * types are the plain ones with as many bits; what such a node computes is written in float32 step
 * by step as its kernels do, so that the same numbers fall on the same integers. */
#include "savedmodel/import_library_quantized.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Expressions ---- */

sx_value sx_tf_node_of(sx_tf_expression *e, const sx_op_def *op, const void *attrs, int n,
                       const sx_value *in)
{
    sx_value y = SX_NO_VALUE;
    if (e->status == SX_OK) {
        e->status = sx_tf_build(e->x, op, attrs, &y, n, in);
    }
    return y;
}

sx_value sx_tf_number_of(sx_tf_expression *e, sx_dtype dtype, double value)
{
    sx_value y = SX_NO_VALUE;
    if (e->status == SX_OK) {
        e->status = sx_tf_number(e->x, dtype, value, &y);
    }
    return y;
}

sx_value sx_tf_input_of(sx_tf_expression *e, int i)
{
    sx_value y = SX_NO_VALUE;
    if (e->status == SX_OK) {
        e->status = sx_tf_operand(e->x, i, &y);
    }
    return y;
}

sx_value sx_tf_cast_of(sx_tf_expression *e, sx_value v, sx_dtype dtype)
{
    return sx_tf_node_of(e, &sx_op_cast, &(sx_cast_attrs){dtype}, 1, &v);
}

sx_value sx_tf_round_away(sx_tf_expression *e, sx_value v, sx_dtype dtype)
{
    const sx_value size = MAP(abs, v), whole = MAP(floor, size);
    const sx_value up = ZIP(greater_equal, ZIP(sub, size, whole), sx_tf_number_of(e, dtype, 0.5));
    const sx_value rounded = CHOOSE(up, ZIP(add, whole, sx_tf_number_of(e, dtype, 1)), whole);
    return CHOOSE(ZIP(less, v, sx_tf_number_of(e, dtype, 0)), MAP(neg, rounded), rounded);
}

/* ---- Integers ---- */

sx_status sx_tf_integers_of(const sx_tf_op_node *x, const char *name, sx_dtype otherwise,
                            sx_tf_integers *out)
{
    const sx_dtype dtype = sx_tf_read_dtype(&x->tf.head, name, otherwise);
    const bool is_signed = dtype == SX_I8 || dtype == SX_I16 || dtype == SX_I32;
    if (!is_signed && dtype != SX_U8 && dtype != SX_U16) {
        return sx_tf_unsupported("its integers are %s", sx_dtype_name(dtype));
    }
    const double count = ldexp(1, 8 * (int)sx_dtype_bytes(dtype));
    *out = (sx_tf_integers){.dtype = dtype,
                            .lowest = is_signed ? -count / 2 : 0,
                            .highest = is_signed ? count / 2 - 1 : count - 1,
                            .steps = count - 1,
                            .is_signed = is_signed};
    return SX_OK;
}

sx_value sx_tf_along_axis(sx_tf_expression *e, sx_value v, int64_t axis, int rank)
{
    for (int64_t d = axis + 1; axis >= 0 && d < rank && e->status == SX_OK; d++) {
        e->status = sx_tf_expand(e->x, v, -1, &v);
    }
    return v;
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
static sx_value quantize_min_first(sx_tf_expression *e, const sx_tf_integers *q, sx_value v,
                                   sx_value low, sx_value high)
{
    const sx_value span = ZIP(sub, high, low);
    const sx_value none = ZIP(equal, high, low), zero = NUMBER(0);
    const sx_value scale = CHOOSE(none, zero, ZIP(div, NUMBER(q->steps), span));
    const sx_value first = sx_tf_round_away(e, ZIP(mul, low, scale), SX_F32);
    const sx_value y = ZIP(sub, sx_tf_round_away(e, ZIP(mul, v, scale), SX_F32),
                           ZIP(sub, first, NUMBER(q->lowest)));
    const double most = q->dtype == SX_I32 ? 2147483520.0 : q->highest; /* of float32 */
    return ZIP(minimum, ZIP(maximum, y, NUMBER(q->lowest)), NUMBER(most));
}

/* MIN_FIRST's integers, as floats, as numbers of the range. */
static sx_value dequantize_min_first(sx_tf_expression *e, const sx_tf_integers *q, sx_value v,
                                     sx_value low, sx_value high)
{
    const sx_value scale = ZIP(div, ZIP(sub, high, low), NUMBER(q->steps));
    const sx_value rounded = ZIP(mul, sx_tf_round_away(e, ZIP(div, low, scale), SX_F32), scale);
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
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_tf_integers q = {0};
    mode by = MIN_COMBINED;
    int64_t axis = -1;
    SX_TRY(sx_tf_integers_of(x, "T", SX_DTYPE_NONE, &q));
    SX_TRY(mode_of(x, &by));
    SX_TRY(axis_of(x, &axis));
    const int rank = n->types[0].rank;
    const sx_value v = sx_tf_input_of(e, 0), given_low = sx_tf_input_of(e, 1),
                   given_high = sx_tf_input_of(e, 2);
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
        y = ZIP(minimum, v, sx_tf_along_axis(e, high, axis, rank));
        y = ZIP(maximum, y, sx_tf_along_axis(e, low, axis, rank));
        y = ZIP(mul, y, sx_tf_along_axis(e, scale, axis, rank));
        y = even ? MAP(round, y) : sx_tf_round_away(e, y, SX_F32);
    } else if (even) {
        return sx_tf_unsupported("round_mode HALF_TO_EVEN in another mode than SCALED");
    } else if (by == MIN_FIRST) {
        if (axis >= 0) {
            return sx_tf_unsupported("mode MIN_FIRST with an axis");
        }
        y = quantize_min_first(e, &q, v, low, high);
    } else {
        const sx_value first = sx_tf_along_axis(e, low, axis, rank),
                       scale = ZIP(div, NUMBER(q.steps), ZIP(sub, high, low));
        y = ZIP(maximum, ZIP(minimum, v, sx_tf_along_axis(e, high, axis, rank)), first);
        y = ZIP(mul, ZIP(sub, y, first), sx_tf_along_axis(e, scale, axis, rank));
        y = q.is_signed ? sx_tf_round_away(e, ZIP(sub, y, NUMBER((q.steps + 1) / 2)), SX_F32)
                        : ZIP(add, y, NUMBER(0.5));
    }
    sx_tf_set(x, 0, sx_tf_cast_of(e, y, q.dtype));
    sx_tf_set(x, 1, low);
    sx_tf_set(x, 2, high);
    return at.status;
}

/* Dequantize(integers, low, high) */
static sx_status import_dequantize(sx_tf_op_node *x)
{
    const sx_tf_node *n = &x->tf.head;
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_tf_integers q = {0};
    mode by = MIN_COMBINED;
    int64_t axis = -1;
    SX_TRY(sx_tf_integers_of(x, "T", SX_DTYPE_NONE, &q));
    SX_TRY(mode_of(x, &by));
    SX_TRY(axis_of(x, &axis));
    const int rank = n->types[0].rank;
    const sx_value low = sx_tf_input_of(e, 1), high = sx_tf_input_of(e, 2);
    sx_value y = sx_tf_cast_of(e, sx_tf_input_of(e, 0), SX_F32);
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
        y = ZIP(mul, y, sx_tf_along_axis(e, scale, axis, rank));
    } else {
        const sx_value scale = ZIP(div, ZIP(sub, high, low), NUMBER(q.steps));
        y = q.is_signed ? ZIP(add, y, NUMBER((q.steps + 1) / 2)) : y;
        y = ZIP(mul, y, sx_tf_along_axis(e, scale, axis, rank));
        y = ZIP(add, y, sx_tf_along_axis(e, low, axis, rank));
    }
    sx_tf_set(x, 0, sx_tf_cast_of(e, y, sx_tf_read_dtype(n, "dtype", SX_F32)));
    return at.status;
}

/* ---- Integers of one range in another ---- */

/* int32 [low, high] -> uint8 [to_low, to_high], in fixed-point numbers with 16 bits of fraction. */
static sx_value requantize_fixed(sx_tf_expression *e, sx_value v, sx_value low, sx_value high,
                                 sx_value to_low, sx_value to_high)
{
    enum { FRACTION = 65536 };
    const sx_value span = ZIP(sub, to_high, to_low), none = ZIP(equal, span, NUMBER(0));
    const sx_value reciprocal = CHOOSE(none, NUMBER(0), ZIP(div, NUMBER(255), span));
    const sx_value middle = ZIP(div, ZIP(add, low, high), NUMBER(2));
    const sx_value from = sx_tf_cast_of(e, ZIP(sub, high, low), SX_F64),
                   to = sx_tf_cast_of(e, span, SX_F64);
    const sx_value no_scale = sx_tf_number_of(e, SX_I64, 0);
    sx_value scale = ZIP(div, ZIP(mul, WIDE(255.0 * FRACTION), from), to);
    scale = CHOOSE(none, no_scale, sx_tf_cast_of(e, scale, SX_I64));
    const sx_value offset =
        sx_tf_cast_of(e, ZIP(mul, ZIP(mul, middle, reciprocal), NUMBER(FRACTION)), SX_I64);
    sx_value start = ZIP(mul, sx_tf_cast_of(e, to_low, SX_F64), WIDE(255));
    start = ZIP(div, ZIP(mul, WIDE(FRACTION), start), to);
    start = CHOOSE(none, no_scale, sx_tf_cast_of(e, start, SX_I64));
    sx_value y = ZIP(mul, sx_tf_cast_of(e, v, SX_I64), scale);
    y = ZIP(floor_div, y, sx_tf_number_of(e, SX_I64, 0x1p32));
    const sx_value half = sx_tf_number_of(e, SX_I64, FRACTION / 2.0);
    y = ZIP(add, y, ZIP(add, ZIP(sub, offset, start), half));
    y = ZIP(floor_div, y, sx_tf_number_of(e, SX_I64, FRACTION));
    y = ZIP(minimum, ZIP(maximum, y, no_scale), sx_tf_number_of(e, SX_I64, 255));
    return sx_tf_cast_of(e, y, SX_U8);
}

static sx_value requantize(sx_tf_expression *e, const sx_tf_integers *from,
                           const sx_tf_integers *to, sx_value v, sx_value low, sx_value high,
                           sx_value to_low, sx_value to_high)
{
    if (from->dtype == SX_I32 && to->dtype == SX_U8) {
        return requantize_fixed(e, v, low, high, to_low, to_high);
    }
    const sx_value y = dequantize_min_first(e, from, sx_tf_cast_of(e, v, SX_F32), low, high);
    return sx_tf_cast_of(e, quantize_min_first(e, to, y, to_low, to_high), to->dtype);
}

/* Requantize(integers, low, high, to_low, to_high): the integers, to_low, to_high */
static sx_status import_requantize(sx_tf_op_node *x)
{
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_tf_integers from = {0}, to = {0};
    SX_TRY(sx_tf_integers_of(x, "Tinput", SX_DTYPE_NONE, &from));
    SX_TRY(sx_tf_integers_of(x, "out_type", SX_DTYPE_NONE, &to));
    const sx_value to_low = sx_tf_input_of(e, 3), to_high = sx_tf_input_of(e, 4);
    sx_tf_set(x, 0,
              requantize(e, &from, &to, sx_tf_input_of(e, 0), sx_tf_input_of(e, 1),
                         sx_tf_input_of(e, 2), to_low, to_high));
    sx_tf_set(x, 1, to_low);
    sx_tf_set(x, 2, to_high);
    return at.status;
}

/* An integer of the range as a number, in float64 as TensorFlow does here. */
static sx_value number_in_range(sx_tf_expression *e, const sx_tf_integers *q, sx_value v,
                                sx_value low, sx_value high)
{
    const sx_value span = sx_tf_cast_of(e, ZIP(sub, high, low), SX_F64);
    const sx_value scale =
        ZIP(div, ZIP(mul, span, WIDE((q->steps + 1) / q->steps)), WIDE(q->steps + 1));
    const sx_value narrow = sx_tf_cast_of(e, scale, SX_F32);
    const sx_value first = ZIP(mul, sx_tf_round_away(e, ZIP(div, low, narrow), SX_F32), narrow);
    const sx_value place = ZIP(sub, sx_tf_cast_of(e, v, SX_F64), WIDE(q->lowest));
    const sx_value y = ZIP(add, sx_tf_cast_of(e, first, SX_F64), ZIP(mul, place, scale));
    return CHOOSE(ZIP(equal, low, high), low, sx_tf_cast_of(e, y, SX_F32));
}

/* The range that the integers of input 0 use, from at most 0 on. */
static sx_status used_range(sx_tf_op_node *x, sx_tf_expression *e, const sx_tf_integers *q,
                            sx_value out[2])
{
    const int rank = x->tf.head.types[0].rank;
    sx_reduce_attrs all = {.axes = {.n = 0}};
    SX_TRY(sx_tf_require_rank(x, 0));
    for (int d = 0; d < rank; d++) {
        all.axes.v[all.axes.n++] = d;
    }
    const sx_value v = sx_tf_input_of(e, 0), low = sx_tf_input_of(e, 1),
                   high = sx_tf_input_of(e, 2);
    const sx_value least = sx_tf_node_of(e, &sx_op_reduce_min, &all, 1, &v),
                   most = sx_tf_node_of(e, &sx_op_reduce_max, &all, 1, &v);
    out[0] = ZIP(minimum, NUMBER(0), number_in_range(e, q, least, low, high));
    out[1] = number_in_range(e, q, most, low, high);
    return e->status;
}

/* RequantizationRange(integers, low, high) */
static sx_status import_requantization_range(sx_tf_op_node *x)
{
    sx_tf_expression at = {.x = x};
    sx_tf_integers q = {0};
    sx_value range[2];
    SX_TRY(sx_tf_integers_of(x, "Tinput", SX_DTYPE_NONE, &q));
    SX_TRY(used_range(x, &at, &q, range));
    sx_tf_set(x, 0, range[0]);
    sx_tf_set(x, 1, range[1]);
    return SX_OK;
}

/* QuantizeDownAndShrinkRange(integers, low, high): Requantize to the range that is used */
static sx_status import_shrink_range(sx_tf_op_node *x)
{
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_tf_integers from = {0}, to = {0};
    sx_value range[2];
    SX_TRY(sx_tf_integers_of(x, "Tinput", SX_DTYPE_NONE, &from));
    SX_TRY(sx_tf_integers_of(x, "out_type", SX_DTYPE_NONE, &to));
    SX_TRY(used_range(x, e, &from, range));
    sx_tf_set(x, 0,
              requantize(e, &from, &to, sx_tf_input_of(e, 0), sx_tf_input_of(e, 1),
                         sx_tf_input_of(e, 2), range[0], range[1]));
    sx_tf_set(x, 1, range[0]);
    sx_tf_set(x, 2, range[1]);
    return at.status;
}

/* ---- Arithmetic of integers ----
 *
 * Inputs are integers and, after all of them, the low and the high end of each one's range; outputs
 * the integers and their range. */

/* The node as operator `tf_op` of its first n inputs, which are in[n]. */
static sx_value as(sx_tf_expression *e, const char *tf_op, int n, const sx_value *in)
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
static sx_value place_of(sx_tf_expression *e, const sx_tf_integers *q, sx_value number,
                         sx_value low, sx_value high)
{
    const double count = q->steps + 1;
    sx_value range = sx_tf_cast_of(e, ZIP(sub, high, low), SX_F64);
    range = ZIP(mul, range, WIDE(count / q->steps));
    const sx_value scale = ZIP(div, WIDE(count), range);
    const sx_value from = ZIP(mul, sx_tf_cast_of(e, low, SX_F64), scale),
                   at = ZIP(mul, number, scale);
    sx_value y = ZIP(sub, sx_tf_round_away(e, at, SX_F64), sx_tf_round_away(e, from, SX_F64));
    y = ZIP(add, y, WIDE(q->lowest));
    return CHOOSE(ZIP(equal, low, high), WIDE(q->lowest), y);
}

static sx_value within(sx_tf_expression *e, const sx_tf_integers *q, sx_value place)
{
    return ZIP(minimum, ZIP(maximum, place, WIDE(q->lowest)), WIDE(q->highest));
}

/* Sets outputs 1 and 2 to the range of products of integers: those of int32, times the product of
 * what one step is worth. `at`: where the ranges begin. */
static void set_product_range(sx_tf_op_node *x, sx_tf_expression *e, const sx_tf_integers *a,
                              const sx_tf_integers *b, int at)
{
    const sx_value of_a = ZIP(div, ZIP(sub, sx_tf_input_of(e, at + 1), sx_tf_input_of(e, at)),
                              NUMBER(a->steps)),
                   of_b = ZIP(div, ZIP(sub, sx_tf_input_of(e, at + 3), sx_tf_input_of(e, at + 2)),
                              NUMBER(b->steps));
    const sx_value step = ZIP(mul, of_a, of_b);
    sx_tf_set(x, 1, ZIP(mul, step, NUMBER(-0x1p31)));
    sx_tf_set(x, 2, ZIP(mul, step, NUMBER(0x1p31)));
}

/* Input i less the integer that stands for 0, as `dtype`. `at`: where its range begins. */
static sx_value from_zero(sx_tf_expression *e, const sx_tf_integers *q, int i, int at,
                          sx_dtype dtype)
{
    const sx_value zero = place_of(e, q, WIDE(0), sx_tf_input_of(e, at), sx_tf_input_of(e, at + 1));
    return ZIP(sub, sx_tf_cast_of(e, sx_tf_input_of(e, i), dtype), sx_tf_cast_of(e, zero, dtype));
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
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_tf_integers a = {0}, b = {0};
    size_t k = 0;
    while (k + 1 < SX_COUNT(of) && strcmp(of[k].op, x->n->node->op) != 0) {
        k++;
    }
    SX_TRY(sx_tf_integers_of(x, of[k].dtypes[0], SX_DTYPE_NONE, &a));
    SX_TRY(sx_tf_integers_of(x, of[k].dtypes[1], SX_DTYPE_NONE, &b));
    const sx_dtype dtype = of[k].as != NULL ? SX_F64 : SX_I32;
    const sx_value in[] = {from_zero(e, &a, 0, 2, dtype), from_zero(e, &b, 1, 4, dtype)};
    const sx_matmul_attrs turned = {
        .transpose_a = sx_tf_read_bool(&x->tf.head, "transpose_a", false),
        .transpose_b = sx_tf_read_bool(&x->tf.head, "transpose_b", false)};
    sx_value y = of[k].as != NULL ? as(e, of[k].as, 2, in)
                 : k == 0         ? sx_tf_node_of(e, &sx_op_matmul, &turned, 2, in)
                                  : sx_tf_node_of(e, &sx_op_mul, NULL, 2, in);
    sx_tf_set(x, 0, sx_tf_cast_of(e, y, SX_I32));
    set_product_range(x, e, &a, &b, 2);
    return at.status;
}

/* The range of sums of int32 in which there is room for `room` times the largest of both ranges. */
static void set_sum_range(sx_tf_op_node *x, sx_tf_expression *e, double room, sx_value range[2])
{
    const sx_value most =
        ZIP(maximum, ZIP(maximum, sx_tf_input_of(e, 3), MAP(neg, sx_tf_input_of(e, 2))),
            ZIP(maximum, sx_tf_input_of(e, 5), MAP(neg, sx_tf_input_of(e, 4))));
    range[1] = ZIP(mul, most, NUMBER(room));
    range[0] = MAP(neg, range[1]);
    sx_tf_set(x, 1, range[0]);
    sx_tf_set(x, 2, range[1]);
}

/* Integers v of a range in that of `to`, int32, as double. */
static sx_value in_new_range(sx_tf_expression *e, const sx_tf_integers *q, sx_value v, sx_value low,
                             sx_value high, const sx_tf_integers *to, const sx_value range[2])
{
    const sx_value number = number_in_range(e, q, v, low, high);
    return place_of(e, to, sx_tf_cast_of(e, number, SX_F64), range[0], range[1]);
}

/* QuantizedBiasAdd(x, bias): both in int32, added. */
static sx_status import_bias_add(sx_tf_op_node *x)
{
    enum { ROOM = 1 << 17 };
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_tf_integers to = {0};
    sx_value range[2], of[2];
    SX_TRY(sx_tf_integers_of(x, "out_type", SX_I32, &to));
    set_sum_range(x, e, ROOM, range);
    for (int i = 0; i < 2; i++) {
        sx_tf_integers q = {0};
        SX_TRY(sx_tf_integers_of(x, i == 0 ? "T1" : "T2", SX_DTYPE_NONE, &q));
        const sx_value place =
            in_new_range(e, &q, sx_tf_input_of(e, i), sx_tf_input_of(e, 2 + 2 * i),
                         sx_tf_input_of(e, 3 + 2 * i), &to, range);
        of[i] = sx_tf_cast_of(e, within(e, &to, place), to.dtype);
    }
    sx_tf_set(x, 0, sx_tf_node_of(e, &sx_op_add, NULL, 2, of));
    return at.status;
}

/* QuantizedAdd(x, y): the same, but the step from one integer to the next is that from 0 to 1 for
 * all, unless a single integer is added to the others. */
static sx_status import_quantized_add(sx_tf_op_node *x)
{
    enum { ROOM = 1 << 14 };
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_tf_integers to = {0};
    sx_value range[2], of[2], single = SX_NO_VALUE;
    SX_TRY(sx_tf_integers_of(x, "Toutput", SX_I32, &to));
    set_sum_range(x, e, ROOM, range);
    for (int i = 0; i < 2; i++) {
        static const sx_reduce_attrs all = {.axes = {1, {0}}};
        sx_tf_integers q = {0};
        SX_TRY(sx_tf_integers_of(x, i == 0 ? "T1" : "T2", SX_DTYPE_NONE, &q));
        const sx_value v = sx_tf_input_of(e, i), low = sx_tf_input_of(e, 2 + 2 * i),
                       high = sx_tf_input_of(e, 3 + 2 * i);
        sx_value size = sx_tf_node_of(e, &sx_op_shape, &(sx_cast_attrs){SX_I64}, 1, &v);
        size = sx_tf_node_of(e, &sx_op_reduce_prod, &all, 1, &size);
        const sx_value one = ZIP(equal, size, sx_tf_number_of(e, SX_I64, 1));
        /* of two single ones, the first */
        const sx_value alone = i == 0 ? one : ZIP(logical_and, one, MAP(logical_not, single));
        single = one;
        const sx_value exact = in_new_range(e, &q, v, low, high, &to, range);
        const sx_value first =
            in_new_range(e, &q, sx_tf_number_of(e, q.dtype, 0), low, high, &to, range);
        const sx_value second =
            in_new_range(e, &q, sx_tf_number_of(e, q.dtype, 1), low, high, &to, range);
        const sx_value even =
            ZIP(add, first, ZIP(mul, sx_tf_cast_of(e, v, SX_F64), ZIP(sub, second, first)));
        of[i] = sx_tf_cast_of(e, within(e, &to, CHOOSE(alone, exact, even)), to.dtype);
    }
    sx_tf_set(x, 0, sx_tf_node_of(e, &sx_op_add, NULL, 2, of));
    return at.status;
}

/* Outputs 1 and 2 are inputs `from` and the next. */
static void keep_range(sx_tf_op_node *x, sx_tf_expression *e, int from)
{
    sx_tf_set(x, 1, sx_tf_input_of(e, from));
    sx_tf_set(x, 2, sx_tf_input_of(e, from + 1));
}

/* QuantizedRelu(x, low, high), QuantizedRelu6 */
static sx_status import_quantized_relu(sx_tf_op_node *x)
{
    const bool to_six = strcmp(x->n->node->op, "QuantizedRelu6") == 0;
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_tf_integers q = {0};
    SX_TRY(sx_tf_integers_of(x, "Tinput", SX_DTYPE_NONE, &q));
    const sx_value low = sx_tf_input_of(e, 1), high = sx_tf_input_of(e, 2);
    sx_value y = sx_tf_cast_of(e, sx_tf_input_of(e, 0), SX_F64);
    y = ZIP(maximum, y, within(e, &q, place_of(e, &q, WIDE(0), low, high)));
    if (to_six) {
        y = ZIP(minimum, y, within(e, &q, place_of(e, &q, WIDE(6), low, high)));
    }
    sx_tf_set(x, 0, sx_tf_cast_of(e, y, q.dtype));
    keep_range(x, e, 1);
    return at.status;
}

/* QuantizedMaxPool(x, low, high), QuantizedAvgPool, whose quotients are cut. */
static sx_status import_quantized_pool(sx_tf_op_node *x)
{
    const bool max = strcmp(x->n->node->op, "QuantizedMaxPool") == 0;
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_tf_integers q = {0};
    SX_TRY(sx_tf_integers_of(x, "T", SX_DTYPE_NONE, &q));
    if (q.dtype == SX_I32) {
        return sx_tf_unsupported("its integers are int32");
    }
    const sx_value v = sx_tf_cast_of(e, sx_tf_input_of(e, 0), max ? SX_F32 : SX_F64);
    sx_value y = as(e, max ? "MaxPool" : "AvgPool", 1, &v);
    if (!max) { /* a quotient that should be whole may lie just below */
        y = ZIP(add, y, ZIP(mul, MAP(sign, y), WIDE(0x1p-20)));
    }
    sx_tf_set(x, 0, sx_tf_cast_of(e, y, q.dtype));
    keep_range(x, e, 1);
    return at.status;
}

/* QuantizedReshape(x, shape, low, high) */
static sx_status import_quantized_reshape(sx_tf_op_node *x)
{
    sx_tf_expression at = {.x = x}, *e = &at;
    const sx_value in[] = {sx_tf_input_of(e, 0), sx_tf_input_of(e, 1)};
    sx_tf_set(x, 0, as(e, "Reshape", 2, in));
    keep_range(x, e, 2);
    return at.status;
}

/* QuantizedConcat(axis, values..., lows..., highs...): all in the range that has room for each. */
static sx_status import_quantized_concat(sx_tf_op_node *x)
{
    const int n = (x->n->n_in - 1) / 3;
    const int64_t said = sx_tf_read_int(&x->tf.head, "N", 0);
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_tf_integers q = {0};
    SX_TRY(sx_tf_integers_of(x, "T", SX_DTYPE_NONE, &q));
    if (n < 1 || x->n->n_in != 1 + 3 * n || said != n) {
        return sx_error(SX_DATA_LOSS, "it has %d inputs for N of %lld", x->n->n_in,
                        (long long)said);
    }
    sx_value low = sx_tf_input_of(e, 1 + n), high = sx_tf_input_of(e, 1 + 2 * n);
    sx_value *in = sx_arena_array(&x->im->arena, n + 1, sx_value);
    if (in == NULL) {
        return sx_import_memory();
    }
    for (int i = 1; i < n; i++) {
        low = ZIP(minimum, low, sx_tf_input_of(e, 1 + n + i));
        high = ZIP(maximum, high, sx_tf_input_of(e, 1 + 2 * n + i));
    }
    if (!q.is_signed) { /* 0 is a number of the range */
        low = ZIP(minimum, low, NUMBER(0));
    } else { /* the range is as far below 0 as above */
        const sx_value most = ZIP(maximum, MAP(neg, low), high);
        low = MAP(neg, most);
        high = most;
    }
    in[0] = sx_tf_input_of(e, 0);
    for (int i = 0; i < n; i++) {
        const sx_value from = sx_tf_input_of(e, 1 + n + i), to = sx_tf_input_of(e, 1 + 2 * n + i),
                       v = sx_tf_input_of(e, 1 + i);
        const sx_value number = dequantize_min_first(e, &q, sx_tf_cast_of(e, v, SX_F32), from, to);
        const sx_value other =
            sx_tf_cast_of(e, quantize_min_first(e, &q, number, low, high), q.dtype);
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
    sx_tf_expression at = {.x = x}, *e = &at;
    const sx_value in[] = {sx_tf_input_of(e, 0), NUMBER(sx_tf_read_float(n, "min", -6)),
                           NUMBER(sx_tf_read_float(n, "max", 6))};
    sx_tf_set(x, 0, sx_tf_node_of(e, &sx_op_fake_quant, &attrs, 3, in));
    return at.status;
}

/* FakeQuantWithMinMaxArgsGradient(dy, x) {min, max} */
static sx_status import_fake_quant_grad(sx_tf_op_node *x)
{
    const sx_tf_node *n = &x->tf.head;
    const sx_fake_quant_attrs attrs = fake_quant_attrs(n);
    sx_tf_expression at = {.x = x}, *e = &at;
    const sx_value in[] = {sx_tf_input_of(e, 0), sx_tf_input_of(e, 1),
                           NUMBER(sx_tf_read_float(n, "min", -6)),
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
    sx_tf_expression at = {.x = x}, *e = &at;
    sx_reduce_attrs all = {.axes = {.n = 0}};
    for (int d = 0; d < n->types[0].rank; d++) {
        if (d != attrs.axis) {
            all.axes.v[all.axes.n++] = d;
        }
    }
    const sx_value v = sx_tf_input_of(e, 0);
    const sx_value in[] = {v, sx_tf_node_of(e, &sx_op_reduce_min, &all, 1, &v),
                           sx_tf_node_of(e, &sx_op_reduce_max, &all, 1, &v)};
    const bool masked = !attrs.straight_through;
    attrs.straight_through = true;
    sx_value y = sx_tf_node_of(e, &sx_op_quantize_dequantize, &attrs, 3, in);
    if (masked) { /* V4's gradient passes in the range that the value does without */
        const int rank = n->types[0].rank;
        const sx_value above = ZIP(greater_equal, v,
                                   sx_tf_along_axis(e, sx_tf_input_of(e, 1), attrs.axis, rank)),
                       below = ZIP(less_equal, v,
                                   sx_tf_along_axis(e, sx_tf_input_of(e, 2), attrs.axis, rank));
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
    sx_tf_expression at = {.x = x}, *e = &at;
    if (axis >= 0) {
        SX_TRY(sx_tf_require_rank(x, 1));
    }
    const sx_value dy = sx_tf_input_of(e, 0), v = sx_tf_input_of(e, 1), low = sx_tf_input_of(e, 2),
                   high = sx_tf_input_of(e, 3), zero = sx_tf_number_of(e, dtype, 0);
    const sx_value above = ZIP(greater_equal, v, sx_tf_along_axis(e, low, axis, rank)),
                   below = ZIP(less_equal, v, sx_tf_along_axis(e, high, axis, rank));
    sx_tf_set(x, 0, CHOOSE(ZIP(logical_and, above, below), dy, zero));
    sx_tf_set(x, 1, ZIP(mul_no_nan, low, zero));
    sx_tf_set(x, 2, ZIP(mul_no_nan, high, zero));
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
    {"FakeQuantWithMinMaxArgs", import_fake_quant, NULL},
    {"FakeQuantWithMinMaxArgsGradient", import_fake_quant_grad, NULL},
    {"QuantizeAndDequantizeV2", import_quantize_dequantize, NULL},
    {"QuantizeAndDequantizeV3", import_quantize_dequantize, NULL},
    {"QuantizeAndDequantizeV4", import_quantize_dequantize, NULL},
    {"QuantizeAndDequantizeV4Grad", import_quantize_dequantize_grad, NULL},
    {NULL, NULL, NULL},
};
