/* Elements of tensors as numbers that are equal where the elements are, for tables of them. */
#ifndef SX_BACKENDS_CPU_TYPED_KEYS_H
#define SX_BACKENDS_CPU_TYPED_KEYS_H

#include "backends/cpu/typed/typed.h"

/* Elements [first, first + n): 0 for -0, and for a NaN one of its own, a NaN's bits with its
 * place. Of numbers and bools. */
void sx_typed_keys_of(const sx_tensor *t, int64_t first, int64_t n, uint64_t *keys);

/* Whether a key of floats is a NaN's. */
static inline bool sx_typed_key_is_nan(uint64_t key)
{
    return key >> 48 == 0x7ff8;
}

/* Where a key lies in a table: the lowest bits count. */
static inline uint64_t sx_typed_place_of(uint64_t key)
{
    const uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* y[k] = x[at[k]], elements of 1, 2, 4 or 8 bytes */
void sx_typed_gather(const void *x, const int32_t *at, int64_t n, size_t bytes, void *y);

#endif
