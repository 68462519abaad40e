/* tf.train.Example, read in place and written deterministically (reference 01).
 *
 *   Example { features = 1 : Features }      Features { feature = 1 : map<string, Feature> }
 *   Feature { oneof: bytes_list = 1, float_list = 2, int64_list = 3 }, each { value = 1 : repeated
 * }
 *
 * sx_example_parse() checks every byte once and keeps views: names and byte strings point into the
 * record, lists are decoded when asked for. Packed and unpacked lists, lists in several pieces and
 * keys in any order are accepted; of a key that comes twice the last wins; unknown fields are
 * passed over. A feature without a list is there, EMPTY. */
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

typedef struct sx_feature {
    sx_bytes name; /* UTF-8 */
    sx_feature_kind kind;
    size_t count;   /* of values */
    sx_bytes wire;  /* the lists, as they lie in the record */
    sx_bytes whole; /* all values in one packed list: its bytes; else data is NULL */
} sx_feature;

enum { SX_EXAMPLE_MAX_FEATURES = 65536 };

/* Reused from record to record: memory is kept. Views are valid while the record's bytes are. */
typedef struct sx_example {
    sx_feature *features; /* [count], ascending by name */
    size_t count, capacity;
} sx_example;

void sx_example_init(sx_example *example);
void sx_example_deinit(sx_example *example);

/* DATA_LOSS with the byte's offset for anything that is not an Example; RESOURCE_EXHAUSTED beyond
 * SX_EXAMPLE_MAX_FEATURES. On failure the example is empty. */
SX_MUST_USE sx_status sx_example_parse(sx_example *example, sx_bytes record);

/* NULL if there is none of that name. */
const sx_feature *sx_example_find(const sx_example *example, const char *name);

/* ---- values ------------------------------------------------------------------------------- */

/* Copies the first `capacity` values at most and returns how many; 0 if the kind is another. */
size_t sx_feature_floats(const sx_feature *feature, float *out, size_t capacity);
size_t sx_feature_ints(const sx_feature *feature, int64_t *out, size_t capacity);
size_t sx_feature_bytes(const sx_feature *feature, sx_bytes *out, size_t capacity);

/* The single value of a feature that must be there: NOT_FOUND names it and those that are;
 * INVALID_ARGUMENT when it is of another kind or has not exactly one value. */
SX_MUST_USE sx_status sx_example_get_bytes(const sx_example *example, const char *name,
                                           sx_bytes *out_value);
SX_MUST_USE sx_status sx_example_get_int(const sx_example *example, const char *name,
                                         int64_t *out_value);
SX_MUST_USE sx_status sx_example_get_float(const sx_example *example, const char *name,
                                           float *out_value);

/* ---- writing ------------------------------------------------------------------------------ */

/* Collects features, writes them sorted by name, lists packed: the same features give the same
 * bytes. The first failure is kept and comes out of sx_example_finish(). */
typedef struct sx_example_writer {
    sx_buf names;                     /* one after the other */
    sx_buf values;                    /* the Feature messages, one after the other */
    struct sx_example_entry *entries; /* [count] */
    size_t count, capacity;
    sx_status status;
} sx_example_writer;

void sx_example_writer_init(sx_example_writer *writer);
void sx_example_writer_deinit(sx_example_writer *writer);

/* The values are copied. A count of 0 writes an empty list of that kind. */
void sx_example_add_bytes(sx_example_writer *writer, const char *name, const sx_bytes *values,
                          size_t count);
void sx_example_add_floats(sx_example_writer *writer, const char *name, const float *values,
                           size_t count);
void sx_example_add_ints(sx_example_writer *writer, const char *name, const int64_t *values,
                         size_t count);
/* One value each: a NUL-terminated text, a number. */
void sx_example_add_text(sx_example_writer *writer, const char *name, const char *text);
void sx_example_add_int(sx_example_writer *writer, const char *name, int64_t value);

/* Appends the Example to `out` and empties the writer for the next. ALREADY_EXISTS for a name that
 * was added twice; RESOURCE_EXHAUSTED for 2 GiB or more. */
SX_MUST_USE sx_status sx_example_finish(sx_example_writer *writer, sx_buf *out);

#endif
