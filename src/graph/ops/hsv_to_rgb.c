/* hsv_to_rgb: hue, saturation and value in [0, 1] as red, green and blue.
 *
 *   images   floats [..., 3]
 *   returns  images' type
 *
 * Errors   INVALID_ARGUMENT  dtype, the last dimension
 * Source   TensorFlow HSVToRGB */
#include "graph/ops/color.h"

static void hsv_to_rgb_gradient(sx_grad *g)
{
    const sx_value y = sx_formula_of_rgb(g->b, g->x[0]);
    sx_grad_of_formula(g, &y);
}

static sx_status hsv_to_rgb_host(const sx_kernel_call *c)
{
    const int64_t n = sx_type_elems(&c->in[0].type);
    SX_TRY(sx_require_colors(c));
    for (int64_t k = 0; k < n; k += 3) {
        sx_hsv_to_rgb(c->in[0].f + k, c->out[0].f + k);
    }
    return SX_OK;
}

static void hsv_to_rgb_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_hsv_to_rgb, "HSVToRGB",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const sx_op_sample hsv_to_rgb_samples[] = {
    {.name = "image", .inputs = {SX_SAMPLE_F32(SX_FILL_POSITIVE, 2, 3, 4, 3)}, .n_inputs = 1},
};

const sx_op_def sx_op_hsv_to_rgb = {
    SX_OP_NAMED(hsv_to_rgb),
    .n_in = 1,
    .n_out = 1,
    .flags = SX_OP_HOST,
    .infer = sx_infer_colors,
    .grad = hsv_to_rgb_gradient,
    .host = hsv_to_rgb_host,
    .to_tf = hsv_to_rgb_to_tf,
    SX_FROM_TF({.op = "HSVToRGB"}),
    SX_OP_SAMPLES(hsv_to_rgb_samples),
};
