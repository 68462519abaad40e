/* scale_and_translate_grad: the gradient of scale_and_translate with respect to its images.
 *
 *   dy                  [N,h,w,C], floats
 *   images              [N,H,W,C], floats: what was scaled; only its type is read
 *   scale, translation, kernel_type, antialias   as scale_and_translate's
 *   returns             images' type
 *
 * It is linear: d(dy) = scale_and_translate(g).
 * Errors   INVALID_ARGUMENT  dtypes, ranks; (running) no pixels, numbers of images or channels that
 *                            differ, a scale that is not positive
 * Numbers  accumulates in double
 * Source   TensorFlow ScaleAndTranslateGrad */
#include "graph/ops/resample.h"

static const sx_attr_def scale_and_translate_grad_attrs[] = {
    SX_ATTR_TF(sx_scale_and_translate_attrs, kernel_type, SX_ATTR_STRING, .tf_text = "lanczos3"),
    SX_ATTR_TF(sx_scale_and_translate_attrs, antialias, SX_ATTR_BOOL, .tf_number = 1),
};

static sx_status scale_and_translate_grad_infer(sx_infer_context *c)
{
    SX_TRY(sx_require_maybe("scale", &c->inputs[2], SX_F32, 1, "[2]"));
    SX_TRY(sx_require_maybe("translation", &c->inputs[3], SX_F32, 1, "[2]"));
    SX_TRY(sx_require_kernel(((const sx_scale_and_translate_attrs *)c->attrs)->kernel_type));
    return sx_infer_resample_grad(c);
}

static void scale_and_translate_grad_gradient(sx_grad *g)
{
    sx_type y = sx_type_of_value(g->b, g->x[0]);
    y.dtype = SX_F32;
    const sx_value in[] = {g->dy[0], sx_size_of_images(g->b, g->x[0]), g->x[2], g->x[3]};
    g->dx[0] = sx_cast_like(
        g->b, sx_build_typed(g->b, &sx_op_scale_and_translate, g->attrs, in, 4, &y, 1), g->x[0]);
}

static sx_status scale_and_translate_grad_host(const sx_kernel_call *c)
{
    const sx_type *dy = &c->in[0].type, *x = &c->out[0].type;
    sx_axis_weights rows, columns;
    SX_TRY(sx_check_resample_grad(c));
    SX_TRY(sx_scale_and_translate_weights(c, x->dims[1], dy->dims[1], 0, &rows));
    SX_TRY(sx_scale_and_translate_weights(c, x->dims[2], dy->dims[2], 1, &columns));
    return sx_resample_back(c, &rows, &columns);
}

static void scale_and_translate_grad_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_scale_and_translate_grad, "ScaleAndTranslateGrad",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[1].dtype)));
}

static const double scale[] = {0.4, 1.5}, translation[] = {0.25, -1};
static const sx_op_sample scale_and_translate_grad_samples[] = {
    /* no_grad_check: scale and translation have none, as in TensorFlow */
    {.name = "lanczos3",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 2, 9, 2),
                SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 6, 7, 2), SX_SAMPLE_LIST(SX_F32, scale, 2),
                SX_SAMPLE_LIST(SX_F32, translation, 2)},
     .n_inputs = 4,
     .attrs = &(const sx_scale_and_translate_attrs){"lanczos3", true},
     .no_grad_check = true},
};

const sx_op_def sx_op_scale_and_translate_grad = {
    SX_OP_NAMED(scale_and_translate_grad),
    .n_in = 4,
    .n_out = 1,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_scale_and_translate_attrs, scale_and_translate_grad_attrs),
    .infer = scale_and_translate_grad_infer,
    .grad = scale_and_translate_grad_gradient,
    .host = scale_and_translate_grad_host,
    .to_tf = scale_and_translate_grad_to_tf,
    SX_FROM_TF({.op = "ScaleAndTranslateGrad"}),
    SX_OP_SAMPLES(scale_and_translate_grad_samples),
};
