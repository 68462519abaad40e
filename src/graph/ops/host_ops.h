/* What the operators that run on the host share: memory for the strings that they make, checks of
 * types with unknown parts, samples.
 *
 * A string is bytes; most operators of TensorFlow ask nothing more of it. Where text is meant, it
 * is UTF-8, and what is no UTF-8 is handled as the operator's head says. */
#ifndef SX_GRAPH_OPS_HOST_OPS_H
#define SX_GRAPH_OPS_HOST_OPS_H

#include <string.h>

#include "base/buffer.h"
#include "graph/ops/common.h"

/* string_join, reduce_join, string_ngrams */
typedef struct sx_separator_attrs {
    const char *separator;
} sx_separator_attrs;

/* string_to_number */
typedef struct sx_string_to_number_attrs {
    sx_dtype out_type;
} sx_string_to_number_attrs;

/* string_length, substr */
typedef struct sx_unit_attrs {
    const char *unit; /* "BYTE" or "UTF8_CHAR" */
} sx_unit_attrs;

/* FarmHash's Fingerprint64, as string_to_hash_bucket has it. */
uint64_t sx_fingerprint64(const void *data, size_t size);
/* SipHash-2-4, the same. */
uint64_t sx_strong_hash(const void *data, size_t size, const uint64_t key[2]);

/* A digit of base64 for URLs; -1: it is none. */
int sx_base64_digit(char c);

/* What data may ask for: a tensor whose size they decide; one string, which is no larger than a
 * request may be, since a few nodes can double one again and again; and, without a memory budget,
 * the strings of a run. */
enum {
    SX_MADE_MAX_BYTES = 512 << 20,
    SX_STRING_MAX_BYTES = 64 << 20,
    SX_STRINGS_MAX_BYTES = 4 * SX_STRING_MAX_BYTES,
};

/* Memory of the run for a string, charged to its budget. RESOURCE_EXHAUSTED: it does not fit; a
 * string above SX_STRING_MAX_BYTES. */
SX_MUST_USE sx_status sx_string_room(const sx_kernel_call *c, int64_t bytes, char **out);
SX_MUST_USE sx_status sx_string_copy(const sx_kernel_call *c, const void *data, size_t size,
                                     sx_bytes *out);
/* Copies what the buffer has as element `k` of output `output`, and resets the buffer; its error,
 * if it has one. */
SX_MUST_USE sx_status sx_string_put(const sx_kernel_call *c, int output, int64_t k, sx_buf *buf);
/* A buffer for strings under construction, charged to the run's budget. */
sx_buf sx_string_buf(const sx_kernel_call *c);
/* RESOURCE_EXHAUSTED: a tensor whose size data decide is larger than SX_MADE_MAX_BYTES, or its size
 * overflows. */
SX_MUST_USE sx_status sx_require_made(const char *what, const sx_type *type);
/* Whether the row splits of a ragged tensor [rows + 1] ascend from 0 to `n`, the elements of all
 * rows. */
bool sx_splits_are_sound(const sx_host_tensor *splits, int64_t n);
/* The first n_splits inputs are such splits, from the outermost, of `rows` values.
 * INVALID_ARGUMENT. */
SX_MUST_USE sx_status sx_require_splits(const sx_kernel_call *c, int n_splits, int64_t rows);

/* Each element of the string input 0 gives one of output 0. */
SX_MUST_USE sx_status sx_infer_string_map(sx_infer_context *c);
/* Is the attribute one of the names (NULL-terminated)? NULL is "". */
SX_MUST_USE sx_status sx_require_name(const char *what, const char *value,
                                      const char *const *names);

/* ---- Types with unknown parts ---- */

static inline bool sx_dim_is_unknown(int64_t dim)
{
    return dim < 0 && !sx_dim_is_batch(dim);
}
/* The dtype and rank, or an unknown rank. */
SX_MUST_USE sx_status sx_require_maybe(const char *what, const sx_type *t, sx_dtype dtype, int rank,
                                       const char *form);
/* int32 or int64, and the rank unless that is -1 or unknown. */
SX_MUST_USE sx_status sx_require_integers(const char *what, const sx_type *t, int rank,
                                          const char *form);
/* The dimensions of a and b, which must not contradict each other, as far as one of them knows; out
 * gets a's dtype. */
SX_MUST_USE sx_status sx_merge_shapes(const char *what_a, const sx_type *a, const char *what_b,
                                      const sx_type *b, sx_type *out);
/* As sx_infer_broadcast(). */
SX_MUST_USE sx_status sx_infer_broadcast_maybe(const sx_type *a, const sx_type *b, sx_type *out);
/* Scalars and values of one shape: the shape of those that are not scalars. */
SX_MUST_USE sx_status sx_infer_same_or_scalar(const sx_type *types, int n, sx_type *out);
/* An operand that is the shape of a result. What infer knows of the result: `dtype`, and the rank
 * if the operand's size is known. int32 or int64; its dtype and rank are checked. */
SX_MUST_USE sx_status sx_infer_shaped(const char *what, const sx_type *shape, sx_dtype dtype,
                                      sx_type *out);
/* The result's type where it runs. INVALID_ARGUMENT: a negative dimension, too many of them;
 * RESOURCE_EXHAUSTED: as sx_require_made(). */
SX_MUST_USE sx_status sx_shaped_type(const char *what, const sx_host_tensor *shape, sx_dtype dtype,
                                     sx_type *out);
/* The outputs' types where it runs, by infer; RESOURCE_EXHAUSTED: as sx_require_made(). For
 * operators that make of the batch other dimensions. */
SX_MUST_USE sx_status sx_host_types_inferred(const sx_kernel_call *c,
                                             sx_status (*infer)(sx_infer_context *), int n_outputs,
                                             sx_type *out_types);
/* `first` has the first dimensions of `all`, as far as both are known: each element of it has an
 * item of `all`. *out is n of those items: [n, the other dimensions of all], of all's dtype. */
SX_MUST_USE sx_status sx_infer_items(const char *what_first, const sx_type *first,
                                     const char *what_all, const sx_type *all, int64_t n,
                                     sx_type *out);
/* The dimension of a vector; SX_UNKNOWN_DIM where it is not known. */
static inline int64_t sx_vector_size(const sx_type *t)
{
    return t->rank == 1 ? t->dims[0] : SX_UNKNOWN_DIM;
}
static inline sx_type sx_unknown_shape(sx_dtype dtype)
{
    return (sx_type){.dtype = dtype, .rank = SX_UNKNOWN_RANK};
}

static inline bool sx_string_is(const char *value, const char *name)
{
    return value != NULL && strcmp(value, name) == 0;
}

/* "b'text' at index 3": the first bytes of an element, for messages. */
const char *sx_string_quote(const sx_bytes *s, char *out, size_t size);
#define SX_QUOTE(s) sx_string_quote((s), (char[96]){0}, 96)

/* Of gradients, whose types are known. An operator that only moves elements moves their numbers,
 * too: that tells where each went, and where its gradient comes from. */

/* Zeros of y's type. */
sx_value sx_zeros_of(sx_builder *b, sx_value y);
/* A node whose outputs' shapes data decide, with those types. */
sx_value sx_build_typed(sx_builder *b, const sx_op_def *op, const void *attrs,
                        const sx_value *inputs, int n_inputs, const sx_type *types, int n_types);
/* int64 [n]: 0, 1, 2, ... */
sx_value sx_numbers_to(sx_builder *b, int64_t n);
/* x in the shape of those dimensions. */
sx_value sx_reshape_dims(sx_builder *b, sx_value x, int rank, const int64_t *dims);
/* Column `k` of indices [n, rank]: [n]. */
sx_value sx_index_column(sx_builder *b, sx_value indices, int64_t k);
/* Zeros of x's type, to which items dy [n..., rest] are added at rows at [n...] of axis 0; a
 * negative row is skipped. */
sx_value sx_add_rows(sx_builder *b, sx_value x, sx_value at, sx_value dy);
/* dy/dalpha of draws y of the gamma distribution at the same place of it: -(dP/dalpha) / (dP/dy),
 * P = igamma(alpha, y). */
sx_value sx_gamma_slope(sx_builder *b, sx_value alpha, sx_value y);
/* The sum of all elements, a scalar. */
sx_value sx_sum_all(sx_builder *b, sx_value x);

/* ASCII's, whatever the locale. */
static inline bool sx_is_ascii_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

#define SX_SAMPLES_STRING_MAP(...)                                                              \
    {.name = "scalar",                                                                          \
     .inputs = {SX_SAMPLE_SCALAR(SX_STRING, SX_FILL_TEXT)},                                     \
     .n_inputs = 1,                                                                             \
     __VA_ARGS__},                                                                              \
        {.name = "batch", .inputs = {SX_SAMPLE_TEXT(SX_BATCH, 3)}, .n_inputs = 1, __VA_ARGS__}, \
        {.name = "static", .inputs = {SX_SAMPLE_TEXT(2, 7)}, .n_inputs = 1, __VA_ARGS__},       \
    {                                                                                           \
        .name = "empty", .inputs = {SX_SAMPLE_TEXT(0, 3)}, .n_inputs = 1, __VA_ARGS__           \
    }

#endif
