/* Synthetic data sets: labelled images that need no download and are identical on every machine.
 *
 * An image is a function of (seed, index). Its random numbers are Threefry with key (seed, name of
 * the data set) and counter (index, draw). It is computed with integers and float32 additions,
 * products, divisions and square roots in a fixed order, which IEEE 754 defines exactly, and
 * without libm functions, whose last bit depends on the version. tests/image/test_generate.c has
 * the hashes.
 *
 * digits: 28 × 28 gray, white on black as in MNIST, 10 classes. Strokes with jittered points,
 * rotated, sheared, scaled, shifted, of varying thickness, with noise.
 *
 * flowers: side × side RGB, 5 classes named as in the flower photographs. Number, shape and colour
 * of petals and heart vary within the class; the background does not depend on the class. */
#ifndef SX_IMAGE_GENERATE_H
#define SX_IMAGE_GENERATE_H

#include <stdint.h>

#include <sextant/status.h>

enum {
    SX_DIGITS_SIDE = 28,
    SX_DIGITS_CLASSES = 10,
    SX_FLOWERS_CLASSES = 5,
    SX_FLOWERS_MIN_SIDE = 16,
    SX_FLOWERS_MAX_SIDE = 1024,
};

/* out: uint8 [28, 28]. The label is random, too; all digits are equally likely. */
void sx_digits_draw(uint64_t seed, uint64_t index, uint8_t out[28 * 28], int *out_label);

/* out: uint8 [side, side, 3]. Errors: INVALID_ARGUMENT: side is out of range. */
SX_MUST_USE sx_status sx_flowers_draw(uint64_t seed, uint64_t index, int side, uint8_t *out,
                                      int *out_label);
/* "daisy", "dandelion", "roses", "sunflowers", "tulips"; NULL for any other label. */
const char *sx_flowers_class_name(int label);

#endif
