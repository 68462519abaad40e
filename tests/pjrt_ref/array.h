/* Arrays: row-major elements in a device's memory, counted; and lanes, in which all arithmetic is
 * done, 256 elements at a time, in double or in 64-bit integers, whatever the dtype.
 *
 * Floats are computed in double and rounded once: for f32 this gives the correctly rounded sum,
 * product, quotient and root. Integers wrap, as stored. */
#ifndef PJRT_REF_ARRAY_H
#define PJRT_REF_ARRAY_H

#include <stdatomic.h>

#include <sextant/types.h>

/* A device's memory: what is in use, what there is. */
typedef struct ref_memory {
    _Atomic int64_t in_use, peak, count, largest;
    int64_t limit; /* 0 = none */
} ref_memory;

typedef struct ref_array {
    atomic_int refs;
    sx_type type;
    ref_memory *memory;
    int64_t bytes;
    void *data;
} ref_array;

/* Elements are not set. Errors: RESOURCE_EXHAUSTED, in XLA's words. */
SX_MUST_USE sx_status ref_array_create(ref_memory *memory, const sx_type *type, ref_array **out);
ref_array *ref_array_retain(ref_array *a);
void ref_array_release(ref_array *a); /* NULL is fine */

typedef union ref_lane {
    double f;
    int64_t s;
    uint64_t u;
} ref_lane;
enum { REF_LANES = 256 };

typedef enum ref_class { REF_FLOAT, REF_SIGNED, REF_UNSIGNED } ref_class;
ref_class ref_class_of(sx_dtype dtype); /* bool is unsigned */
int ref_bits_of(sx_dtype dtype);        /* 1 for bool */

/* n elements from the at-th on, to lanes and back. Storing narrows: floats round, integers keep
 * their low bits, bool is "not zero". */
void ref_load(sx_dtype dtype, const void *data, int64_t at, int n, ref_lane *out);
void ref_store(sx_dtype dtype, void *data, int64_t at, int n, const ref_lane *in);
ref_lane ref_get(const ref_array *a, int64_t at);
void ref_put(ref_array *a, int64_t at, ref_lane v);
/* Lanes of one class to those of another; floats to integers saturate, NaN becomes 0. */
void ref_convert(sx_dtype from, sx_dtype to, int n, const ref_lane *in, ref_lane *out);

/* ---- Indices ---- */

/* Steps in elements along each dimension, row-major. */
void ref_strides(const sx_type *type, int64_t strides[SX_MAX_RANK]);
/* The next index in row-major order; false after the last. */
bool ref_next_index(const sx_type *type, int64_t index[SX_MAX_RANK]);
int64_t ref_dot(const int64_t *index, const int64_t *strides, int rank);

#endif
