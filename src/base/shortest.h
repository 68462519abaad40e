/* Printing floats: the shortest decimal that reads back to the same bits, and of those the nearest.
 *
 * Method: Raffaello Giulietti, "The Schubfach way to render doubles" (2021). The layout is that of
 * a JSON number as TensorFlow Serving writes it: whole numbers get ".0", very large and very small
 * ones an exponent (1e-05, 1.5e+16), NaN and the infinities are the bare tokens NaN, Infinity,
 * -Infinity. */
#ifndef SX_BASE_SHORTEST_H
#define SX_BASE_SHORTEST_H

#include <stddef.h>
#include <stdint.h>

enum { SX_NUMBER_TEXT = 32 }; /* enough for every number of this file */

/* Each writes at most SX_NUMBER_TEXT bytes, no NUL, and returns one past the last. */
char *sx_print_f32(char *out, float value);
char *sx_print_f64(char *out, double value);
char *sx_print_u64(char *out, uint64_t value);
char *sx_print_i64(char *out, int64_t value);

#endif
