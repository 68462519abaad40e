/* Image formats by magic and header; see format.h.
 *
 * JPEG (ITU-T T.81 B.1, B.2.2): FF D8, then segments FF marker length[2] payload[length - 2] until
 * a start of frame: FF C0..CF  length[2]  precision  height[2]  width[2]  components.
 *
 * PNG (W3C PNG 11.2.2): 8 bytes of magic, then length[4] "IHDR" width[4] height[4] depth colour
 * compression filter interlace; a tRNS chunk before IDAT adds alpha to a palette.
 *
 * GIF89a 18: "GIF8?a" width[2] height[2], little-endian.
 *
 * BMP: "BM" size[4] 0[4] offset[4] header size[4] width[4] height[4] (negative: top-down). */
#include "image/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/checked.h"

typedef struct reader {
    const uint8_t *bytes;
    size_t size;
} reader;

static sx_status truncated(const reader *in, const char *name)
{
    return sx_error(SX_DATA_LOSS, "%s header is truncated after %zu bytes", name, in->size);
}

static sx_status empty_frame(const char *name, const sx_image_info *info)
{
    return sx_error(SX_DATA_LOSS, "%s header has an invalid size of %lldx%lld pixels", name,
                    (long long)info->height, (long long)info->width);
}

/* FF C0..CF except DHT (C4), JPG (C8), DAC (CC). */
static bool is_start_of_frame(uint8_t marker)
{
    return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

/* Markers without a payload: TEM, RST0-7, SOI. */
static bool is_bare(uint8_t marker)
{
    return marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8);
}

static sx_status read_frame(const reader *in, size_t at, sx_image_info *info)
{
    if (in->size - at < 10) {
        return truncated(in, "JPEG");
    }
    const uint8_t *frame = in->bytes + at;
    info->progressive = (frame[1] & 3) == 2;
    info->height = sx_load_be16(frame + 5);
    info->width = sx_load_be16(frame + 7);
    info->channels = SX_MIN(frame[9], 3);
    if (info->height == 0 || info->width == 0 || info->channels == 0) {
        return empty_frame("JPEG", info);
    }
    return SX_OK;
}

static sx_status probe_jpeg(const reader *in, sx_image_info *info)
{
    size_t at = 2;
    while (at + 4 <= in->size) {
        const uint8_t *segment = in->bytes + at;
        if (segment[0] != 0xFF || segment[1] == 0xFF || segment[1] == 0) {
            at++; /* fill bytes, or garbage that libjpeg skips with a warning */
        } else if (is_start_of_frame(segment[1])) {
            return read_frame(in, at, info);
        } else if (is_bare(segment[1])) {
            at += 2;
        } else if (segment[1] == 0xDA || segment[1] == 0xD9) {
            return sx_error(SX_DATA_LOSS, "JPEG has no frame header before byte %zu", at);
        } else {
            at += 2 + (size_t)sx_load_be16(segment + 2);
        }
    }
    return truncated(in, "JPEG");
}

/* Whether there is a tRNS chunk before the pixels. */
static bool png_has_transparency(const reader *in)
{
    size_t at = 8;
    while (in->size - at >= 8) {
        uint32_t length = sx_load_be32(in->bytes + at);
        const uint8_t *type = in->bytes + at + 4;
        if (memcmp(type, "tRNS", 4) == 0) {
            return true;
        }
        if (memcmp(type, "IDAT", 4) == 0 || length > in->size - at - 8 ||
            in->size - at - 8 - length < 4) {
            return false;
        }
        at += 12 + (size_t)length;
    }
    return false;
}

static sx_status probe_png(const reader *in, sx_image_info *info)
{
    static const uint8_t channels_by_colour[7] = {1, 0, 3, 3, 2, 0, 4};
    if (in->size < 29) {
        return truncated(in, "PNG");
    }
    if (memcmp(in->bytes + 12, "IHDR", 4) != 0) {
        return sx_error(SX_DATA_LOSS, "PNG does not start with an IHDR chunk");
    }
    info->width = sx_load_be32(in->bytes + 16);
    info->height = sx_load_be32(in->bytes + 20);
    uint8_t colour = in->bytes[25];
    info->channels = colour < 7 ? channels_by_colour[colour] : 0;
    info->progressive = in->bytes[28] != 0;
    if (info->channels == 0) {
        return sx_error(SX_DATA_LOSS, "PNG has color type %d; expected 0, 2, 3, 4 or 6", colour);
    }
    if (info->width == 0 || info->height == 0) {
        return empty_frame("PNG", info);
    }
    if (colour == 3 && png_has_transparency(in)) {
        info->channels = 4;
    }
    return SX_OK;
}

static sx_status probe_gif(const reader *in, sx_image_info *info)
{
    if (in->size < 10) {
        return truncated(in, "GIF");
    }
    info->width = sx_load_le16(in->bytes + 6);
    info->height = sx_load_le16(in->bytes + 8);
    return SX_OK;
}

static sx_status probe_bmp(const reader *in, sx_image_info *info)
{
    if (in->size < 26) {
        return truncated(in, "BMP");
    }
    info->width = (int32_t)sx_load_le32(in->bytes + 18);
    info->height = llabs((int32_t)sx_load_le32(in->bytes + 22));
    return SX_OK;
}

static sx_status probe_nothing(const reader *in, sx_image_info *info)
{
    (void)in;
    (void)info;
    return SX_OK;
}

static const struct format_row {
    sx_image_format format;
    const char *name;
    const char *magic;
    size_t magic_size;
    sx_status (*probe)(const reader *in, sx_image_info *info);
} formats[] = {
    {SX_FORMAT_JPEG, "JPEG", "\xFF\xD8\xFF", 3, probe_jpeg},
    {SX_FORMAT_PNG, "PNG", "\x89PNG\r\n\x1A\n", 8, probe_png},
    {SX_FORMAT_GIF, "GIF", "GIF8", 4, probe_gif},
    {SX_FORMAT_BMP, "BMP", "BM", 2, probe_bmp},
    {SX_FORMAT_WEBP, "WebP", "RIFF", 4, probe_nothing},
};

static const struct format_row *find_row(sx_bytes encoded)
{
    for (size_t i = 0; i < SX_COUNT(formats); i++) {
        const struct format_row *row = &formats[i];
        if (encoded.size >= row->magic_size &&
            memcmp(encoded.data, row->magic, row->magic_size) == 0) {
            bool riff = row->format == SX_FORMAT_WEBP;
            bool webp = encoded.size > 12 && memcmp((const char *)encoded.data + 8, "WEBP", 4) == 0;
            return riff && !webp ? NULL : row;
        }
    }
    return NULL;
}

sx_image_format sx_image_format_of(sx_bytes encoded)
{
    const struct format_row *row = find_row(encoded);
    return row != NULL ? row->format : SX_FORMAT_UNKNOWN;
}

const char *sx_image_format_name(sx_image_format format)
{
    for (size_t i = 0; i < SX_COUNT(formats); i++) {
        if (formats[i].format == format) {
            return formats[i].name;
        }
    }
    return "unknown";
}

static sx_status not_an_image(sx_bytes encoded)
{
    char head[4 * 3 + 1] = "";
    if (encoded.size == 0) {
        return sx_error(SX_DATA_LOSS, "empty file; expected a JPEG or PNG image");
    }
    for (size_t i = 0, at = 0; i < SX_MIN(encoded.size, (size_t)4); i++) {
        const char *form = i == 0 ? "%02x" : " %02x";
        at += (size_t)snprintf(head + at, sizeof(head) - at, form,
                               ((const uint8_t *)encoded.data)[i]);
    }
    return sx_error(SX_DATA_LOSS,
                    "not an image: %zu byte%s %s%s%s; expected a JPEG (ff d8 ff) or PNG (89 50 4e "
                    "47)",
                    encoded.size, encoded.size == 1 ? "" : "s",
                    encoded.size > 4 ? "starting with " : "(", head, encoded.size > 4 ? "" : ")");
}

sx_status sx_image_probe(sx_bytes encoded, sx_image_info *out_info)
{
    const struct format_row *row = find_row(encoded);
    if (row == NULL) {
        return not_an_image(encoded);
    }
    const reader in = {.bytes = encoded.data, .size = encoded.size};
    sx_image_info info = {.format = row->format};
    SX_TRY(row->probe(&in, &info));
    *out_info = info;
    return SX_OK;
}
