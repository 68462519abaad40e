/* Selects the decoder for a format; see decode.h. */
#include "image/decode.h"

#include "image/format.h"

typedef sx_status decode_fn(sx_bytes encoded, const sx_decode_options *options, sx_image *image);

static decode_fn *const decoders[] = {
    [SX_FORMAT_JPEG] = sx_jpeg_decode,
    [SX_FORMAT_PNG] = sx_png_decode,
    [SX_FORMAT_WEBP] = NULL,
};

sx_status sx_image_decode(sx_bytes encoded, const sx_decode_options *options, sx_image *image)
{
    sx_image_info info;
    SX_TRY(sx_image_probe(encoded, &info));
    decode_fn *decode = decoders[info.format];
    if (decode == NULL) {
        return sx_error(SX_UNIMPLEMENTED,
                        "%s images are not supported; convert the file to JPEG or PNG",
                        sx_image_format_name(info.format));
    }
    sx_decode_options resolved = options != NULL ? *options : (sx_decode_options){0};
    const sx_image_limits limits = sx_image_limits_resolve(resolved.limits);
    resolved.limits = &limits;
    SX_TRY(sx_image_limits_check(&limits, info.height, info.width, 0));
    return decode(encoded, &resolved, image);
}
