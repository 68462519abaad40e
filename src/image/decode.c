/* Selects the decoder for a format; see decode.h. */
#include "image/decode.h"

#include "image/format.h"

typedef sx_status decode_fn(sx_bytes encoded, const sx_decode_options *options, sx_image *image);

static decode_fn *const decoders[] = {
    [SX_FORMAT_JPEG] = sx_jpeg_decode,
    [SX_FORMAT_PNG] = sx_png_decode,
    [SX_FORMAT_WEBP] = NULL,
};

/* What all decoders have in common: `info` has been read and its size checked, `resolved` has its
 * own limits. */
static sx_status begin(sx_bytes encoded, const sx_decode_options *options, sx_image_limits *limits,
                       sx_decode_options *resolved, sx_image_info *info)
{
    SX_TRY(sx_image_probe(encoded, info));
    if (decoders[info->format] == NULL) {
        return sx_error(SX_UNIMPLEMENTED,
                        "%s images are not supported; convert the file to JPEG or PNG",
                        sx_image_format_name(info->format));
    }
    *resolved = options != NULL ? *options : (sx_decode_options){0};
    *limits = sx_image_limits_resolve(resolved->limits);
    resolved->limits = limits;
    return sx_image_limits_check(limits, info->height, info->width, 0);
}

sx_status sx_image_decode(sx_bytes encoded, const sx_decode_options *options, sx_image *image)
{
    sx_image_info info;
    sx_image_limits limits;
    sx_decode_options resolved;
    SX_TRY(begin(encoded, options, &limits, &resolved, &info));
    return decoders[info.format](encoded, &resolved, image);
}

sx_status sx_image_decode_rows(sx_bytes encoded, const sx_decode_options *options,
                               const sx_image_sink *sink, sx_image *spare)
{
    sx_image_info info;
    sx_image_limits limits;
    sx_decode_options resolved;
    sx_image_window wanted;
    SX_TRY(begin(encoded, options, &limits, &resolved, &info));
    if (info.format == SX_FORMAT_JPEG) {
        return sx_jpeg_decode_rows(encoded, &resolved, sink);
    }
    SX_TRY(decoders[info.format](encoded, &resolved, spare));
    SX_TRY(sink->begin(sink->user, spare, &wanted));
    const size_t pixel = (size_t)spare->channels, stride = (size_t)spare->width * pixel;
    const uint8_t *row =
        (const uint8_t *)spare->pixels + (size_t)wanted.top * stride + (size_t)wanted.left * pixel;
    for (int y = 0; y < wanted.height; y++, row += stride) {
        sink->add(sink->user, row);
    }
    return SX_OK;
}
