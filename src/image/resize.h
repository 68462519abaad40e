/* Resizing by the three rules in use, bit by bit as TensorFlow computes them.
 *
 * With scale = source size / full size (one float division) and output index i, the source is at
 *
 *   bilinear       (i + 0.5)·scale − 0.5     tf.image.resize; ResizeBilinear, half_pixel_centers
 *   bilinear-tf1   i·scale                   TF1 resize_bilinear(align_corners=False); no attribute
 *   nearest        ⌊(i + 0.5)·scale⌋         tf.image.resize(method="nearest")
 *
 * PIL's NEAREST, which Keras' directory loaders use, is the same in exact arithmetic; it adds up
 * its positions in double, so where one falls on a whole number it may take the pixel before.
 *
 * and bilinear interpolates, without antialiasing, first along x and then along y:
 *
 *   top    = tl + (tr − tl)·fx
 *   bottom = bl + (br − bl)·fx
 *   out    = top + (bottom − top)·fy         all in float32, in this order, never fused
 *
 * The result is thus the same on every class of CPU.
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

/* y = x·mul[c] + add[c], a product and then a sum. */
typedef struct sx_affine {
    float mul[SX_IMAGE_MAX_CHANNELS], add[SX_IMAGE_MAX_CHANNELS];
} sx_affine;

/* The source is resized to height × width; of that, a window is computed, as if it were cut out
 * afterwards. Zeros are defaults. */
typedef struct sx_resize_args {
    sx_resize_rule rule;
    int height, width;               /* full size; 0 = the source's */
    int top, left;                   /* the window's corner */
    int window_height, window_width; /* 0 = down to the last row, right to the last column */
    bool flip;                       /* mirror the window left to right */
    const sx_affine *affine;         /* applied last; NULL = none */
} sx_resize_args;

/* Tables and row buffers, reused from call to call; one thread at a time. {0} is ready to use. */
typedef struct sx_resizer {
    void *block;
    size_t capacity_bytes;
} sx_resizer;

void sx_resizer_deinit(sx_resizer *resizer);

/* src: uint8 or float32 (finite), 1 to 4 channels. out: float32 [window_height, window_width,
 * channels], not overlapping src. Allocates only when the resizer's tables grow. Errors:
 * INVALID_ARGUMENT (a side of 0 or above SX_RESIZE_MAX_SIDE, a window outside the full size,
 * channels); RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_resize(sx_resizer *resizer, const sx_image *src,
                                const sx_resize_args *args, float *out);

const char *sx_resize_rule_name(sx_resize_rule rule); /* "bilinear-tf1"; NULL if none */
bool sx_resize_rule_parse(const char *name, sx_resize_rule *out);

#endif
