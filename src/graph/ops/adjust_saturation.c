/* adjust_saturation: colors whose saturation is multiplied by scale, and clipped to [0, 1].
 *
 *   images   float16 or float32 [..., 3]: red, green, blue
 *   scale    float32 scalar
 *   returns  images' type
 *
 * Errors   INVALID_ARGUMENT  dtype, the last dimension
 * Source   TensorFlow AdjustSaturation */
#include "graph/ops/color.h"

#include <math.h>

static void adjust_saturation_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_value hsv = sx_formula_of_hsv(b, g->x[0]);
    const sx_value scaled =
        sx_build_op(b, mul, NULL, sx_channel(b, hsv, 1), sx_cast_like(b, g->x[1], g->x[0]));
    const sx_value saturation = sx_build_op(b, clip, (&(sx_clip_attrs){0, 1}), scaled);
    const sx_value y = sx_formula_of_rgb(
        b, sx_channels(b, sx_channel(b, hsv, 0), saturation, sx_channel(b, hsv, 2)));
    sx_grad_of_formula(g, &y);
}

static sx_status adjust_saturation_host(const sx_kernel_call *c)
{
    const int64_t n = sx_type_elems(&c->in[0].type);
    SX_TRY(sx_require_colors(c));
    for (int64_t k = 0; k < n; k += 3) {
        double hsv[3];
        sx_rgb_to_hsv(c->in[0].f + k, hsv);
        hsv[1] = fmin(fmax(hsv[1] * c->in[1].f[0], 0), 1);
        sx_hsv_to_rgb(hsv, c->out[0].f + k);
    }
    return SX_OK;
}

static void adjust_saturation_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_adjust_saturation, "AdjustSaturation",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double factor[] = {0.7};
static const sx_op_sample adjust_saturation_samples[] = {
    {.name = "image",
     .inputs = {SX_SAMPLE_F32(SX_FILL_POSITIVE, 2, 3, 4, 3), SX_SAMPLE_ONE(SX_F32, factor)},
     .n_inputs = 2},
};

const sx_op_def sx_op_adjust_saturation = {
    SX_OP_NAMED(adjust_saturation),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST,
    .infer = sx_infer_colors,
    .grad = adjust_saturation_gradient,
    .host = adjust_saturation_host,
    .to_tf = adjust_saturation_to_tf,
    SX_FROM_TF({.op = "AdjustSaturation"}),
    SX_OP_SAMPLES(adjust_saturation_samples),
};
