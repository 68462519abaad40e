/* adjust_contrast: the distance of each pixel to its channel's mean, multiplied.
 *
 *   images   floats [..., H, W, C]
 *   factor   float32 scalar
 *   returns  images' type: (x - mean) factor + mean, the mean over H and W
 *
 * Errors   INVALID_ARGUMENT  dtype, a rank below 3
 * Source   TensorFlow AdjustContrastv2 */
#include "graph/builder.h"
#include "graph/ops/host_ops.h"

static sx_status adjust_contrast_infer(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[0];
    SX_TRY(sx_require_maybe("factor", &c->inputs[1], SX_F32, 0, "a scalar"));
    if (!sx_dtype_is_float(x->dtype) || (x->rank >= 0 && x->rank < 3)) {
        return sx_error(SX_INVALID_ARGUMENT, "images are %s, expected floats [..., H, W, C]",
                        SX_TEXT(x));
    }
    c->outputs[0] = *x;
    return SX_OK;
}

static void adjust_contrast_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_value x = g->x[0];
    const sx_type type = sx_type_of_value(b, x);
    sx_reduce_args pixels = {.struct_size = sizeof(pixels),
                             .axes = {.n = 2, .v = {type.rank - 3, type.rank - 2}},
                             .keep_dims = true};
    const sx_value mean = sx_reduce_mean_at(b, x, &pixels, NULL, 0);
    const sx_value scaled =
        sx_build_op(b, mul, NULL, sx_build_op(b, sub, NULL, x, mean), sx_cast_like(b, g->x[1], x));
    const sx_value y = sx_build_op(b, add, NULL, scaled, mean);
    sx_grad_of_formula(g, &y);
}

static sx_status adjust_contrast_host(const sx_kernel_call *c)
{
    const sx_type *x = &c->in[0].type;
    const int64_t channels = x->dims[x->rank - 1],
                  pixels = x->dims[x->rank - 2] * x->dims[x->rank - 3], n = sx_type_elems(x);
    for (int64_t image = 0; image < n; image += pixels * channels) {
        for (int64_t k = image; k < image + channels; k++) {
            double sum = 0;
            for (int64_t p = 0; p < pixels; p++) {
                sum += c->in[0].f[k + p * channels];
            }
            const double mean = sum / (double)pixels;
            for (int64_t p = k; p < k + pixels * channels; p += channels) {
                c->out[0].f[p] = (c->in[0].f[p] - mean) * c->in[1].f[0] + mean;
            }
        }
    }
    return SX_OK;
}

static void adjust_contrast_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_adjust_contrast, "AdjustContrastv2",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double factor[] = {0.7};
static const sx_op_sample adjust_contrast_samples[] = {
    {.name = "image",
     .inputs = {SX_SAMPLE_F32(SX_FILL_POSITIVE, 2, 3, 4, 3), SX_SAMPLE_ONE(SX_F32, factor)},
     .n_inputs = 2},
};

const sx_op_def sx_op_adjust_contrast = {
    SX_OP_NAMED(adjust_contrast),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST,
    .infer = adjust_contrast_infer,
    .grad = adjust_contrast_gradient,
    .host = adjust_contrast_host,
    .to_tf = adjust_contrast_to_tf,
    SX_FROM_TF({.op = "AdjustContrastv2"}),
    SX_OP_SAMPLES(adjust_contrast_samples),
};
