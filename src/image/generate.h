/* Drawn data sets: labelled images without a download, the same on every machine.
 *
 * An image is a function of (seed, index). Its randomness is Threefry with key (seed, data set's
 * name) and counter (index, draw); its arithmetic is integers and float32 additions, products,
 * divisions and square roots in a fixed order, which IEEE 754 defines to the bit; no function of
 * libm whose last bit differs from version to version. tests/image/test_generate.c holds the
 * hashes.
 *
 *   digits    28 × 28 gray, white ink on black as MNIST has it, 10 classes: strokes along curves,
 *             with jittered points, turned, sheared, scaled, moved, thick or thin, and noise
 *   flowers   side × side RGB, 5 classes named as in the flower photographs: number, shape and
 * colour of petals and heart vary about their class, before a background of the same for all */
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

/* out: uint8 [28, 28]. The label is drawn as well, each digit as likely as the others. */
void sx_digits_draw(uint64_t seed, uint64_t index, uint8_t out[28 * 28], int *out_label);

/* out: uint8 [side, side, 3]. INVALID_ARGUMENT when side is outside its limits. */
SX_MUST_USE sx_status sx_flowers_draw(uint64_t seed, uint64_t index, int side, uint8_t *out,
                                      int *out_label);
/* "daisy", "dandelion", "roses", "sunflowers", "tulips"; NULL for any other label. */
const char *sx_flowers_class_name(int label);

#endif
