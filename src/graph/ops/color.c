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
