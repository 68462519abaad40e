/* Augmentation: random changes of training images, and their random numbers.
 *
 * Each number comes from Threefry (base/threefry.h) with
 *
 *   key      (seed folded to 32 bits,  FNV-1a of the operation's name folded to 32 bits)
 *   counter  (epoch,                   record number in the data set, folded to 32 bits)
 *
 * where folding is the exclusive or of the two halves. So the augmentation of a record depends only
 * on the seed, the epoch and the record: not on threads, batches, order, replicas or restarts.
 *
 * Pixels are float32 [height, width, channels], modified in place unless there is an `out`. */
#ifndef SX_IMAGE_AUGMENT_H
#define SX_IMAGE_AUGMENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/threefry.h"

/* Which record, in which epoch of which run. */
typedef struct sx_augment_key {
    uint64_t seed;
    uint32_t epoch;
    uint64_t record;
} sx_augment_key;

/* 64 random bits for the operation `name` ("flip_left_right"). */
sx_u32x2 sx_augment_draw(const sx_augment_key *key, const char *name);

/* Convert 32 random bits to an integer in [0, count), or to a number in [lower, upper). */
int sx_augment_below(uint32_t bits, int count);
float sx_augment_between(uint32_t bits, float lower, float upper);

/* x + delta, as tf.image.adjust_brightness on floats. */
void sx_adjust_brightness(float *pixels, size_t elems, float delta);

/* (x − mean)·factor + mean with the mean of each channel, as tf.image.adjust_contrast. The mean is
 * summed in double, in eight interleaved partial sums and a fixed order. */
void sx_adjust_contrast(float *pixels, int height, int width, int channels, float factor);

/* Shears and zooms about the centre, as Keras' apply_affine_transform (order 1, fill "nearest").
 * With rows and columns counted from the image's centre, out (r, c) is
 * the bilinear sample of `src` at
 *
 *   row      zoom_rows·r − sin(shear)·zoom_columns·c
 *   column                 cos(shear)·zoom_columns·c       clamped into the image
 *
 * so a zoom above 1 makes the picture smaller. `out` has src's shape and does not overlap it. */
void sx_warp(const float *src, int height, int width, int channels, float shear_degrees,
             float zoom_rows, float zoom_columns, float *out);

/* Clamps to [lower, upper]; NaN becomes lower. */
void sx_clip_pixels(float *pixels, size_t elems, float lower, float upper);

/* x·mul[c] + add[c], as a product and then a sum. */
void sx_scale_channels(float *pixels, size_t count, int channels, const float *mul,
                       const float *add);

#endif
