/* Mutants of files, the same in each run. */
#ifndef SX_TESTS_MUTATE_H
#define SX_TESTS_MUTATE_H

#include <string.h>

#include "base/checked.h"
#include "base/threefry.h"

typedef struct sx_words {
    sx_u32x2 key;
    uint32_t next;
} sx_words;

static inline uint32_t sx_word(sx_words *w)
{
    return sx_threefry2x32(w->key, (sx_u32x2){w->next++, 0}).a;
}

/* One to three slips: a bit, a byte of another place, a piece left out or written twice. */
static inline size_t sx_mutate(sx_words *w, char *bytes, size_t size)
{
    for (uint32_t slips = 1 + sx_word(w) % 3; slips > 0 && size > 64; slips--) {
        const size_t at = sx_word(w) % size, from = sx_word(w) % size;
        const size_t most = 1 + sx_word(w) % 40, n = SX_MIN(most, size - SX_MAX(at, from));
        switch (sx_word(w) % 8) {
        case 0:
            memmove(bytes + at, bytes + at + n, size - at - n);
            size -= n;
            break;
        case 1:
            memmove(bytes + at, bytes + from, n);
            break;
        case 2:
            bytes[at] = bytes[from];
            break;
        default: /* most lengths stay what they were */
            bytes[at] = (char)(bytes[at] ^ 1 << sx_word(w) % 8);
            break;
        }
    }
    return size;
}

#endif
