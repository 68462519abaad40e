/* decode_image: the pixels of an encoded image.
 *
 *   contents     string scalar: JPEG, PNG, GIF or BMP, whatever TensorFlow's operator is named
 * after crop         (only with `op` crop_jpeg) int32 [4]: top, left, height, width op image, jpeg,
 * crop_jpeg, png, gif, bmp: TensorFlow's operator channels     of the result; 0 = those of the file
 *   dtype        uint8; uint16 and float32 in [0, 1], which only image, and uint16 png, have
 *   all_frames   of a GIF; else its first, and `op` jpeg and png refuse one of several
 *   accurate, ratio, plain_upsampling   of JPEG: the slower DCT, a scale of 1/1, 1/2, 1/4 or 1/8,
 *                no interpolation of colours
 *   returns      [height, width, channels]; of a GIF with all frames [frames, height, width, 3]
 *
 * Errors   INVALID_ARGUMENT    attributes, dtypes; (running) what is no such image, or a damaged
 * one; channels that its format has not; a window outside of the image RESOURCE_EXHAUSTED (running)
 * over the limits for images Numbers  those of TensorFlow, to the bit (image/decode.h) Source
 * TensorFlow DecodeImage, DecodeJpeg, DecodeAndCropJpeg, DecodePng, DecodeGif, DecodeBmp
 *          (core/kernels/image/decode_image_op.cc) */
#include <string.h>

#include "graph/ops/host_ops.h"
#include "image/decode.h"
#include "image/format.h"

enum { OP_IMAGE, OP_JPEG, OP_CROP_JPEG, OP_PNG, OP_GIF, OP_BMP };
static const char *const ops[] = {"image", "jpeg", "crop_jpeg", "png", "gif", "bmp", NULL};

typedef struct sx_decode_image_attrs {
    int32_t op;
    int64_t channels;
    sx_dtype dtype;
    bool all_frames, accurate, plain_upsampling;
    int64_t ratio;
} sx_decode_image_attrs;

static const sx_attr_def decode_image_attrs[] = {
    SX_ATTR_NAMES(sx_decode_image_attrs, op, ops),
    SX_ATTR(sx_decode_image_attrs, channels, SX_ATTR_INT),
    SX_ATTR(sx_decode_image_attrs, dtype, SX_ATTR_DTYPE),
    SX_ATTR(sx_decode_image_attrs, all_frames, SX_ATTR_BOOL),
    SX_ATTR(sx_decode_image_attrs, accurate, SX_ATTR_BOOL),
    SX_ATTR(sx_decode_image_attrs, plain_upsampling, SX_ATTR_BOOL),
    SX_ATTR(sx_decode_image_attrs, ratio, SX_ATTR_INT),
};

static sx_status decode_image_infer(sx_infer_context *c)
{
    const sx_decode_image_attrs *a = c->attrs;
    const bool crops = a->op == OP_CROP_JPEG;
    if (c->n_inputs != (crops ? 2 : 1)) {
        return sx_error(SX_INVALID_ARGUMENT, "%d operands, expected %d", c->n_inputs,
                        crops ? 2 : 1);
    }
    SX_TRY(sx_require_maybe("contents", &c->inputs[0], SX_STRING, 0, "a scalar"));
    if (crops) {
        SX_TRY(sx_require_maybe("the window", &c->inputs[1], SX_I32, 1, "[4]"));
    }
    const bool dtype = a->dtype == SX_U8 ||
                       (a->dtype == SX_U16 && (a->op == OP_IMAGE || a->op == OP_PNG)) ||
                       (a->dtype == SX_F32 && a->op == OP_IMAGE);
    if (!dtype || a->channels < 0 || a->channels > 4 || a->channels == 2 ||
        (a->ratio != 1 && a->ratio != 2 && a->ratio != 4 && a->ratio != 8)) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "dtype %s, %lld channels, ratio %lld: expected uint8 (uint16 of PNG; image: "
            "float32, too), 0, 1, 3 or 4 channels, a ratio of 1, 2, 4 or 8",
            sx_dtype_name(a->dtype), (long long)a->channels, (long long)a->ratio);
    }
    const int64_t channels = a->channels > 0 ? a->channels : SX_UNKNOWN_DIM;
    const bool frames = a->op == OP_GIF;
    c->outputs[0] = a->op == OP_IMAGE && a->all_frames ? sx_unknown_shape(a->dtype)
                    : frames
                        ? sx_type_of(a->dtype, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM, 3)
                        : sx_type_of(a->dtype, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM, channels);
    return SX_OK;
}

/* What the header says of the result, whole: frames x height x width x channels. */
typedef struct shape {
    sx_image_format format;
    int64_t frames, height, width, channels;
    bool several; /* the result has a dimension of frames */
    size_t work_bytes;
} shape;

static sx_status refuse_channels(const char *format, int64_t channels, const char *expected)
{
    return sx_error(SX_INVALID_ARGUMENT, "a %s is decoded to %s channels, not %lld", format,
                    expected, (long long)channels);
}

/* decode_gif gives colours, whatever the file is. */
static int64_t channels_of(const sx_decode_image_attrs *a)
{
    return a->op == OP_GIF ? 3 : a->channels;
}

static sx_status probe(const sx_kernel_call *c, shape *out)
{
    enum { COEFFICIENT_BYTES = 8 };
    const sx_decode_image_attrs *a = c->attrs;
    const sx_bytes file = c->in[0].s[0];
    const int64_t channels = channels_of(a);
    shape s = {.format = sx_image_format_of(file), .frames = 1};
    sx_image_info info = {0};
    sx_gif_info gif = {0};
    sx_bmp_info bmp = {0};
    if (s.format == SX_FORMAT_BMP && a->op != OP_BMP && a->op != OP_IMAGE) {
        return sx_error(SX_INVALID_ARGUMENT, "a BMP, which only decode_bmp and decode_image take");
    }
    if (a->op == OP_BMP && s.format != SX_FORMAT_BMP) {
        return sx_error(SX_INVALID_ARGUMENT, "a %s image, expected BMP",
                        sx_image_format_name(s.format));
    }
    if (a->op == OP_CROP_JPEG && s.format != SX_FORMAT_JPEG) {
        return sx_error(SX_INVALID_ARGUMENT, "a %s image, expected JPEG",
                        sx_image_format_name(s.format));
    }
    s.several = a->op == OP_GIF;
    switch (s.format) {
    case SX_FORMAT_JPEG:
        SX_TRY(sx_image_probe(file, &info));
        if (channels != 0 && channels != 1 && channels != 3) {
            return refuse_channels("JPEG", channels, "1 or 3");
        }
        s.height = (info.height + a->ratio - 1) / a->ratio;
        s.width = (info.width + a->ratio - 1) / a->ratio;
        s.channels = channels > 0 ? channels : info.channels;
        break;
    case SX_FORMAT_PNG:
        SX_TRY(sx_image_probe(file, &info));
        s.height = info.height;
        s.width = info.width;
        s.channels = channels > 0 ? channels : info.channels;
        break;
    case SX_FORMAT_GIF:
        SX_TRY(sx_gif_probe(file, &gif));
        if (channels != 0 && channels != 3) {
            return refuse_channels("GIF", channels, "3");
        }
        s.several = a->op == OP_GIF || (a->op == OP_IMAGE && a->all_frames);
        if (gif.frames > 1 && (a->op == OP_JPEG || a->op == OP_PNG)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "a GIF of %d frames, which only decode_gif and decode_image take",
                            gif.frames);
        }
        s.frames = s.several ? gif.frames : 1;
        s.height = info.height = gif.height;
        s.width = info.width = gif.width;
        s.channels = 3;
        break;
    case SX_FORMAT_BMP:
        SX_TRY(sx_bmp_probe(file, &bmp));
        s.height = info.height = bmp.height;
        s.width = info.width = bmp.width;
        s.channels = bmp.channels;
        if (channels != 0 && channels != bmp.channels) {
            return sx_error(SX_INVALID_ARGUMENT, "a BMP of %d channels, not %lld", bmp.channels,
                            (long long)channels);
        }
        break;
    default:
        return sx_error(SX_INVALID_ARGUMENT, "%s image, expected JPEG, PNG, GIF or BMP",
                        s.format == SX_FORMAT_UNKNOWN ? "no" : "a WebP");
    }
    const sx_image_limits limits =
        sx_image_limits_resolve(c->images != NULL ? c->images : &sx_image_limits_untrusted);
    const int64_t largest = SX_MAX(s.frames * s.height, info.height);
    SX_TRY(sx_image_limits_check(&limits, largest, info.width, 0));
    /* within the limit of pixels, nothing overflows */
    s.work_bytes = (size_t)(largest * info.width) *
                   (size_t)(2 * s.channels + (info.progressive ? COEFFICIENT_BYTES : 0));
    *out = s;
    return SX_OK;
}

/* Errors of the image are the caller's. */
static sx_status of_caller(sx_status status)
{
    if (sx_status_code(status) != SX_DATA_LOSS) {
        return status;
    }
    sx_status same = sx_error(SX_INVALID_ARGUMENT, "%s", sx_status_message(status));
    sx_status_free(status);
    return same;
}

static sx_status decode_image_check(const sx_kernel_call *c, size_t *out_bytes)
{
    shape s = {0};
    SX_TRY(of_caller(probe(c, &s)));
    *out_bytes = s.work_bytes;
    return SX_OK;
}

/* The window of crop_jpeg; the whole image otherwise. */
static sx_status window_of(const sx_kernel_call *c, const shape *s, int64_t *out)
{
    memcpy(out, (int64_t[]){0, 0, s->height, s->width}, 4 * sizeof(*out));
    if (c->n_in < 2) {
        return SX_OK;
    }
    if (sx_type_elems(&c->in[1].type) != 4) {
        return sx_error(SX_INVALID_ARGUMENT, "the window is %s, expected int32[4]",
                        SX_TEXT(&c->in[1].type));
    }
    const int64_t *w = c->in[1].i;
    if (w[0] < 0 || w[1] < 0 || w[2] <= 0 || w[3] <= 0 || w[0] > s->height - w[2] ||
        w[1] > s->width - w[3]) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the window is %lldx%lld at %lld, %lld; the image has %lldx%lld pixels",
                        (long long)w[2], (long long)w[3], (long long)w[0], (long long)w[1],
                        (long long)s->height, (long long)s->width);
    }
    memcpy(out, w, 4 * sizeof(*out));
    return SX_OK;
}

static sx_status decode_image_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_decode_image_attrs *a = c->attrs;
    int64_t window[4];
    shape s = {0};
    SX_TRY(of_caller(probe(c, &s)));
    SX_TRY(window_of(c, &s, window));
    out_types[0] = s.several ? sx_type_of(a->dtype, s.frames, window[2], window[3], s.channels)
                             : sx_type_of(a->dtype, window[2], window[3], s.channels);
    return sx_require_made("the image", &out_types[0]);
}

static sx_status decode(const sx_kernel_call *c, const shape *s, const int64_t *window,
                        sx_image *image)
{
    const sx_decode_image_attrs *a = c->attrs;
    const sx_bytes file = c->in[0].s[0];
    const sx_image_limits limits =
        sx_image_limits_resolve(c->images != NULL ? c->images : &sx_image_limits_untrusted);
    sx_decode_options options = {.channels = (int)channels_of(a),
                                 .dct = a->accurate ? SX_DCT_ACCURATE : SX_DCT_FAST,
                                 .ratio = (int)a->ratio,
                                 .plain_upsampling = a->plain_upsampling,
                                 .wide = a->dtype != SX_U8,
                                 .limits = &limits};
    if (c->n_in > 1) {
        options.window =
            (sx_image_window){(int)window[0], (int)window[1], (int)window[2], (int)window[3]};
    }
    switch (s->format) {
    case SX_FORMAT_JPEG:
        return sx_jpeg_decode(file, &options, image);
    case SX_FORMAT_PNG:
        return sx_png_decode(file, &options, image);
    case SX_FORMAT_GIF:
        return sx_gif_decode(file, &limits, s->several ? 0 : 1, image);
    default:
        return sx_bmp_decode(file, &limits, image);
    }
}

/* A row of samples in the output's dtype. 16 bits of PNG, which has them, are 257 times 8 bits; of
 * the others 256 times. */
static void convert(const sx_image *image, const void *from, int64_t n, bool png, sx_dtype dtype,
                    void *to)
{
    static const float by_8 = 1.F / 255, by_16 = 1.F / 65535;
    const uint8_t *bytes = from;
    const uint16_t *words = from;
    const bool wide = image->dtype == SX_U16;
    for (int64_t k = 0; k < n; k++) {
        if (dtype == SX_U8) {
            ((uint8_t *)to)[k] = bytes[k];
        } else if (dtype == SX_U16) {
            ((uint16_t *)to)[k] = wide ? words[k] : (uint16_t)(bytes[k] * (png ? 257 : 256));
        } else if (png) {
            ((float *)to)[k] = (float)(wide ? words[k] : bytes[k] * 257) * by_16;
        } else {
            ((float *)to)[k] = (float)bytes[k] * by_8;
        }
    }
}

static sx_status decode_image_host(const sx_kernel_call *c)
{
    const sx_decode_image_attrs *a = c->attrs;
    sx_image image = {0};
    int64_t window[4];
    shape s = {0};
    SX_TRY(of_caller(probe(c, &s)));
    SX_TRY(window_of(c, &s, window));
    sx_status status = of_caller(decode(c, &s, window, &image));
    if (status == SX_OK && (image.height != s.frames * window[2] || image.width != window[3] ||
                            image.channels != s.channels)) {
        status = sx_error(
            SX_INVALID_ARGUMENT, "the image has %dx%dx%d samples, its header says %lldx%lldx%lld",
            image.height, image.width, image.channels, (long long)(s.frames * window[2]),
            (long long)window[3], (long long)s.channels);
    }
    const size_t in_bytes = sx_dtype_bytes(image.dtype), out_bytes = sx_dtype_bytes(a->dtype);
    const int64_t row = window[3] * s.channels;
    char *to = c->out[0].data; /* moved: in its own dtype */
    for (int64_t y = 0; y < s.frames * window[2] && status == SX_OK; y++) {
        convert(&image, (const char *)image.pixels + (size_t)(y * row) * in_bytes, row,
                s.format == SX_FORMAT_PNG, a->dtype, to + (size_t)(y * row) * out_bytes);
    }
    sx_image_deinit(&image);
    return status;
}

static sx_status image_from_tf(const sx_tf_node *n, void *out, int32_t op)
{
    sx_decode_image_attrs *a = out;
    a->op = op;
    a->channels = sx_tf_read_int(n, "channels", 0);
    a->dtype = sx_tf_read_dtype(n, "dtype", SX_U8);
    a->all_frames = sx_tf_read_bool(n, "expand_animations", true);
    a->accurate = sx_tf_read_is(n, "dct_method", "INTEGER_ACCURATE", false);
    a->plain_upsampling = !sx_tf_read_bool(n, "fancy_upscaling", true);
    a->ratio = sx_tf_read_int(n, "ratio", 1);
    return sx_tf_read_bool(n, "try_recover_truncated", false)
               ? sx_error(SX_UNIMPLEMENTED, "try_recover_truncated is set")
               : SX_OK;
}

static sx_status any_from_tf(const sx_tf_node *n, void *out)
{
    return image_from_tf(n, out, OP_IMAGE);
}
static sx_status jpeg_from_tf(const sx_tf_node *n, void *out)
{
    return image_from_tf(n, out, OP_JPEG);
}
static sx_status crop_jpeg_from_tf(const sx_tf_node *n, void *out)
{
    return image_from_tf(n, out, OP_CROP_JPEG);
}
static sx_status png_from_tf(const sx_tf_node *n, void *out)
{
    return image_from_tf(n, out, OP_PNG);
}
static sx_status gif_from_tf(const sx_tf_node *n, void *out)
{
    return image_from_tf(n, out, OP_GIF);
}
static sx_status bmp_from_tf(const sx_tf_node *n, void *out)
{
    return image_from_tf(n, out, OP_BMP);
}

const sx_op_def sx_op_decode_image = {
    SX_OP_NAMED(decode_image),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    .moved = 1 << 2, /* no input; the output has its own bytes */
    SX_OP_ATTRS(sx_decode_image_attrs, decode_image_attrs),
    .infer = decode_image_infer,
    .host = decode_image_host,
    .host_types = decode_image_host_types,
    .host_check = decode_image_check,
    SX_FROM_TF({.op = "DecodeImage", .attrs = any_from_tf},
               {.op = "DecodeJpeg", .attrs = jpeg_from_tf},
               {.op = "DecodeAndCropJpeg", .attrs = crop_jpeg_from_tf},
               {.op = "DecodePng", .attrs = png_from_tf}, {.op = "DecodeGif", .attrs = gif_from_tf},
               {.op = "DecodeBmp", .attrs = bmp_from_tf}),
};
