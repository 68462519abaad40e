/* Hexadecimal digits in text from outside. */
#ifndef SX_BASE_HEX_H
#define SX_BASE_HEX_H

#include <stddef.h>

/* Of either case; -1: it is none. */
static inline int sx_hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The byte that "%XX" at the beginning of text[size] stands for; -1: it does not begin so. */
static inline int sx_percent_byte(const char *text, size_t size)
{
    if (size < 3 || text[0] != '%') {
        return -1;
    }
    const int high = sx_hex_digit(text[1]), low = sx_hex_digit(text[2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

#endif
