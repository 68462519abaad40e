/* Detection of the image format, and the size of an image from its header. */
#ifndef SX_IMAGE_FORMAT_H
#define SX_IMAGE_FORMAT_H

#include <stdbool.h>

#include <sextant/types.h>

typedef enum sx_image_format {
    SX_FORMAT_UNKNOWN,
    SX_FORMAT_JPEG,
    SX_FORMAT_PNG,
    SX_FORMAT_GIF,
    SX_FORMAT_BMP,
    SX_FORMAT_WEBP,
} sx_image_format;

/* height, width and channels are taken from the header and not checked against any limit. channels
 * is the number that decoding with channels = 0 gives (3 for CMYK), or 0 if the header does not
 * tell (GIF, BMP, WebP, which cannot be decoded). */
typedef struct sx_image_info {
    sx_image_format format;
    int64_t height, width;
    int channels;
    bool progressive; /* JPEG in several scans, interlaced PNG */
} sx_image_info;

/* Detects the format by magic bytes, as TensorFlow's decode ops do. */
sx_image_format sx_image_format_of(sx_bytes encoded);
/* "JPEG"; "unknown". Static. */
const char *sx_image_format_name(sx_image_format format);

/* Reads the header, without allocating memory.
 * Errors: DATA_LOSS: unknown format, an invalid or truncated header. */
SX_MUST_USE sx_status sx_image_probe(sx_bytes encoded, sx_image_info *out_info);

#endif
