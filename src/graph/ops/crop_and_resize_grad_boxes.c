/* crop_and_resize_grad_boxes: the gradient of crop_and_resize with respect to its boxes: how much
 * the crops change as their pixels move, by the slopes of the bilinear image, whatever the method.
 *
 *   dy       float32 [n,height,width,C]
 *   image    [N,H,W,C], numbers: what was cropped
 *   boxes, box_ind   as crop_and_resize's
 *   returns  boxes' type
 *
 * No second gradient.
 * Errors   INVALID_ARGUMENT  dtypes, ranks; (running) sizes that do not match, an image that there
 * is not Numbers  accumulates in double Source   TensorFlow CropAndResizeGradBoxes */
#include "graph/ops/resample.h"

static sx_status crop_and_resize_grad_boxes_infer(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[1];
    SX_TRY(sx_require_maybe("dy", &c->inputs[0], SX_F32, 4, "[n,height,width,C]"));
    SX_TRY(sx_require_number("image", x));
    SX_TRY(sx_require_maybe("image", x, x->dtype, 4, "[N,H,W,C]"));
    SX_TRY(sx_require_maybe("boxes", &c->inputs[2], SX_F32, 2, "[n,4]"));
    SX_TRY(sx_require_maybe("box_ind", &c->inputs[3], SX_I32, 1, "[n]"));
    c->outputs[0] = c->inputs[2];
    return SX_OK;
}

/* How the place of pixel i of `out` changes with the first and the second edge of its box. */
static void edges_share(int64_t i, int64_t out, int64_t in, double share[2])
{
    const double last = (double)(in - 1);
    share[1] = out > 1 ? (double)i * last / (double)(out - 1) : 0.5 * last;
    share[0] = last - share[1];
}

static sx_status crop_and_resize_grad_boxes_host(const sx_kernel_call *c)
{
    const sx_type *dy = &c->in[0].type, *x = &c->in[1].type;
    const int64_t channels = x->dims[3], height = dy->dims[1], width = dy->dims[2];
    SX_TRY(sx_check_crops(x, &c->in[2], &c->in[3]));
    if (dy->dims[0] != c->in[3].type.dims[0] || dy->dims[3] != channels) {
        return sx_error(SX_INVALID_ARGUMENT, "dy is %s, expected [%lld,height,width,%lld]",
                        SX_TEXT(dy), (long long)c->in[3].type.dims[0], (long long)channels);
    }
    sx_host_fill(c, 0, 0);
    for (int64_t i = 0; i < dy->dims[0] * height * width; i++) {
        sx_crop_pixel p;
        double by_row[2], by_column[2], *box = c->out[0].f + 4 * (i / width / height);
        if (i % width == 0) {
            SX_TRY(sx_cancel_check(c->cancel));
        }
        if (!sx_crop_pixel_of(&c->in[2], &c->in[3], dy, x, i / width / height, i / width % height,
                              i % width, &p)) {
            continue;
        }
        edges_share(i / width % height, height, x->dims[1], by_row);
        edges_share(i % width, width, x->dims[2], by_column);
        for (int64_t k = 0; k < channels; k++) {
            double pixel[4];
            for (int corner = 0; corner < 4; corner++) {
                pixel[corner] = sx_host_get(&c->in[1], p.at[corner] * channels + k);
            }
            const double d = c->in[0].f[i * channels + k];
            const double down =
                (1 - p.across) * (pixel[2] - pixel[0]) + p.across * (pixel[3] - pixel[1]);
            const double across =
                (1 - p.down) * (pixel[1] - pixel[0]) + p.down * (pixel[3] - pixel[2]);
            for (int edge = 0; edge < 2; edge++) {
                box[2 * edge] += d * down * by_row[edge];
                box[2 * edge + 1] += d * across * by_column[edge];
            }
        }
    }
    return SX_OK;
}

static void crop_and_resize_grad_boxes_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_crop_and_resize_grad_boxes, "CropAndResizeGradBoxes",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[1].dtype)));
}

static const double boxes[] = {0, 0, 1, 1, 0.9, 0.1, 0.2, 0.7, -0.5, 0.5, 0.5, 1.5},
                    images[] = {0, 1, 1};
static const sx_op_sample crop_and_resize_grad_boxes_samples[] = {
    {.name = "boxes",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3, 3, 4, 2),
                SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 6, 7, 2), SX_SAMPLE_LIST(SX_F32, boxes, 3, 4),
                SX_SAMPLE_LIST(SX_I32, images, 3)},
     .n_inputs = 4},
};

const sx_op_def sx_op_crop_and_resize_grad_boxes = {
    SX_OP_NAMED(crop_and_resize_grad_boxes),
    .n_in = 4,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_REFUSES_GRAD,
    .infer = crop_and_resize_grad_boxes_infer,
    .host = crop_and_resize_grad_boxes_host,
    .to_tf = crop_and_resize_grad_boxes_to_tf,
    SX_FROM_TF({.op = "CropAndResizeGradBoxes"}),
    SX_OP_SAMPLES(crop_and_resize_grad_boxes_samples),
};
