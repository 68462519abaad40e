/* Decoding of images to exactly the pixels that TensorFlow's decode ops produce.
 *
 * JPEG: tf.io.decode_jpeg with its defaults: the fast integer DCT, fancy upsampling, no recovery of
 * truncated files, acceptable_fraction 1.
 *   - A truncated image or a missing end marker is an error (DATA_LOSS).
 *   - Other damage in the entropy-coded data only causes warnings, as in libjpeg; the image's
 *     `warnings` counts them.
 *   - CMYK and YCCK become RGB by  r = k·c / 255  (Adobe's inverted values) or
 *     (255 − k)(255 − c) / 255  (all others), in truncating integer arithmetic.
 *
 * PNG: tf.io.decode_png with dtype uint8: 16-bit samples lose their low byte, palettes are
 * expanded, gray is Y = .299 R + .587 G + .114 B, alpha is dropped unless requested, animation is
 * ignored.
 *
 * Source: tensorflow/core/lib/jpeg/jpeg_mem.cc, lib/png/png_io.cc,
 * kernels/image/decode_image_op.cc; compared with TensorFlow in tests/interop/test_image.py. */
#ifndef SX_IMAGE_DECODE_H
#define SX_IMAGE_DECODE_H

#include "image/image.h"

typedef enum sx_dct {
    SX_DCT_FAST,     /* INTEGER_FAST, TensorFlow's default */
    SX_DCT_ACCURATE, /* INTEGER_ACCURATE */
} sx_dct;

typedef struct sx_decode_options {
    int channels; /* 0 = as in the file (CMYK: 3), 1, 3; for PNG also 2 and 4 */
    sx_dct dct;
    const sx_image_limits *limits; /* NULL = sx_image_limits_default */
} sx_decode_options;

/* Decodes a JPEG or PNG into `image`, whose buffer grows as needed. `options` may be NULL.
 * Different threads may decode different images. No state is kept between calls.
 *
 * On failure the shape of `image` does not change and its pixels are undefined. Errors:
 *   INVALID_ARGUMENT    unsupported number of channels
 *   DATA_LOSS           not an image, an invalid header, truncated or corrupt
 *   RESOURCE_EXHAUSTED  over the limits, or out of memory
 *   UNIMPLEMENTED       GIF, BMP, WebP; lossless or 12-bit JPEG */
SX_MUST_USE sx_status sx_image_decode(sx_bytes encoded, const sx_decode_options *options,
                                      sx_image *image);

/* The two decoders; `options` and its limits must not be NULL. */
SX_MUST_USE sx_status sx_jpeg_decode(sx_bytes encoded, const sx_decode_options *options,
                                     sx_image *image);
SX_MUST_USE sx_status sx_png_decode(sx_bytes encoded, const sx_decode_options *options,
                                    sx_image *image);

#endif
