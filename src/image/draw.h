/* Shared by the synthetic data sets: a stream of random numbers, rotations, soft edges. Results are
 * identical on every machine; see generate.h. */
#ifndef SX_IMAGE_DRAW_H
#define SX_IMAGE_DRAW_H

#include <stdint.h>

#include "base/threefry.h"

/* ---- An endless stream of random 32-bit numbers for an image ---- */

typedef struct sx_draws {
    sx_u32x2 key, counter, held;
    int left; /* unused numbers in `held` */
} sx_draws;

sx_draws sx_draws_start(const char *set, uint64_t seed, uint64_t index);
uint32_t sx_draws_bits(sx_draws *draws);
float sx_draws_between(sx_draws *draws, float lower, float upper); /* [lower, upper) */
int sx_draws_below(sx_draws *draws, int count);                    /* [0, count) */

/* ---- Geometry ---- */

typedef struct sx_point {
    float x, y; /* x to the right, y down */
} sx_point;

/* (cos, sin) of an angle in full turns, from −1000 to 1000; accurate to 1e-6. */
sx_point sx_turn(float turns);

/* The fraction of a pixel that is inside, from its centre's distance to the edge (negative:
 * outside). */
static inline float sx_coverage(float inside)
{
    float covered = inside + 0.5f;
    return covered < 0.0f ? 0.0f : covered > 1.0f ? 1.0f : covered;
}

static inline uint8_t sx_to_byte(float x)
{
    return x <= 0.0f ? 0 : x >= 255.0f ? 255 : (uint8_t)(x + 0.5f);
}

#endif
