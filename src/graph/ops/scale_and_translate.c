/* scale_and_translate: images scaled and moved, filtered.
 *
 *   images              [N,H,W,C], numbers
 *   size                int32[2]: height, width
 *   scale, translation  float32[2], by height and width: pixel i of the result is at
 *                       (i + 0.5 - translation) / scale of the image; 0 where that is outside of it
 *   kernel_type         lanczos1, lanczos3, lanczos5, gaussian, box, triangle, keyscubic,
 *                       mitchellcubic
 *   antialias           where it shrinks, the kernel is as much wider
 *   returns             float32[N,height,width,C]
 *
 * The weights of the pixels within the kernel's radius add up to 1.
 *
 * Errors   INVALID_ARGUMENT    shapes, dtypes, kernel_type; (running) a size or a scale that is
 *                              not positive, an empty image
 *          RESOURCE_EXHAUSTED  (running) too many pixels
 * Source   TensorFlow ScaleAndTranslate */
#ifdef SX_ATTRS
typedef struct sx_scale_and_translate_attrs {
    const char *kernel_type;
    bool antialias;
} sx_scale_and_translate_attrs;
#endif

#include "graph/ops/resample.h"

#include <math.h>

#include "base/memory.h"

/* ---- Kernels, of x >= 0 ---- */

static const double pi = 3.14159265358979323846;

static double lanczos(double radius, double x)
{
    return x > radius  ? 0
           : x <= 1e-3 ? 1
                       : radius * sin(pi * x) * sin(pi * x / radius) / (pi * pi * x * x);
}

static double gaussian(double radius, double x)
{
    const double sigma = radius / 3;
    return x >= radius ? 0 : exp(-x * x / (2 * sigma * sigma));
}

static double box(double radius, double x)
{
    (void)radius;
    return x < 0.5 ? 1 : x == 0.5 ? 0.5 : 0;
}

static double triangle(double radius, double x)
{
    return x < radius ? radius - x : 0;
}

static double keys_cubic(double radius, double x)
{
    return x >= radius ? 0
           : x >= 1    ? ((-0.5 * x + 2.5) * x - 4) * x + 2
                       : ((1.5 * x - 2.5) * x) * x + 1;
}

static double mitchell_cubic(double radius, double x)
{
    return x >= radius ? 0
           : x >= 1    ? (((-7. / 18) * x + 2) * x - 10. / 3) * x + 16. / 9
                       : (((7. / 6) * x - 2) * x) * x + 8. / 9;
}

static const struct kernel {
    const char *name;
    double (*weight)(double radius, double x);
    float radius;
} kernels[] = {
    {"lanczos1", lanczos, 1},
    {"lanczos3", lanczos, 3},
    {"lanczos5", lanczos, 5},
    {"gaussian", gaussian, 1.5F},
    {"box", box, 1},
    {"triangle", triangle, 1},
    {"keyscubic", keys_cubic, 2},
    {"mitchellcubic", mitchell_cubic, 2},
};

static const struct kernel *kernel_of(const char *name)
{
    for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++) {
        if (sx_string_is(name, kernels[k].name)) {
            return &kernels[k];
        }
    }
    return NULL;
}

sx_status sx_require_kernel(const char *name)
{
    return kernel_of(name) != NULL
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "there is no kernel_type \"%.64s\"",
                          name == NULL ? "" : name);
}

/* ---- The operator ---- */

static const sx_attr_def scale_and_translate_attrs[] = {
    SX_ATTR_TF(sx_scale_and_translate_attrs, kernel_type, SX_ATTR_STRING, .tf_text = "lanczos3"),
    SX_ATTR_TF(sx_scale_and_translate_attrs, antialias, SX_ATTR_BOOL, .tf_number = 1),
};

static sx_status scale_and_translate_infer(sx_infer_context *c)
{
    const sx_scale_and_translate_attrs *attrs = c->attrs;
    SX_TRY(sx_require_maybe("scale", &c->inputs[2], SX_F32, 1, "[2]"));
    SX_TRY(sx_require_maybe("translation", &c->inputs[3], SX_F32, 1, "[2]"));
    SX_TRY(sx_require_kernel(attrs->kernel_type));
    return sx_infer_resized("images", &c->inputs[0], "size", &c->inputs[1], SX_F32, &c->outputs[0]);
}

static void scale_and_translate_gradient(sx_grad *g)
{
    g->dx[0] =
        sx_build_op(g->b, scale_and_translate_grad, g->attrs, g->dy[0], g->x[0], g->x[2], g->x[3]);
}

static sx_status require_places(const sx_kernel_call *c)
{
    const sx_host_tensor *scale = &c->in[2];
    if (scale->type.dims[0] != 2 || c->in[3].type.dims[0] != 2 ||
        !(scale->f[0] > 0 && scale->f[1] > 0)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "scale is %s and translation %s, expected [2] above 0, and [2]",
                        SX_TEXT(&scale->type), SX_TEXT(&c->in[3].type));
    }
    return SX_OK;
}

static sx_status scale_and_translate_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_type *x = &c->in[0].type;
    SX_TRY(require_places(c));
    if (x->dims[1] < 1 || x->dims[2] < 1 || x->dims[3] < 1) {
        return sx_error(SX_INVALID_ARGUMENT, "images are %s, expected pixels", SX_TEXT(x));
    }
    return sx_resized_type(x->dims[0], x, "size", &c->in[1], SX_F32, &out_types[0]);
}

/* In float32, as TensorFlow's, where that decides what pixels take part. */
sx_status sx_scale_and_translate_weights(const sx_kernel_call *c, int64_t in, int64_t out, int axis,
                                         sx_axis_weights *w)
{
    SX_TRY(require_places(c));
    const sx_scale_and_translate_attrs *attrs = c->attrs;
    const struct kernel *kernel = kernel_of(attrs->kernel_type);
    const float inverse = (float)(1.0 / c->in[2].f[axis]);
    const float move = -inverse * (float)c->in[3].f[axis];
    const float wider = attrs->antialias ? fmaxf(inverse, 1) : 1;
    const float reach = kernel->radius * wider, most = 2 * ceilf(reach) + 1;
    SX_TRY(sx_axis_weights_make(c, out, most < (float)in ? (int64_t)most : in, w));
    for (int64_t i = 0; i < out; i++) {
        const float at = ((float)i + 0.5F) * inverse + move;
        if (!(at >= 0 && at <= (float)in)) {
            continue;
        }
        const int64_t first = SX_MIN(SX_MAX((int64_t)ceilf(at - reach - 0.5F), 0), in - 1),
                      last = SX_MAX(SX_MIN((int64_t)floorf(at + reach - 0.5F), in - 1), 0);
        double sum = 0;
        for (int64_t k = first; k <= last && k - first < w->most; k++) {
            const float away = fabsf((float)k + 0.5F - at);
            const double weight = kernel->weight(kernel->radius, away * (1 / wider));
            w->at[i * w->most + k - first] = k;
            w->weight[i * w->most + k - first] = weight;
            sum += weight;
        }
        for (int64_t k = i * w->most; k < (i + 1) * w->most; k++) {
            w->weight[k] = fabs(sum) >= 1000 * 1.17549435e-38 ? w->weight[k] / sum : 0;
        }
    }
    return SX_OK;
}

static sx_status scale_and_translate_host(const sx_kernel_call *c)
{
    sx_axis_weights rows, columns;
    SX_TRY(
        sx_scale_and_translate_weights(c, c->in[0].type.dims[1], c->out[0].type.dims[1], 0, &rows));
    SX_TRY(sx_scale_and_translate_weights(c, c->in[0].type.dims[2], c->out[0].type.dims[2], 1,
                                          &columns));
    return sx_resample(c, &rows, &columns);
}

static void scale_and_translate_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_scale_and_translate, "ScaleAndTranslate",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double size[] = {2, 9}, scale[] = {0.4, 1.5}, translation[] = {0.25, -1};
static const sx_op_sample scale_and_translate_samples[] = {
    /* no_grad_check: scale and translation have none, as in TensorFlow */
    {.name = "lanczos3",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 6, 7, 2), SX_SAMPLE_LIST(SX_I32, size, 2),
                SX_SAMPLE_LIST(SX_F32, scale, 2), SX_SAMPLE_LIST(SX_F32, translation, 2)},
     .n_inputs = 4,
     .attrs = &(const sx_scale_and_translate_attrs){"lanczos3", true},
     .no_grad_check = true},
};

const sx_op_def sx_op_scale_and_translate = {
    SX_OP_NAMED(scale_and_translate),
    .n_in = 4,
    .n_out = 1,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_scale_and_translate_attrs, scale_and_translate_attrs),
    .infer = scale_and_translate_infer,
    .grad = scale_and_translate_gradient,
    .host = scale_and_translate_host,
    .host_types = scale_and_translate_host_types,
    .to_tf = scale_and_translate_to_tf,
    SX_FROM_TF({.op = "ScaleAndTranslate"}),
    SX_OP_SAMPLES(scale_and_translate_samples),
};
