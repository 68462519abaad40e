/* Random numbers in [-0.5, 0.5), the same in every run. */
#ifndef SX_TESTS_BACKENDS_NUMBERS_H
#define SX_TESTS_BACKENDS_NUMBERS_H

#include "harness.h"

#include "base/memory.h"
#include "base/threefry.h"

/* `n` of them, to be freed. */
static inline float *numbers(int64_t n, uint32_t key)
{
    float *data = sx_alloc((size_t)n + 1, sizeof(float));
    assert_non_null(data);
    for (int64_t i = 0; i < n; i++) {
        data[i] =
            sx_uniform_f32(sx_threefry2x32((sx_u32x2){key, 0}, (sx_u32x2){(uint32_t)i, 0}).a) -
            0.5F;
    }
    return data;
}

#endif
