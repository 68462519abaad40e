#include "base/utf8.h"

#include <string.h>

/* The second byte's range depends on the first; the others are 80..BF. */
size_t sx_utf8_sequence(const void *text, size_t size)
{
    const uint8_t *p = text;
    const uint8_t c = p[0];
    if (c < 0x80) {
        return 1;
    }
    if (c < 0xC2 || c > 0xF4) {
        return 0;
    }
    const size_t length = c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    if (size < length) {
        return 0;
    }
    const uint8_t low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    if (p[1] < low || p[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if ((p[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return length;
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
