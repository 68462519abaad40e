#include "proto/example.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "proto/guard.h"
#include "proto/wire.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "packed floats are copied without conversion");

const char *sx_feature_kind_name(sx_feature_kind kind)
{
    static const char *const names[] = {"empty", "bytes", "float", "int64"};
    return names[kind];
}

void sx_example_init(sx_example *example)
{
    *example = (sx_example){0};
}

void sx_example_deinit(sx_example *example)
{
    sx_free(example->features);
    *example = (sx_example){0};
}

/* ---- Lists ---- */

/* One row per kind: the wire type of a single value, and the encoding of a packed list. */
static const struct {
    sx_wire_type single;
    bool packs;
} kinds[] = {
    [SX_FEATURE_BYTES] = {SX_WIRE_BYTES, false},
    [SX_FEATURE_FLOATS] = {SX_WIRE_FIXED32, true},
    [SX_FEATURE_INTS] = {SX_WIRE_VARINT, true},
};

/* Counts the values of a packed list; false if the list does not end with a complete value. */
static bool count_packed(sx_feature_kind kind, sx_bytes packed, size_t *out_count)
{
    if (kind == SX_FEATURE_FLOATS) {
        *out_count = packed.size / 4;
        return packed.size % 4 == 0;
    }
    sx_wire wire = sx_wire_over(packed);
    size_t count = 0;
    for (uint64_t value; sx_wire_more(&wire); count++) {
        if (!sx_wire_varint(&wire, &value)) {
            return false;
        }
    }
    *out_count = count;
    return true;
}

/* Adds a list's values to the feature's count; sets `whole` if a packed list is the only piece. */
static bool add_list(sx_example_feature *feature, sx_bytes list)
{
    sx_wire wire = sx_wire_over(list);
    sx_wire_field field;
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field)) {
            return false;
        }
        if (field.number != 1) {
            continue;
        }
        size_t count = 1;
        bool packed = kinds[feature->kind].packs && field.type == SX_WIRE_BYTES;
        if (packed ? !count_packed(feature->kind, field.value, &count)
                   : field.type != kinds[feature->kind].single) {
            return false;
        }
        bool only = packed && feature->count == 0;
        feature->whole = only ? field.value : (sx_bytes){0};
        feature->count += count;
    }
    return true;
}

/* Reads a Feature. As in any oneof, a list of another kind replaces the previous ones, and a list
 * of the same kind is appended to them. */
bool sx_feature_parse(sx_example_feature *feature, sx_bytes wire_bytes)
{
    sx_wire wire = sx_wire_over(wire_bytes);
    sx_wire_field field;
    feature->wire = (sx_bytes){wire.at, 0};
    while (sx_wire_more(&wire)) {
        const uint8_t *at = wire.at;
        if (!sx_wire_next(&wire, &field)) {
            return false;
        }
        if (field.number < SX_FEATURE_BYTES || field.number > SX_FEATURE_INTS) {
            continue;
        }
        if (field.type != SX_WIRE_BYTES) {
            return false;
        }
        if (feature->kind != (sx_feature_kind)field.number) {
            *feature =
                (sx_example_feature){feature->name, (sx_feature_kind)field.number, 0, {at, 0}, {0}};
        }
        if (!add_list(feature, field.value)) {
            return false;
        }
    }
    feature->wire.size = (size_t)(wire.end - (const uint8_t *)feature->wire.data);
    return true;
}

/* Iterates over the values of a parsed feature, whose bytes have been checked. */
struct cursor {
    sx_feature_kind kind;
    sx_wire feature, list, packed;
};

static struct cursor cursor_over(const sx_example_feature *feature)
{
    sx_wire none = sx_wire_over((sx_bytes){0});
    return (struct cursor){feature->kind, sx_wire_over(feature->wire), none, none};
}

/* The next value's bytes: the string, the 4 bytes, the varint. */
static bool next_value(struct cursor *c, sx_bytes *out)
{
    sx_wire_field field;
    for (;;) {
        if (sx_wire_more(&c->packed)) {
            const uint8_t *at = c->packed.at;
            uint64_t ignored;
            bool ok = c->kind == SX_FEATURE_FLOATS ? (c->packed.at += 4, true)
                                                   : sx_wire_varint(&c->packed, &ignored);
            *out = (sx_bytes){at, (size_t)(c->packed.at - at)};
            return ok;
        }
        if (sx_wire_more(&c->list)) {
            if (sx_wire_next(&c->list, &field) && field.number == 1) {
                if (field.type == kinds[c->kind].single) {
                    *out = field.value;
                    return true;
                }
                c->packed = sx_wire_over(field.value);
            }
            continue;
        }
        if (!sx_wire_more(&c->feature) || !sx_wire_next(&c->feature, &field)) {
            return false;
        }
        if (field.number == (uint32_t)c->kind) {
            c->list = sx_wire_over(field.value);
        }
    }
}

size_t sx_feature_bytes(const sx_example_feature *feature, sx_bytes *out, size_t capacity)
{
    size_t n = 0;
    if (feature->kind == SX_FEATURE_BYTES) {
        for (struct cursor c = cursor_over(feature); n < capacity && next_value(&c, &out[n]); n++) {
        }
    }
    return n;
}

size_t sx_feature_floats(const sx_example_feature *feature, float *out, size_t capacity)
{
    if (feature->kind != SX_FEATURE_FLOATS) {
        return 0;
    }
    size_t n = 0;
    if (feature->whole.data != NULL) {
        n = feature->count < capacity ? feature->count : capacity;
        memcpy(out, feature->whole.data, n * sizeof *out);
        return n;
    }
    sx_bytes value;
    for (struct cursor c = cursor_over(feature); n < capacity && next_value(&c, &value); n++) {
        memcpy(&out[n], value.data, sizeof *out);
    }
    return n;
}

size_t sx_feature_ints(const sx_example_feature *feature, int64_t *out, size_t capacity)
{
    size_t n = 0;
    if (feature->kind == SX_FEATURE_INTS) {
        sx_bytes value;
        uint64_t number = 0;
        for (struct cursor c = cursor_over(feature); n < capacity && next_value(&c, &value); n++) {
            sx_wire wire = sx_wire_over(value);
            sx_wire_varint(&wire, &number);
            out[n] = (int64_t)number;
        }
    }
    return n;
}

/* ---- The example ---- */

static sx_status not_an_example(sx_bytes record, const void *at, const char *what)
{
    return sx_error(SX_DATA_LOSS, "not a tf.train.Example: byte %zu: %s",
                    (size_t)((const uint8_t *)at - (const uint8_t *)record.data), what);
}

static sx_status add_feature(sx_example *example, sx_example_feature feature)
{
    if (example->count == SX_EXAMPLE_MAX_FEATURES) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "Example has more than %d features",
                        SX_EXAMPLE_MAX_FEATURES);
    }
    if (example->count == example->capacity) {
        size_t capacity = example->capacity == 0 ? 16 : 2 * example->capacity;
        sx_example_feature *features = sx_realloc(example->features, capacity, sizeof *features);
        if (features == NULL) {
            return sx_no_memory("for an Example");
        }
        example->features = features;
        example->capacity = capacity;
    }
    example->features[example->count++] = feature;
    return SX_OK;
}

/* Reads a map entry; a missing key is "", a missing value an empty feature. */
static sx_status parse_entry(sx_example *example, sx_bytes record, sx_bytes entry)
{
    sx_wire wire = sx_wire_over(entry);
    sx_wire_field field;
    sx_example_feature feature = {.name = {wire.at, 0}, .wire = {wire.at, 0}};
    bool has_value = false;
    while (sx_wire_more(&wire)) {
        const uint8_t *at = wire.at;
        if (!sx_wire_next(&wire, &field)) {
            return not_an_example(record, at, "malformed feature entry");
        }
        if (field.number > 2) {
            continue;
        }
        if (field.type != SX_WIRE_BYTES) {
            return not_an_example(record, at, "feature entry has a number as name or value");
        }
        if (field.number == 1) {
            feature.name = field.value;
        } else if (has_value || !sx_feature_parse(&feature, field.value)) {
            return not_an_example(
                record, at, has_value ? "feature entry has two values" : "malformed feature list");
        } else {
            has_value = true;
        }
    }
    if (!sx_utf8_valid(feature.name.data, feature.name.size)) {
        return not_an_example(record, feature.name.data, "feature name is not UTF-8");
    }
    return add_feature(example, feature);
}

/* Compares by name, then by position in the record, which is the order of their addresses. */
static int compare_features(const void *a, const void *b)
{
    const sx_example_feature *left = a, *right = b;
    int order = sx_bytes_compare(left->name, right->name);
    const char *at_left = left->name.data, *at_right = right->name.data;
    return order != 0 ? order : (at_left > at_right) - (at_left < at_right);
}

/* Sorts by name and keeps the last of equal names. Records are usually almost sorted. */
static void sort_and_keep_last(sx_example *example)
{
    sx_example_feature *f = example->features;
    bool sorted = true;
    for (size_t i = 1; i < example->count && sorted; i++) {
        sorted = sx_bytes_compare(f[i - 1].name, f[i].name) < 0;
    }
    if (sorted) {
        return;
    }
    qsort(f, example->count, sizeof *f, compare_features);
    size_t kept = 0;
    for (size_t i = 0; i < example->count; i++) {
        if (i + 1 == example->count || sx_bytes_compare(f[i].name, f[i + 1].name) != 0) {
            f[kept++] = f[i];
        }
    }
    example->count = kept;
}

static sx_status parse_features(sx_example *example, sx_bytes record, sx_bytes features)
{
    sx_wire wire = sx_wire_over(features);
    const uint8_t *at = wire.at;
    sx_bytes value;
    sx_wire_found found;
    while ((found = sx_wire_find(&wire, 1, &at, &value)) == SX_WIRE_FOUND) {
        SX_TRY(parse_entry(example, record, value));
    }
    return found == SX_WIRE_NO_MORE
               ? SX_OK
               : not_an_example(record, at,
                                found == SX_WIRE_MALFORMED ? "malformed or truncated features"
                                                           : "number instead of a feature");
}

static sx_status parse_example(sx_example *example, sx_bytes record)
{
    sx_wire wire = sx_wire_over(record);
    record.data = wire.at;
    const uint8_t *at = wire.at;
    sx_bytes value;
    sx_wire_found found;
    while ((found = sx_wire_find(&wire, 1, &at, &value)) == SX_WIRE_FOUND) {
        SX_TRY(parse_features(example, record, value));
    }
    return found == SX_WIRE_NO_MORE
               ? SX_OK
               : not_an_example(record, at,
                                found == SX_WIRE_MALFORMED ? "malformed or truncated"
                                                           : "number instead of features");
}

sx_status sx_example_parse(sx_example *example, sx_bytes record)
{
    example->count = 0;
    sx_status status = parse_example(example, record);
    if (status != SX_OK) {
        example->count = 0;
        return status;
    }
    sort_and_keep_last(example);
    return SX_OK;
}

/* ---- Lookup ---- */

static int compare_to_name(const void *name, const void *feature)
{
    return sx_bytes_compare(*(const sx_bytes *)name, ((const sx_example_feature *)feature)->name);
}

const sx_example_feature *sx_example_find(const sx_example *example, const char *name)
{
    sx_bytes key = {name, strlen(name)};
    return example->count == 0 ? NULL
                               : bsearch(&key, example->features, example->count,
                                         sizeof *example->features, compare_to_name);
}

sx_status sx_example_no_feature(const sx_example *example, const char *name)
{
    sx_buf names;
    sx_buf_init(&names, 1000);
    for (size_t i = 0; i < example->count && names.size < 800; i++) {
        sx_bytes each = example->features[i].name;
        sx_buf_printf(&names, "%s%.*s", i == 0 ? "" : ", ", (int)(each.size < 99 ? each.size : 99),
                      (const char *)each.data);
    }
    sx_status status = sx_error(SX_NOT_FOUND, "record has no feature '%s'; its features: %s", name,
                                sx_buf_text(&names));
    sx_buf_deinit(&names);
    return status;
}

static sx_status find_single(const sx_example *example, const char *name, sx_feature_kind kind,
                             const sx_example_feature **out_feature)
{
    const sx_example_feature *feature = sx_example_find(example, name);
    if (feature == NULL) {
        return sx_example_no_feature(example, name);
    }
    if (feature->kind != kind || feature->count != 1) {
        return sx_error(
            SX_INVALID_ARGUMENT, "feature '%s' has %zu values of kind %s, expected 1 of kind %s",
            name, feature->count, sx_feature_kind_name(feature->kind), sx_feature_kind_name(kind));
    }
    *out_feature = feature;
    return SX_OK;
}

sx_status sx_example_get_bytes(const sx_example *example, const char *name, sx_bytes *out_value)
{
    const sx_example_feature *feature = NULL;
    SX_TRY(find_single(example, name, SX_FEATURE_BYTES, &feature));
    sx_feature_bytes(feature, out_value, 1);
    return SX_OK;
}

sx_status sx_example_get_int(const sx_example *example, const char *name, int64_t *out_value)
{
    const sx_example_feature *feature = NULL;
    SX_TRY(find_single(example, name, SX_FEATURE_INTS, &feature));
    sx_feature_ints(feature, out_value, 1);
    return SX_OK;
}
