/* What the reader of one number (decimal.c) and that of lists (decimal_list.c) share: eight digits
 * at a time, and the values of short numbers. */
#ifndef SX_SERVE_DECIMAL_FAST_H
#define SX_SERVE_DECIMAL_FAST_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/byte_order.h"

enum { SX_DECIMAL_DIGITS = 19 }; /* always fit in 64 bits */

static const double sx_decimal_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                           1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                           1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
static const uint64_t sx_decimal_powers_u64[] = {1,      10,      100,      1000,     10000,
                                                 100000, 1000000, 10000000, 100000000};

/* Eight characters, the first one in the lowest byte, less '0': digits become 0 to 9. */
static inline uint64_t sx_digits_load(const char *p)
{
    return sx_load_le64(p) ^ 0x3030303030303030u;
}

/* The highest bit of each byte that is above 9. */
static inline uint64_t sx_digits_others(uint64_t word)
{
    return (((word & 0x7F7F7F7F7F7F7F7Fu) + 0x7676767676767676u) | word) & 0x8080808080808080u;
}

/* The value of eight digits, each a byte of 0 to 9: pairs, quads, all. */
static inline uint32_t sx_digits_value(uint64_t word)
{
    word = word * 10 + (word >> 8);
    const uint64_t low = (word & 0x000000FF000000FFu) * 0x000F424000000064u;
    const uint64_t high = ((word >> 16) & 0x000000FF000000FFu) * 0x0000271000000001u;
    return (uint32_t)((low + high) >> 32);
}

/* The fast path of W. D. Clinger (1990): digits and power of ten are exact doubles, so that one
 * division rounds once. Covers most numbers in practice. */
static inline bool sx_decimal_divides(uint64_t digits, int exponent)
{
    return digits < (uint64_t)1 << 53 && exponent <= 0 && exponent >= -22;
}

static inline double sx_decimal_divide(uint64_t digits, int exponent)
{
    return (double)(int64_t)digits / sx_decimal_powers[-exponent];
}

/* Whether a rounded double gives the right float: rounding twice is wrong only if it is halfway
 * between two floats. */
static inline bool sx_decimal_rounds_to_f32(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return (bits & 0x1FFFFFFF) != 0x10000000;
}

#endif
