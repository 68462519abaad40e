#include "checkpoint/snappy.h"

#include <string.h>

#include "checkpoint/varint.h"

enum { SNAPPY_LITERAL, SNAPPY_COPY_1, SNAPPY_COPY_2, SNAPPY_COPY_4 };

struct element {
    size_t length;
    size_t offset; /* back from the end of the output; 0 = literal */
};

static bool span_le(sx_span *in, size_t bytes, size_t *out)
{
    if (sx_span_left(in) < bytes) {
        return false;
    }
    size_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value |= (size_t)in->at[i] << (8 * i);
    }
    in->at += bytes;
    *out = value;
    return true;
}

static bool read_literal(sx_span *in, uint8_t tag, struct element *out)
{
    size_t length = tag >> 2;
    if (length >= 60 && !span_le(in, length - 59, &length)) {
        return false;
    }
    *out = (struct element){.length = length + 1};
    return true;
}

static bool read_copy(sx_span *in, uint8_t tag, struct element *out)
{
    static const size_t offset_bytes[] = {
        [SNAPPY_COPY_1] = 1, [SNAPPY_COPY_2] = 2, [SNAPPY_COPY_4] = 4};
    size_t offset;
    if (!span_le(in, offset_bytes[tag & 3], &offset)) {
        return false;
    }
    if ((tag & 3) == SNAPPY_COPY_1) {
        *out = (struct element){.length = ((tag >> 2) & 7) + 4u,
                                .offset = (size_t)(tag >> 5) << 8 | offset};
    } else {
        *out = (struct element){.length = (tag >> 2) + 1u, .offset = offset};
    }
    return out->offset != 0;
}

sx_status sx_snappy_length(sx_bytes packed, size_t *out_length)
{
    sx_span in = {packed.data, (const uint8_t *)packed.data + packed.size};
    uint64_t length;
    if (!sx_span_varint(&in, 32, &length)) {
        return sx_error(SX_DATA_LOSS, "snappy: the length header is truncated or over 32 bits");
    }
    *out_length = (size_t)length;
    return SX_OK;
}

sx_status sx_snappy_unpack(sx_bytes packed, uint8_t *out, size_t length)
{
    const uint8_t *start = packed.data;
    sx_span in = {start, start + packed.size};
    uint64_t stated;
    size_t done = 0;
    if (!sx_span_varint(&in, 32, &stated) || stated != length) {
        return sx_error(SX_DATA_LOSS, "snappy: the length header does not match");
    }
    while (in.at < in.end) {
        uint8_t tag = *in.at++;
        struct element e;
        bool literal = (tag & 3) == SNAPPY_LITERAL;
        bool ok = literal ? read_literal(&in, tag, &e) && e.length <= sx_span_left(&in)
                          : read_copy(&in, tag, &e) && e.offset <= done;
        if (!ok || e.length > length - done) {
            return sx_error(SX_DATA_LOSS, "snappy: invalid element before byte %zu of the input",
                            (size_t)(in.at - start));
        }
        if (literal) {
            memcpy(out + done, in.at, e.length);
            in.at += e.length;
        } else {
            /* Byte by byte: a copy may overlap what it writes, and then repeats it. */
            for (size_t i = 0; i < e.length; i++) {
                out[done + i] = out[done + i - e.offset];
            }
        }
        done += e.length;
    }
    if (done != length) {
        return sx_error(SX_DATA_LOSS, "snappy: unpacked %zu bytes, the header says %zu", done,
                        length);
    }
    return SX_OK;
}
