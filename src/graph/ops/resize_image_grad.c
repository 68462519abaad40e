/* resize_image_grad: the gradient of resize_image: dy is added to the pixels that each pixel was
 * made of, by their weights.
 *
 *   dy       [N,h,w,C], floats
 *   images   [N,H,W,C], floats: what was resized; only its type is read
 *   method, align_corners, half_pixel_centers   as resize_image's
 *   returns  images' type
 *
 * It is linear: d(dy) = resize_image(g).
 * Errors   INVALID_ARGUMENT  dtypes, ranks; (running) no pixels, numbers of images or channels that
 *                            differ
 * Numbers  accumulates in double
 * Source   TensorFlow ResizeNearestNeighborGrad, ResizeBilinearGrad, ResizeBicubicGrad; of area it
 *          has none */
#include "graph/ops/resample.h"

static const char *const methods[] = {"nearest", "bilinear", "bicubic", "area", NULL};
static const sx_attr_def resize_image_grad_attrs[] = {
    SX_ATTR_NAMES(sx_resize_image_attrs, method, methods),
    SX_ATTR_TF(sx_resize_image_attrs, align_corners, SX_ATTR_BOOL, .tf_number = 0),
    SX_ATTR_TF(sx_resize_image_attrs, half_pixel_centers, SX_ATTR_BOOL, .tf_number = 0),
};

static void resize_image_grad_gradient(sx_grad *g)
{
    const sx_type dy = sx_type_of_value(g->b, g->x[0]);
    sx_type y = dy;
    if (((const sx_resize_image_attrs *)g->attrs)->method != SX_RESIZED_NEAREST) {
        y.dtype = SX_F32;
    }
    const sx_value in[] = {g->dy[0], sx_size_of_images(g->b, g->x[0])};
    g->dx[0] = sx_cast_like(g->b, sx_build_typed(g->b, &sx_op_resize_image, g->attrs, in, 2, &y, 1),
                            g->x[0]);
}

static sx_status resize_image_grad_host(const sx_kernel_call *c)
{
    const sx_type *dy = &c->in[0].type, *x = &c->out[0].type;
    sx_axis_weights rows, columns;
    SX_TRY(sx_check_resample_grad(c));
    SX_TRY(sx_resize_image_weights(c, x->dims[1], dy->dims[1], &rows));
    SX_TRY(sx_resize_image_weights(c, x->dims[2], dy->dims[2], &columns));
    return sx_resample_back(c, &rows, &columns);
}

static void resize_image_grad_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_resize_image_attrs *attrs = op->attrs;
    if (attrs->method != SX_RESIZED_BICUBIC) {
        sx_tf_fail(w, sx_error(SX_UNIMPLEMENTED, "%s: the gradient of method %s is not exported",
                               op->name, methods[attrs->method]));
        return;
    }
    sx_tf_same(w, op, &sx_op_resize_image_grad, "ResizeBicubicGrad",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[1].dtype)));
}

static sx_status bicubic_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_resize_image_attrs *)out)->method = SX_RESIZED_BICUBIC;
    return SX_OK;
}

static const sx_op_sample resize_image_grad_samples[] = {
    {.name = "bicubic",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 5, 4, 2),
                SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 7, 2)},
     .n_inputs = 2,
     .attrs = &(const sx_resize_image_attrs){SX_RESIZED_BICUBIC, false, true}},
};

const sx_op_def sx_op_resize_image_grad = {
    SX_OP_NAMED(resize_image_grad),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_resize_image_attrs, resize_image_grad_attrs),
    .infer = sx_infer_resample_grad,
    .grad = resize_image_grad_gradient,
    .host = resize_image_grad_host,
    .to_tf = resize_image_grad_to_tf,
    SX_FROM_TF({.op = "ResizeBicubicGrad", .attrs = bicubic_from_tf}),
    SX_OP_SAMPLES(resize_image_grad_samples),
};
