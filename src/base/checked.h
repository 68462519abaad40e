/* Size arithmetic that detects overflow. Sizes that come from a file, a request or a user are
 * computed with these before memory is allocated. */
#ifndef SX_BASE_CHECKED_H
#define SX_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if the result fits; otherwise *out is undefined. */
static inline bool sx_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool sx_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool sx_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool sx_add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

#define SX_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SX_MIN(a, b)    ((a) < (b) ? (a) : (b))
#define SX_MAX(a, b)    ((a) > (b) ? (a) : (b))

/* `size` rounded up to a multiple of the power of two `align`. */
static inline size_t sx_align_up(size_t size, size_t align)
{
    return (size + align - 1) & ~(align - 1);
}

#endif
