/* Tensor bundles: named tensors on disk, TensorFlow's checkpoint format V2.
 *
 *   P.data-00000-of-00001   the tensors' bytes, concatenated; readers accept any number of shards
 *   P.index                 sorted string table: "" -> BundleHeaderProto,
 *                                                key -> BundleEntryProto
 *
 *   numeric   row-major little-endian elements
 *   strings   varint64 length each | masked CRC of the lengths, uint32 LE | the bytes of all
 *
 * Invariants: `.index` is renamed into place last, so a bundle with an index is complete; every
 * entry has the CRC32C of its bytes, checked on every read. Several keys may refer to the same
 * bytes.
 *
 * The writer streams: each tensor is written to the file when it is added; only its entry stays in
 * memory. */
#ifndef SX_CHECKPOINT_BUNDLE_H
#define SX_CHECKPOINT_BUNDLE_H

#include "base/arena.h"

/* ---- Writing: create -> add, alias … -> finish -> destroy; destroy without finish abandons ----
 */

typedef struct sx_bundle_writer sx_bundle_writer;

/* Starts a bundle whose files will be `prefix`.index and so on; the directory must exist. */
SX_MUST_USE sx_status sx_bundle_writer_create(const char *prefix, sx_bundle_writer **out_writer);
void sx_bundle_writer_destroy(sx_bundle_writer *w); /* NULL is allowed */

/* Writes a tensor, in any order of keys. `tensor` is borrowed for the call; strings are sx_bytes.
 * INVALID_ARGUMENT: an empty key, a shape that is not static. */
SX_MUST_USE sx_status sx_bundle_add(sx_bundle_writer *w, const char *key, const sx_tensor *tensor);

/* Makes `key` a second name of the tensor added as `existing` (NOT_FOUND if there is none). */
SX_MUST_USE sx_status sx_bundle_alias(sx_bundle_writer *w, const char *key, const char *existing);

/* Commits: all or nothing. ALREADY_EXISTS names a key that was added twice. Over an existing bundle
 * of the same prefix, the files are replaced one by one; a crash in between leaves a bundle that
 * fails its checksums. */
SX_MUST_USE sx_status sx_bundle_writer_finish(sx_bundle_writer *w);

/* ---- Reading ---- */

typedef struct sx_bundle sx_bundle;

/* The index entry of a tensor. */
typedef struct sx_bundle_entry {
    const char *key;
    size_t key_bytes;
    sx_type type; /* dtype SX_DTYPE_NONE: an unsupported type or rank; cannot be read */
    int tf_dtype; /* DataType number as stored */
    int shard;
    uint64_t offset, size;
    uint32_t crc;                         /* masked */
    const struct sx_bundle_slice *slices; /* [n_slices]: stored in slices, each under its own key */
    size_t n_slices;
} sx_bundle_entry;

/* The part [start, start + length) of each dimension. */
typedef struct sx_bundle_slice {
    int64_t start[SX_MAX_RANK], length[SX_MAX_RANK];
} sx_bundle_slice;

/* Opens the bundle and reads its index; the data shards are opened, not read. NOT_FOUND: no such
 * index or shard. DATA_LOSS: a corrupt index. UNIMPLEMENTED: big-endian tensors, a format version
 * that excludes this reader. */
SX_MUST_USE sx_status sx_bundle_open(const char *prefix, sx_bundle **out_bundle);
/* The same; what is held in memory is charged to `memory`, which must outlive the bundle.
 * RESOURCE_EXHAUSTED: beyond its limit. */
SX_MUST_USE sx_status sx_bundle_open_within(const char *prefix, sx_budget *memory,
                                            sx_bundle **out_bundle);
/* The same from an index in memory, without shards: tensors can be listed but not read. */
SX_MUST_USE sx_status sx_bundle_open_index(sx_bytes index, sx_bundle **out_bundle);
void sx_bundle_close(sx_bundle *bundle); /* NULL is allowed */

/* Tensors, sorted by key; the slices of partitioned tensors are not listed. Borrowed. */
size_t sx_bundle_count(const sx_bundle *bundle);
const sx_bundle_entry *sx_bundle_at(const sx_bundle *bundle, size_t i);
const sx_bundle_entry *sx_bundle_find(const sx_bundle *bundle,
                                      const char *key); /* NULL if absent */

/* Reads a numeric tensor of exactly `type` into out[sx_type_bytes(type)]; thread-safe. NOT_FOUND:
 * no such key. FAILED_PRECONDITION: another dtype or shape; the message names both. DATA_LOSS:
 * wrong checksum, truncated; `out` is then undefined. */
SX_MUST_USE sx_status sx_bundle_read(const sx_bundle *bundle, const char *key, const sx_type *type,
                                     void *out);
/* Reads a string tensor; the sx_bytes and their bytes live in `arena`. */
SX_MUST_USE sx_status sx_bundle_read_strings(const sx_bundle *bundle, const char *key,
                                             sx_arena *arena, sx_tensor *out_tensor);

/* Reads all bytes of all tensors and checks them. */
SX_MUST_USE sx_status sx_bundle_verify(const sx_bundle *bundle);

#endif
