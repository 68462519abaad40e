/* Reading tensor bundles: the index is parsed once into sorted entries, tensors are read on demand.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sextant/complex.h>

#include "base/byte_order.h"
#include "base/checked.h"
#include "base/memory.h"
#include "checkpoint/bundle.h"
#include "checkpoint/slice_key.h"
#include "checkpoint/sstable.h"
#include "checkpoint/varint.h"
#include "io/crc32c.h"
#include "io/file.h"
#include "proto/guard.h"
#include "proto/tensor_bundle.pb-c.h"
#include "proto/tensor_value.h"
#include "proto/types.pb-c.h"

enum {
    MAX_INDEX_BYTES = 1 << 28,
    MAX_SHARDS = 1024,
    MAX_ENTRIES = 1 << 22,
    MAX_SLICES = 1 << 12,  /* of a tensor */
    PIECE_BYTES = 1 << 18, /* read and checksummed at a time, so that it stays in the cache */
    READER_VERSION = 1,
};

struct sx_bundle {
    sx_arena arena; /* keys, slices */
    const char *prefix;
    sx_bundle_entry *entries; /* tensors first, sorted; then the pieces, sorted */
    size_t n_entries, capacity;
    size_t n_tensors;
    sx_file **shards;
    int n_shards;
    bool any;          /* the header has been seen */
    sx_budget *memory; /* charged for the entries, as the arena's is for the rest; may be NULL */
};

/* ---- The index ---- */

static sx_status read_header(sx_bundle *b, sx_bytes value)
{
    ProtobufCMessage *message = NULL;
    SX_TRY(sx_proto_unpack(&tensorflow__bundle_header_proto__descriptor, value, NULL, "header",
                           &message));
    const Tensorflow__BundleHeaderProto *header = (const Tensorflow__BundleHeaderProto *)message;
    sx_status status = SX_OK;
    const Tensorflow__VersionDef *version = header->version;
    bool excluded =
        version != NULL && (version->min_consumer > READER_VERSION || version->producer < 0);
    for (size_t i = 0; version != NULL && i < version->n_bad_consumers; i++) {
        excluded |= version->bad_consumers[i] == READER_VERSION;
    }
    if (header->num_shards < 1 || header->num_shards > MAX_SHARDS) {
        status =
            sx_error(SX_DATA_LOSS, "%d shards, expected 1 to %d", header->num_shards, MAX_SHARDS);
    } else if (header->endianness != TENSORFLOW__BUNDLE_HEADER_PROTO__ENDIANNESS__LITTLE) {
        status = sx_error(SX_UNIMPLEMENTED, "big-endian tensors are not supported");
    } else if (excluded) {
        status =
            sx_error(SX_UNIMPLEMENTED, "the format excludes readers of version %d", READER_VERSION);
    }
    b->n_shards = header->num_shards;
    b->any = true;
    sx_proto_free(message);
    return status;
}

/* The type for a stored dtype and shape; dtype SX_DTYPE_NONE if it is not supported. */
static sx_status read_type(const Tensorflow__BundleEntryProto *message, sx_type *out)
{
    sx_type type = {.dtype = (sx_dtype)message->dtype};
    const Tensorflow__TensorShapeProto *shape = message->shape;
    size_t rank = shape == NULL ? 0 : shape->n_dim;
    const bool stored = sx_dtype_is_data(type.dtype) || sx_dtype_is_complex(type.dtype);
    bool known = stored && rank <= SX_MAX_RANK && (shape == NULL || !shape->unknown_rank);
    for (size_t i = 0; known && i < rank; i++) {
        if (shape->dim[i]->size < 0) {
            return sx_error(SX_DATA_LOSS, "dimension %zu is %lld", i,
                            (long long)shape->dim[i]->size);
        }
        type.dims[i] = shape->dim[i]->size;
    }
    type.rank = known ? (int)rank : 0;
    type.dtype = known ? type.dtype : SX_DTYPE_NONE;
    *out = type;
    return SX_OK;
}

static sx_status read_slices(sx_arena *arena, const Tensorflow__BundleEntryProto *message,
                             sx_bundle_entry *e)
{
    if (e->type.rank == 0 || sx_type_bytes(&e->type) < 0 || message->n_slices > MAX_SLICES) {
        return sx_error(
            SX_DATA_LOSS,
            "%zu slices of a tensor of rank %d; expected at most %d, a rank of at least "
            "1 and fewer than 2^63 bytes",
            message->n_slices, e->type.rank, MAX_SLICES);
    }
    sx_bundle_slice *slices = sx_arena_array(arena, message->n_slices, sx_bundle_slice);
    if (slices == NULL) {
        return sx_no_memory("for a bundle");
    }
    for (size_t s = 0; s < message->n_slices; s++) {
        const Tensorflow__TensorSliceProto *slice = message->slices[s];
        if (slice->n_extent != (size_t)e->type.rank) {
            return sx_error(SX_DATA_LOSS, "a slice has rank %zu, its tensor %d", slice->n_extent,
                            e->type.rank);
        }
        for (int d = 0; d < e->type.rank; d++) {
            const Tensorflow__TensorSliceProto__Extent *extent = slice->extent[d];
            bool whole = extent->has_length_case !=
                         TENSORFLOW__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH;
            int64_t end, length = whole ? -1 : extent->length;
            if (!whole && (extent->start < 0 || length < 0 ||
                           !sx_add_i64(extent->start, length, &end) || end > e->type.dims[d])) {
                return sx_error(SX_DATA_LOSS, "a slice is outside dimension %d", d);
            }
            slices[s].start[d] = whole ? 0 : extent->start;
            slices[s].length[d] = length;
        }
    }
    e->slices = slices;
    e->n_slices = message->n_slices;
    return SX_OK;
}

static sx_status fill_entry(sx_bundle *b, const Tensorflow__BundleEntryProto *message,
                            sx_bundle_entry *e)
{
    SX_TRY(read_type(message, &e->type));
    e->tf_dtype = (int)message->dtype;
    e->crc = message->crc32c;
    if (message->n_slices > 0 && e->type.dtype != SX_DTYPE_NONE) {
        return read_slices(&b->arena, message, e);
    }
    if (message->shard_id < 0 || message->shard_id >= b->n_shards || message->offset < 0 ||
        message->size < 0) {
        return sx_error(SX_DATA_LOSS, "shard %d of %d, offset %lld, size %lld", message->shard_id,
                        b->n_shards, (long long)message->offset, (long long)message->size);
    }
    e->shard = message->shard_id;
    e->offset = (uint64_t)message->offset;
    e->size = (uint64_t)message->size;
    int64_t bytes = sx_type_bytes(&e->type);
    bool numeric = e->type.dtype != SX_STRING && e->type.dtype != SX_DTYPE_NONE;
    if (numeric && (bytes < 0 || (uint64_t)bytes != e->size)) {
        char text[SX_TYPE_TEXT];
        return sx_error(SX_DATA_LOSS, "%llu bytes stored for %s", (unsigned long long)e->size,
                        sx_type_format(&e->type, text, sizeof(text)));
    }
    return SX_OK;
}

static sx_status grow_entries(sx_bundle *b)
{
    if (b->n_entries < b->capacity) {
        return SX_OK;
    }
    size_t capacity = b->capacity == 0 ? 64 : 2 * b->capacity;
    const size_t more = (capacity - b->capacity) * sizeof(*b->entries);
    if (capacity > MAX_ENTRIES) {
        return sx_no_memory("for a bundle");
    }
    if (!sx_budget_charge(b->memory, more)) {
        return sx_budget_over(b->memory, "the list of the variables", more);
    }
    void *grown = sx_realloc(b->entries, capacity, sizeof(*b->entries));
    if (grown == NULL) {
        sx_budget_release(b->memory, more);
        return sx_no_memory("for a bundle");
    }
    b->entries = grown;
    b->capacity = capacity;
    return SX_OK;
}

static sx_status visit_entry(void *user, sx_bytes key, sx_bytes value)
{
    sx_bundle *b = user;
    if (key.size == 0) {
        return read_header(b, value);
    }
    if (!b->any) {
        return sx_error(SX_DATA_LOSS, "no header; the first key is \"%.*s\"",
                        (int)SX_MIN(key.size, 200u), (const char *)key.data);
    }
    SX_TRY(grow_entries(b));
    char *copy = sx_arena_alloc(&b->arena, key.size + 1, 1);
    if (copy == NULL) {
        return sx_budget_over(b->memory, "the names of the variables", 0);
    }
    memcpy(copy, key.data, key.size);
    sx_bundle_entry e = {.key = copy, .key_bytes = key.size};
    ProtobufCMessage *message = NULL;
    SX_TRY(sx_proto_unpack(&tensorflow__bundle_entry_proto__descriptor, value, NULL, "entry",
                           &message),
           "\"%s\"", e.key);
    sx_status status = fill_entry(b, (const Tensorflow__BundleEntryProto *)message, &e);
    sx_proto_free(message);
    SX_TRY(status, "entry \"%s\"", e.key);
    b->entries[b->n_entries++] = e;
    return SX_OK;
}

/* Pieces of partitioned tensors have keys that start with a zero byte. */
static bool is_piece(const sx_bundle_entry *e)
{
    return e->key[0] == '\0';
}

/* Pieces sort before every tensor in the table; here tensors come first, so rotate. */
static sx_status tensors_first(sx_bundle *b)
{
    size_t pieces = 0;
    while (pieces < b->n_entries && is_piece(&b->entries[pieces])) {
        pieces++;
    }
    b->n_tensors = b->n_entries - pieces;
    if (pieces == 0 || b->n_tensors == 0) {
        return SX_OK;
    }
    sx_bundle_entry *moved = sx_arena_memdup(&b->arena, b->entries, pieces * sizeof(*moved));
    if (moved == NULL) {
        return sx_no_memory("for a bundle");
    }
    memmove(b->entries, b->entries + pieces, b->n_tensors * sizeof(*b->entries));
    memcpy(b->entries + b->n_tensors, moved, pieces * sizeof(*b->entries));
    return SX_OK;
}

static sx_status parse_index(sx_bundle *b, sx_bytes index)
{
    SX_TRY(sx_sstable_scan(index, MAX_INDEX_BYTES, visit_entry, b));
    if (!b->any) {
        return sx_error(SX_DATA_LOSS, "no header");
    }
    return tensors_first(b);
}

static sx_status read_index(sx_bundle *b, const char *path)
{
    char *data = NULL;
    size_t size = 0;
    struct stat info;
    const size_t charged = b->memory != NULL && stat(path, &info) == 0 && S_ISREG(info.st_mode)
                               ? (size_t)info.st_size
                               : 0;
    if (!sx_budget_charge(b->memory, charged)) {
        return sx_budget_over(b->memory, path, charged);
    }
    sx_status status = sx_file_read(path, MAX_INDEX_BYTES, &data, &size);
    if (status == SX_OK) {
        status = sx_status_annotate(parse_index(b, (sx_bytes){data, size}), __FILE__, __LINE__,
                                    "%s", path);
    }
    sx_free(data);
    sx_budget_release(b->memory, charged);
    return status;
}

static sx_status open_shards(sx_bundle *b)
{
    b->shards = sx_alloc((size_t)b->n_shards, sizeof(sx_file *));
    if (b->shards == NULL) {
        return sx_no_memory("for a bundle");
    }
    for (int i = 0; i < b->n_shards; i++) {
        char *path = sx_arena_printf(&b->arena, "%s.data-%05d-of-%05d", b->prefix, i, b->n_shards);
        if (path == NULL) {
            return sx_no_memory("for a bundle");
        }
        SX_TRY(sx_file_open(path, &b->shards[i]));
    }
    return SX_OK;
}

static sx_status create(const char *prefix, sx_budget *memory, sx_bundle **out)
{
    sx_bundle *b = sx_alloc(1, sizeof(*b));
    if (b == NULL) {
        return sx_no_memory("for a bundle");
    }
    sx_arena_init(&b->arena, 0);
    b->memory = b->arena.budget = memory;
    b->prefix = sx_arena_strdup(&b->arena, prefix);
    if (b->prefix == NULL) {
        sx_bundle_close(b);
        return sx_no_memory("for a bundle");
    }
    *out = b;
    return SX_OK;
}

sx_status sx_bundle_open(const char *prefix, sx_bundle **out_bundle)
{
    return sx_bundle_open_within(prefix, NULL, out_bundle);
}

sx_status sx_bundle_open_within(const char *prefix, sx_budget *memory, sx_bundle **out_bundle)
{
    sx_bundle *b = NULL;
    SX_TRY(create(prefix, memory, &b));
    char *path = sx_arena_printf(&b->arena, "%s.index", prefix);
    sx_status status = path == NULL ? sx_no_memory("for a bundle") : read_index(b, path);
    if (status == SX_OK) {
        status = open_shards(b);
    }
    if (status != SX_OK) {
        sx_bundle_close(b);
        return sx_status_annotate(status, __FILE__, __LINE__, "opening checkpoint %s", prefix);
    }
    *out_bundle = b;
    return SX_OK;
}

sx_status sx_bundle_open_index(sx_bytes index, sx_bundle **out_bundle)
{
    sx_bundle *b = NULL;
    SX_TRY(create("", NULL, &b));
    sx_status status = parse_index(b, index);
    if (status != SX_OK) {
        sx_bundle_close(b);
        return status;
    }
    *out_bundle = b;
    return SX_OK;
}

void sx_bundle_close(sx_bundle *b)
{
    if (b == NULL) {
        return;
    }
    for (int i = 0; b->shards != NULL && i < b->n_shards; i++) {
        sx_file_close(b->shards[i]);
    }
    sx_free(b->shards);
    sx_free(b->entries);
    sx_budget_release(b->memory, b->capacity * sizeof(*b->entries));
    sx_arena_deinit(&b->arena);
    sx_free(b);
}

size_t sx_bundle_count(const sx_bundle *b)
{
    return b->n_tensors;
}

const sx_bundle_entry *sx_bundle_at(const sx_bundle *b, size_t i)
{
    return &b->entries[i];
}

static const sx_bundle_entry *find_in(const sx_bundle_entry *entries, size_t n, sx_bytes key)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = sx_bytes_compare(key, (sx_bytes){entries[mid].key, entries[mid].key_bytes});
        if (order == 0) {
            return &entries[mid];
        }
        if (order < 0) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return NULL;
}

const sx_bundle_entry *sx_bundle_find(const sx_bundle *b, const char *key)
{
    return find_in(b->entries, b->n_tensors, (sx_bytes){key, strlen(key)});
}

/* ---- Tensors ---- */

static sx_status check_sum(uint32_t crc, uint32_t stored)
{
    if (sx_crc32c_mask(crc) != stored) {
        return sx_error(SX_DATA_LOSS, "wrong checksum: the data shard is corrupt");
    }
    return SX_OK;
}

/* Reads the bytes of a numeric entry into `out`, or, if that is NULL, only checks them. */
static sx_status read_bytes(const sx_bundle *b, const sx_bundle_entry *e, uint8_t *out)
{
    uint8_t *scratch = out == NULL ? sx_alloc(PIECE_BYTES, 1) : NULL;
    if (out == NULL && scratch == NULL) {
        return sx_no_memory("for a bundle");
    }
    uint32_t crc = 0;
    sx_status status = SX_OK;
    for (uint64_t done = 0; done < e->size && status == SX_OK; done += PIECE_BYTES) {
        size_t n = (size_t)SX_MIN((uint64_t)PIECE_BYTES, e->size - done);
        uint8_t *piece = out == NULL ? scratch : out + done;
        status = sx_file_read_at(b->shards[e->shard], e->offset + done, piece, n);
        crc = status == SX_OK ? sx_crc32c(crc, piece, n) : 0;
    }
    sx_free(scratch);
    SX_TRY(status);
    return check_sum(crc, e->crc);
}

/* Copies a piece (dense, shape `length`) into its place in the whole tensor. Rows of the last
 * dimension are contiguous in both. */
static void scatter(const sx_type *whole, const int64_t *start, const int64_t *length,
                    size_t elem_bytes, const uint8_t *piece, uint8_t *out)
{
    int rank = whole->rank;
    int64_t at[SX_MAX_RANK] = {0};
    size_t row = (size_t)length[rank - 1] * elem_bytes;
    for (;;) {
        int64_t offset = 0;
        for (int d = 0; d < rank; d++) {
            offset = offset * whole->dims[d] + start[d] + (d == rank - 1 ? 0 : at[d]);
        }
        memcpy(out + (size_t)offset * elem_bytes, piece, row);
        piece += row;
        int d = rank - 2;
        while (d >= 0 && ++at[d] == length[d]) {
            at[d--] = 0;
        }
        if (d < 0) {
            return;
        }
    }
}

/* "[4:7,0:5]" */
static const char *slice_text(const sx_bundle_slice *slice, int rank, char *text, size_t size)
{
    size_t used = 0;
    for (int d = 0; d < rank && used < size; d++) {
        used += (size_t)snprintf(text + used, size - used, "%s%lld:%lld", d == 0 ? "[" : ",",
                                 (long long)slice->start[d],
                                 (long long)(slice->start[d] + slice->length[d]));
    }
    if (used + 2 <= size) {
        memcpy(text + used, "]", 2);
    }
    return text;
}

enum { SLICE_TEXT = 40 * SX_MAX_RANK + 8 };

/* The slice with its lengths filled in, and the entry that stores it. */
static sx_status find_piece(const sx_bundle *b, const sx_bundle_entry *whole, size_t i,
                            sx_bundle_slice *out_slice, const sx_bundle_entry **out_piece)
{
    sx_buf key;
    sx_buf_init(&key, 1 << 20);
    *out_slice = whole->slices[i];
    sx_slice_key(&key, whole->key, whole->type.rank, out_slice->start, out_slice->length);
    sx_status status = sx_buf_status(&key);
    const sx_bundle_entry *e = status != SX_OK
                                   ? NULL
                                   : find_in(b->entries + b->n_tensors, b->n_entries - b->n_tensors,
                                             (sx_bytes){sx_buf_text(&key), key.size});
    sx_buf_deinit(&key);
    SX_TRY(status);
    for (int d = 0; d < whole->type.rank; d++) {
        if (out_slice->length[d] < 0) {
            out_slice->length[d] = whole->type.dims[d];
        }
    }
    char text[SLICE_TEXT], stored[SX_TYPE_TEXT];
    sx_type type = sx_type_make(whole->type.dtype, whole->type.rank, out_slice->length);
    if (e == NULL) {
        return sx_error(SX_DATA_LOSS, "slice %s is missing from the checkpoint",
                        slice_text(out_slice, type.rank, text, sizeof(text)));
    }
    if (e->n_slices > 0 || !sx_type_equal(&e->type, &type)) {
        return sx_error(SX_DATA_LOSS, "slice %s is stored as %s",
                        slice_text(out_slice, type.rank, text, sizeof(text)),
                        sx_type_format(&e->type, stored, sizeof(stored)));
    }
    *out_piece = e;
    return SX_OK;
}

static bool overlap(const sx_bundle_slice *a, const sx_bundle_slice *b, int rank)
{
    for (int d = 0; d < rank; d++) {
        int64_t first = SX_MAX(a->start[d], b->start[d]);
        int64_t end = SX_MIN(a->start[d] + a->length[d], b->start[d] + b->length[d]);
        if (first >= end) {
            return false;
        }
    }
    return true;
}

/* Checks that all slices exist and that they cover the tensor, each element once. */
static sx_status check_pieces(const sx_bundle *b, const sx_bundle_entry *e)
{
    int64_t covered = 0, total = sx_type_elems(&e->type);
    const sx_bundle_entry *piece;
    sx_bundle_slice slice, other;
    for (size_t i = 0; i < e->n_slices; i++) {
        SX_TRY(find_piece(b, e, i, &slice, &piece));
        for (size_t k = 0; k < i; k++) {
            other = e->slices[k];
            for (int d = 0; d < e->type.rank; d++) {
                other.length[d] = other.length[d] < 0 ? e->type.dims[d] : other.length[d];
            }
            if (overlap(&slice, &other, e->type.rank)) {
                char x[SLICE_TEXT], y[SLICE_TEXT];
                return sx_error(SX_DATA_LOSS, "slices %s and %s overlap",
                                slice_text(&other, e->type.rank, x, sizeof(x)),
                                slice_text(&slice, e->type.rank, y, sizeof(y)));
            }
        }
        covered += sx_type_elems(&piece->type);
    }
    if (covered != total) {
        return sx_error(SX_DATA_LOSS, "its slices hold %lld of %lld elements", (long long)covered,
                        (long long)total);
    }
    return SX_OK;
}

static sx_status read_pieces(const sx_bundle *b, const sx_bundle_entry *e, uint8_t *out)
{
    SX_TRY(check_pieces(b, e));
    for (size_t i = 0; i < e->n_slices; i++) {
        const sx_bundle_entry *piece;
        sx_bundle_slice slice;
        SX_TRY(find_piece(b, e, i, &slice, &piece));
        if (piece->size == 0) {
            continue;
        }
        uint8_t *bytes = sx_alloc(piece->size, 1);
        if (bytes == NULL) {
            return sx_no_memory("for a bundle");
        }
        sx_status status = read_bytes(b, piece, bytes);
        if (status == SX_OK) {
            scatter(&e->type, slice.start, slice.length, sx_dtype_bytes(e->type.dtype), bytes, out);
        }
        sx_free(bytes);
        SX_TRY(status);
    }
    return SX_OK;
}

static sx_status find_for_read(const sx_bundle *b, const char *key, const sx_bundle_entry **out)
{
    *out = sx_bundle_find(b, key);
    if (*out == NULL) {
        return sx_error(SX_NOT_FOUND, "checkpoint %s has no tensor \"%s\"", b->prefix, key);
    }
    if ((*out)->type.dtype == SX_DTYPE_NONE) {
        char text[SX_TF_DTYPE_TEXT];
        return sx_error(SX_UNIMPLEMENTED,
                        "checkpoint %s: tensor \"%s\" is %s or has more than %d dimensions, which "
                        "is not supported",
                        b->prefix, key, sx_tf_dtype_text((*out)->tf_dtype, text), SX_MAX_RANK);
    }
    return SX_OK;
}

sx_status sx_bundle_read(const sx_bundle *b, const char *key, const sx_type *type, void *out)
{
    const sx_bundle_entry *e = NULL;
    SX_TRY(find_for_read(b, key, &e));
    if (!sx_type_equal(&e->type, type) || type->dtype == SX_STRING) {
        char stored[SX_TYPE_TEXT], wanted[SX_TYPE_TEXT];
        return sx_error(SX_FAILED_PRECONDITION, "checkpoint %s: tensor \"%s\" is %s, expected %s",
                        b->prefix, key, sx_type_format(&e->type, stored, sizeof(stored)),
                        sx_type_format(type, wanted, sizeof(wanted)));
    }
    SX_TRY(e->n_slices > 0 ? read_pieces(b, e, out) : read_bytes(b, e, out),
           "checkpoint %s: tensor \"%s\"", b->prefix, key);
    return SX_OK;
}

/* Splits stored strings into views of `raw`, checking both checksums. */
static sx_status split_strings(const sx_bundle_entry *e, const uint8_t *raw, sx_bytes *out,
                               size_t n)
{
    sx_span in = {raw, raw + e->size};
    uint32_t crc = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t length;
        if (!sx_span_varint(&in, 64, &length) || length > sx_span_left(&in)) {
            return sx_error(SX_DATA_LOSS, "invalid length of string %zu", i);
        }
        uint8_t fixed[8];
        sx_store_le32(fixed, (uint32_t)length);
        sx_store_le32(fixed + 4, (uint32_t)(length >> 32));
        crc = sx_crc32c(crc, fixed, length > UINT32_MAX ? 8 : 4);
        out[i].size = (size_t)length;
    }
    if (sx_span_left(&in) < 4 || sx_load_le32(in.at) != sx_crc32c_mask(crc)) {
        return sx_error(SX_DATA_LOSS,
                        "wrong checksum of the string lengths: the data shard is corrupt");
    }
    SX_TRY(check_sum(sx_crc32c(crc, in.at, sx_span_left(&in)), e->crc));
    in.at += 4;
    for (size_t i = 0; i < n; i++) {
        if (out[i].size > sx_span_left(&in)) {
            return sx_error(SX_DATA_LOSS, "string %zu is truncated", i);
        }
        out[i].data = in.at;
        in.at += out[i].size;
    }
    return in.at == in.end ? SX_OK : sx_error(SX_DATA_LOSS, "extra bytes after the strings");
}

static sx_status read_strings(const sx_bundle *b, const sx_bundle_entry *e, sx_arena *arena,
                              sx_bytes **out)
{
    int64_t n = sx_type_elems(&e->type);
    /* Each string takes at least one byte, so a count above the size is invalid; so is a size above
     * the file's. */
    if (n < 0 || (uint64_t)n > e->size || e->size > sx_file_size(b->shards[e->shard])) {
        return sx_error(SX_DATA_LOSS, "%lld strings in %llu bytes", (long long)n,
                        (unsigned long long)e->size);
    }
    uint8_t *raw = sx_arena_alloc(arena, e->size + 1, 1);
    sx_bytes *views = sx_arena_array(arena, n + 1, sx_bytes);
    if (raw == NULL || views == NULL) {
        return sx_no_memory("for a bundle");
    }
    SX_TRY(sx_file_read_at(b->shards[e->shard], e->offset, raw, e->size));
    SX_TRY(split_strings(e, raw, views, (size_t)n));
    *out = views;
    return SX_OK;
}

sx_status sx_bundle_read_strings(const sx_bundle *b, const char *key, sx_arena *arena,
                                 sx_tensor *out_tensor)
{
    const sx_bundle_entry *e = NULL;
    SX_TRY(find_for_read(b, key, &e));
    if (e->type.dtype != SX_STRING || e->n_slices > 0) {
        char text[SX_TYPE_TEXT];
        return sx_error(SX_FAILED_PRECONDITION,
                        "checkpoint %s: tensor \"%s\" is %s, expected strings", b->prefix, key,
                        sx_type_format(&e->type, text, sizeof(text)));
    }
    sx_bytes *views = NULL;
    SX_TRY(read_strings(b, e, arena, &views), "checkpoint %s: tensor \"%s\"", b->prefix, key);
    *out_tensor = (sx_tensor){e->type, views};
    return SX_OK;
}

static sx_status verify_entry(const sx_bundle *b, const sx_bundle_entry *e)
{
    bool variant = e->tf_dtype == TENSORFLOW__DATA_TYPE__DT_VARIANT; /* has its own checksum rule */
    if (e->n_slices > 0) { /* its slices are checked as separate entries */
        return check_pieces(b, e);
    }
    if (variant) {
        return SX_OK;
    }
    if (e->type.dtype != SX_STRING) {
        return read_bytes(b, e, NULL);
    }
    sx_arena arena;
    sx_arena_init(&arena, 0);
    sx_bytes *views = NULL;
    sx_status status = read_strings(b, e, &arena, &views);
    sx_arena_deinit(&arena);
    return status;
}

sx_status sx_bundle_verify(const sx_bundle *b)
{
    for (size_t i = 0; i < b->n_entries; i++) {
        const sx_bundle_entry *e = &b->entries[i];
        SX_TRY(verify_entry(b, e), "checkpoint %s: tensor \"%s\"", b->prefix, e->key);
    }
    return SX_OK;
}
