/* Reading sorted string tables: every handle, length and checksum is checked before it is used. */
#include <string.h>

#include "base/byte_order.h"
#include "base/checked.h"
#include "base/memory.h"
#include "checkpoint/snappy.h"
#include "checkpoint/sstable.h"
#include "checkpoint/varint.h"
#include "io/crc32c.h"

enum {
    TRAILER_BYTES = 5, /* type, checksum */
    MAX_KEY_BYTES = 1 << 20,
    BLOCK_RAW = 0,
    BLOCK_SNAPPY = 1,
};

struct handle {
    uint64_t offset, size;
};

struct table {
    sx_bytes file;
    size_t unpack_left; /* of unpack_limit */
    sx_buf last_key;    /* of the data blocks scanned so far */
    bool any;
    sx_sstable_visit_fn *visit;
    void *user;
};

/* The contents of a block; `unpacked` is to be freed, NULL if they are in the file itself. */
struct block {
    sx_bytes contents;
    uint8_t *unpacked;
};

static bool take_handle(sx_span *in, struct handle *out)
{
    return sx_span_varint(in, 64, &out->offset) && sx_span_varint(in, 64, &out->size);
}

static sx_status read_footer(sx_bytes file, struct handle *out_metaindex, struct handle *out_index)
{
    static const uint8_t magic[8] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};
    if (file.size < SX_SSTABLE_FOOTER_BYTES) {
        return sx_error(SX_DATA_LOSS,
                        "table: %zu bytes, shorter than the %d of a footer: truncated", file.size,
                        SX_SSTABLE_FOOTER_BYTES);
    }
    const uint8_t *end = (const uint8_t *)file.data + file.size;
    if (memcmp(end - sizeof(magic), magic, sizeof(magic)) != 0) {
        return sx_error(SX_DATA_LOSS,
                        "table: no magic number at the end: truncated, or not a table");
    }
    sx_span in = {end - SX_SSTABLE_FOOTER_BYTES, end - sizeof(magic)};
    if (!take_handle(&in, out_metaindex) || !take_handle(&in, out_index)) {
        return sx_error(SX_DATA_LOSS, "table: invalid handles in the footer");
    }
    while (in.at < in.end) {
        if (*in.at++ != 0) {
            return sx_error(SX_DATA_LOSS, "table: invalid padding in the footer");
        }
    }
    return SX_OK;
}

static sx_status unpack(struct table *t, sx_bytes packed, struct block *out)
{
    size_t length = 0;
    SX_TRY(sx_snappy_length(packed, &length));
    if (length > t->unpack_left) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "unpacks to %zu bytes, the limit is %zu", length,
                        t->unpack_left);
    }
    uint8_t *bytes = sx_alloc(length + 1, 1);
    if (bytes == NULL) {
        return sx_no_memory("for %zu bytes", length);
    }
    sx_status status = sx_snappy_unpack(packed, bytes, length);
    if (status != SX_OK) {
        sx_free(bytes);
        return status;
    }
    t->unpack_left -= length;
    *out = (struct block){{bytes, length}, bytes};
    return SX_OK;
}

static sx_status load_block(struct table *t, struct handle h, struct block *out)
{
    size_t room = t->file.size - SX_SSTABLE_FOOTER_BYTES;
    if (h.offset > room || h.size > room - h.offset || room - h.offset - h.size < TRAILER_BYTES) {
        return sx_error(SX_DATA_LOSS, "size %llu is outside the file's %zu bytes",
                        (unsigned long long)h.size, t->file.size);
    }
    const uint8_t *bytes = (const uint8_t *)t->file.data + h.offset;
    size_t size = (size_t)h.size;
    uint32_t stored = sx_load_le32(bytes + size + 1);
    if (sx_crc32c_mask(sx_crc32c(0, bytes, size + 1)) != stored) {
        return sx_error(SX_DATA_LOSS, "wrong checksum: the file is corrupt");
    }
    sx_bytes raw = {bytes, size};
    switch (bytes[size]) {
    case BLOCK_RAW:
        *out = (struct block){.contents = raw};
        return SX_OK;
    case BLOCK_SNAPPY:
        return unpack(t, raw, out);
    default:
        return sx_error(SX_UNIMPLEMENTED, "unknown block type %d, expected 0 (raw) or 1 (Snappy)",
                        bytes[size]);
    }
}

/* Splits the contents into entries and restart points. */
static bool entries_of(sx_bytes contents, sx_span *out)
{
    const uint8_t *start = contents.data;
    if (contents.size < 8) {
        return false;
    }
    uint32_t restarts = sx_load_le32(start + contents.size - 4);
    if (restarts == 0 || restarts > contents.size / 4 - 1) {
        return false;
    }
    *out = (sx_span){start, start + contents.size - 4 - 4 * (size_t)restarts};
    return true;
}

/* Takes one entry; `key` is the previous key on entry, this one's on return. */
static bool take_entry(sx_span *in, sx_buf *key, sx_bytes *out_value)
{
    uint64_t shared, unshared, value_size;
    if (!sx_span_varint(in, 32, &shared) || !sx_span_varint(in, 32, &unshared) ||
        !sx_span_varint(in, 32, &value_size) || shared > key->size || unshared > sx_span_left(in) ||
        value_size > sx_span_left(in) - unshared) {
        return false;
    }
    key->size = (size_t)shared;
    sx_buf_append(key, in->at, (size_t)unshared);
    in->at += unshared;
    *out_value = (sx_bytes){in->at, (size_t)value_size};
    in->at += value_size;
    return true;
}

/* Calls `each` for the entries of one block. */
static sx_status scan_block(struct table *t, struct handle h, sx_sstable_visit_fn *each, void *user)
{
    struct block block = {0};
    SX_TRY(load_block(t, h, &block), "table: block at byte %llu", (unsigned long long)h.offset);
    sx_buf key;
    sx_buf_init(&key, MAX_KEY_BYTES);
    sx_span in = {0};
    sx_status status = SX_OK;
    if (!entries_of(block.contents, &in)) {
        status = sx_error(SX_DATA_LOSS, "invalid restart points");
    }
    while (status == SX_OK && in.at < in.end) {
        sx_bytes value;
        if (!take_entry(&in, &key, &value)) {
            status = sx_error(SX_DATA_LOSS, "invalid entry");
        } else if ((status = sx_buf_status(&key)) == SX_OK) {
            status = each(user, (sx_bytes){sx_buf_text(&key), key.size}, value);
        }
    }
    sx_buf_deinit(&key);
    sx_free(block.unpacked);
    return sx_status_annotate(status, __FILE__, __LINE__, "table: block at byte %llu",
                              (unsigned long long)h.offset);
}

static sx_status visit_data(void *user, sx_bytes key, sx_bytes value)
{
    struct table *t = user;
    sx_bytes last = {sx_buf_text(&t->last_key), t->last_key.size};
    if (t->any && sx_bytes_compare(last, key) >= 0) {
        return sx_error(SX_DATA_LOSS, "keys are not in ascending order");
    }
    t->any = true;
    sx_buf_reset(&t->last_key);
    sx_buf_append(&t->last_key, key.data, key.size);
    SX_TRY(sx_buf_status(&t->last_key));
    return t->visit(t->user, key, value);
}

static sx_status visit_index(void *user, sx_bytes key, sx_bytes value)
{
    struct table *t = user;
    sx_span in = {value.data, (const uint8_t *)value.data + value.size};
    struct handle h;
    if (!take_handle(&in, &h)) {
        return sx_error(SX_DATA_LOSS, "invalid handle in the index");
    }
    SX_TRY(scan_block(t, h, visit_data, t));
    sx_bytes last = {sx_buf_text(&t->last_key), t->last_key.size};
    if (sx_bytes_compare(last, key) > 0) {
        return sx_error(SX_DATA_LOSS, "a block has keys greater than its index key");
    }
    return SX_OK;
}

/* The metaindex is not used, but it must be valid for the file to be. */
static sx_status visit_metaindex(void *user, sx_bytes key, sx_bytes value)
{
    (void)user;
    (void)key;
    (void)value;
    return SX_OK;
}

sx_status sx_sstable_scan(sx_bytes file, size_t unpack_limit, sx_sstable_visit_fn *visit,
                          void *user)
{
    struct table t = {.file = file, .unpack_left = unpack_limit, .visit = visit, .user = user};
    struct handle metaindex = {0}, index = {0};
    SX_TRY(read_footer(file, &metaindex, &index));
    SX_TRY(scan_block(&t, metaindex, visit_metaindex, NULL));
    sx_buf_init(&t.last_key, MAX_KEY_BYTES);
    sx_status status = scan_block(&t, index, visit_index, &t);
    sx_buf_deinit(&t.last_key);
    return status;
}
