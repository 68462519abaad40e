/* crop_and_resize_grad: the gradient of crop_and_resize with respect to its images: dy is added to
 * the pixels that each pixel of a crop lies between, by their shares.
 *
 *   dy        float32 [n,height,width,C]
 *   boxes, box_ind   as crop_and_resize's
 *   image     [N,H,W,C], floats: what was cropped; only its type is read
 *   method    bilinear, nearest
 *   returns   image's type
 *
 * It is linear in dy: d(dy) = crop_and_resize(g).
 * Errors   INVALID_ARGUMENT  dtypes, ranks, method; (running) sizes that do not match, an image
 * that there is not Numbers  accumulates in double Source   TensorFlow CropAndResizeGradImage */
#include "graph/ops/resample.h"

static const char *const methods[] = {"bilinear", "nearest", NULL};
static const sx_attr_def crop_and_resize_grad_attrs[] = {
    SX_ATTR_TF(sx_crop_and_resize_attrs, method, SX_ATTR_STRING, .tf_text = "bilinear"),
};

static sx_status crop_and_resize_grad_infer(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[3];
    SX_TRY(sx_require_maybe("dy", &c->inputs[0], SX_F32, 4, "[n,height,width,C]"));
    SX_TRY(sx_require_maybe("boxes", &c->inputs[1], SX_F32, 2, "[n,4]"));
    SX_TRY(sx_require_maybe("box_ind", &c->inputs[2], SX_I32, 1, "[n]"));
    SX_TRY(sx_require_float("image", x));
    SX_TRY(sx_require_maybe("image", x, x->dtype, 4, "[N,H,W,C]"));
    SX_TRY(
        sx_require_name("method", ((const sx_crop_and_resize_attrs *)c->attrs)->method, methods));
    c->outputs[0] = *x;
    return SX_OK;
}

static void crop_and_resize_grad_gradient(sx_grad *g)
{
    const sx_type dy = sx_type_of_value(g->b, g->x[0]);
    const sx_crop_and_resize_attrs attrs = {((const sx_crop_and_resize_attrs *)g->attrs)->method,
                                            0};
    const sx_value in[] = {g->dy[0], g->x[1], g->x[2], sx_size_of_images(g->b, g->x[0])};
    g->dx[0] = sx_build_typed(g->b, &sx_op_crop_and_resize, &attrs, in, 4, &dy, 1);
    if (g->needed[1]) {
        g->dx[1] = sx_build_op(g->b, crop_and_resize_grad_boxes, NULL, g->x[0], g->dy[0], g->x[1],
                               g->x[2]);
    }
}

static sx_status crop_and_resize_grad_host(const sx_kernel_call *c)
{
    const sx_type *dy = &c->in[0].type, *x = &c->out[0].type;
    const bool nearest =
        sx_string_is(((const sx_crop_and_resize_attrs *)c->attrs)->method, "nearest");
    const int64_t channels = x->dims[3], height = dy->dims[1], width = dy->dims[2];
    SX_TRY(sx_check_crops(x, &c->in[1], &c->in[2]));
    if (dy->dims[0] != c->in[2].type.dims[0] || dy->dims[3] != channels) {
        return sx_error(SX_INVALID_ARGUMENT, "dy is %s, expected [%lld,height,width,%lld]",
                        SX_TEXT(dy), (long long)c->in[2].type.dims[0], (long long)channels);
    }
    sx_host_fill(c, 0, 0);
    for (int64_t i = 0; i < dy->dims[0] * height * width; i++) {
        sx_crop_pixel p;
        if (i % width == 0) {
            SX_TRY(sx_cancel_check(c->cancel));
        }
        if (!sx_crop_pixel_of(&c->in[1], &c->in[2], dy, x, i / width / height, i / width % height,
                              i % width, &p)) {
            continue;
        }
        for (int64_t k = 0; k < channels; k++) {
            const double d = c->in[0].f[i * channels + k];
            if (nearest) {
                c->out[0].f[p.nearest * channels + k] += d;
            }
            for (int corner = 0; corner < 4 && !nearest; corner++) {
                const double share = (corner / 2 == 0 ? 1 - p.down : p.down) *
                                     (corner % 2 == 0 ? 1 - p.across : p.across);
                c->out[0].f[p.at[corner] * channels + k] += share * d;
            }
        }
    }
    return SX_OK;
}

static const double boxes[] = {0, 0, 1, 1, 0.9, 0.1, 0.2, 0.7, -0.5, 0.5, 0.5, 1.5},
                    images[] = {0, 1, 1};
/* no_grad_check: boxes end at the border */
static const sx_op_sample crop_and_resize_grad_samples[] = {
    {.name = "bilinear",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3, 3, 4, 2), SX_SAMPLE_LIST(SX_F32, boxes, 3, 4),
                SX_SAMPLE_LIST(SX_I32, images, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 6, 7, 2)},
     .n_inputs = 4,
     .attrs = &(const sx_crop_and_resize_attrs){"bilinear", 0},
     .no_grad_check = true},
};

const sx_op_def sx_op_crop_and_resize_grad = {
    SX_OP_NAMED(crop_and_resize_grad),
    .n_in = 4,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_crop_and_resize_attrs, crop_and_resize_grad_attrs),
    .infer = crop_and_resize_grad_infer,
    .grad = crop_and_resize_grad_gradient,
    .host = crop_and_resize_grad_host,
    SX_OP_SAMPLES(crop_and_resize_grad_samples),
};
