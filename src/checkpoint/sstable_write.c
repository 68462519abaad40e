/* Writing sorted string tables; the rules of TensorFlow's TableBuilder. */
#include <string.h>

#include "base/byte_order.h"
#include "base/checked.h"
#include "checkpoint/sstable.h"
#include "checkpoint/varint.h"
#include "io/crc32c.h"

enum { DATA_RESTART_INTERVAL = 16, INDEX_RESTART_INTERVAL = 1 };

static const uint8_t magic[8] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};

static sx_bytes view(const sx_buf *buf)
{
    return (sx_bytes){sx_buf_text(buf), buf->size};
}

static void put_varint(sx_buf *buf, uint64_t value)
{
    uint8_t bytes[SX_VARINT_MAX_BYTES];
    sx_buf_append(buf, bytes, sx_varint_put(bytes, value));
}

static void put_le32(sx_buf *buf, uint32_t value)
{
    uint8_t bytes[4];
    sx_store_le32(bytes, value);
    sx_buf_append(buf, bytes, sizeof(bytes));
}

static void set(sx_buf *buf, sx_bytes bytes)
{
    sx_buf_reset(buf);
    sx_buf_append(buf, bytes.data, bytes.size);
}

/* ---- One block ---- */

static void block_reset(sx_sstable_block *block)
{
    sx_buf_reset(&block->contents);
    sx_buf_reset(&block->restarts);
    sx_buf_reset(&block->last_key);
    put_le32(&block->restarts, 0);
    block->since_restart = 0;
}

static void block_init(sx_sstable_block *block, int interval)
{
    sx_buf_init(&block->contents, 0);
    sx_buf_init(&block->restarts, 0);
    sx_buf_init(&block->last_key, 0);
    block->interval = interval;
    block_reset(block);
}

static void block_deinit(sx_sstable_block *block)
{
    sx_buf_deinit(&block->contents);
    sx_buf_deinit(&block->restarts);
    sx_buf_deinit(&block->last_key);
}

static size_t common_prefix(sx_bytes a, sx_bytes b)
{
    const uint8_t *x = a.data, *y = b.data;
    size_t n = 0;
    while (n < a.size && n < b.size && x[n] == y[n]) {
        n++;
    }
    return n;
}

static void block_add(sx_sstable_block *block, sx_bytes key, sx_bytes value)
{
    size_t shared = 0;
    if (block->since_restart < block->interval) {
        shared = common_prefix(view(&block->last_key), key);
    } else {
        put_le32(&block->restarts, (uint32_t)block->contents.size);
        block->since_restart = 0;
    }
    put_varint(&block->contents, shared);
    put_varint(&block->contents, key.size - shared);
    put_varint(&block->contents, value.size);
    sx_buf_append(&block->contents, (const uint8_t *)key.data + shared, key.size - shared);
    sx_buf_append(&block->contents, value.data, value.size);
    set(&block->last_key, key);
    block->since_restart++;
}

static size_t block_estimate(const sx_sstable_block *block)
{
    return block->contents.size + block->restarts.size + 4;
}

/* Appends the block, its type and checksum to the file, its handle to `handle`; empties it. */
static sx_status block_write(sx_sstable_writer *w, sx_sstable_block *block, sx_buf *handle)
{
    put_varint(handle, w->file.size);
    sx_buf_append(&block->contents, block->restarts.data, block->restarts.size);
    put_le32(&block->contents, (uint32_t)(block->restarts.size / 4));
    put_varint(handle, block->contents.size);
    sx_buf_putc(&block->contents, 0); /* type: raw */
    SX_TRY(sx_buf_status(&block->contents));
    SX_TRY(sx_buf_status(&block->restarts));
    SX_TRY(sx_buf_status(&block->last_key));
    SX_TRY(sx_buf_status(handle));
    sx_buf_append(&w->file, block->contents.data, block->contents.size);
    put_le32(&w->file, sx_crc32c_mask(sx_crc32c(0, block->contents.data, block->contents.size)));
    block_reset(block);
    return sx_buf_status(&w->file);
}

/* ---- The table ---- */

void sx_sstable_writer_init(sx_sstable_writer *w, size_t block_bytes)
{
    *w =
        (sx_sstable_writer){.block_bytes = block_bytes != 0 ? block_bytes : SX_SSTABLE_BLOCK_BYTES};
    sx_buf_init(&w->file, 0);
    sx_buf_init(&w->pending_handle, 0);
    sx_buf_init(&w->last_key, 0);
    block_init(&w->data, DATA_RESTART_INTERVAL);
    block_init(&w->index, INDEX_RESTART_INTERVAL);
}

void sx_sstable_writer_deinit(sx_sstable_writer *w)
{
    sx_buf_deinit(&w->file);
    sx_buf_deinit(&w->pending_handle);
    sx_buf_deinit(&w->last_key);
    block_deinit(&w->data);
    block_deinit(&w->index);
}

static sx_status flush(sx_sstable_writer *w)
{
    if (w->data.contents.size == 0) {
        return SX_OK;
    }
    return block_write(w, &w->data, &w->pending_handle);
}

/* The shortest string >= last and < next, by TensorFlow's rule; edits `last` in place. */
static void shorten_to_separator(sx_buf *last, sx_bytes next)
{
    size_t n = common_prefix(view(last), next);
    if (n >= last->size || n >= next.size) {
        return;
    }
    uint8_t byte = (uint8_t)last->data[n];
    if (byte < 0xff && byte + 1 < ((const uint8_t *)next.data)[n]) {
        last->data[n] = (char)(byte + 1);
        last->size = n + 1;
    }
}

/* A short string >= last: its first byte that can be incremented is, and ends it. */
static void shorten_to_successor(sx_buf *last)
{
    for (size_t i = 0; i < last->size; i++) {
        if ((uint8_t)last->data[i] != 0xff) {
            last->data[i]++;
            last->size = i + 1;
            return;
        }
    }
}

static void index_pending(sx_sstable_writer *w)
{
    block_add(&w->index, view(&w->last_key), view(&w->pending_handle));
    sx_buf_reset(&w->pending_handle);
}

sx_status sx_sstable_add(sx_sstable_writer *w, sx_bytes key, sx_bytes value)
{
    if (w->entries > 0 && sx_bytes_compare(key, view(&w->last_key)) <= 0) {
        return sx_error(SX_INVALID_ARGUMENT, "table: key \"%.*s\" is not greater than \"%s\"",
                        (int)SX_MIN(key.size, 200u), (const char *)key.data,
                        sx_buf_text(&w->last_key));
    }
    if (key.size + value.size >= 2 * w->block_bytes) {
        SX_TRY(flush(w));
    }
    if (w->pending_handle.size > 0) {
        shorten_to_separator(&w->last_key, key);
        index_pending(w);
    }
    set(&w->last_key, key);
    w->entries++;
    block_add(&w->data, key, value);
    if (block_estimate(&w->data) >= w->block_bytes) {
        SX_TRY(flush(w));
    }
    SX_TRY(sx_buf_status(&w->last_key));
    SX_TRY(sx_buf_status(&w->data.last_key));
    return sx_buf_status(&w->data.contents);
}

sx_status sx_sstable_finish(sx_sstable_writer *w, sx_bytes *out_file)
{
    SX_TRY(flush(w));
    sx_buf footer;
    sx_sstable_block metaindex;
    sx_buf_init(&footer, SX_SSTABLE_FOOTER_BYTES);
    block_init(&metaindex, DATA_RESTART_INTERVAL);
    sx_status status;
    SX_TRY_GOTO(status, block_write(w, &metaindex, &footer), done);
    if (w->pending_handle.size > 0) {
        SX_TRY_GOTO(status, sx_buf_status(&w->last_key), done);
        shorten_to_successor(&w->last_key);
        index_pending(w);
    }
    SX_TRY_GOTO(status, block_write(w, &w->index, &footer), done);
    while (footer.size < SX_SSTABLE_FOOTER_BYTES - sizeof(magic) && footer.failed == 0) {
        sx_buf_putc(&footer, 0);
    }
    sx_buf_append(&footer, magic, sizeof(magic));
    SX_TRY_GOTO(status, sx_buf_status(&footer), done);
    sx_buf_append(&w->file, footer.data, footer.size);
    SX_TRY_GOTO(status, sx_buf_status(&w->file), done);
    *out_file = view(&w->file);
done:
    sx_buf_deinit(&footer);
    block_deinit(&metaindex);
    return status;
}
