/* Threefry-2x32-20, the counter-based generator of all random numbers.
 *
 *   (x0, x1) = threefry(key, counter)      20 rounds of 32-bit add, rotate, xor
 *
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11;
 * the same function as jax.random's threefry2x32. */
#ifndef SX_BASE_THREEFRY_H
#define SX_BASE_THREEFRY_H

#include <stdint.h>

typedef struct sx_u32x2 {
    uint32_t a, b;
} sx_u32x2;

static inline uint32_t sx_rotl32(uint32_t x, int r)
{
    return (x << r) | (x >> (32 - r));
}

static inline sx_u32x2 sx_threefry2x32(sx_u32x2 key, sx_u32x2 counter)
{
    static const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    const uint32_t ks[3] = {key.a, key.b, key.a ^ key.b ^ 0x1BD11BDAu};
    uint32_t x0 = counter.a + ks[0], x1 = counter.b + ks[1];
    for (uint32_t group = 0; group < 5; group++) {
        for (int i = 0; i < 4; i++) {
            x0 += x1;
            x1 = sx_rotl32(x1, rotations[group % 2][i]) ^ x0;
        }
        x0 += ks[(group + 1) % 3];
        x1 += ks[(group + 2) % 3] + group + 1;
    }
    return (sx_u32x2){x0, x1};
}

/* Uniform in [0, 1) with a resolution of 2^-24. */
static inline float sx_uniform_f32(uint32_t bits)
{
    return (float)(bits >> 8) * 0x1p-24f;
}

#endif
