/* adjust_hue: colors whose hue is turned by delta of a circle.
 *
 *   images   float16 or float32 [..., 3]: red, green, blue
 *   delta    float32 scalar
 *   returns  images' type
 *
 * Errors   INVALID_ARGUMENT  dtype, the last dimension
 * Source   TensorFlow AdjustHue */
#include "graph/ops/color.h"

#include <math.h>

static void adjust_hue_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_value delta = sx_cast_like(b, g->x[1], g->x[0]), one = sx_scalar_like(b, g->x[0], 1);
    const sx_value hsv = sx_formula_of_hsv(b, g->x[0]);
    const sx_value hue = sx_build_op(b, floor_mod, NULL,
                                     sx_build_op(b, add, NULL, sx_channel(b, hsv, 0), delta), one);
    const sx_value y =
        sx_formula_of_rgb(b, sx_channels(b, hue, sx_channel(b, hsv, 1), sx_channel(b, hsv, 2)));
    sx_grad_of_formula(g, &y);
}

static sx_status adjust_hue_host(const sx_kernel_call *c)
{
    const int64_t n = sx_type_elems(&c->in[0].type);
    SX_TRY(sx_require_colors(c));
    for (int64_t k = 0; k < n; k += 3) {
        double hsv[3];
        const double *rgb = c->in[0].f + k;
        const double most = fmax(rgb[0], fmax(rgb[1], rgb[2]));
        const double least = fmin(rgb[0], fmin(rgb[1], rgb[2]));
        sx_rgb_to_hsv(rgb, hsv);
        hsv[0] += c->in[1].f[0];
        hsv[0] -= floor(hsv[0]);
        hsv[1] = hsv[2] = 1; /* the color of that hue, between the same least and greatest */
        sx_hsv_to_rgb(hsv, c->out[0].f + k);
        for (int64_t j = k; j < k + 3; j++) {
            c->out[0].f[j] = least + c->out[0].f[j] * (most - least);
        }
    }
    return SX_OK;
}

static void adjust_hue_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_adjust_hue, "AdjustHue",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double factor[] = {0.7};
static const sx_op_sample adjust_hue_samples[] = {
    {.name = "image",
     .inputs = {SX_SAMPLE_F32(SX_FILL_POSITIVE, 2, 3, 4, 3), SX_SAMPLE_ONE(SX_F32, factor)},
     .n_inputs = 2},
};

const sx_op_def sx_op_adjust_hue = {
    SX_OP_NAMED(adjust_hue),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST,
    .infer = sx_infer_colors,
    .grad = adjust_hue_gradient,
    .host = adjust_hue_host,
    .to_tf = adjust_hue_to_tf,
    SX_FROM_TF({.op = "AdjustHue"}),
    SX_OP_SAMPLES(adjust_hue_samples),
};
