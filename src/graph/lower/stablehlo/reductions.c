/* Reductions and counts. */
#include "graph/lower/stablehlo/rows.h"

#include "graph/ops/common.h"

#define REDUCTION(name, operation)                                                        \
    void sx_hlo_lower_##name(sx_hlo_writer *w, const sx_hlo_op *op)                       \
    {                                                                                     \
        const sx_reduce_attrs *attrs = op->attrs;                                         \
        op->out[0] = sx_hlo_reduce(w, operation, op->in[0], attrs->axes.n, attrs->axes.v, \
                                   attrs->keep_dims);                                     \
    }
REDUCTION(reduce_sum, "add")
REDUCTION(reduce_max, "maximum")
REDUCTION(reduce_min, "minimum")
REDUCTION(reduce_prod, "multiply")
REDUCTION(reduce_all, "and")
REDUCTION(reduce_any, "or")

void sx_hlo_lower_size(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_axes_attrs *attrs = op->attrs;
    double count = sx_count_along(&op->in_types[0], &attrs->axes);
    op->out[0] = sx_hlo_splat(w, op->out_types[0], count);
}

/* The mean of x's first slice along the first of the axes, kept; SX_HLO_NONE: the axis is empty or
 * long. Of n slices, its distance from the whole mean is at most sqrt(n - 1) deviations. */
static sx_hlo mean_of_first_slice(sx_hlo_writer *w, sx_hlo x, const sx_ints *axes)
{
    enum { MOST_SLICES = 1024 };
    const sx_type type = sx_hlo_type(w, x);
    const int64_t n = axes->n > 0 ? type.dims[axes->v[0]] : 0;
    const int64_t begin[SX_MAX_RANK] = {0};
    if (n < 1 || n > MOST_SLICES) {
        return SX_HLO_NONE;
    }
    sx_type slice = type;
    slice.dims[axes->v[0]] = 1;
    sx_hlo sum =
        sx_hlo_reduce(w, "add", sx_hlo_slice(w, x, begin, slice.dims), axes->n, axes->v, true);
    return sx_hlo_with(w, "divide", sum, sx_count_along(&slice, axes));
}

/* Sums of x's distances from a value near the mean, and of their squares: one reading of x is
 * enough for both. Else in two: the mean, then the distances from it. */
void sx_hlo_lower_moments(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_axes_attrs *attrs = op->attrs;
    const sx_ints *axes = &attrs->axes;
    sx_hlo x = sx_hlo_widen(w, op->in[0]);
    const sx_type type = sx_hlo_type(w, x);
    const double count = sx_count_along(&type, axes);
    sx_hlo near = mean_of_first_slice(w, x, axes);
    const bool once = sx_hlo_is(near);
    if (!once) {
        near = sx_hlo_reduce(w, "add", x, axes->n, axes->v, true);
        near = sx_hlo_with(w, "divide", near, count);
    }
    sx_hlo off = sx_hlo_binary(w, "subtract", x, sx_hlo_broadcast_to(w, near, &type));
    sx_hlo square = sx_hlo_binary(w, "multiply", off, off);
    square = sx_hlo_reduce(w, "add", square, axes->n, axes->v, false);
    square = sx_hlo_with(w, "divide", square, count);
    near = sx_hlo_reshape(w, near, &op->out_types[0]);
    if (once) {
        sx_hlo rest = sx_hlo_reduce(w, "add", off, axes->n, axes->v, false);
        rest = sx_hlo_with(w, "divide", rest, count);
        near = sx_hlo_binary(w, "add", near, rest);
        square = sx_hlo_binary(w, "subtract", square, sx_hlo_binary(w, "multiply", rest, rest));
        square = sx_hlo_with(w, "maximum", square, 0);
    }
    op->out[0] = near;
    op->out[1] = square;
}

/* Reduces (element, index) pairs to the larger ("GT") or smaller ("LT"); of equal ones, to the
 * first. */
static void better_region(sx_hlo_writer *w, const char *better, sx_dtype dtype, sx_dtype index)
{
    const sx_type types[4] = {sx_scalar_type(dtype), sx_scalar_type(index), sx_scalar_type(dtype),
                              sx_scalar_type(index)};
    sx_hlo a[4];
    sx_hlo_region(w, types, 4, a);
    sx_hlo greater = sx_hlo_compare(w, better, a[0], a[2]);
    sx_hlo equal = sx_hlo_compare(w, "EQ", a[0], a[2]);
    sx_hlo before = sx_hlo_compare(w, "LT", a[1], a[3]);
    sx_hlo tie = sx_hlo_binary(w, "and", equal, before);
    sx_hlo first = sx_hlo_binary(w, "or", greater, tie);
    sx_hlo best[2] = {sx_hlo_select(w, first, a[0], a[2]), SX_HLO_NONE};
    best[1] = sx_hlo_select(w, first, a[1], a[3]);
    sx_hlo_region_end(w, best, 2);
}

static void index_of(sx_hlo_writer *w, const sx_hlo_op *op, const char *better, double worst)
{
    const sx_argmax_attrs *attrs = op->attrs;
    sx_dtype dtype = op->in_types[0].dtype;
    sx_type places = op->in_types[0], types[2] = {op->out_types[0], op->out_types[0]};
    places.dtype = attrs->dtype;
    types[0].dtype = dtype;
    sx_hlo in[4] = {op->in[0], sx_hlo_iota(w, places, (int)attrs->axis), SX_HLO_NONE, SX_HLO_NONE};
    in[2] = sx_hlo_scalar(w, dtype, worst);
    in[3] = sx_hlo_scalar(w, attrs->dtype, 0);
    sx_hlo first = sx_hlo_begin(w, "reduce", in, 4, types, 2);
    better_region(w, better, dtype, attrs->dtype);
    sx_hlo_attr_i64s(w, "dimensions", 1, &attrs->axis);
    sx_hlo_end(w);
    op->out[0] = sx_hlo_result(first, 1);
}

void sx_hlo_lower_argmax(sx_hlo_writer *w, const sx_hlo_op *op)
{
    index_of(w, op, "GT", -INFINITY);
}

void sx_hlo_lower_argmin(sx_hlo_writer *w, const sx_hlo_op *op)
{
    index_of(w, op, "LT", INFINITY);
}

/* In steps of 1, 2, 4, …: each element is joined with the one so far before it, or after. */
typedef sx_hlo join_fn(sx_hlo_writer *w, sx_hlo a, sx_hlo b);

static void cumulate(sx_hlo_writer *w, const sx_hlo_op *op, join_fn *join, double neutral)
{
    const sx_cumulative_attrs *attrs = op->attrs;
    const sx_type *type = &op->in_types[0];
    const int64_t count = type->dims[attrs->axis];
    sx_hlo y = sx_hlo_widen(w, op->in[0]);
    for (int64_t step = attrs->exclusive ? 0 : 1; step < count; step = step < 1 ? 1 : 2 * step) {
        int64_t low[SX_MAX_RANK] = {0}, high[SX_MAX_RANK] = {0};
        const int64_t shift = step == 0 ? 1 : step;
        low[attrs->axis] = attrs->reverse ? -shift : shift;
        high[attrs->axis] = -low[attrs->axis];
        sx_hlo moved = sx_hlo_pad(w, y, neutral, low, high, NULL);
        y = step == 0 ? moved : join(w, y, moved);
    }
    op->out[0] = sx_hlo_convert(w, y, type->dtype);
}

static sx_hlo sum_of(sx_hlo_writer *w, sx_hlo a, sx_hlo b)
{
    return sx_hlo_binary(w, "add", a, b);
}

static sx_hlo product_of(sx_hlo_writer *w, sx_hlo a, sx_hlo b)
{
    return sx_hlo_binary(w, "multiply", a, b);
}

/* ln(e^a + e^b): the greater one and a correction, none where it is infinite. */
static sx_hlo log_add_exp_of(sx_hlo_writer *w, sx_hlo a, sx_hlo b)
{
    sx_hlo most = sx_hlo_binary(w, "maximum", a, b), least = sx_hlo_binary(w, "minimum", a, b);
    sx_hlo ratio = sx_hlo_unary(w, "exponential", sx_hlo_binary(w, "subtract", least, most));
    sx_hlo sum = sx_hlo_binary(w, "add", most, sx_hlo_unary(w, "log_plus_one", ratio));
    sx_hlo ends =
        sx_hlo_compare(w, "EQ", sx_hlo_unary(w, "abs", most), sx_hlo_like(w, most, INFINITY));
    return sx_hlo_select(w, ends, most, sum);
}

void sx_hlo_lower_cumsum(sx_hlo_writer *w, const sx_hlo_op *op)
{
    cumulate(w, op, sum_of, 0);
}

void sx_hlo_lower_cumulative_logsumexp(sx_hlo_writer *w, const sx_hlo_op *op)
{
    cumulate(w, op, log_add_exp_of, -INFINITY);
}

void sx_hlo_lower_cumprod(sx_hlo_writer *w, const sx_hlo_op *op)
{
    cumulate(w, op, product_of, 1);
}

static sx_hlo is_finite(sx_hlo_writer *w, sx_hlo x)
{
    sx_type type = sx_hlo_type(w, x);
    const int64_t axes[SX_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    type.dtype = SX_BOOL;
    return sx_hlo_reduce(w, "and", sx_hlo_emit(w, "is_finite", &x, 1, &type, 1), type.rank, axes,
                         false);
}

void sx_hlo_lower_all_finite(sx_hlo_writer *w, const sx_hlo_op *op)
{
    op->out[0] = is_finite(w, op->in[0]);
    for (int i = 1; i < op->n_in; i++) {
        op->out[0] = sx_hlo_binary(w, "and", op->out[0], is_finite(w, op->in[i]));
    }
}
