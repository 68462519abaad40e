/* Base-128 varints in memory, least significant group first: the lengths of SSTables and Snappy. */
#ifndef SX_CHECKPOINT_VARINT_H
#define SX_CHECKPOINT_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A range of bytes being read; `at` never passes `end`. */
typedef struct sx_span {
    const uint8_t *at, *end;
} sx_span;

static inline size_t sx_span_left(const sx_span *span)
{
    return (size_t)(span->end - span->at);
}

enum { SX_VARINT_MAX_BYTES = 10 };

/* Takes one varint of at most `bits` bits (32 or 64); false if it is truncated, too large, or
 * longer than necessary (which no writer produces). */
static inline bool sx_span_varint(sx_span *span, int bits, uint64_t *out)
{
    uint64_t value = 0;
    for (int shift = 0; shift < bits && span->at < span->end; shift += 7) {
        uint64_t byte = *span->at++;
        uint64_t group = byte & 0x7f;
        if (shift + 7 > bits && group >> (bits - shift) != 0) {
            return false;
        }
        value |= group << shift;
        if (byte < 0x80) {
            *out = value;
            return byte != 0 || shift == 0;
        }
    }
    return false;
}

/* Writes `value`, at most SX_VARINT_MAX_BYTES; returns the number of bytes. */
static inline size_t sx_varint_put(uint8_t *out, uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) {
        out[n++] = (uint8_t)(value | 0x80);
    }
    out[n++] = (uint8_t)value;
    return n;
}

#endif
