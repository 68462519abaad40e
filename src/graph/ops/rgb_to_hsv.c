/* rgb_to_hsv: red, green and blue in [0, 1] as hue, saturation and value in [0, 1].
 *
 *   images   floats [..., 3]
 *   returns  images' type
 *
 * value is the greatest of the three; saturation its distance to the least, divided by it; hue
 * tells which is the greatest, and where the middle one lies.
 *
 * Errors   INVALID_ARGUMENT  dtype, the last dimension
 * Source   TensorFlow RGBToHSV */
#include "graph/ops/color.h"

static void rgb_to_hsv_gradient(sx_grad *g)
{
    const sx_value y = sx_formula_of_hsv(g->b, g->x[0]);
    sx_grad_of_formula(g, &y);
}

static sx_status rgb_to_hsv_host(const sx_kernel_call *c)
{
    const int64_t n = sx_type_elems(&c->in[0].type);
    SX_TRY(sx_require_colors(c));
    for (int64_t k = 0; k < n; k += 3) {
        sx_rgb_to_hsv(c->in[0].f + k, c->out[0].f + k);
    }
    return SX_OK;
}

static void rgb_to_hsv_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_rgb_to_hsv, "RGBToHSV",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const sx_op_sample rgb_to_hsv_samples[] = {
    {.name = "image", .inputs = {SX_SAMPLE_F32(SX_FILL_POSITIVE, 2, 3, 4, 3)}, .n_inputs = 1},
};

const sx_op_def sx_op_rgb_to_hsv = {
    SX_OP_NAMED(rgb_to_hsv),
    .n_in = 1,
    .n_out = 1,
    .flags = SX_OP_HOST,
    .infer = sx_infer_colors,
    .grad = rgb_to_hsv_gradient,
    .host = rgb_to_hsv_host,
    .to_tf = rgb_to_hsv_to_tf,
    SX_FROM_TF({.op = "RGBToHSV"}),
    SX_OP_SAMPLES(rgb_to_hsv_samples),
};
