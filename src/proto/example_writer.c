#include "proto/example.h"

#include <limits.h>
#include <stdlib.h>

#include "base/memory.h"
#include "proto/wire.h"

/* Names and values are stored as offsets because the buffers move when they grow. */
struct sx_example_entry {
    size_t name_at, name_size;
    size_t value_at, value_size; /* the Feature message */
    const char *names;           /* set for sorting */
};

/* The one-byte tag of a length-delimited field with a number below 16. */
#define BYTES_TAG(number) ((uint8_t)((number) << 3 | SX_WIRE_BYTES))

void sx_example_writer_init(sx_example_writer *writer)
{
    *writer = (sx_example_writer){0};
    sx_buf_init(&writer->names, 1 << 26);
    sx_buf_init(&writer->values, INT_MAX);
}

void sx_example_writer_deinit(sx_example_writer *writer)
{
    sx_buf_deinit(&writer->names);
    sx_buf_deinit(&writer->values);
    sx_free(writer->entries);
    sx_status_free(writer->status);
    *writer = (sx_example_writer){0};
}

static void put_head(sx_buf *out, int number, size_t size)
{
    uint8_t head[1 + SX_WIRE_MAX_VARINT] = {BYTES_TAG(number)};
    sx_buf_append(out, head, 1 + sx_wire_put_varint(head + 1, size));
}

/* tag + size + content */
static size_t delimited_size(size_t size)
{
    return 1 + sx_wire_varint_size(size) + size;
}

static void keep(sx_example_writer *writer, sx_status status)
{
    if (writer->status == SX_OK) {
        writer->status = status;
    } else {
        sx_status_free(status);
    }
}

/* Adds an entry; NULL after a failure. */
static struct sx_example_entry *begin(sx_example_writer *writer, const char *name)
{
    if (writer->status != SX_OK) {
        return NULL;
    }
    if (writer->count == writer->capacity) {
        size_t capacity = writer->capacity == 0 ? 16 : 2 * writer->capacity;
        struct sx_example_entry *entries =
            writer->count < SX_EXAMPLE_MAX_FEATURES
                ? sx_realloc(writer->entries, capacity, sizeof *entries)
                : NULL;
        if (entries == NULL) {
            keep(writer, sx_no_memory("for feature '%s'", name));
            return NULL;
        }
        writer->entries = entries;
        writer->capacity = capacity;
    }
    struct sx_example_entry *entry = &writer->entries[writer->count++];
    *entry =
        (struct sx_example_entry){writer->names.size, strlen(name), writer->values.size, 0, NULL};
    sx_buf_append(&writer->names, name, entry->name_size);
    return entry;
}

static void end(sx_example_writer *writer, struct sx_example_entry *entry)
{
    entry->value_size = writer->values.size - entry->value_at;
}

void sx_example_add_bytes(sx_example_writer *writer, const char *name, const sx_bytes *values,
                          size_t count)
{
    struct sx_example_entry *entry = begin(writer, name);
    if (entry == NULL) {
        return;
    }
    size_t list = 0;
    for (size_t i = 0; i < count; i++) {
        list += delimited_size(values[i].size);
    }
    put_head(&writer->values, SX_FEATURE_BYTES, list);
    for (size_t i = 0; i < count; i++) {
        put_head(&writer->values, 1, values[i].size);
        sx_buf_append(&writer->values, values[i].data, values[i].size);
    }
    end(writer, entry);
}

/* Writes the tags and sizes before a packed list: of the Feature and, unless empty, of the list. */
static void put_packed_heads(sx_buf *out, sx_feature_kind kind, size_t size)
{
    put_head(out, (int)kind, size == 0 ? 0 : delimited_size(size));
    if (size != 0) {
        put_head(out, 1, size);
    }
}

void sx_example_add_floats(sx_example_writer *writer, const char *name, const float *values,
                           size_t count)
{
    struct sx_example_entry *entry = begin(writer, name);
    if (entry == NULL) {
        return;
    }
    if (count > INT_MAX / sizeof *values) {
        keep(writer, sx_error(SX_RESOURCE_EXHAUSTED, "feature '%s' has too many values", name));
        return;
    }
    put_packed_heads(&writer->values, SX_FEATURE_FLOATS, count * sizeof *values);
    sx_buf_append(&writer->values, values, count * sizeof *values);
    end(writer, entry);
}

void sx_example_add_ints(sx_example_writer *writer, const char *name, const int64_t *values,
                         size_t count)
{
    struct sx_example_entry *entry = begin(writer, name);
    if (entry == NULL) {
        return;
    }
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += sx_wire_varint_size((uint64_t)values[i]);
    }
    put_packed_heads(&writer->values, SX_FEATURE_INTS, size);
    for (size_t i = 0; i < count; i++) {
        uint8_t varint[SX_WIRE_MAX_VARINT];
        sx_buf_append(&writer->values, varint, sx_wire_put_varint(varint, (uint64_t)values[i]));
    }
    end(writer, entry);
}

void sx_example_add_text(sx_example_writer *writer, const char *name, const char *text)
{
    sx_example_add_bytes(writer, name, &(sx_bytes){text, strlen(text)}, 1);
}

void sx_example_add_int(sx_example_writer *writer, const char *name, int64_t value)
{
    sx_example_add_ints(writer, name, &value, 1);
}

/* ---- Finish ---- */

static int compare_entries(const void *a, const void *b)
{
    const struct sx_example_entry *left = a, *right = b;
    size_t shorter = left->name_size < right->name_size ? left->name_size : right->name_size;
    int order = memcmp(left->names + left->name_at, right->names + right->name_at, shorter);
    return order != 0 ? order
                      : (left->name_size > right->name_size) - (left->name_size < right->name_size);
}

static sx_status sort_entries(sx_example_writer *writer)
{
    const char *names = sx_buf_text(&writer->names);
    for (size_t i = 0; i < writer->count; i++) {
        writer->entries[i].names = names;
    }
    if (writer->count > 0) {
        qsort(writer->entries, writer->count, sizeof *writer->entries, compare_entries);
    }
    for (size_t i = 1; i < writer->count; i++) {
        const struct sx_example_entry *entry = &writer->entries[i];
        if (compare_entries(entry - 1, entry) == 0) {
            return sx_error(SX_ALREADY_EXISTS, "feature '%.*s' was added twice",
                            (int)entry->name_size, names + entry->name_at);
        }
    }
    return SX_OK;
}

static size_t entry_size(const struct sx_example_entry *entry)
{
    return delimited_size(entry->name_size) + delimited_size(entry->value_size);
}

static sx_status write_example(sx_example_writer *writer, sx_buf *out)
{
    SX_TRY(sx_buf_status(&writer->names));
    SX_TRY(sx_buf_status(&writer->values));
    SX_TRY(sort_entries(writer));
    size_t size = 0;
    for (size_t i = 0; i < writer->count; i++) {
        size += delimited_size(entry_size(&writer->entries[i]));
    }
    if (size > INT_MAX - 16) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "Example of %zu bytes; the limit is 2 GiB", size);
    }
    put_head(out, 1, size);
    for (size_t i = 0; i < writer->count; i++) {
        const struct sx_example_entry *entry = &writer->entries[i];
        put_head(out, 1, entry_size(entry));
        put_head(out, 1, entry->name_size);
        sx_buf_append(out, writer->names.data + entry->name_at, entry->name_size);
        put_head(out, 2, entry->value_size);
        sx_buf_append(out, writer->values.data + entry->value_at, entry->value_size);
    }
    return sx_buf_status(out);
}

sx_status sx_example_finish(sx_example_writer *writer, sx_buf *out)
{
    keep(writer, writer->status == SX_OK ? write_example(writer, out) : SX_OK);
    sx_status status = writer->status;
    writer->status = SX_OK;
    writer->count = 0;
    sx_buf_reset(&writer->names);
    sx_buf_reset(&writer->values);
    return status;
}
