/* resize_image: images of another size.
 *
 *   images   [N,H,W,C], numbers
 *   size     int32[2]: height, width
 *   method   nearest   the pixel whose area has the place
 *            bilinear  between the 4 pixels around it
 *            bicubic   of the 16 around it, by Keys' cubic: a = -0.5 with half_pixel_centers, where
 *                      pixels outside of the image have no weight, else -0.75
 *            area      the mean of the area
 *   align_corners       the centers of the corners stay: scale (in - 1) / (out - 1), else in / out
 *   half_pixel_centers  the place of pixel i is (i + 0.5) scale - 0.5, else i scale
 *   returns  [N,height,width,C]: of images' dtype for nearest, else float32
 *
 * Places are computed in float32, as TensorFlow does; bicubic weights are rounded to 1024 places.
 *
 * Errors   INVALID_ARGUMENT    shapes, dtypes, align_corners with half_pixel_centers; (running) a
 *                              size that is not positive, an empty image
 *          RESOURCE_EXHAUSTED  (running) too many pixels
 * Source   TensorFlow ResizeNearestNeighbor, ResizeBilinear, ResizeBicubic, ResizeArea */
#ifdef SX_ATTRS
enum { SX_RESIZED_NEAREST, SX_RESIZED_BILINEAR, SX_RESIZED_BICUBIC, SX_RESIZED_AREA };
typedef struct sx_resize_image_attrs {
    int32_t method; /* SX_RESIZED_ */
    bool align_corners, half_pixel_centers;
} sx_resize_image_attrs;
#endif

#include "graph/ops/resample.h"

#include <math.h>

#include "base/memory.h"

static const char *const methods[] = {"nearest", "bilinear", "bicubic", "area", NULL};
static const char *const tf_ops[] = {"ResizeNearestNeighbor", "ResizeBilinear", "ResizeBicubic",
                                     "ResizeArea"};

static const sx_attr_def resize_image_attrs[] = {
    SX_ATTR_NAMES(sx_resize_image_attrs, method, methods),
    SX_ATTR_TF(sx_resize_image_attrs, align_corners, SX_ATTR_BOOL, .tf_number = 0),
    SX_ATTR_TF(sx_resize_image_attrs, half_pixel_centers, SX_ATTR_BOOL, .tf_number = 0),
};

static sx_status resize_image_infer(sx_infer_context *c)
{
    const sx_resize_image_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    if (attrs->align_corners && attrs->half_pixel_centers) {
        return sx_error(SX_INVALID_ARGUMENT, "align_corners and half_pixel_centers exclude each "
                                             "other");
    }
    return sx_infer_resized("images", x, "size", &c->inputs[1],
                            attrs->method == SX_RESIZED_NEAREST ? x->dtype : SX_F32,
                            &c->outputs[0]);
}

static void resize_image_gradient(sx_grad *g)
{
    g->dx[0] = sx_build_op(g->b, resize_image_grad, g->attrs, g->dy[0], g->x[0]);
}

static sx_status resize_image_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_resize_image_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type;
    if (x->dims[1] < 1 || x->dims[2] < 1 || x->dims[3] < 1) {
        return sx_error(SX_INVALID_ARGUMENT, "images are %s, expected pixels", SX_TEXT(x));
    }
    return sx_resized_type(x->dims[0], x, "size", &c->in[1],
                           attrs->method == SX_RESIZED_NEAREST ? x->dtype : SX_F32, &out_types[0]);
}

/* Keys' cubic at x in [0, 1], and at x + 1. */
static double near_weight(float a, float x)
{
    return ((a + 2) * x - (a + 3)) * x * x + 1;
}

static double far_weight(float a, float x)
{
    const float y = x + 1;
    return ((a * y - 5 * a) * y + 8 * a) * y - 4 * a;
}

/* How much of [i, i + 1] lies in [from, to], which is not longer than `length`. */
static double part_of(int64_t i, float from, float to, float length)
{
    const float low = (float)i, high = (float)(i + 1);
    return low < from ? (high > to ? length : high - from) : (high > to ? to - low : 1.0F);
}

/* The corners of one pixel are one place, over which there is no mean: its parts are as without
 * align_corners. */
float sx_resize_image_scale(const void *attrs, int64_t in, int64_t out)
{
    const sx_resize_image_attrs *a = attrs;
    const bool corners = a->align_corners && out > 1 && !(a->method == SX_RESIZED_AREA && in == 1);
    return corners ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
}

bool sx_resize_image_copies(const void *attrs, const sx_type *x, const sx_type *y)
{
    return ((const sx_resize_image_attrs *)attrs)->method == SX_RESIZED_BILINEAR &&
           x->dims[1] == y->dims[1] && x->dims[2] == y->dims[2];
}

sx_status sx_resize_image_weights(const sx_kernel_call *c, int64_t in, int64_t out,
                                  sx_axis_weights *s)
{
    const sx_resize_image_attrs *attrs = c->attrs;
    const bool half = attrs->half_pixel_centers;
    const float scale = sx_resize_image_scale(attrs, in, out);
    static const int most_of[] = {1, 2, 4, 0};
    SX_TRY(sx_axis_weights_make(
        c, out,
        attrs->method == SX_RESIZED_AREA ? (int64_t)ceilf(scale) + 2 : most_of[attrs->method], s));
    s->zeros = attrs->method == SX_RESIZED_BICUBIC;
    for (int64_t i = 0; i < out; i++) {
        int64_t *at = s->at + i * s->most;
        double *weight = s->weight + i * s->most;
        const float place = half ? ((float)i + 0.5F) * scale - 0.5F : (float)i * scale;
        if (attrs->method == SX_RESIZED_NEAREST) {
            const float corner = half ? ((float)i + 0.5F) * scale : (float)i * scale;
            at[0] = (int64_t)(attrs->align_corners ? roundf(corner) : floorf(corner));
            weight[0] = 1;
        } else if (attrs->method == SX_RESIZED_BILINEAR) {
            const float low = floorf(place);
            at[0] = (int64_t)low;
            at[1] = (int64_t)ceilf(place);
            weight[1] = place - low;
            weight[0] = 1 - weight[1];
        } else if (attrs->method == SX_RESIZED_BICUBIC) {
            const float a = half ? -0.5F : -0.75F, low = floorf(place);
            const float x = (float)lrintf((place - low) * 1024) / 1024;
            weight[0] = far_weight(a, x);
            weight[1] = near_weight(a, x);
            weight[2] = near_weight(a, 1 - x);
            weight[3] = far_weight(a, 1 - x);
            double sum = 0;
            for (int k = 0; k < 4; k++) {
                at[k] = (int64_t)low - 1 + k;
                weight[k] = half && (at[k] < 0 || at[k] >= in) ? 0 : weight[k];
                sum += weight[k];
            }
            for (int k = 0; k < 4 && half; k++) {
                weight[k] /= sum;
            }
        } else {
            const float from = (float)i * scale, to = (float)(i + 1) * scale;
            const int64_t first = (int64_t)floorf(from), end = (int64_t)ceilf(to);
            for (int64_t k = 0; k < s->most; k++) {
                at[k] = first + k;
                weight[k] = first + k < end ? part_of(first + k, from, to, scale) / scale : 0;
            }
        }
        for (int64_t k = 0; k < s->most; k++) {
            at[k] = SX_MIN(SX_MAX(at[k], 0), in - 1);
        }
    }
    return SX_OK;
}

/* Between the two pixels of each axis: a + (b - a) share, which of infinities is NaN. */
static sx_status blend(const sx_kernel_call *c, const sx_axis_weights *rows,
                       const sx_axis_weights *columns)
{
    const sx_type *x = &c->in[0].type, *y = &c->out[0].type;
    const int64_t channels = x->dims[3];
    double *to = c->out[0].f;
    for (int64_t i = 0; i < y->dims[0] * y->dims[1]; i++) {
        const int64_t row = i % y->dims[1], first = i / y->dims[1] * x->dims[1];
        SX_TRY(sx_cancel_check(c->cancel));
        for (int64_t column = 0; column < y->dims[2]; column++) {
            for (int64_t k = 0; k < channels; k++, to++) {
                double line[2];
                for (int r = 0; r < 2; r++) {
                    const int64_t start = (first + rows->at[2 * row + r]) * x->dims[2];
                    double v[2];
                    for (int q = 0; q < 2; q++) {
                        const int64_t pixel = start + columns->at[2 * column + q];
                        v[q] = sx_host_get(&c->in[0], pixel * channels + k);
                    }
                    line[r] = v[0] + (v[1] - v[0]) * columns->weight[2 * column + 1];
                }
                *to = line[0] + (line[1] - line[0]) * rows->weight[2 * row + 1];
            }
        }
    }
    return SX_OK;
}

static sx_status resize_image_host(const sx_kernel_call *c)
{
    const sx_resize_image_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type, *y = &c->out[0].type;
    sx_axis_weights rows, columns;
    if (sx_resize_image_copies(attrs, x, y)) {
        for (int64_t i = 0, n = sx_type_elems(y); i < n; i++) {
            c->out[0].f[i] = sx_host_get(&c->in[0], i);
        }
        return SX_OK;
    }
    SX_TRY(sx_resize_image_weights(c, x->dims[1], y->dims[1], &rows));
    SX_TRY(sx_resize_image_weights(c, x->dims[2], y->dims[2], &columns));
    if (attrs->method == SX_RESIZED_BILINEAR) {
        return blend(c, &rows, &columns);
    }
    if (attrs->method != SX_RESIZED_NEAREST) {
        return sx_resample(c, &rows, &columns);
    }
    const int64_t channels = x->dims[3];
    for (int64_t i = 0, to = 0; i < y->dims[0] * y->dims[1]; i++) {
        const int64_t row = i / y->dims[1] * x->dims[1] + rows.at[i % y->dims[1]];
        for (int64_t column = 0; column < y->dims[2]; column++) {
            const int64_t from = (row * x->dims[2] + columns.at[column]) * channels;
#define COPY(type, field) c->out[0].field[to] = c->in[0].field[from + k]
            for (int64_t k = 0; k < channels; k++, to++) {
                SX_HOST_BY_NUMBER(x->dtype, COPY)
            }
#undef COPY
        }
    }
    return SX_OK;
}

static void resize_image_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_resize_image,
               tf_ops[((const sx_resize_image_attrs *)op->attrs)->method],
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static sx_status nearest_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_resize_image_attrs *)out)->method = SX_RESIZED_NEAREST;
    return SX_OK;
}

static sx_status bilinear_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_resize_image_attrs *)out)->method = SX_RESIZED_BILINEAR;
    return SX_OK;
}

static sx_status bicubic_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_resize_image_attrs *)out)->method = SX_RESIZED_BICUBIC;
    return SX_OK;
}

static sx_status area_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_resize_image_attrs *)out)->method = SX_RESIZED_AREA;
    return SX_OK;
}

static const double size[] = {5, 4};
#define RESIZE(name_, ...)                                                                      \
    {                                                                                           \
        .name = (name_),                                                                        \
        .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 7, 2), SX_SAMPLE_LIST(SX_I32, size, 2)}, \
        .n_inputs = 2, .attrs = (&(const sx_resize_image_attrs){__VA_ARGS__})                   \
    }
static const sx_op_sample resize_image_samples[] = {
    RESIZE("nearest", SX_RESIZED_NEAREST, false, true),
    RESIZE("bilinear", SX_RESIZED_BILINEAR, true, false),
    RESIZE("bicubic", SX_RESIZED_BICUBIC, false, true),
    RESIZE("area", SX_RESIZED_AREA, false, false),
};

const sx_op_def sx_op_resize_image = {
    SX_OP_NAMED(resize_image),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_resize_image_attrs, resize_image_attrs),
    .infer = resize_image_infer,
    .grad = resize_image_gradient,
    .host = resize_image_host,
    .host_types = resize_image_host_types,
    .to_tf = resize_image_to_tf,
    SX_FROM_TF({.op = "ResizeNearestNeighbor", .attrs = nearest_from_tf},
               {.op = "ResizeBilinear", .attrs = bilinear_from_tf},
               {.op = "ResizeBicubic", .attrs = bicubic_from_tf},
               {.op = "ResizeArea", .attrs = area_from_tf}),
    SX_OP_SAMPLES(resize_image_samples),
};
