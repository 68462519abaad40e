/* Encoded bytes to pixels, exactly as TensorFlow's decode ops give them.
 *
 * JPEG: tf.io.decode_jpeg with its defaults: the fast integer DCT, fancy upsampling, no recovery of
 * truncated files, acceptable_fraction 1. So
 *   - bytes that end before the image does are an error (DATA_LOSS), as is a missing end marker;
 *   - other damage in the entropy-coded data is passed over with a warning, as libjpeg does, and
 *     counted in the image's `warnings`: who wants clean files only, looks there;
 *   - CMYK and YCCK become RGB by  r = k·c / 255  (Adobe's inverted values) or
 *     (255 − k)(255 − c) / 255  (all others), in integers that truncate.
 * PNG: tf.io.decode_png with dtype uint8: 16-bit samples lose their low byte, palettes are
 * expanded, gray is Y = .299 R + .587 G + .114 B, alpha is dropped unless asked for, animation
 * ignored. Source: tensorflow/core/lib/jpeg/jpeg_mem.cc, lib/png/png_io.cc,
 * kernels/image/decode_image_op.cc; compared with TensorFlow itself in tests/interop/test_image.py.
 */
#ifndef SX_IMAGE_DECODE_H
#define SX_IMAGE_DECODE_H

#include "image/image.h"

typedef enum sx_dct {
    SX_DCT_FAST,     /* INTEGER_FAST, what TensorFlow uses unless told otherwise */
    SX_DCT_ACCURATE, /* INTEGER_ACCURATE */
} sx_dct;

typedef struct sx_decode_options {
    int channels; /* 0 = as in the file (CMYK: 3), 1, 3; for PNG also 2 and 4 */
    sx_dct dct;
    const sx_image_limits *limits; /* NULL = sx_image_limits_default */
} sx_decode_options;

/* Decodes a JPEG or PNG into `image`, whose buffer grows as needed. `options` NULL = all defaults.
 * Thread-safe for different images; holds no lock and keeps nothing between calls, so an image's
 * pixels never depend on the one decoded before.
 *
 * On failure the shape of `image` is untouched and its pixels are undefined. Errors:
 *   INVALID_ARGUMENT    no image, a header without sense, channels that the format cannot give
 *   DATA_LOSS           truncated or corrupt
 *   RESOURCE_EXHAUSTED  over the limits, or out of memory
 *   UNIMPLEMENTED       GIF, BMP, WebP; lossless or 12-bit JPEG */
SX_MUST_USE sx_status sx_image_decode(sx_bytes encoded, const sx_decode_options *options,
                                      sx_image *image);

/* The two codecs behind it; `options` and its limits are not NULL. */
SX_MUST_USE sx_status sx_jpeg_decode(sx_bytes encoded, const sx_decode_options *options,
                                     sx_image *image);
SX_MUST_USE sx_status sx_png_decode(sx_bytes encoded, const sx_decode_options *options,
                                    sx_image *image);

#endif
