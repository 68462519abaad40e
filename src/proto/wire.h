/* Protobuf's wire format: tags and varints, read in place.
 *
 *   field = tag, value        tag = varint (number << 3 | type)
 *   type 0 varint    1 eight bytes    2 varint size, bytes    5 four bytes
 *
 * Groups (3, 4) are rejected. Every function returns false on malformed or missing bytes; the
 * reader must not be used after that. */
#ifndef SX_PROTO_WIRE_H
#define SX_PROTO_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <sextant/types.h>

#include "base/buffer.h"

typedef enum sx_wire_type {
    SX_WIRE_VARINT = 0,
    SX_WIRE_FIXED64 = 1,
    SX_WIRE_BYTES = 2,
    SX_WIRE_FIXED32 = 5,
} sx_wire_type;

enum { SX_WIRE_MAX_VARINT = 10 };

/* Invariant: at <= end. */
typedef struct sx_wire {
    const uint8_t *at, *end;
} sx_wire;

typedef struct sx_wire_field {
    uint32_t number; /* 1 .. 2^29 - 1 */
    sx_wire_type type;
    sx_bytes value; /* the bytes of the value: the varint, the 4 or 8 bytes, the contents */
} sx_wire_field;

static inline sx_wire sx_wire_over(sx_bytes bytes)
{
    const uint8_t *at = bytes.size == 0 ? (const uint8_t *)"" : bytes.data;
    return (sx_wire){at, at + bytes.size};
}

static inline bool sx_wire_more(const sx_wire *wire)
{
    return wire->at < wire->end;
}

static inline bool sx_wire_varint(sx_wire *wire, uint64_t *out)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 70 && wire->at < wire->end; shift += 7) {
        uint8_t byte = *wire->at++;
        if (shift == 63 && byte > 1) {
            return false; /* more than 64 bits */
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* Reads the next field and finds the extent of its value, which is not checked. */
static inline bool sx_wire_next(sx_wire *wire, sx_wire_field *out)
{
    uint64_t tag, size = 0;
    if (!sx_wire_varint(wire, &tag) || tag >> 32 != 0 || tag >> 3 == 0) {
        return false;
    }
    const uint8_t *start = wire->at;
    uint64_t ignored;
    switch (tag & 7) {
    case SX_WIRE_VARINT:
        if (!sx_wire_varint(wire, &ignored)) {
            return false;
        }
        size = (uint64_t)(wire->at - start);
        wire->at = start;
        break;
    case SX_WIRE_FIXED64:
        size = 8;
        break;
    case SX_WIRE_FIXED32:
        size = 4;
        break;
    case SX_WIRE_BYTES:
        if (!sx_wire_varint(wire, &size)) {
            return false;
        }
        break;
    default:
        return false;
    }
    if (size > (uint64_t)(wire->end - wire->at)) {
        return false;
    }
    *out = (sx_wire_field){(uint32_t)(tag >> 3), (sx_wire_type)(tag & 7), {wire->at, (size_t)size}};
    wire->at += size;
    return true;
}

/* The number of a field that is a varint. */
static inline bool sx_wire_number(const sx_wire_field *field, uint64_t *out)
{
    sx_wire wire = sx_wire_over(field->value);
    return field->type == SX_WIRE_VARINT && sx_wire_varint(&wire, out);
}

typedef enum sx_wire_found {
    SX_WIRE_FOUND,
    SX_WIRE_NO_MORE,
    SX_WIRE_MALFORMED,
    SX_WIRE_NOT_BYTES, /* a field of that number, but a number */
} sx_wire_found;

/* The next field of that number, which has to be bytes; others are skipped. *out_at is where the
 * last field that was looked at begins. */
static inline sx_wire_found sx_wire_find(sx_wire *wire, uint32_t number, const uint8_t **out_at,
                                         sx_bytes *out_value)
{
    sx_wire_field field;
    while (sx_wire_more(wire)) {
        *out_at = wire->at;
        if (!sx_wire_next(wire, &field)) {
            return SX_WIRE_MALFORMED;
        }
        if (field.number == number) {
            *out_value = field.value;
            return field.type == SX_WIRE_BYTES ? SX_WIRE_FOUND : SX_WIRE_NOT_BYTES;
        }
    }
    return SX_WIRE_NO_MORE;
}

/* ---- Writing ---- */

/* Writes at most SX_WIRE_MAX_VARINT bytes; returns their number. */
static inline size_t sx_wire_put_varint(uint8_t *out, uint64_t value)
{
    size_t size = 0;
    for (; value >= 0x80; value >>= 7) {
        out[size++] = (uint8_t)(value | 0x80);
    }
    out[size++] = (uint8_t)value;
    return size;
}

static inline void sx_wire_append_varint(sx_buf *out, uint64_t value)
{
    uint8_t bytes[SX_WIRE_MAX_VARINT];
    sx_buf_append(out, bytes, sx_wire_put_varint(bytes, value));
}

static inline void sx_wire_append_tag(sx_buf *out, uint32_t number, sx_wire_type type)
{
    sx_wire_append_varint(out, (uint64_t)number << 3 | (uint64_t)type);
}

static inline size_t sx_wire_varint_size(uint64_t value)
{
    size_t size = 1;
    for (; value >= 0x80; value >>= 7) {
        size++;
    }
    return size;
}

/* A number, which is not written if it is 0, as proto3 has it. */
static inline void sx_wire_append_number(sx_buf *out, uint32_t number, uint64_t value)
{
    if (value != 0) {
        sx_wire_append_tag(out, number, SX_WIRE_VARINT);
        sx_wire_append_varint(out, value);
    }
}

/* A tag and the size of what follows. */
static inline void sx_wire_append_head(sx_buf *out, uint32_t number, size_t size)
{
    sx_wire_append_tag(out, number, SX_WIRE_BYTES);
    sx_wire_append_varint(out, size);
}

static inline void sx_wire_append_bytes(sx_buf *out, uint32_t number, sx_bytes bytes)
{
    sx_wire_append_head(out, number, bytes.size);
    sx_buf_append(out, bytes.data, bytes.size);
}

static inline void sx_wire_append_text(sx_buf *out, uint32_t number, const char *text)
{
    sx_wire_append_bytes(out, number, (sx_bytes){text, strlen(text)});
}

/* A field whose size is known only when its contents have been appended: what is appended between
 * these two calls. */
static inline size_t sx_wire_begin(sx_buf *out, uint32_t number)
{
    sx_wire_append_tag(out, number, SX_WIRE_BYTES);
    return out->size;
}

static inline void sx_wire_end(sx_buf *out, size_t at)
{
    uint8_t head[SX_WIRE_MAX_VARINT];
    const size_t size = out->size - at, head_size = sx_wire_put_varint(head, size);
    if (sx_buf_extend(out, head_size) != NULL) {
        memmove(out->data + at + head_size, out->data + at, size);
        memcpy(out->data + at, head, head_size);
    }
}

/* Of a field of `size` bytes, with its tag and that size. */
static inline size_t sx_wire_field_size(uint32_t number, size_t size)
{
    return sx_wire_varint_size((uint64_t)number << 3) + sx_wire_varint_size(size) + size;
}

#endif
