/* sx_image: a buffer of pixels; the limits for decoding untrusted images.
 *
 *   pixels   [height][width][channels], row-major, no padding, uint8 or float32
 *
 * Invariants: height, width, channels > 0 and the pixels fit in capacity_bytes, or all are 0.
 * Life cycle: sx_image_init (or {0}), filled any number of times by one thread, sx_image_deinit.
 * The buffer never shrinks, so reusing an image avoids allocations. */
#ifndef SX_IMAGE_IMAGE_H
#define SX_IMAGE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include <sextant/types.h>

typedef struct sx_image {
    void *pixels;   /* owned unless capacity_bytes is 0 */
    sx_dtype dtype; /* SX_U8 or SX_F32; SX_U16 of a PNG that is decoded so */
    int height, width, channels;
    int warnings;          /* problems that the decoder ignored, as TensorFlow does; 0 = clean */
    size_t capacity_bytes; /* 0 = pixels are borrowed */
} sx_image;

/* A part of an image, within it; of height 0: the whole. */
typedef struct sx_image_window {
    int top, left, height, width;
} sx_image_window;

/* Limits for decoding an image. A field that is 0 takes its default.
 *
 *   max_pixels   height × width, checked from the header before anything is allocated
 *   max_bytes    decoded pixels + the decoder's coefficient memory (progressive JPEG)
 *   max_scans    of a progressive JPEG; each is a pass over the whole image */
typedef struct sx_image_limits {
    int64_t max_pixels;
    int64_t max_bytes;
    int max_scans;
} sx_image_limits;

/* For the user's own files: 128 Mi pixels, 512 MiB (TensorFlow's limit), 500 scans. */
extern const sx_image_limits sx_image_limits_default;
/* For requests from the network: 32 Mi pixels, 100 MiB, 100 scans. */
extern const sx_image_limits sx_image_limits_untrusted;

/* A view of height × width × channels uint8 owned by the caller. */
sx_image sx_image_view(const uint8_t *pixels, int height, int width, int channels);

/* Makes the buffer large enough for height × width × channels of `dtype`; if it grows, the old
 * pixels are lost. Does not change the shape and dtype of `image`: see sx_image_set.
 * Errors: INVALID_ARGUMENT: a dimension is not positive; RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_image_reserve(sx_image *image, sx_dtype dtype, int height, int width,
                                       int channels);
/* Sets shape and dtype; the buffer must have been reserved. */
void sx_image_set(sx_image *image, sx_dtype dtype, int height, int width, int channels);
size_t sx_image_elems(const sx_image *image); /* height × width × channels */
void sx_image_deinit(sx_image *image);

/* `limits` (may be NULL) with zeros replaced by defaults. */
sx_image_limits sx_image_limits_resolve(const sx_image_limits *limits);
/* Errors: RESOURCE_EXHAUSTED: height × width pixels or `bytes` are over the limits. */
SX_MUST_USE sx_status sx_image_limits_check(const sx_image_limits *limits, int64_t height,
                                            int64_t width, int64_t bytes);

#endif
