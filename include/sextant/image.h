/* How images become a model's input: fields that SX_MODEL (model.h) and sx_image_pipeline()
 * (data.h) have in common.
 *
 * An image is decoded, resized to .image, augmented when training, and scaled. The random numbers
 * of an augmentation depend on the seed, the epoch and the record alone, so that threads, batch
 * sizes and restarts do not change them. Evaluation and prediction take the centre of a random crop
 * and leave the rest out.
 *
 *   .augment = SX_FLIP_LEFT_RIGHT   tf.image.random_flip_left_right
 *              SX_SCALED_DECODE     decode large JPEGs at 1/2, 1/4 or 1/8 of their size
 *   .random_crop = 10               resize to 10 rows and columns more, crop at random
 *   .random_shear = 20              shear by up to 20 degrees (Keras' shear_range)
 *   .random_zoom = .2               zoom rows and columns by 0.8 to 1.2 (Keras' zoom_range)
 *   .random_brightness = .25        tf.image.random_brightness: add up to ±0.25 of the full range
 *   .random_contrast = {.2, 1.8}    tf.image.random_contrast: factor from 0.2 to 1.8 */
#ifndef SEXTANT_IMAGE_H
#define SEXTANT_IMAGE_H

/* The scaling of pixels x in 0 … 255. */
typedef enum sx_scale {
    SX_SCALE_NONE, /* x */
    SX_0_1,        /* x / 255 */
    SX_MINUS1_1,   /* x / 127.5 − 1 */
    SX_MEAN_STD,   /* (x / 255 − mean) / std */
} sx_scale;

/* Augmentations without a strength: a set of flags. */
typedef enum sx_augmentation {
    SX_FLIP_LEFT_RIGHT = 1 << 0, /* mirror with probability 1/2 */
    /* A JPEG of at least 2, 4 or 8 times the size needed is decoded at a half, a quarter or an
     * eighth of its size. Faster; its pixels are means of those that a full decoder gives. */
    SX_SCALED_DECODE = 1 << 1,
} sx_augmentation;

#endif
