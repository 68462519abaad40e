/* Reading JSON numbers: grammar, then the nearest float, correctly rounded.
 *
 * A number is scanned once into an sx_decimal (up to 19 significant digits and a power of ten) and
 * converted from there: for floats by the method of Lemire, "Number parsing at a gigabyte per
 * second" (2021), and Mushtaq & Lemire, "Fast number parsing without fallback" (2023). Longer
 * numbers whose first 19 digits do not decide the rounding go to strtod. Results are bit-equal to
 * strtof and strtod in the C locale. */
#ifndef SX_SERVE_DECIMAL_H
#define SX_SERVE_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

#include <sextant/types.h>

typedef struct sx_decimal {
    const char *text; /* first character, borrowed */
    const char *end;  /* one past the last */
    uint64_t digits;  /* the first 19 significant digits */
    int32_t exponent; /* value = ±digits * 10^exponent, if not truncated */
    bool negative;
    bool integral;  /* neither point nor exponent was written */
    bool truncated; /* there were more than 19 significant digits */
} sx_decimal;

/* Scans a number of the JSON grammar (RFC 8259 section 6: no leading zeros, no bare point) at
 * `text`; false if there is none. Nothing is read from `end` on; the caller checks what follows the
 * number. */
bool sx_decimal_scan(const char *text, const char *end, sx_decimal *out_decimal);

/* The nearest value, ties to even; ±HUGE_VAL beyond the range, ±0 below it. */
float sx_decimal_to_f32(const sx_decimal *decimal);
double sx_decimal_to_f64(const sx_decimal *decimal);

/* False unless the number was written as an integer and fits. */
bool sx_decimal_to_i64(const sx_decimal *decimal, int64_t *out_value);
bool sx_decimal_to_u64(const sx_decimal *decimal, uint64_t *out_value);

#endif
