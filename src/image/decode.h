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

#include <stdbool.h>

#include "image/image.h"

typedef enum sx_dct {
    SX_DCT_FAST,     /* INTEGER_FAST, TensorFlow's default */
    SX_DCT_ACCURATE, /* INTEGER_ACCURATE */
} sx_dct;

typedef struct sx_decode_options {
    int channels; /* 0 = as in the file (CMYK: 3), 1, 3; for PNG also 2 and 4 */
    sx_dct dct;
    int ratio;             /* of JPEG: 2, 4 or 8 = a half, a quarter, an eighth; 0 = 1 */
    bool plain_upsampling; /* of JPEG: repeats colours instead of interpolating them */
    /* Of JPEG: only this part, as tf.io.decode_and_crop_jpeg: halved colours at its right edge are
     * not interpolated with those beyond, so that a pixel may differ from the whole image's. */
    sx_image_window window;
    bool wide;                     /* of PNG: samples of 16 bits stay so, and `image` is uint16 */
    const sx_image_limits *limits; /* NULL = sx_image_limits_default */
} sx_decode_options;

/* Decodes a JPEG or PNG into `image`, whose buffer grows as needed. `options` may be NULL.
 * Different threads may decode different images. No state is kept between calls.
 *
 * On failure the shape of `image` does not change and its pixels are undefined. Errors:
 *   INVALID_ARGUMENT    unsupported number of channels; a window that is not within the image
 *   DATA_LOSS           not an image, an invalid header, truncated or corrupt
 *   RESOURCE_EXHAUSTED  over the limits, or out of memory
 *   UNIMPLEMENTED       GIF, BMP, WebP; lossless or 12-bit JPEG */
SX_MUST_USE sx_status sx_image_decode(sx_bytes encoded, const sx_decode_options *options,
                                      sx_image *image);

/* Takes the rows of an image as they are decoded. */
typedef struct sx_image_sink {
    /* Called first; `image` has the size and no pixels. Sets the part that is wanted, within it. */
    sx_status (*begin)(void *user, const sx_image *image, sx_image_window *out_wanted);
    void (*add)(void *user, const uint8_t *pixels); /* the wanted columns of the next row */
    void *user;
} sx_image_sink;

/* sx_image_decode() for those who need each row once: of a JPEG there are never more than a few
 * rows in memory, and no more blocks become pixels than the wanted part needs, whose pixels are
 * those of the whole image. A PNG is decoded to `spare`. The options have no window. Errors are
 * those of sx_image_decode() and of begin(); what the sink has got is then of no use. */
SX_MUST_USE sx_status sx_image_decode_rows(sx_bytes encoded, const sx_decode_options *options,
                                           const sx_image_sink *sink, sx_image *spare);

/* The size of a GIF: its frames are as large as the largest of them. DATA_LOSS */
typedef struct sx_gif_info {
    int frames, height, width;
} sx_gif_info;
SX_MUST_USE sx_status sx_gif_probe(sx_bytes encoded, sx_gif_info *out);
/* The frames of a GIF, at most `max_frames` (0 = all), as RGB below one another: the image is
 * frames x height high. A frame is drawn over the one before, the first over black; times and
 * disposal are ignored. Errors as sx_image_decode(). */
SX_MUST_USE sx_status sx_gif_decode(sx_bytes encoded, const sx_image_limits *limits, int max_frames,
                                    sx_image *image);

/* The header of a BMP of 8 (gray), 24 or 32 bits a pixel. DATA_LOSS */
typedef struct sx_bmp_info {
    int64_t pixels_at, height, width;
    int channels;
    bool top_down;
} sx_bmp_info;
SX_MUST_USE sx_status sx_bmp_probe(sx_bytes encoded, sx_bmp_info *out);
SX_MUST_USE sx_status sx_bmp_decode(sx_bytes encoded, const sx_image_limits *limits,
                                    sx_image *image);

/* The decoders of each format; `options` and its limits must not be NULL. */
SX_MUST_USE sx_status sx_jpeg_decode(sx_bytes encoded, const sx_decode_options *options,
                                     sx_image *image);
SX_MUST_USE sx_status sx_jpeg_decode_rows(sx_bytes encoded, const sx_decode_options *options,
                                          const sx_image_sink *sink);
SX_MUST_USE sx_status sx_png_decode(sx_bytes encoded, const sx_decode_options *options,
                                    sx_image *image);

#endif
