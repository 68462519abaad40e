/* Hexadecimal digits: in text from outside, and of bytes. */
#ifndef SX_BASE_HEX_H
#define SX_BASE_HEX_H

#include <stddef.h>
#include <stdint.h>

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

/* Writes two lower-case digits for each byte to text[2 * size], without a NUL. */
static inline void sx_hex_put(char *text, const void *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        const uint8_t byte = ((const uint8_t *)bytes)[i];
        text[2 * i] = digits[byte >> 4];
        text[2 * i + 1] = digits[byte & 15];
    }
}

/* Writes "%XX" to text[3], and returns it. */
static inline char *sx_percent_put(char *text, uint8_t byte)
{
    static const char digits[] = "0123456789ABCDEF";
    text[0] = '%';
    text[1] = digits[byte >> 4];
    text[2] = digits[byte & 15];
    return text;
}

#endif
