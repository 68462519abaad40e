/* crop_and_resize: boxes cut out of images, all of one size.
 *
 *   image       [N,H,W,C], numbers
 *   boxes       float32[n,4]: y1, x1, y2, x2, where 0 is the first and 1 the last row or column; y1
 *               above y2 turns the crop over
 *   box_ind     int32[n]: the image of each box
 *   crop_size   int32[2]: height, width
 *   method      bilinear, nearest
 *   extrapolation_value   of pixels outside of the image
 *   returns     float32[n,height,width,C]
 *
 * Errors   INVALID_ARGUMENT    shapes, dtypes, method; (running) a size that is not positive, an
 *                              empty image, an image that there is not
 *          RESOURCE_EXHAUSTED  (running) too many pixels
 * Source   TensorFlow CropAndResize */
#ifdef SX_ATTRS
typedef struct sx_crop_and_resize_attrs {
    const char *method;
    double extrapolation_value;
} sx_crop_and_resize_attrs;
#endif

#include "graph/ops/resample.h"

#include <math.h>

static const char *const methods[] = {"bilinear", "nearest", NULL};

static const sx_attr_def crop_and_resize_attrs[] = {
    SX_ATTR_TF(sx_crop_and_resize_attrs, method, SX_ATTR_STRING, .tf_text = "bilinear"),
    SX_ATTR_TF(sx_crop_and_resize_attrs, extrapolation_value, SX_ATTR_FLOAT, .tf_number = 0),
};

static sx_status crop_and_resize_infer(sx_infer_context *c)
{
    const sx_crop_and_resize_attrs *attrs = c->attrs;
    SX_TRY(sx_require_maybe("boxes", &c->inputs[1], SX_F32, 2, "[n,4]"));
    SX_TRY(sx_require_maybe("box_ind", &c->inputs[2], SX_I32, 1, "[n]"));
    SX_TRY(sx_require_name("method", attrs->method, methods));
    SX_TRY(sx_infer_resized("image", &c->inputs[0], "crop_size", &c->inputs[3], SX_F32,
                            &c->outputs[0]));
    c->outputs[0].dims[0] = sx_vector_size(&c->inputs[2]);
    return SX_OK;
}

static void crop_and_resize_gradient(sx_grad *g)
{
    if (g->needed[0]) {
        g->dx[0] =
            sx_build_op(g->b, crop_and_resize_grad, g->attrs, g->dy[0], g->x[1], g->x[2], g->x[0]);
    }
    if (g->needed[1]) {
        g->dx[1] = sx_build_op(g->b, crop_and_resize_grad_boxes, NULL, g->dy[0], g->x[0], g->x[1],
                               g->x[2]);
    }
}

sx_status sx_check_crops(const sx_type *x, const sx_host_tensor *boxes,
                         const sx_host_tensor *box_ind)
{
    const int64_t n = box_ind->type.dims[0];
    if (x->dims[1] < 1 || x->dims[2] < 1 || boxes->type.dims[0] != n || boxes->type.dims[1] != 4) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "image is %s, boxes %s, box_ind %s, expected pixels, [n,4] and [n]",
                        SX_TEXT(x), SX_TEXT(&boxes->type), SX_TEXT(&box_ind->type));
    }
    for (int64_t k = 0; k < n; k++) {
        if (box_ind->i[k] < 0 || box_ind->i[k] >= x->dims[0]) {
            return sx_error(SX_INVALID_ARGUMENT, "box %lld is of image %lld of %lld", (long long)k,
                            (long long)box_ind->i[k], (long long)x->dims[0]);
        }
    }
    return SX_OK;
}

static sx_status crop_and_resize_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_type *x = &c->in[0].type;
    SX_TRY(sx_check_crops(x, &c->in[1], &c->in[2]));
    return sx_resized_type(c->in[2].type.dims[0], x, "crop_size", &c->in[3], SX_F32, &out_types[0]);
}

float sx_crop_place(int64_t i, int64_t out, float a, float b, int64_t in)
{
    const float last = (float)(in - 1);
    return out > 1 ? a * last + (float)i * ((b - a) * last / (float)(out - 1))
                   : (float)(0.5 * (double)(a + b) * (double)last);
}

bool sx_crop_pixel_of(const sx_host_tensor *boxes, const sx_host_tensor *box_ind,
                      const sx_type *crop, const sx_type *images, int64_t n, int64_t i, int64_t j,
                      sx_crop_pixel *out)
{
    const int64_t height = images->dims[1], width = images->dims[2];
    const double *box = boxes->f + 4 * n;
    const float v = sx_crop_place(i, crop->dims[1], (float)box[0], (float)box[2], height);
    const float h = sx_crop_place(j, crop->dims[2], (float)box[1], (float)box[3], width);
    if (!(v >= 0 && v <= (float)(height - 1) && h >= 0 && h <= (float)(width - 1))) {
        return false;
    }
    const int64_t image = box_ind->i[n] * height;
    for (int corner = 0; corner < 4; corner++) {
        const float row = corner / 2 == 0 ? floorf(v) : ceilf(v),
                    column = corner % 2 == 0 ? floorf(h) : ceilf(h);
        out->at[corner] = (image + (int64_t)row) * width + (int64_t)column;
    }
    out->nearest = (image + (int64_t)roundf(v)) * width + (int64_t)roundf(h);
    out->down = v - floorf(v);
    out->across = h - floorf(h);
    return true;
}

static sx_status crop_and_resize_host(const sx_kernel_call *c)
{
    const sx_crop_and_resize_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type, *y = &c->out[0].type;
    const int64_t channels = x->dims[3], height = y->dims[1], width = y->dims[2];
    const bool nearest = sx_string_is(attrs->method, "nearest");
    for (int64_t i = 0, to = 0; i < y->dims[0] * height * width; i++) {
        sx_crop_pixel p;
        const bool inside = sx_crop_pixel_of(&c->in[1], &c->in[2], y, x, i / width / height,
                                             i / width % height, i % width, &p);
        if (i % width == 0) {
            SX_TRY(sx_cancel_check(c->cancel));
        }
        for (int64_t k = 0; k < channels; k++, to++) {
#define PIXEL(at_) sx_host_get(&c->in[0], (at_)*channels + k)
            if (!inside || nearest) {
                c->out[0].f[to] = inside ? PIXEL(p.nearest) : attrs->extrapolation_value;
                continue;
            }
            const double a = PIXEL(p.at[0]), b = PIXEL(p.at[2]);
            const double above = a + (PIXEL(p.at[1]) - a) * p.across,
                         below = b + (PIXEL(p.at[3]) - b) * p.across;
            c->out[0].f[to] = above + (below - above) * p.down;
#undef PIXEL
        }
    }
    return SX_OK;
}

static void crop_and_resize_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_crop_and_resize, "CropAndResize",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double boxes[] = {0, 0, 1, 1, 0.9, 0.1, 0.2, 0.7, -0.5, 0.5, 0.5, 1.5},
                    images[] = {0, 1, 1}, size[] = {3, 4};
/* no_grad_check: boxes end at the border, and places are float32 */
#define CROPS(method_)                                                                             \
    {                                                                                              \
        .name = (method_),                                                                         \
        .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 6, 7, 2), SX_SAMPLE_LIST(SX_F32, boxes, 3, 4), \
                   SX_SAMPLE_LIST(SX_I32, images, 3), SX_SAMPLE_LIST(SX_I32, size, 2)},            \
        .n_inputs = 4, .attrs = (&(const sx_crop_and_resize_attrs){(method_), -1}),                \
        .no_grad_check = true                                                                      \
    }
static const sx_op_sample crop_and_resize_samples[] = {CROPS("bilinear"), CROPS("nearest")};

const sx_op_def sx_op_crop_and_resize = {
    SX_OP_NAMED(crop_and_resize),
    .n_in = 4,
    .n_out = 1,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_crop_and_resize_attrs, crop_and_resize_attrs),
    .infer = crop_and_resize_infer,
    .grad = crop_and_resize_gradient,
    .host = crop_and_resize_host,
    .host_types = crop_and_resize_host_types,
    .to_tf = crop_and_resize_to_tf,
    SX_FROM_TF({.op = "CropAndResize"}),
    SX_OP_SAMPLES(crop_and_resize_samples),
};
