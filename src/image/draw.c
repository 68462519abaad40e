/* See draw.h. */
#include "image/draw.h"

#include <string.h>

#include "base/map.h"

static uint32_t fold(uint64_t x)
{
    return (uint32_t)x ^ (uint32_t)(x >> 32);
}

sx_draws sx_draws_start(const char *set, uint64_t seed, uint64_t index)
{
    return (sx_draws){.key = {fold(seed), fold(sx_hash64(set, strlen(set)))},
                      .counter = {fold(index), 0}};
}

uint32_t sx_draws_bits(sx_draws *draws)
{
    if (draws->left == 0) {
        draws->held = sx_threefry2x32(draws->key, draws->counter);
        draws->counter.b++;
        draws->left = 2;
    }
    draws->left--;
    return draws->left == 1 ? draws->held.a : draws->held.b;
}

float sx_draws_between(sx_draws *draws, float lower, float upper)
{
    return lower + (upper - lower) * sx_uniform_f32(sx_draws_bits(draws));
}

int sx_draws_below(sx_draws *draws, int count)
{
    return (int)((uint64_t)sx_draws_bits(draws) * (uint64_t)count >> 32);
}

/* sin(π/2 · x) and cos(π/2 · x) for x in [0, 1] by Taylor series (to the eleventh and tenth power),
 * which are exact for x = 0. */
static float sin_quarter(float x)
{
    const float a = x * 1.57079633f, s = a * a;
    float sum = s * (-1.0f / 39916800.0f) + 1.0f / 362880.0f;
    sum = sum * s - 1.0f / 5040.0f;
    sum = sum * s + 1.0f / 120.0f;
    sum = sum * s - 1.0f / 6.0f;
    return (sum * s + 1.0f) * a;
}

static float cos_quarter(float x)
{
    const float a = x * 1.57079633f, s = a * a;
    float sum = s * (-1.0f / 3628800.0f) + 1.0f / 40320.0f;
    sum = sum * s - 1.0f / 720.0f;
    sum = sum * s + 1.0f / 24.0f;
    sum = sum * s - 0.5f;
    return sum * s + 1.0f;
}

sx_point sx_turn(float turns)
{
    float quarters = (turns - (float)(int)turns) * 4.0f; /* (−4, 4) */
    quarters = quarters < 0.0f ? quarters + 4.0f : quarters;
    const int whole = (int)quarters;
    const float part = quarters - (float)whole;
    const float s = sin_quarter(part), c = cos_quarter(part);
    const sx_point by_quarter[4] = {{c, s}, {-s, c}, {-c, -s}, {s, -c}};
    return by_quarter[whole & 3];
}
