#include "proto/sequence_example.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "proto/wire.h"

void sx_sequence_example_init(sx_sequence_example *example)
{
    *example = (sx_sequence_example){0};
    sx_example_init(&example->context);
}

void sx_sequence_example_deinit(sx_sequence_example *example)
{
    sx_example_deinit(&example->context);
    sx_free(example->lists);
    *example = (sx_sequence_example){0};
}

static sx_status not_a_sequence_example(sx_bytes record, const void *at, const char *what)
{
    return sx_error(SX_DATA_LOSS, "not a tf.train.SequenceExample: byte %zu: %s",
                    (size_t)((const uint8_t *)at - (const uint8_t *)record.data), what);
}

bool sx_feature_list_next(sx_bytes *rest, sx_example_feature *out)
{
    sx_wire wire = sx_wire_over(*rest);
    sx_wire_field field;
    bool found = false;
    while (!found && sx_wire_more(&wire) && sx_wire_next(&wire, &field)) {
        if (field.number == 1 && field.type == SX_WIRE_BYTES) {
            *out = (sx_example_feature){0};
            found = sx_feature_parse(out, field.value);
        }
    }
    *rest = (sx_bytes){wire.at, (size_t)(wire.end - wire.at)};
    return found;
}

/* Counts the features of a list; false if it is malformed. */
static bool count_features(sx_feature_list *list)
{
    sx_wire wire = sx_wire_over(list->wire);
    const uint8_t *at;
    sx_bytes value;
    sx_wire_found found;
    while ((found = sx_wire_find(&wire, 1, &at, &value)) == SX_WIRE_FOUND) {
        sx_example_feature feature = {0};
        if (!sx_feature_parse(&feature, value)) {
            return false;
        }
        list->count++;
    }
    return found == SX_WIRE_NO_MORE;
}

/* Reads a map entry; a missing key is "", a missing value an empty list. */
static sx_status parse_entry(sx_sequence_example *example, sx_bytes record, sx_bytes entry)
{
    sx_wire wire = sx_wire_over(entry);
    sx_wire_field field;
    sx_feature_list list = {.name = {wire.at, 0}, .wire = {wire.at, 0}};
    bool has_value = false;
    while (sx_wire_more(&wire)) {
        const uint8_t *at = wire.at;
        if (!sx_wire_next(&wire, &field)) {
            return not_a_sequence_example(record, at, "malformed feature list entry");
        }
        if (field.number > 2) {
            continue;
        }
        if (field.type != SX_WIRE_BYTES) {
            return not_a_sequence_example(record, at,
                                          "feature list entry has a number as name or value");
        }
        if (field.number == 1) {
            list.name = field.value;
            continue;
        }
        list.wire = field.value;
        if (has_value || !count_features(&list)) {
            return not_a_sequence_example(record, at,
                                          has_value ? "feature list entry has two values"
                                                    : "malformed feature list");
        }
        has_value = true;
    }
    if (!sx_utf8_valid(list.name.data, list.name.size)) {
        return not_a_sequence_example(record, list.name.data, "feature list name is not UTF-8");
    }
    if (example->count == SX_EXAMPLE_MAX_FEATURES) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "SequenceExample has more than %d feature lists",
                        SX_EXAMPLE_MAX_FEATURES);
    }
    if (example->count == example->capacity) {
        const size_t capacity = example->capacity == 0 ? 16 : 2 * example->capacity;
        sx_feature_list *lists = sx_realloc(example->lists, capacity, sizeof *lists);
        if (lists == NULL) {
            return sx_no_memory("for a SequenceExample");
        }
        example->lists = lists;
        example->capacity = capacity;
    }
    example->lists[example->count++] = list;
    return SX_OK;
}

/* By name, then by position in the record, which is the order of their addresses. */
static int compare_lists(const void *a, const void *b)
{
    const sx_feature_list *left = a, *right = b;
    const int order = sx_bytes_compare(left->name, right->name);
    const char *at_left = left->name.data, *at_right = right->name.data;
    return order != 0 ? order : (at_left > at_right) - (at_left < at_right);
}

static sx_status parse_lists(sx_sequence_example *example, sx_bytes record, sx_bytes lists)
{
    sx_wire wire = sx_wire_over(lists);
    const uint8_t *at = wire.at;
    sx_bytes value;
    sx_wire_found found;
    while ((found = sx_wire_find(&wire, 1, &at, &value)) == SX_WIRE_FOUND) {
        SX_TRY(parse_entry(example, record, value));
    }
    return found == SX_WIRE_NO_MORE
               ? SX_OK
               : not_a_sequence_example(record, at,
                                        found == SX_WIRE_MALFORMED
                                            ? "malformed or truncated feature lists"
                                            : "number instead of a feature list");
}

static sx_status parse(sx_sequence_example *example, sx_bytes record)
{
    sx_wire wire = sx_wire_over(record);
    record.data = wire.at;
    const uint8_t *at = wire.at;
    sx_bytes value;
    sx_wire_found found;
    while ((found = sx_wire_find(&wire, 2, &at, &value)) == SX_WIRE_FOUND) {
        SX_TRY(parse_lists(example, record, value));
    }
    if (found != SX_WIRE_NO_MORE) {
        return not_a_sequence_example(record, at,
                                      found == SX_WIRE_MALFORMED
                                          ? "malformed or truncated"
                                          : "number instead of feature lists");
    }
    /* the context has the number and the type that an Example's features have */
    return sx_example_parse(&example->context, record);
}

sx_status sx_sequence_example_parse(sx_sequence_example *example, sx_bytes record)
{
    example->count = example->context.count = 0;
    sx_status status = parse(example, record);
    if (status != SX_OK) {
        example->count = example->context.count = 0;
        return status;
    }
    size_t kept = 0;
    if (example->count > 1) {
        qsort(example->lists, example->count, sizeof *example->lists, compare_lists);
    }
    for (size_t i = 0; i < example->count; i++) {
        if (i + 1 == example->count ||
            sx_bytes_compare(example->lists[i].name, example->lists[i + 1].name) != 0) {
            example->lists[kept++] = example->lists[i];
        }
    }
    example->count = kept;
    return SX_OK;
}

static int compare_to_name(const void *name, const void *list)
{
    return sx_bytes_compare(*(const sx_bytes *)name, ((const sx_feature_list *)list)->name);
}

const sx_feature_list *sx_sequence_example_find(const sx_sequence_example *example,
                                                const char *name)
{
    const sx_bytes key = {name, strlen(name)};
    return example->count == 0 ? NULL
                               : bsearch(&key, example->lists, example->count,
                                         sizeof *example->lists, compare_to_name);
}
