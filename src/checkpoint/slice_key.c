#include "checkpoint/slice_key.h"

#include <string.h>

static void put_number(sx_buf *out, uint64_t value)
{
    uint8_t bytes[9];
    size_t n = 0;
    for (uint64_t rest = value; rest != 0; rest >>= 8) {
        n++;
    }
    bytes[0] = (uint8_t)n;
    for (size_t i = 0; i < n; i++) {
        bytes[n - i] = (uint8_t)(value >> (8 * i));
    }
    sx_buf_append(out, bytes, n + 1);
}

static void put_string(sx_buf *out, const char *text)
{
    for (const uint8_t *c = (const uint8_t *)text; *c != 0; c++) {
        sx_buf_putc(out, (char)*c);
        if (*c == 0xff) {
            sx_buf_putc(out, 0);
        }
    }
    sx_buf_append(out, "\0\1", 2);
}

static void put_signed(sx_buf *out, int64_t value)
{
    uint64_t magnitude = (uint64_t)(value < 0 ? ~value : value);
    size_t n = 1;
    while (n < 10 && 7 * n - 1 < 64 && magnitude >> (7 * n - 1) != 0) {
        n++;
    }
    uint8_t bytes[10]; /* the value, big-endian, sign-extended to 80 bits */
    memset(bytes, value < 0 ? 0xff : 0, 2);
    for (size_t i = 0; i < 8; i++) {
        bytes[9 - i] = (uint8_t)((uint64_t)value >> (8 * i));
    }
    uint8_t *first = bytes + 10 - n;
    uint32_t header = 0xffffu << (16 - n) & 0xffffu; /* n ones, from the top */
    first[0] ^= (uint8_t)(header >> 8);
    if (n > 1) {
        first[1] ^= (uint8_t)header;
    }
    sx_buf_append(out, first, n);
}

void sx_slice_key(sx_buf *out, const char *name, int rank, const int64_t *start,
                  const int64_t *length)
{
    put_number(out, 0);
    put_string(out, name);
    put_number(out, (uint64_t)rank);
    for (int d = 0; d < rank; d++) {
        put_signed(out, start[d]);
        put_signed(out, length[d]);
    }
}
