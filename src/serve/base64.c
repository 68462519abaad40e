/* Base64; see base64.h. */
#include "serve/base64.h"

#include <stdbool.h>
#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

enum { BLANK = 64, PAD = 65, BAD = 66 };

/* The value of each ASCII character, or one of the constants above. */
/* clang-format off */
static const unsigned char values[128] = {
    66, 66, 66, 66, 66, 66, 66, 66, 66, 64, 64, 66, 66, 64, 66, 66,
    66, 66, 66, 66, 66, 66, 66, 66, 66, 66, 66, 66, 66, 66, 66, 66,
    64, 66, 66, 66, 66, 66, 66, 66, 66, 66, 66, 62, 66, 66, 66, 63,
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 66, 66, 66, 65, 66, 66,
    66,  0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14,
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 66, 66, 66, 66, 66,
    66, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
    41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 66, 66, 66, 66, 66,
};
/* clang-format on */

static inline unsigned value_of(char c)
{
    const unsigned char byte = (unsigned char)c;
    return byte < 128 ? values[byte] : BAD;
}

/* Decodes groups of four characters until another character appears. */
static size_t decode_groups(const char *text, size_t size, unsigned char **out)
{
    size_t i = 0;
    for (; i + 4 <= size; i += 4) {
        const unsigned a = value_of(text[i]), b = value_of(text[i + 1]);
        const unsigned c = value_of(text[i + 2]), d = value_of(text[i + 3]);
        if ((a | b | c | d) >= 64) {
            break;
        }
        const uint32_t word = a << 18 | b << 12 | c << 6 | d;
        (*out)[0] = (unsigned char)(word >> 16);
        (*out)[1] = (unsigned char)(word >> 8);
        (*out)[2] = (unsigned char)word;
        *out += 3;
    }
    return i;
}

ptrdiff_t sx_base64_decode(const char *text, size_t size, unsigned char *out)
{
    unsigned char *const begin = out;
    uint32_t word = 0;
    int held = 0, pads = 0; /* characters and padding of the current group */
    for (size_t i = decode_groups(text, size, &out); i < size; i++) {
        const unsigned value = value_of(text[i]);
        if (value == BLANK) {
            continue;
        }
        if (value == PAD) {
            pads++;
            continue;
        }
        if (value == BAD || pads > 0) {
            return -1;
        }
        word = word << 6 | value;
        if (++held == 4) {
            *out++ = (unsigned char)(word >> 16);
            *out++ = (unsigned char)(word >> 8);
            *out++ = (unsigned char)word;
            held = 0;
            word = 0;
        }
    }
    if (held == 1 || (pads > 0 && (held == 0 || held + pads != 4))) {
        return -1;
    }
    if (held >= 2) {
        word <<= 6 * (4 - held);
        *out++ = (unsigned char)(word >> 16);
        if (held == 3) {
            *out++ = (unsigned char)(word >> 8);
        }
    }
    return out - begin;
}

void sx_base64_encode(const void *data, size_t size, char *out)
{
    const unsigned char *p = data;
    for (; size >= 3; size -= 3, p += 3) {
        const uint32_t word = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
        *out++ = alphabet[word >> 18];
        *out++ = alphabet[word >> 12 & 63];
        *out++ = alphabet[word >> 6 & 63];
        *out++ = alphabet[word & 63];
    }
    if (size == 0) {
        return;
    }
    const uint32_t word = (uint32_t)p[0] << 16 | (size == 2 ? (uint32_t)p[1] << 8 : 0);
    out[0] = alphabet[word >> 18];
    out[1] = alphabet[word >> 12 & 63];
    out[2] = size == 2 ? alphabet[word >> 6 & 63] : '=';
    out[3] = '=';
}
