/* Sorted string tables: the container of a checkpoint's `.index` file.
 *
 *   data block* | metaindex block (empty) | index block | footer, 48 bytes
 *
 *   block    contents | type: 0 raw, 1 Snappy | masked CRC32C of contents and type, uint32 LE
 *   contents entry* | restart offsets, uint32 LE each | their number, uint32 LE
 *   entry    varint32 shared, unshared, value length | unshared key bytes | value
 *   index    one entry per data block: a key >= its last and < the next one's first -> handle
 *   handle   varint64 offset, varint64 size without the 5-byte trailer
 *   footer   metaindex handle, index handle, zeros up to 40 bytes, magic 0xdb4775248b80fb57 LE
 *
 * Invariants: keys strictly ascend, compared as unsigned bytes; at a restart point (every 16th
 * entry of a data block, every entry of the index) `shared` is 0. The writer follows TensorFlow's
 * rules to the byte and writes raw blocks; the reader accepts both types and checks everything.
 *
 * Sources: google/leveldb doc/table_format.md; tensorflow/tensorflow core/lib/io/table_builder.cc.
 */
#ifndef SX_CHECKPOINT_SSTABLE_H
#define SX_CHECKPOINT_SSTABLE_H

#include "base/buffer.h"

enum {
    SX_SSTABLE_BLOCK_BYTES = 262144, /* a data block is closed when its estimate reaches this */
    SX_SSTABLE_FOOTER_BYTES = 48,
};

/* The block under construction. */
typedef struct sx_sstable_block {
    sx_buf contents;
    sx_buf restarts; /* uint32 LE each */
    sx_buf last_key;
    int interval; /* entries from one restart point to the next */
    int since_restart;
} sx_sstable_block;

/* A table being written, in memory: indexes are small beside their tensors. */
typedef struct sx_sstable_writer {
    sx_buf file;
    sx_sstable_block data, index;
    sx_buf pending_handle; /* of a closed data block whose index key waits for the next key */
    sx_buf last_key;
    size_t block_bytes;
    size_t entries;
} sx_sstable_writer;

/* `block_bytes` 0 means SX_SSTABLE_BLOCK_BYTES. Always succeeds; deinit in any state. */
void sx_sstable_writer_init(sx_sstable_writer *w, size_t block_bytes);
void sx_sstable_writer_deinit(sx_sstable_writer *w);

/* Appends an entry; both views are copied. INVALID_ARGUMENT unless `key` is greater than the
 * previous one. */
SX_MUST_USE sx_status sx_sstable_add(sx_sstable_writer *w, sx_bytes key, sx_bytes value);

/* Closes the table. The bytes are the writer's, valid until its deinit; nothing may be added after.
 */
SX_MUST_USE sx_status sx_sstable_finish(sx_sstable_writer *w, sx_bytes *out_file);

/* Called for each entry in order; the views are valid during the call only. An error ends the scan
 * and is returned. */
typedef sx_status sx_sstable_visit_fn(void *user, sx_bytes key, sx_bytes value);

/* Scans a whole table.
 *
 *   file          the table's bytes, borrowed
 *   unpack_limit  maximum unpacked bytes of all Snappy blocks together
 *
 * DATA_LOSS: a wrong size, handle, checksum or order; the message has the block's offset.
 * UNIMPLEMENTED: an unknown block type. RESOURCE_EXHAUSTED: more unpacked bytes than
 * `unpack_limit`, or a key above 1 MiB. */
SX_MUST_USE sx_status sx_sstable_scan(sx_bytes file, size_t unpack_limit,
                                      sx_sstable_visit_fn *visit, void *user);

#endif
