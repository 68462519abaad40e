/* Operators that round to a grid of so many bits (graph/ops/quantize.h). */
#include "graph/lower/stablehlo/rows.h"

#include <float.h>

#include "graph/ops/quantize.h"

typedef struct grid {
    sx_hlo low, high, scale, inverse, zero;
    sx_hlo empty; /* bool; fake_quant */
} grid;

static sx_hlo zero_where(sx_hlo_writer *w, sx_hlo condition, sx_hlo x)
{
    return sx_hlo_select(w, condition, sx_hlo_like(w, x, 0), x);
}

static grid fake_quant_grid(sx_hlo_writer *w, const sx_fake_quant_attrs *attrs, sx_hlo low,
                            sx_hlo high)
{
    const double first = attrs->narrow_range ? 1 : 0,
                 last = (double)(((int64_t)1 << attrs->num_bits) - 1);
    grid q = {.empty = sx_hlo_binary(w, "and", sx_hlo_compare(w, "EQ", low, sx_hlo_like(w, low, 0)),
                                     sx_hlo_compare(w, "EQ", high, sx_hlo_like(w, high, 0)))};
    q.scale = sx_hlo_with(w, "divide", sx_hlo_binary(w, "subtract", high, low), last - first);
    sx_hlo least = sx_hlo_like(w, low, first), most = sx_hlo_like(w, low, last);
    sx_hlo place = sx_hlo_binary(w, "subtract", least, sx_hlo_binary(w, "divide", low, q.scale));
    /* of numbers that are not negative, halves upwards */
    sx_hlo whole = sx_hlo_unary(w, "floor", place);
    sx_hlo half = sx_hlo_like(w, low, 0.5);
    sx_hlo up = sx_hlo_compare(w, "GE", sx_hlo_binary(w, "subtract", place, whole), half);
    sx_hlo zero = sx_hlo_select(w, up, sx_hlo_with(w, "add", whole, 1), whole);
    zero = sx_hlo_select(w, sx_hlo_compare(w, "LT", place, least), least, zero);
    zero = sx_hlo_select(w, sx_hlo_compare(w, "GT", place, most), most, zero);
    q.low = sx_hlo_binary(w, "multiply", sx_hlo_binary(w, "subtract", least, zero), q.scale);
    q.high = sx_hlo_binary(w, "multiply", sx_hlo_binary(w, "subtract", most, zero), q.scale);
    q.inverse = sx_hlo_binary(w, "divide", sx_hlo_like(w, low, 1), q.scale);
    q.zero = sx_hlo_binary(w, "multiply", sx_hlo_unary(w, "negate", q.low), q.inverse);
    q.zero = sx_hlo_unary(w, "floor", sx_hlo_binary(w, "add", q.zero, half));
    q.low = zero_where(w, q.empty, q.low);
    q.high = zero_where(w, q.empty, q.high);
    q.scale = zero_where(w, q.empty, q.scale);
    q.inverse = zero_where(w, q.empty, q.inverse);
    q.zero = zero_where(w, q.empty, q.zero);
    return q;
}

static sx_hlo clip(sx_hlo_writer *w, sx_hlo x, sx_hlo low, sx_hlo high)
{
    return sx_hlo_binary(w, "maximum", sx_hlo_binary(w, "minimum", x, high), low);
}

void sx_hlo_lower_fake_quant(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_type *x = &op->in_types[0];
    const grid q = fake_quant_grid(w, op->attrs, op->in[1], op->in[2]);
    sx_hlo low = sx_hlo_broadcast_to(w, q.low, x), high = sx_hlo_broadcast_to(w, q.high, x);
    sx_hlo y = sx_hlo_binary(w, "subtract", clip(w, op->in[0], low, high), low);
    y = sx_hlo_binary(w, "multiply", y, sx_hlo_broadcast_to(w, q.inverse, x));
    y = sx_hlo_binary(w, "subtract", y, sx_hlo_broadcast_to(w, q.zero, x));
    y = sx_hlo_unary(w, "floor", sx_hlo_with(w, "add", y, 0.5));
    op->out[0] = sx_hlo_binary(w, "multiply", y, sx_hlo_broadcast_to(w, q.scale, x));
}

void sx_hlo_lower_fake_quant_grad(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_type *type = &op->in_types[1];
    const grid q = fake_quant_grid(w, op->attrs, op->in[2], op->in[3]);
    sx_hlo dy = op->in[0], x = op->in[1], none = sx_hlo_like(w, dy, 0);
    sx_hlo low = sx_hlo_select(w, q.empty, sx_hlo_like(w, q.low, -INFINITY), q.low);
    sx_hlo high = sx_hlo_select(w, q.empty, sx_hlo_like(w, q.high, INFINITY), q.high);
    low = sx_hlo_broadcast_to(w, low, type);
    high = sx_hlo_broadcast_to(w, high, type);
    sx_hlo inside =
        sx_hlo_binary(w, "and", sx_hlo_compare(w, "GE", x, low), sx_hlo_compare(w, "LE", x, high));
    int64_t axes[SX_MAX_RANK];
    const int n = type->rank - op->in_types[2].rank;
    for (int d = 0; d < n; d++) {
        axes[d] = d;
    }
    op->out[0] = sx_hlo_select(w, inside, dy, none);
    sx_hlo below = sx_hlo_select(w, sx_hlo_compare(w, "LT", x, low), dy, none);
    sx_hlo above = sx_hlo_select(w, sx_hlo_compare(w, "GT", x, high), dy, none);
    op->out[1] = n > 0 ? sx_hlo_reduce(w, "add", below, n, axes, false) : below;
    op->out[2] = n > 0 ? sx_hlo_reduce(w, "add", above, n, axes, false) : above;
}

static grid quantize_grid(sx_hlo_writer *w, const sx_quantize_dequantize_attrs *attrs, sx_hlo low,
                          sx_hlo high)
{
    const double unit = ldexp(1, (int)attrs->num_bits - 1);
    const double first = attrs->signed_input ? (attrs->narrow_range ? 1 - unit : -unit) : 0,
                 last = attrs->signed_input ? unit - 1 : 2 * unit - 1;
    const double largest = sx_hlo_type(w, low).dtype == SX_F64 ? DBL_MAX : (double)FLT_MAX;
    sx_hlo least = sx_hlo_like(w, low, first), most = sx_hlo_like(w, low, last);
    sx_hlo none = sx_hlo_like(w, low, largest), zero = sx_hlo_like(w, low, 0);
    sx_hlo some = sx_hlo_compare(w, "GT", sx_hlo_binary(w, "multiply", least, low), zero);
    sx_hlo from_low = sx_hlo_select(w, some, sx_hlo_binary(w, "divide", least, low), none);
    some = sx_hlo_compare(w, "GT", sx_hlo_binary(w, "multiply", most, high), zero);
    sx_hlo from_high = sx_hlo_select(w, some, sx_hlo_binary(w, "divide", most, high), none);
    sx_hlo by_low = sx_hlo_compare(w, "LT", from_low, from_high);
    grid q = {.scale = sx_hlo_select(w, by_low, from_low, from_high)};
    q.inverse = sx_hlo_binary(w, "divide", high, most);
    if (first < 0) {
        sx_hlo inverse = sx_hlo_binary(w, "divide", low, least);
        q.inverse = sx_hlo_select(w, by_low, inverse, q.inverse);
    }
    q.low = sx_hlo_select(w, by_low, low, sx_hlo_binary(w, "multiply", least, q.inverse));
    q.high = sx_hlo_select(w, by_low, sx_hlo_binary(w, "multiply", most, q.inverse), high);
    return q;
}

/* A scalar, or a vector along an axis, in the shape of x. */
static sx_hlo along(sx_hlo_writer *w, sx_hlo v, const sx_type *x, int64_t axis)
{
    return sx_hlo_type(w, v).rank == 0 ? sx_hlo_broadcast_to(w, v, x)
                                       : sx_hlo_broadcast_in(w, v, x, &axis);
}

void sx_hlo_lower_quantize_dequantize(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_quantize_dequantize_attrs *attrs = op->attrs;
    sx_hlo x = sx_hlo_widen(w, op->in[0]);
    const sx_type type = sx_hlo_type(w, x);
    const grid q = quantize_grid(w, attrs, sx_hlo_widen(w, op->in[1]), sx_hlo_widen(w, op->in[2]));
    if (attrs->range_given) {
        x = clip(w, x, along(w, q.low, &type, attrs->axis), along(w, q.high, &type, attrs->axis));
    }
    x = sx_hlo_binary(w, "multiply", x, along(w, q.scale, &type, attrs->axis));
    x = attrs->half_up ? sx_hlo_unary(w, "floor", sx_hlo_with(w, "add", x, 0.5))
                       : sx_hlo_unary(w, "round_nearest_even", x);
    x = sx_hlo_binary(w, "multiply", x, along(w, q.inverse, &type, attrs->axis));
    op->out[0] = sx_hlo_convert(w, x, op->out_types[0].dtype);
}
