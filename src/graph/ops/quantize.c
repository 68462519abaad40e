#include "graph/ops/quantize.h"

#include <float.h>

void sx_fake_quant_grid_of(const sx_fake_quant_attrs *attrs, float low, float high,
                           sx_fake_quant_grid *out)
{
    const float first = attrs->narrow_range ? 1 : 0,
                last = (float)(((int64_t)1 << attrs->num_bits) - 1);
    *out = (sx_fake_quant_grid){.empty = low == 0 && high == 0};
    if (out->empty) {
        return;
    }
    out->scale = (high - low) / (last - first);
    const float place = first - low / out->scale;
    const float zero = place < first ? first : place > last ? last : roundf(place);
    out->low = (first - zero) * out->scale;
    out->high = (last - zero) * out->scale;
    out->inverse = 1 / out->scale;
    out->zero = floorf(-out->low * out->inverse + 0.5f);
}

static double narrowed(bool wide, double x)
{
    return wide ? x : (double)(float)x;
}

void sx_quantize_grid_of(const sx_quantize_dequantize_attrs *attrs, bool wide, double low,
                         double high, sx_quantize_grid *out)
{
    const double unit = ldexp(1, (int)attrs->num_bits - 1);
    const double first = attrs->signed_input ? (attrs->narrow_range ? 1 - unit : -unit) : 0,
                 last = attrs->signed_input ? unit - 1 : 2 * unit - 1;
    const double least = narrowed(wide, first), most = narrowed(wide, last);
    const double largest = wide ? DBL_MAX : (double)FLT_MAX;
    const double from_low = least * low > 0 ? narrowed(wide, least / low) : largest,
                 from_high = most * high > 0 ? narrowed(wide, most / high) : largest;
    *out = (sx_quantize_grid){.low = low, .high = high};
    if (from_low < from_high) {
        out->scale = from_low;
        out->inverse = narrowed(wide, low / least);
        out->high = narrowed(wide, most * out->inverse);
    } else {
        out->scale = from_high;
        out->inverse = narrowed(wide, high / most);
        out->low = narrowed(wide, least * out->inverse);
    }
}

bool sx_is_quantizer(const sx_node *n)
{
    return n->op->id == SX_OPID_fake_quant || n->op->id == SX_OPID_quantize_dequantize;
}

bool sx_quantize_steps_of(const sx_node *n, float low, float high, sx_quantize_steps *out)
{
    enum { MOST_BITS = 16 };
    *out = (sx_quantize_steps){0};
    if (n->op->id == SX_OPID_fake_quant) {
        const sx_fake_quant_attrs *attrs = n->attrs;
        const int all = (1 << attrs->num_bits) - 1 - (attrs->narrow_range ? 1 : 0);
        sx_fake_quant_grid grid;
        sx_fake_quant_grid_of(attrs, low, high, &grid);
        if (!grid.empty && grid.zero >= 0 && grid.zero <= (float)all) {
            *out = (sx_quantize_steps){grid.scale, -(int)grid.zero, all - (int)grid.zero};
        }
    } else if (n->op->id == SX_OPID_quantize_dequantize) {
        const sx_quantize_dequantize_attrs *attrs = n->attrs;
        const bool is_known = attrs->range_given && attrs->num_bits <= MOST_BITS;
        const int unit = is_known ? 1 << (attrs->num_bits - 1) : 0;
        sx_quantize_grid grid;
        sx_quantize_grid_of(attrs, false, (double)low, (double)high, &grid);
        if (is_known) {
            *out = attrs->signed_input
                       ? (sx_quantize_steps){(float)grid.inverse,
                                             attrs->narrow_range ? 1 - unit : -unit, unit - 1}
                       : (sx_quantize_steps){(float)grid.inverse, 0, 2 * unit - 1};
        }
    }
    return out->step > 0 && isfinite(out->step) && isfinite(1 / out->step);
}

sx_status sx_infer_quantize_range(const sx_type *x, const sx_type *low, const sx_type *high,
                                  int64_t axis)
{
    SX_TRY(sx_require_equal("high", high, "low", low));
    if (low->rank == 0) {
        return sx_require_scalar("low", low, x->dtype);
    }
    if (axis < 0 || axis >= x->rank || sx_dim_is_batch(x->dims[axis])) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "low is %s, x %s and the axis %lld: expected scalars, or an axis of x that "
                        "is not the batch",
                        SX_TEXT(low), SX_TEXT(x), (long long)axis);
    }
    return sx_require_vector("low", low, x->dtype, x->dims[axis]);
}

int64_t sx_quantize_channel(const sx_type *x, const sx_type *low, int64_t axis, int64_t i)
{
    return low->rank == 0 ? 0 : i / sx_dims_product(x, (int)axis + 1, x->rank) % x->dims[axis];
}
