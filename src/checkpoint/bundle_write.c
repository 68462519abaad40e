/* Writing tensor bundles. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/checked.h"
#include "base/memory.h"
#include "checkpoint/bundle.h"
#include "checkpoint/sstable.h"
#include "checkpoint/varint.h"
#include "io/commit.h"
#include "io/crc32c.h"
#include "proto/tensor_bundle.pb-c.h"

enum { MAX_ENTRIES = 1 << 22, BUNDLE_VERSION = 1 };

struct entry {
    const char *key;
    sx_type type;
    uint64_t offset, size;
    uint32_t crc; /* masked */
};

struct sx_bundle_writer {
    sx_arena arena; /* keys */
    char *prefix;
    sx_commit *commit;
    sx_commit_file *data;
    struct entry *entries; /* in order of addition; sorted by finish */
    size_t n_entries, capacity;
};

/* Writes bytes to the data file and updates their checksum. */
struct sink {
    sx_commit_file *file;
    uint32_t crc;
};

static sx_status sink_put(struct sink *sink, const void *data, size_t size)
{
    sink->crc = sx_crc32c(sink->crc, data, size);
    return sx_commit_write(sink->file, data, size);
}

sx_status sx_bundle_writer_create(const char *prefix, sx_bundle_writer **out_writer)
{
    sx_bundle_writer *w = sx_alloc(1, sizeof(*w));
    if (w == NULL) {
        return sx_no_memory("for a bundle");
    }
    sx_arena_init(&w->arena, 0);
    w->prefix = sx_arena_strdup(&w->arena, prefix);
    char *path = sx_arena_printf(&w->arena, "%s.data-00000-of-00001", prefix);
    sx_status status = w->prefix == NULL || path == NULL ? sx_no_memory("for a bundle") : SX_OK;
    if (status == SX_OK) {
        status = sx_commit_create(&w->commit);
    }
    if (status == SX_OK) {
        status = sx_commit_add(w->commit, path, &w->data);
    }
    if (status != SX_OK) {
        sx_bundle_writer_destroy(w);
        return status;
    }
    *out_writer = w;
    return SX_OK;
}

void sx_bundle_writer_destroy(sx_bundle_writer *w)
{
    if (w == NULL) {
        return;
    }
    sx_commit_destroy(w->commit);
    sx_free(w->entries);
    sx_arena_deinit(&w->arena);
    sx_free(w);
}

static sx_status add_entry(sx_bundle_writer *w, const char *key, struct entry entry)
{
    if (w->n_entries == w->capacity) {
        size_t capacity = w->capacity == 0 ? 64 : 2 * w->capacity;
        struct entry *grown =
            capacity > MAX_ENTRIES ? NULL : sx_realloc(w->entries, capacity, sizeof(*grown));
        if (grown == NULL) {
            return sx_no_memory("for a bundle");
        }
        w->entries = grown;
        w->capacity = capacity;
    }
    entry.key = sx_arena_strdup(&w->arena, key);
    if (entry.key == NULL) {
        return sx_no_memory("for a bundle");
    }
    w->entries[w->n_entries++] = entry;
    return SX_OK;
}

/* The lengths, their checksum, the bytes. The checksum covers each length as 4 bytes (8 if needed),
 * not as the stored varint. */
static sx_status put_strings(struct sink *sink, const sx_bytes *strings, size_t n)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t varint[SX_VARINT_MAX_BYTES], fixed[8];
        sx_store_le32(fixed, (uint32_t)strings[i].size);
        sx_store_le32(fixed + 4, (uint32_t)((uint64_t)strings[i].size >> 32));
        crc = sx_crc32c(crc, fixed, strings[i].size > UINT32_MAX ? 8 : 4);
        SX_TRY(sx_commit_write(sink->file, varint, sx_varint_put(varint, strings[i].size)));
    }
    uint8_t sum[4];
    sx_store_le32(sum, sx_crc32c_mask(crc));
    sink->crc = crc;
    SX_TRY(sink_put(sink, sum, sizeof(sum)));
    for (size_t i = 0; i < n; i++) {
        SX_TRY(sink_put(sink, strings[i].data, strings[i].size));
    }
    return SX_OK;
}

/* In pieces small enough to stay in the cache between the checksum and the copy. */
static sx_status put_numbers(struct sink *sink, const uint8_t *data, size_t size)
{
    const size_t piece = 1 << 18;
    for (size_t done = 0; done < size; done += piece) {
        SX_TRY(sink_put(sink, data + done, SX_MIN(piece, size - done)));
    }
    return SX_OK;
}

sx_status sx_bundle_add(sx_bundle_writer *w, const char *key, const sx_tensor *tensor)
{
    bool strings = tensor->type.dtype == SX_STRING;
    int64_t elems = sx_type_elems(&tensor->type);
    int64_t bytes = strings ? 0 : sx_type_bytes(&tensor->type);
    if (*key == '\0' || elems < 0 || bytes < 0) {
        char text[SX_TYPE_TEXT];
        return sx_error(SX_INVALID_ARGUMENT, "bundle: tensor \"%s\" of type %s cannot be stored",
                        key, sx_type_format(&tensor->type, text, sizeof(text)));
    }
    struct sink sink = {.file = w->data};
    uint64_t offset = sx_commit_offset(w->data);
    if (strings) {
        SX_TRY(put_strings(&sink, tensor->data, (size_t)elems), "writing \"%s\"", key);
    } else {
        SX_TRY(put_numbers(&sink, tensor->data, (size_t)bytes), "writing \"%s\"", key);
    }
    return add_entry(w, key,
                     (struct entry){.type = tensor->type,
                                    .offset = offset,
                                    .size = sx_commit_offset(w->data) - offset,
                                    .crc = sx_crc32c_mask(sink.crc)});
}

sx_status sx_bundle_alias(sx_bundle_writer *w, const char *key, const char *existing)
{
    /* Newest first: an alias is usually added right after its tensor. */
    for (size_t i = w->n_entries; i-- > 0;) {
        if (strcmp(w->entries[i].key, existing) == 0) {
            return add_entry(w, key, w->entries[i]);
        }
    }
    return sx_error(SX_NOT_FOUND, "bundle: \"%s\" does not exist; \"%s\" cannot be an alias of it",
                    existing, key);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->key, ((const struct entry *)b)->key);
}

static sx_status put_header(sx_sstable_writer *table)
{
    Tensorflow__VersionDef version = TENSORFLOW__VERSION_DEF__INIT;
    Tensorflow__BundleHeaderProto header = TENSORFLOW__BUNDLE_HEADER_PROTO__INIT;
    uint8_t packed[16];
    version.producer = BUNDLE_VERSION;
    header.num_shards = 1;
    header.version = &version;
    size_t size = tensorflow__bundle_header_proto__pack(&header, packed);
    return sx_sstable_add(table, (sx_bytes){"", 0}, (sx_bytes){packed, size});
}

static sx_status put_entry(sx_sstable_writer *table, const struct entry *entry)
{
    Tensorflow__TensorShapeProto__Dim dims[SX_MAX_RANK], *list[SX_MAX_RANK];
    Tensorflow__TensorShapeProto shape = TENSORFLOW__TENSOR_SHAPE_PROTO__INIT;
    Tensorflow__BundleEntryProto message = TENSORFLOW__BUNDLE_ENTRY_PROTO__INIT;
    uint8_t packed[256]; /* at most 8 dims of 13 bytes and 40 bytes of numbers */
    for (int i = 0; i < entry->type.rank; i++) {
        tensorflow__tensor_shape_proto__dim__init(&dims[i]);
        dims[i].size = entry->type.dims[i];
        list[i] = &dims[i];
    }
    shape.n_dim = (size_t)entry->type.rank;
    shape.dim = list;
    message.dtype = (Tensorflow__DataType)entry->type.dtype;
    message.shape = &shape;
    message.offset = (int64_t)entry->offset;
    message.size = (int64_t)entry->size;
    message.crc32c = entry->crc;
    size_t size = tensorflow__bundle_entry_proto__pack(&message, packed);
    return sx_sstable_add(table, (sx_bytes){entry->key, strlen(entry->key)},
                          (sx_bytes){packed, size});
}

static sx_status build_index(sx_bundle_writer *w, sx_sstable_writer *table, sx_bytes *out_file)
{
    if (w->n_entries > 0) {
        qsort(w->entries, w->n_entries, sizeof(*w->entries), by_key);
    }
    SX_TRY(put_header(table));
    for (size_t i = 0; i < w->n_entries; i++) {
        if (i > 0 && by_key(&w->entries[i - 1], &w->entries[i]) == 0) {
            return sx_error(SX_ALREADY_EXISTS, "bundle: key \"%s\" was added twice",
                            w->entries[i].key);
        }
        SX_TRY(put_entry(table, &w->entries[i]));
    }
    return sx_sstable_finish(table, out_file);
}

sx_status sx_bundle_writer_finish(sx_bundle_writer *w)
{
    sx_sstable_writer table;
    sx_sstable_writer_init(&table, 0);
    sx_bytes file = {0};
    sx_commit_file *index = NULL;
    char *path = sx_arena_printf(&w->arena, "%s.index", w->prefix);
    sx_status status = path == NULL ? sx_no_memory("for a bundle") : build_index(w, &table, &file);
    if (status == SX_OK) {
        status = sx_commit_add(w->commit, path, &index);
    }
    if (status == SX_OK) {
        status = sx_commit_write(index, file.data, file.size);
    }
    if (status == SX_OK) {
        status = sx_commit_finish(w->commit);
    }
    sx_sstable_writer_deinit(&table);
    return status;
}
