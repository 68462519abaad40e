/* Deterministic encoding: protobuf-c writes fields in ascending order; maps are sorted here. */
#include "proto/guard.h"

#include <limits.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/memory.h"
#include "proto/descriptor.h"

struct keyed {
    ProtobufCMessage *entry;
    size_t index; /* before sorting: equal keys keep their order */
};

static int compare_signed(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_unsigned(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_keys(const ProtobufCFieldDescriptor *key, const void *a, const void *b)
{
    switch (key->type) {
    case PROTOBUF_C_TYPE_STRING: {
        const char *text_a = *(char *const *)a, *text_b = *(char *const *)b;
        return strcmp(text_a != NULL ? text_a : "", text_b != NULL ? text_b : "");
    }
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return compare_signed(*(const int64_t *)a, *(const int64_t *)b);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return compare_unsigned(*(const uint64_t *)a, *(const uint64_t *)b);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return compare_unsigned(*(const uint32_t *)a, *(const uint32_t *)b);
    default:
        return compare_signed(*(const int32_t *)a, *(const int32_t *)b);
    }
}

static int compare_entries(const void *a, const void *b)
{
    const struct keyed *left = a, *right = b;
    const ProtobufCFieldDescriptor *key = &left->entry->descriptor->fields[0];
    int order =
        compare_keys(key, sx_proto_member(left->entry, key), sx_proto_member(right->entry, key));
    return order != 0 ? order : compare_unsigned(left->index, right->index);
}

static sx_status sort_map(ProtobufCMessage **entries, size_t count)
{
    struct keyed *sorted = sx_alloc(count, sizeof *sorted);
    if (sorted == NULL) {
        return sx_no_memory("sorting a map of %zu entries", count);
    }
    for (size_t i = 0; i < count; i++) {
        sorted[i] = (struct keyed){entries[i], i};
    }
    qsort(sorted, count, sizeof *sorted, compare_entries);
    for (size_t i = 0; i < count; i++) {
        entries[i] = sorted[i].entry;
    }
    sx_free(sorted);
    return SX_OK;
}

static sx_status sort_maps(ProtobufCMessage *message, int depth)
{
    if (depth == SX_PROTO_MAX_DEPTH) {
        return sx_error(SX_INVALID_ARGUMENT, "cannot write a message nested deeper than %d levels",
                        SX_PROTO_MAX_DEPTH);
    }
    const ProtobufCMessageDescriptor *type = message->descriptor;
    for (unsigned f = 0; f < type->n_fields; f++) {
        const ProtobufCFieldDescriptor *field = &type->fields[f];
        if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
            continue;
        }
        size_t count = sx_proto_count(message, field);
        bool map =
            field->label == PROTOBUF_C_LABEL_REPEATED && sx_proto_is_map_entry(field->descriptor);
        if (map && count > 1) {
            SX_TRY(sort_map(*(ProtobufCMessage ***)sx_proto_member(message, field), count));
        }
        for (size_t i = 0; i < count; i++) {
            SX_TRY(sort_maps(*(ProtobufCMessage **)sx_proto_value(message, field, i), depth + 1));
        }
    }
    return SX_OK;
}

sx_status sx_proto_sort_maps(ProtobufCMessage *message)
{
    return sort_maps(message, 0);
}

sx_status sx_proto_pack(ProtobufCMessage *message, sx_buf *out)
{
    SX_TRY(sort_maps(message, 0));
    size_t size = protobuf_c_message_get_packed_size(message);
    if (size > INT_MAX) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s of %zu bytes; the limit is 2 GiB",
                        message->descriptor->name, size);
    }
    uint8_t *at = sx_buf_extend(out, size);
    if (at == NULL) {
        return sx_buf_status(out);
    }
    size_t written = protobuf_c_message_pack(message, at);
    return written == size ? SX_OK
                           : sx_error(SX_INTERNAL, "encoded %s differs from its computed size",
                                      message->descriptor->name);
}
