/* Decodes BMP; see decode.h.
 *
 *   "BM" size[4] 0[4] pixels[4]   header size[4] width[4] height[4] planes[2] bits[2] ...
 *
 * All little-endian; `pixels` is where the rows begin, each padded to 4 bytes, the lowest first
 * unless the height is negative; a pixel is B G R, B G R A, or one byte, which is taken as gray. */
#include <stdlib.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/checked.h"
#include "image/decode.h"

enum { HEADER_BYTES = 32 };

sx_status sx_bmp_probe(sx_bytes encoded, sx_bmp_info *out)
{
    const uint8_t *head = encoded.data;
    if (encoded.size < HEADER_BYTES) {
        return sx_error(SX_DATA_LOSS, "BMP is truncated after %zu bytes", encoded.size);
    }
    const int64_t height = (int32_t)sx_load_le32(head + 22);
    const sx_bmp_info info = {.pixels_at = sx_load_le32(head + 10),
                              .width = (int32_t)sx_load_le32(head + 18),
                              .height = llabs(height),
                              .channels = (head[28] | head[29] << 8) / 8,
                              .top_down = height < 0};
    if (info.width <= 0 || info.height == 0 || info.height > INT32_MAX) {
        return sx_error(SX_DATA_LOSS, "BMP has %lldx%lld pixels", (long long)info.height,
                        (long long)info.width);
    }
    if (info.channels != 1 && info.channels != 3 && info.channels != 4) {
        return sx_error(SX_DATA_LOSS, "BMP has %d bits a pixel, expected 8, 24 or 32",
                        head[28] | head[29] << 8);
    }
    *out = info;
    return SX_OK;
}

sx_status sx_bmp_decode(sx_bytes encoded, const sx_image_limits *limits, sx_image *image)
{
    const sx_image_limits resolved = sx_image_limits_resolve(limits);
    sx_bmp_info info = {0};
    SX_TRY(sx_bmp_probe(encoded, &info));
    SX_TRY(sx_image_limits_check(&resolved, info.height, info.width, 0));
    /* within the limit of pixels, nothing overflows */
    const int64_t row_bytes = info.width * info.channels;
    SX_TRY(sx_image_limits_check(&resolved, info.height, info.width, info.height * row_bytes));
    const int64_t stride = (row_bytes + 3) / 4 * 4;
    const int64_t needed = info.pixels_at + (info.height - 1) * stride + row_bytes;
    if (needed > (int64_t)encoded.size) {
        return sx_error(SX_DATA_LOSS, "BMP has %zu bytes, expected at least %lld", encoded.size,
                        (long long)needed);
    }
    SX_TRY(sx_image_reserve(image, SX_U8, (int)info.height, (int)info.width, info.channels));
    uint8_t *to = image->pixels;
    for (int64_t y = 0; y < info.height; y++) {
        const int64_t from_row = info.top_down ? y : info.height - 1 - y;
        const uint8_t *from = (const uint8_t *)encoded.data + info.pixels_at + from_row * stride;
        if (info.channels == 1) {
            memcpy(to, from, (size_t)row_bytes);
            to += row_bytes;
            continue;
        }
        for (int64_t x = 0; x < info.width; x++, to += info.channels, from += info.channels) {
            to[0] = from[2];
            to[1] = from[1];
            to[2] = from[0];
            if (info.channels == 4) {
                to[3] = from[3];
            }
        }
    }
    sx_image_set(image, SX_U8, (int)info.height, (int)info.width, info.channels);
    image->warnings = 0;
    return SX_OK;
}
