/* Resizing with three methods; the results are bit-identical to TensorFlow's.
 *
 * With scale = source size / full size (one float division) and output index i, the source is at
 *
 *   bilinear       (i + 0.5)·scale − 0.5     tf.image.resize; ResizeBilinear, half_pixel_centers
 *   bilinear-tf1   i·scale                   TF1 resize_bilinear(align_corners=False); no attribute
 *   nearest        ⌊(i + 0.5)·scale⌋         tf.image.resize(method="nearest")
 *
 * PIL's NEAREST, which Keras' directory loaders use, is mathematically the same, but it accumulates
 * positions in double, so where a position is an integer it may use the previous pixel.
 *
 * Bilinear interpolates without antialiasing, first along x and then along y:
 *
 *   top    = tl + (tr − tl)·fx
 *   bottom = bl + (br − bl)·fx
 *   out    = top + (bottom − top)·fy         all in float32, in this order, never fused
 *
 * so the result is the same on every CPU.
 * Source: tensorflow/core/kernels/image/resize_bilinear_op.cc, resize_nearest_neighbor_op.cc,
 * core/util/image_resizer_state.h; compared with TensorFlow in tests/interop/test_image.py. */
#ifndef SX_IMAGE_RESIZE_H
#define SX_IMAGE_RESIZE_H

#include "image/image.h"

typedef enum sx_resize_rule {
    SX_RESIZE_BILINEAR,
    SX_RESIZE_BILINEAR_TF1,
    SX_RESIZE_NEAREST,
} sx_resize_rule;

enum { SX_IMAGE_MAX_CHANNELS = 4, SX_RESIZE_MAX_SIDE = 1 << 16 };

/* y = x·mul[c] + add[c], as a product and then a sum. */
typedef struct sx_affine {
    float mul[SX_IMAGE_MAX_CHANNELS], add[SX_IMAGE_MAX_CHANNELS];
} sx_affine;

/* The source is resized to height × width, of which only a window is computed. A field that is 0
 * takes its default. */
typedef struct sx_resize_args {
    sx_resize_rule rule;
    int height, width;               /* full size; 0 = the source's */
    int top, left;                   /* the window's corner */
    int window_height, window_width; /* 0 = to the last row, to the last column */
    bool flip;                       /* mirror the window left to right */
    const sx_affine *affine;         /* applied last; NULL = none */
    bool bytes;                      /* out is uint8: the values are whole (sx_resize_is_whole) */
} sx_resize_args;

/* Tables and row buffers, reused between calls by one thread at a time; initially {0}. */
typedef struct sx_resizer {
    void *block;
    size_t capacity_bytes;
} sx_resizer;

void sx_resizer_deinit(sx_resizer *resizer);

/* Whether what becomes of uint8 pixels of that size is always whole: each value that of a pixel. */
bool sx_resize_is_whole(const sx_resize_args *args, int src_height, int src_width);

/* src: uint8 or float32 (finite), 1 to 4 channels. out: float32, or uint8 if args say so,
 * [window_height, window_width, channels], not overlapping src. Allocates only if the resizer's
 * tables must grow. Errors: INVALID_ARGUMENT: a side of 0 or above SX_RESIZE_MAX_SIDE, a window
 * outside the full size, invalid channels; RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_resize(sx_resizer *resizer, const sx_image *src,
                                const sx_resize_args *args, void *out);

/* The same for a source whose rows come one after the other: begin with its shape (its pixels are
 * not used), then add the rows that *out_needed has, in order; out is complete after the last.
 * Errors as sx_resize(). */
SX_MUST_USE sx_status sx_resize_begin(sx_resizer *resizer, const sx_image *src,
                                      const sx_resize_args *args, void *out,
                                      sx_image_window *out_needed);
void sx_resize_add(sx_resizer *resizer, const void *pixels); /* its needed columns */

const char *sx_resize_rule_name(sx_resize_rule rule); /* "bilinear-tf1"; NULL if none */
bool sx_resize_rule_parse(const char *name, sx_resize_rule *out);

#endif
