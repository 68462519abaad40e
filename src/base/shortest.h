/* Printing numbers. Floats are printed as the shortest decimal that reads back to the same bits,
 * and among those the nearest.
 *
 * Method: Raffaello Giulietti, "The Schubfach way to render doubles" (2021). The format is that of
 * TensorFlow Serving's JSON: whole numbers end in ".0", very large and very small numbers have an
 * exponent (1e-05, 1.5e+16), and NaN and the infinities are the bare tokens NaN, Infinity,
 * -Infinity. */
#ifndef SX_BASE_SHORTEST_H
#define SX_BASE_SHORTEST_H

#include <stddef.h>
#include <stdint.h>

enum { SX_NUMBER_TEXT = 32 }; /* the maximum length of a number */

/* Each writes at most SX_NUMBER_TEXT bytes without a NUL and returns the end of the text. */
char *sx_print_f32(char *out, float value);
char *sx_print_f64(char *out, double value);
char *sx_print_u64(char *out, uint64_t value);
char *sx_print_i64(char *out, int64_t value);

#endif
