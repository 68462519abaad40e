/* preprocess_image: encoded images as a model's input: decoded, resized, cropped at the centre,
 * scaled.
 *
 *   images   string, any shape: JPEG or PNG
 *   height, width, channels, resize, extra_height, extra_width, scale, mean, std
 *            the evaluation form of sx_preprocess (image/preprocess.h)
 *   returns  float32, the images' shape and then [height, width, channels]
 *
 * Errors   INVALID_ARGUMENT  a dtype, an attribute out of range; (running) an image over the limits
 *          DATA_LOSS         (running) what is no image, or a damaged one
 *          RESOURCE_EXHAUSTED, CANCELLED, DEADLINE_EXCEEDED  (running)
 * Numbers  those of the input pipeline, to the bit: it is the same function
 * Source   the nodes that export writes for preprocessing (savedmodel/image_nodes.h) */
#ifdef SX_ATTRS
/* The evaluation form of sx_preprocess (image/preprocess.h). */
typedef struct sx_preprocess_image_attrs {
    int64_t height, width, channels;   /* of the result */
    int32_t resize;                    /* sx_resize_rule */
    int64_t extra_height, extra_width; /* rows and columns beyond the result before the crop */
    int32_t scale;                     /* sx_scale */
    double mean_0, mean_1, mean_2, std_0, std_1, std_2; /* of SX_MEAN_STD */
} sx_preprocess_image_attrs;
#endif

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/ops/common.h"
#include "image/format.h"
#include "image/preprocess.h"

static const char *const resize_names[] = {[SX_RESIZE_BILINEAR] = "bilinear",
                                           [SX_RESIZE_BILINEAR_TF1] = "bilinear-tf1",
                                           [SX_RESIZE_NEAREST] = "nearest",
                                           NULL};
static const char *const scale_names[] = {[SX_SCALE_NONE] = "none",
                                          [SX_0_1] = "0..1",
                                          [SX_MINUS1_1] = "-1..1",
                                          [SX_MEAN_STD] = "mean/std",
                                          NULL};

static const sx_attr_def preprocess_image_attrs[] = {
    SX_ATTR(sx_preprocess_image_attrs, height, SX_ATTR_INT),
    SX_ATTR(sx_preprocess_image_attrs, width, SX_ATTR_INT),
    SX_ATTR(sx_preprocess_image_attrs, channels, SX_ATTR_INT),
    SX_ATTR_NAMES(sx_preprocess_image_attrs, resize, resize_names),
    SX_ATTR(sx_preprocess_image_attrs, extra_height, SX_ATTR_INT),
    SX_ATTR(sx_preprocess_image_attrs, extra_width, SX_ATTR_INT),
    SX_ATTR_NAMES(sx_preprocess_image_attrs, scale, scale_names),
    SX_ATTR(sx_preprocess_image_attrs, mean_0, SX_ATTR_FLOAT),
    SX_ATTR(sx_preprocess_image_attrs, mean_1, SX_ATTR_FLOAT),
    SX_ATTR(sx_preprocess_image_attrs, mean_2, SX_ATTR_FLOAT),
    SX_ATTR(sx_preprocess_image_attrs, std_0, SX_ATTR_FLOAT),
    SX_ATTR(sx_preprocess_image_attrs, std_1, SX_ATTR_FLOAT),
    SX_ATTR(sx_preprocess_image_attrs, std_2, SX_ATTR_FLOAT),
};

static sx_status read_attrs(const sx_preprocess_image_attrs *a, sx_preprocess *out)
{
    const int64_t most = SX_RESIZE_MAX_SIDE;
    if (a->height < 1 || a->height > most || a->width < 1 || a->width > most || a->channels < 1 ||
        a->channels > SX_IMAGE_MAX_CHANNELS || a->extra_height < 0 || a->extra_height > most ||
        a->extra_width < 0 || a->extra_width > most) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "height %lld, width %lld, channels %lld, extra_height %lld, extra_width "
                        "%lld: a size is out of range",
                        (long long)a->height, (long long)a->width, (long long)a->channels,
                        (long long)a->extra_height, (long long)a->extra_width);
    }
    *out = (sx_preprocess){
        .height = (int)a->height,
        .width = (int)a->width,
        .channels = (int)a->channels,
        .resize = (sx_resize_rule)a->resize,
        .extra_height = (int)a->extra_height,
        .extra_width = (int)a->extra_width,
        .crop = a->extra_height > 0 || a->extra_width > 0 ? SX_CROP_CENTER : SX_CROP_NONE,
        .scale = (sx_scale)a->scale,
        .mean = {(float)a->mean_0, (float)a->mean_1, (float)a->mean_2},
        .std = {(float)a->std_0, (float)a->std_1, (float)a->std_2},
    };
    return sx_preprocess_check(out);
}

static sx_status preprocess_image_infer(sx_infer_context *c)
{
    const sx_preprocess_image_attrs *a = c->attrs;
    sx_preprocess pre;
    SX_TRY(sx_require_dtype("images", &c->inputs[0], SX_STRING));
    if (c->inputs[0].rank > SX_MAX_RANK - 3) {
        return sx_error(SX_INVALID_ARGUMENT, "images are %s, expected at most %d dimensions",
                        SX_TEXT(&c->inputs[0]), SX_MAX_RANK - 3);
    }
    SX_TRY(read_attrs(a, &pre));
    sx_type *y = &c->outputs[0];
    *y = c->inputs[0];
    y->dtype = SX_F32;
    y->dims[y->rank++] = a->height;
    y->dims[y->rank++] = a->width;
    y->dims[y->rank++] = a->channels;
    return SX_OK;
}

/* The headers of all images, before any is decoded; and what decoding the largest one takes: its
 * pixels and, where it comes in several scans, its coefficients (2 bytes for each sample of up to 4
 * components). */
static sx_status preprocess_image_check(const sx_kernel_call *c, size_t *out_bytes)
{
    enum { COEFFICIENT_BYTES = 8 };
    const sx_preprocess_image_attrs *a = c->attrs;
    const sx_image_limits *limits = c->images != NULL ? c->images : &sx_image_limits_untrusted;
    *out_bytes = 0;
    for (int64_t i = 0; i < sx_type_elems(&c->in[0].type); i++) {
        const long long number = (long long)(c->first_row + i);
        sx_image_info info;
        SX_TRY(sx_image_probe(c->in[0].s[i], &info), "image %lld", number);
        if (info.height > limits->max_pixels / SX_MAX(info.width, (int64_t)1)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "image %lld has %lldx%lld pixels; the limit is %lld pixels", number,
                            (long long)info.height, (long long)info.width,
                            (long long)limits->max_pixels);
        }
        const size_t pixels = (size_t)info.height * (size_t)info.width;
        const size_t bytes = (size_t)a->channels + (info.progressive ? COEFFICIENT_BYTES : 0);
        *out_bytes = SX_MAX(*out_bytes, pixels * bytes);
    }
    return SX_OK;
}

static sx_status preprocess_image_host(const sx_kernel_call *c)
{
    sx_preprocess pre;
    sx_preprocess_scratch scratch = {.limits = c->images != NULL ? c->images
                                                                 : &sx_image_limits_untrusted};
    SX_TRY(read_attrs(c->attrs, &pre));
    const size_t elems = (size_t)pre.height * (size_t)pre.width * (size_t)pre.channels;
    float *to = c->out[0].data; /* moved: in its own dtype */
    sx_status status = SX_OK;
    for (int64_t i = 0; i < sx_type_elems(&c->in[0].type) && status == SX_OK; i++, to += elems) {
        status = sx_cancel_check(c->cancel);
        if (status != SX_OK) {
            break;
        }
        status = sx_preprocess_encoded(&pre, c->in[0].s[i], NULL, &scratch, to);
        if (sx_status_code(status) == SX_RESOURCE_EXHAUSTED &&
            !sx_status_is_no_memory(status)) { /* over the limits: no use in trying again */
            sx_status refused = sx_error(SX_INVALID_ARGUMENT, "%s", sx_status_message(status));
            sx_status_free(status);
            status = refused;
        }
        status = sx_status_annotate(status, __FILE__, __LINE__, "image %lld",
                                    (long long)(c->first_row + i));
    }
    sx_preprocess_scratch_deinit(&scratch);
    /* carried floats are doubles: from the last to the first, in place */
    for (int64_t k = c->all_carried ? sx_type_elems(&c->out[0].type) : 0; k-- > 0;) {
        float x;
        memcpy(&x, (const float *)c->out[0].data + k, sizeof(x));
        c->out[0].f[k] = (double)x;
    }
    return status;
}

const sx_op_def sx_op_preprocess_image = {
    SX_OP_NAMED(preprocess_image),
    .n_in = 1,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    .batch_rule = SX_RULE_EXAMPLES,
    .moved = SX_MOVES_ALL,
    SX_OP_ATTRS(sx_preprocess_image_attrs, preprocess_image_attrs),
    .infer = preprocess_image_infer,
    .host_check = preprocess_image_check,
    .host = preprocess_image_host,
};
