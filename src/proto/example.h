/* tf.train.Example: a zero-copy reader and a deterministic writer.
 *
 *   Example { features = 1 : Features }      Features { feature = 1 : map<string, Feature> }
 *   Feature { oneof: bytes_list = 1, float_list = 2, int64_list = 3 }; each: repeated value = 1
 *
 * sx_example_parse() checks every byte and stores views: names and byte strings point into the
 * record, lists are decoded on access. It accepts packed and unpacked lists, lists in several
 * pieces and keys in any order; the last value of a repeated key is used; unknown fields are
 * skipped. A feature without a list is EMPTY. */
#ifndef SX_PROTO_EXAMPLE_H
#define SX_PROTO_EXAMPLE_H

#include <stdint.h>

#include <sextant/types.h>

#include "base/buffer.h"

/* The values are the field numbers in Feature. */
typedef enum sx_feature_kind {
    SX_FEATURE_EMPTY = 0,
    SX_FEATURE_BYTES = 1,
    SX_FEATURE_FLOATS = 2,
    SX_FEATURE_INTS = 3,
} sx_feature_kind;

const char *sx_feature_kind_name(sx_feature_kind kind); /* "bytes", "float", "int64", "empty" */

typedef struct sx_example_feature {
    sx_bytes name; /* UTF-8 */
    sx_feature_kind kind;
    size_t count;   /* of values */
    sx_bytes wire;  /* the encoded lists in the record */
    sx_bytes whole; /* if all values are in one packed list, its bytes; otherwise data is NULL */
} sx_example_feature;

enum { SX_EXAMPLE_MAX_FEATURES = 65536 };

/* Can be reused for several records, keeping its memory. Views are valid as long as the record. */
typedef struct sx_example {
    sx_example_feature *features; /* [count], ascending by name */
    size_t count, capacity;
} sx_example;

void sx_example_init(sx_example *example);
void sx_example_deinit(sx_example *example);

/* Errors: DATA_LOSS: not an Example (with the byte offset); RESOURCE_EXHAUSTED: more than
 * SX_EXAMPLE_MAX_FEATURES features. On failure the example is empty. */
SX_MUST_USE sx_status sx_example_parse(sx_example *example, sx_bytes record);

/* The feature, or NULL. */
const sx_example_feature *sx_example_find(const sx_example *example, const char *name);

/* Reads a Feature into a zeroed one; false: it is malformed. */
bool sx_feature_parse(sx_example_feature *feature, sx_bytes wire);

/* The error for a missing feature: NOT_FOUND, listing those in the record. */
SX_MUST_USE sx_status sx_example_no_feature(const sx_example *example, const char *name);

/* ---- Values ---- */

/* Each copies at most `capacity` values and returns their number; 0 if the kind differs. */
size_t sx_feature_floats(const sx_example_feature *feature, float *out, size_t capacity);
size_t sx_feature_ints(const sx_example_feature *feature, int64_t *out, size_t capacity);
size_t sx_feature_bytes(const sx_example_feature *feature, sx_bytes *out, size_t capacity);

/* The value of a required feature with a single value. Errors: NOT_FOUND: no such feature (lists
 * those in the record); INVALID_ARGUMENT: another kind, or not exactly one value. */
SX_MUST_USE sx_status sx_example_get_bytes(const sx_example *example, const char *name,
                                           sx_bytes *out_value);
SX_MUST_USE sx_status sx_example_get_int(const sx_example *example, const char *name,
                                         int64_t *out_value);

/* ---- Writing ---- */

/* Collects features and writes them sorted by name with packed lists, so that the same features
 * give the same bytes. sx_example_finish() returns the first error of any call. */
typedef struct sx_example_writer {
    sx_buf names;                     /* concatenated */
    sx_buf values;                    /* the Feature messages, concatenated */
    struct sx_example_entry *entries; /* [count] */
    size_t count, capacity;
    sx_status status;
} sx_example_writer;

void sx_example_writer_init(sx_example_writer *writer);
void sx_example_writer_deinit(sx_example_writer *writer);

/* Each adds a feature, copying the values. A count of 0 writes an empty list of that kind. */
void sx_example_add_bytes(sx_example_writer *writer, const char *name, const sx_bytes *values,
                          size_t count);
void sx_example_add_floats(sx_example_writer *writer, const char *name, const float *values,
                           size_t count);
void sx_example_add_ints(sx_example_writer *writer, const char *name, const int64_t *values,
                         size_t count);
/* Each adds a feature with one value: a NUL-terminated string, a number. */
void sx_example_add_text(sx_example_writer *writer, const char *name, const char *text);
void sx_example_add_int(sx_example_writer *writer, const char *name, int64_t value);

/* Appends the Example to `out` and clears the writer. Errors: ALREADY_EXISTS: a name was added
 * twice; RESOURCE_EXHAUSTED: 2 GiB or more. */
SX_MUST_USE sx_status sx_example_finish(sx_example_writer *writer, sx_buf *out);

#endif
