/* Reading lists of JSON numbers into memory: the inner loop of large tensors. */
#ifndef SX_SERVE_DECIMAL_LIST_H
#define SX_SERVE_DECIMAL_LIST_H

#include <sextant/types.h>

/* Reads numbers separated by commas (and white space), from `text` on, which must be the first
 * character of a number, as SX_F32 or SX_F64. Stops before anything that is not a finite number, at
 * `end`, or after `capacity` numbers. Returns the end of the last number, `text` if there is none;
 * *out_count is the number of values in `out`. */
const char *sx_decimal_read_list(const char *text, const char *end, sx_dtype dtype, void *out,
                                 size_t capacity, size_t *out_count);

/* Reads lists of `width` such numbers, separated in the same way, from the bracket at `text` on.
 * Stops before a list that has another length, or something else in it, or after `capacity` lists.
 * Returns the end of the last list, `text` if there is none; *out_count is the number of lists. */
const char *sx_decimal_read_rows(const char *text, const char *end, sx_dtype dtype, void *out,
                                 size_t width, size_t capacity, size_t *out_count);

#endif
