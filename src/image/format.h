/* Which image format some bytes are, and their size, from the header alone. */
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

/* height, width and channels are what the header says, unchecked against any limit; channels are
 * those that decoding with channels = 0 gives (CMYK is read as 3), and 0 where the header leaves
 * them open (GIF, BMP, WebP, whose pixels we do not read). */
typedef struct sx_image_info {
    sx_image_format format;
    int64_t height, width;
    int channels;
    bool progressive; /* JPEG in several scans, interlaced PNG */
} sx_image_info;

/* By magic bytes, as TensorFlow's decode ops do it. */
sx_image_format sx_image_format_of(sx_bytes encoded);
/* "JPEG"; "unknown". Static. */
const char *sx_image_format_name(sx_image_format format);

/* Reads the header. Never allocates, looks at no byte twice.
 * Errors: INVALID_ARGUMENT if no image format's magic is there, or the header makes no sense;
 *         DATA_LOSS if the bytes end within the header. */
SX_MUST_USE sx_status sx_image_probe(sx_bytes encoded, sx_image_info *out_info);

#endif
