#include "base/utf8.h"

#include <string.h>

/* How many bytes of a sequence are there (at least 1), and how many it needs (0: it is none). The
 * second byte's range depends on the first; the others are 80..BF. */
static size_t measure(const uint8_t *p, size_t size, size_t *out_needs)
{
    const uint8_t c = p[0];
    *out_needs = c < 0x80 ? 1 : c < 0xC2 || c > 0xF4 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    if (*out_needs < 2 || size < 2) {
        return 1;
    }
    const uint8_t low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    if (p[1] < low || p[1] > high) {
        return 1;
    }
    size_t there = 2;
    while (there < *out_needs && there < size && (p[there] & 0xC0) == 0x80) {
        there++;
    }
    return there;
}

size_t sx_utf8_sequence(const void *text, size_t size)
{
    size_t needs;
    const size_t there = measure(text, size, &needs);
    return there == needs ? needs : 0;
}

size_t sx_utf8_decode(const void *text, size_t size, uint32_t *out_code)
{
    static const uint8_t bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07}; /* of the first byte, by length */
    const uint8_t *p = text;
    size_t needs;
    const size_t there = measure(p, size, &needs);
    uint32_t code = p[0] & bits[needs];
    for (size_t i = 1; i < there; i++) {
        code = code << 6 | (p[i] & 0x3F);
    }
    *out_code = there == needs ? code : SX_UTF8_MALFORMED;
    return there;
}

/* Whether eight bytes are all below 0x80. */
static inline bool is_ascii8(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
    return (word & 0x8080808080808080u) == 0;
}

size_t sx_utf8_prefix(const void *text, size_t size)
{
    const uint8_t *p = text;
    size_t i = 0;
    while (i < size) {
        if (size - i >= 8 && is_ascii8(p + i)) {
            i += 8;
            continue;
        }
        const size_t length = sx_utf8_sequence(p + i, size - i);
        if (length == 0) {
            break;
        }
        i += length;
    }
    return i;
}

char *sx_utf8_put(char *out, uint32_t code)
{
    static const uint8_t lead[] = {0, 0xC0, 0xE0, 0xF0};
    int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    *out++ = (char)(lead[more] | code >> (6 * more));
    while (more-- > 0) {
        *out++ = (char)(0x80 | (code >> (6 * more) & 0x3F));
    }
    return out;
}
