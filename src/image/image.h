/* sx_image: plain pixels, and the limits under which foreign bytes may become some.
 *
 *   pixels   [height][width][channels], row-major, no padding, uint8 or float32
 *
 * Invariants: height, width, channels > 0 and the product of all fits capacity_bytes, or all are 0.
 * Life cycle: sx_image_init (or {0}), filled again and again by one thread, sx_image_deinit. The
 * buffer only ever grows, so a reused image allocates nothing in the steady state.
 *
 * This directory knows nothing of graphs or datasets. */
#ifndef SX_IMAGE_IMAGE_H
#define SX_IMAGE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include <sextant/types.h>

typedef struct sx_image {
    void *pixels;   /* owned unless capacity_bytes is 0 */
    sx_dtype dtype; /* SX_U8 or SX_F32 */
    int height, width, channels;
    int warnings; /* oddities that the decoder passed over, as TensorFlow does; 0 = clean */
    size_t capacity_bytes; /* 0 = pixels are borrowed */
} sx_image;

/* What one image may cost. A field of 0 means the default's.
 *
 *   max_pixels   height × width, checked from the header before anything is allocated
 *   max_bytes    pixels out + the decoder's coefficient memory (progressive JPEG)
 *   max_scans    of a progressive JPEG: each costs a pass over the whole image */
typedef struct sx_image_limits {
    int64_t max_pixels;
    int64_t max_bytes;
    int max_scans;
} sx_image_limits;

/* One's own files: 128 Mi pixels, 512 MiB (TensorFlow's own bound), 500 scans. */
extern const sx_image_limits sx_image_limits_default;
/* Requests from strangers: 32 Mi pixels, 100 MiB, 100 scans. */
extern const sx_image_limits sx_image_limits_untrusted;

/* A view of height × width × channels uint8 that the caller owns; never freed, never grown. */
sx_image sx_image_view(const uint8_t *pixels, int height, int width, int channels);

/* Makes the buffer at least as large as height × width × channels of `dtype`; the old pixels are
 * lost when it grows. Shape and dtype of `image` stay as they were: see sx_image_set.
 * Errors: INVALID_ARGUMENT for a shape that is not positive, RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_image_reserve(sx_image *image, sx_dtype dtype, int height, int width,
                                       int channels);
/* Declares what the buffer now holds; it must have been reserved. */
void sx_image_set(sx_image *image, sx_dtype dtype, int height, int width, int channels);
size_t sx_image_elems(const sx_image *image); /* height × width × channels */
void sx_image_deinit(sx_image *image);

/* `limits` with its zeros replaced by the default's; NULL = the default. */
sx_image_limits sx_image_limits_resolve(const sx_image_limits *limits);
/* RESOURCE_EXHAUSTED, naming both sizes, when height × width pixels or `bytes` are too many. */
SX_MUST_USE sx_status sx_image_limits_check(const sx_image_limits *limits, int64_t height,
                                            int64_t width, int64_t bytes);

#endif
