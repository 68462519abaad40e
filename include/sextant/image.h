/* How a model's input images are scaled and augmented (see SX_MODEL in model.h). */
#ifndef SEXTANT_IMAGE_H
#define SEXTANT_IMAGE_H

/* The scaling of pixels x in 0 … 255. */
typedef enum sx_scale {
    SX_SCALE_NONE, /* x */
    SX_0_1,        /* x / 255 */
    SX_MINUS1_1,   /* x / 127.5 − 1 */
    SX_MEAN_STD,   /* (x / 255 − mean) / std */
} sx_scale;

/* Random operations of training, a set of flags; evaluation takes their identity or centre form. */
typedef enum sx_augmentation {
    SX_FLIP_LEFT_RIGHT = 1 << 0,
} sx_augmentation;

#endif
