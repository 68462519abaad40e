/* transform_image: images seen through a projective transform.
 *
 *   images        [N,H,W,C], numbers
 *   transforms    float32 [N,8] or [1,8]: a0 a1 a2 b0 b1 b2 c0 c1
 *   output_shape  int32[2]: height, width
 *   fill_value    float32 scalar
 *   interpolation nearest, bilinear
 *   fill_mode     constant  fill_value outside of the image
 *                 reflect   dcba|abcd|dcba
 *                 wrap      abcd|abcd|abcd
 *                 nearest   aaaa|abcd|dddd
 *   returns       images' dtype [N,height,width,C]
 *
 * Pixel (x, y) of the result is at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) of the image,
 * k = c0 x + c1 y + 1, in float32; where k is 0, it is fill_value. Between pixels, those outside of
 * the image are fill_value.
 *
 * Errors   INVALID_ARGUMENT    shapes, dtypes, interpolation, fill_mode; (running) a size that is
 *                              not positive, the number of transforms
 *          RESOURCE_EXHAUSTED  (running) too many pixels
 * Source   TensorFlow ImageProjectiveTransformV3, V2 */
#ifdef SX_ATTRS
typedef struct sx_transform_image_attrs {
    const char *interpolation, *fill_mode;
} sx_transform_image_attrs;
#endif

#include "graph/ops/linear_algebra.h"
#include "graph/ops/resample.h"

#include <math.h>

static const char *const interpolations[] = {"NEAREST", "BILINEAR", NULL};
static const char *const modes[] = {"CONSTANT", "REFLECT", "WRAP", "NEAREST", NULL};

static const sx_attr_def transform_image_attrs[] = {
    SX_ATTR_TF(sx_transform_image_attrs, interpolation, SX_ATTR_STRING, .tf_text = ""),
    SX_ATTR_TF(sx_transform_image_attrs, fill_mode, SX_ATTR_STRING, .tf_text = "CONSTANT"),
};

static sx_status transform_image_infer(sx_infer_context *c)
{
    const sx_transform_image_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    SX_TRY(sx_require_maybe("transforms", &c->inputs[1], SX_F32, 2, "[N,8]"));
    SX_TRY(sx_require_maybe("fill_value", &c->inputs[3], SX_F32, 0, "a scalar"));
    SX_TRY(sx_require_name("interpolation", attrs->interpolation, interpolations));
    SX_TRY(sx_require_name("fill_mode", attrs->fill_mode, modes));
    return sx_infer_resized("images", x, "output_shape", &c->inputs[2], x->dtype, &c->outputs[0]);
}

/* dy moved back by the inverse transforms, as TensorFlow does it. */
static void transform_image_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_type x = sx_type_of_value(b, g->x[0]);
    const int64_t n = sx_type_of_value(b, g->x[1]).dims[0];
    const int64_t square[] = {n, 3, 3}, row[] = {n, 9};
    const sx_shape_attrs column = {.shape = {2, {n, 1}}};
    const sx_value ones = sx_build_op(b, broadcast_to, &column, sx_scalar(b, SX_F32, 1));
    sx_value t = sx_build_op(b, concat, (&(sx_axis_attrs){1}), g->x[1], ones);
    t = sx_build_op(b, matrix_inverse, (&(sx_adjoint_attrs){false}),
                    sx_reshape_dims(b, t, 3, square));
    t = sx_reshape_dims(b, t, 2, row);
    const sx_value last = sx_build_op(b, slice, (&(sx_slice_attrs){{2, {0, 8}}, {2, {n, 1}}}), t);
    t = sx_build_op(b, slice, (&(sx_slice_attrs){{2, {0, 0}}, {2, {n, 8}}}),
                    sx_build_op(b, div, NULL, t, last));
    const sx_value in[] = {g->dy[0], t, sx_size_of_images(b, g->x[0]), sx_scalar(b, SX_F32, 0)};
    g->dx[0] = sx_build_typed(b, &sx_op_transform_image, g->attrs, in, 4, &x, 1);
}

static sx_status transform_image_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_type *x = &c->in[0].type, *t = &c->in[1].type;
    if (t->dims[1] != 8 || (t->dims[0] != 1 && t->dims[0] != x->dims[0])) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "images are %s and transforms %s, expected [N,8] or [1,8]", SX_TEXT(x),
                        SX_TEXT(t));
    }
    return sx_resized_type(x->dims[0], x, "output_shape", &c->in[2], x->dtype, &out_types[0]);
}

/* The place within an axis of `len` pixels that stands for place `at`; constant: itself. */
static float place_inside(const char *mode, float at, int64_t len)
{
    const float last = (float)(len - 1);
    if (sx_string_is(mode, "CONSTANT")) {
        return at;
    }
    if (!sx_string_is(mode, "NEAREST") && (at < 0 || at > last)) {
        const float period = (float)(2 * len);
        if (len <= 1 || !(fabsf(at) < 0x1p62F)) {
            at = 0;
        } else if (sx_string_is(mode, "WRAP")) {
            at = at < 0 ? at + (float)(len * ((int64_t)(-at / last) + 1))
                        : at - (float)(len * (int64_t)(at / last));
        } else if (at < 0) {
            at = period * (float)(int64_t)(-at / period) + at;
            at = at < (float)-len ? at + period : -at - 1;
        } else {
            at -= period * (float)(int64_t)(at / period);
            at = at >= (float)len ? period - at - 1 : at;
        }
    }
    return fminf(fmaxf(at, 0), last);
}

static sx_status transform_image_host(const sx_kernel_call *c)
{
    const sx_transform_image_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type, *y = &c->out[0].type;
    const int64_t height = x->dims[1], width = x->dims[2], channels = x->dims[3];
    const bool nearest = sx_string_is(attrs->interpolation, "NEAREST");
    const double fill = c->in[3].f[0];
    for (int64_t i = 0, to = 0; i < y->dims[0] * y->dims[1]; i++) {
        const int64_t image = i / y->dims[1];
        const float row = (float)(i % y->dims[1]);
        float t[8];
        SX_TRY(sx_cancel_check(c->cancel));
        for (int k = 0; k < 8; k++) {
            t[k] = (float)c->in[1].f[(c->in[1].type.dims[0] == 1 ? 0 : image) * 8 + k];
        }
        for (int64_t j = 0; j < y->dims[2]; j++) {
            const float column = (float)j, by = t[6] * column + t[7] * row + 1;
            float h = (t[0] * column + t[1] * row + t[2]) / by,
                  v = (t[3] * column + t[4] * row + t[5]) / by;
            h = place_inside(attrs->fill_mode, h, width);
            v = place_inside(attrs->fill_mode, v, height);
            const bool inside = by != 0 && fabsf(h) < 0x1p31F && fabsf(v) < 0x1p31F;
            for (int64_t k = 0; k < channels; k++, to++) {
                double sum = inside ? 0 : fill;
                for (int corner = 0; corner < (nearest ? 1 : 4) && inside; corner++) {
                    const int down = corner / 2, across = corner % 2;
                    const int64_t p = (int64_t)(nearest ? roundf(v) : floorf(v)) + down,
                                  q = (int64_t)(nearest ? roundf(h) : floorf(h)) + across;
                    const double share_v = v - floorf(v), share_h = h - floorf(h);
                    const double pixel =
                        p >= 0 && p < height && q >= 0 && q < width
                            ? sx_host_get(&c->in[0],
                                          ((image * height + p) * width + q) * channels + k)
                            : fill;
                    sum += nearest ? pixel
                                   : pixel * (down ? share_v : 1 - share_v) *
                                         (across ? share_h : 1 - share_h);
                }
                sx_host_set(&c->out[0], to, sum);
            }
        }
    }
    return SX_OK;
}

static void transform_image_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_transform_image, "ImageProjectiveTransformV3",
               sx_tf_attrs(sx_tf_attr_type("dtype", (int)op->in_types[0].dtype)));
}

static const double transforms[] = {0.9, 0.2, -1, -0.1, 1.1, 0.5, 0.01, -0.02}, size[] = {5, 6},
                    fill[] = {-2};
/* no_grad_check: TensorFlow's gradient is not that of what it computes */
#define TRANSFORM(name_, interpolation_, mode_)                                                 \
    {                                                                                           \
        .name = (name_),                                                                        \
        .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 6, 7, 2),                                   \
                   SX_SAMPLE_LIST(SX_F32, transforms, 1, 8), SX_SAMPLE_LIST(SX_I32, size, 2),   \
                   SX_SAMPLE_ONE(SX_F32, fill)},                                                \
        .n_inputs = 4, .attrs = (&(const sx_transform_image_attrs){(interpolation_), (mode_)}), \
        .no_grad_check = true                                                                   \
    }
static const sx_op_sample transform_image_samples[] = {
    TRANSFORM("bilinear", "BILINEAR", "CONSTANT"),
    TRANSFORM("nearest", "NEAREST", "REFLECT"),
};

const sx_op_def sx_op_transform_image = {
    SX_OP_NAMED(transform_image),
    .n_in = 4,
    .n_out = 1,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_transform_image_attrs, transform_image_attrs),
    .infer = transform_image_infer,
    .grad = transform_image_gradient,
    .host = transform_image_host,
    .host_types = transform_image_host_types,
    .to_tf = transform_image_to_tf,
    SX_FROM_TF({.op = "ImageProjectiveTransformV3"}),
    SX_OP_SAMPLES(transform_image_samples),
};
