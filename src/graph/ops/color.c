/* Colors: see color.h. */
#include "graph/ops/color.h"

#include <math.h>

void sx_rgb_to_hsv(const double rgb[3], double hsv[3])
{
    const double r = rgb[0], g = rgb[1], b = rgb[2];
    const double most = fmax(r, fmax(g, b)), range = most - fmin(r, fmin(g, b));
    double hue = 0;
    if (range > 0) {
        hue = r == most ? (g - b) / range : g == most ? (b - r) / range + 2 : (r - g) / range + 4;
    }
    hsv[0] = hue / 6 < 0 ? hue / 6 + 1 : hue / 6;
    hsv[1] = most > 0 ? range / most : 0;
    hsv[2] = most;
}

static double clipped(double x)
{
    return fmin(fmax(x, 0), 1);
}

void sx_hsv_to_rgb(const double hsv[3], double rgb[3])
{
    const double h = hsv[0] * 6, s = hsv[1], v = hsv[2];
    rgb[0] = v * (1 - s + s * clipped(fabs(h - 3) - 1));
    rgb[1] = v * (1 - s + s * clipped(2 - fabs(h - 2)));
    rgb[2] = v * (1 - s + s * clipped(2 - fabs(h - 4)));
}

sx_status sx_infer_colors(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[0];
    if (!sx_dtype_is_float(x->dtype) || x->rank == 0 ||
        (x->rank > 0 && x->dims[x->rank - 1] >= 0 && x->dims[x->rank - 1] != 3)) {
        return sx_error(SX_INVALID_ARGUMENT, "images are %s, expected floats [..., 3]", SX_TEXT(x));
    }
    for (int i = 1; i < c->n_inputs; i++) {
        SX_TRY(sx_require_maybe("the factor", &c->inputs[i], SX_F32, 0, "a scalar"));
    }
    c->outputs[0] = *x;
    return SX_OK;
}

sx_status sx_require_colors(const sx_kernel_call *c)
{
    const sx_type *x = &c->in[0].type;
    return x->rank > 0 && x->dims[x->rank - 1] == 3
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "images are %s, expected [..., 3]", SX_TEXT(x));
}

/* ---- Gradients ---- */

#define ZIP(op_name, a, c) sx_build_op(b, op_name, NULL, (a), (c))

sx_value sx_channel(sx_builder *b, sx_value x, int channel)
{
    const sx_type type = sx_type_of_value(b, x);
    if (sx_builder_failed(b)) {
        return SX_NO_VALUE;
    }
    sx_slice_attrs one = {.begin = {.n = type.rank}, .size = sx_ints_of(type.rank, type.dims)};
    one.begin.v[type.rank - 1] = channel;
    one.size.v[type.rank - 1] = 1;
    return sx_build_op(b, slice, &one, x);
}

sx_value sx_channels(sx_builder *b, sx_value first, sx_value second, sx_value third)
{
    const sx_axis_attrs last = {.axis = sx_type_of_value(b, first).rank - 1};
    return sx_build_op(b, concat, &last, first, second, third);
}

/* A gray pixel has no hue, a black one no saturation: divided by 1, they get gradients of 0. */
sx_value sx_formula_of_hsv(sx_builder *b, sx_value rgb)
{
    const sx_value red = sx_channel(b, rgb, 0), green = sx_channel(b, rgb, 1),
                   blue = sx_channel(b, rgb, 2);
    const sx_value zero = sx_scalar_like(b, rgb, 0), one = sx_scalar_like(b, rgb, 1);
    const sx_value most = ZIP(maximum, red, ZIP(maximum, green, blue));
    const sx_value range = ZIP(sub, most, ZIP(minimum, red, ZIP(minimum, green, blue)));
    const sx_value gray = ZIP(equal, range, zero),
                   black = sx_build_op(b, less_equal, NULL, most, zero);
    const sx_value by = sx_build_op(b, select, NULL, gray, one, range);
    const sx_value of_red = ZIP(div, ZIP(sub, green, blue), by);
    const sx_value of_green =
        ZIP(add, ZIP(div, ZIP(sub, blue, red), by), sx_scalar_like(b, rgb, 2));
    const sx_value of_blue =
        ZIP(add, ZIP(div, ZIP(sub, red, green), by), sx_scalar_like(b, rgb, 4));
    sx_value hue = sx_build_op(b, select, NULL, ZIP(equal, green, most), of_green, of_blue);
    hue = sx_build_op(b, select, NULL, ZIP(equal, red, most), of_red, hue);
    hue = ZIP(div, hue, sx_scalar_like(b, rgb, 6));
    hue = sx_build_op(b, select, NULL, ZIP(less, hue, zero), ZIP(add, hue, one), hue);
    hue = sx_build_op(b, select, NULL, gray, zero, hue);
    const sx_value bright = sx_build_op(b, select, NULL, black, one, most);
    const sx_value saturation = sx_build_op(b, select, NULL, black, zero, ZIP(div, range, bright));
    return sx_channels(b, hue, saturation, most);
}

sx_value sx_formula_of_rgb(sx_builder *b, sx_value hsv)
{
    const sx_value hue = ZIP(mul, sx_channel(b, hsv, 0), sx_scalar_like(b, hsv, 6)),
                   saturation = sx_channel(b, hsv, 1), value = sx_channel(b, hsv, 2);
    const sx_value one = sx_scalar_like(b, hsv, 1);
    static const double center[3] = {3, 2, 4};
    sx_value rgb[3];
    for (int k = 0; k < 3; k++) {
        const sx_value away =
            sx_build_op(b, abs, NULL, ZIP(sub, hue, sx_scalar_like(b, hsv, center[k])));
        sx_value share = k == 0 ? ZIP(sub, away, one) : ZIP(sub, sx_scalar_like(b, hsv, 2), away);
        share = sx_build_op(b, clip, (&(sx_clip_attrs){0, 1}), share);
        share = ZIP(add, ZIP(sub, one, saturation), ZIP(mul, saturation, share));
        rgb[k] = ZIP(mul, value, share);
    }
    return sx_channels(b, rgb[0], rgb[1], rgb[2]);
}
