/* Conversion of the two 16-bit floating-point formats to and from float32, rounding to nearest
 * even.
 *
 *   bfloat16   s eeeeeeee fffffff          the upper half of a float32
 *   float16    s eeeee ffffffffff          IEEE 754 binary16 */
#ifndef SX_BASE_HALF_H
#define SX_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t sx_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

static inline float sx_f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static inline float sx_bf16_to_f32(uint16_t h)
{
    return sx_f32_from_bits((uint32_t)h << 16);
}

static inline uint16_t sx_f32_to_bf16(float f)
{
    uint32_t u = sx_f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)((u >> 16) | 0x40); /* quiet NaN */
    }
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}

static inline float sx_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31, fraction = h & 0x3ff;
    if (exponent == 31) {
        return sx_f32_from_bits(sign | 0x7f800000u | fraction << 13);
    }
    if (exponent == 0) {
        float magnitude = (float)fraction * 0x1p-24f;
        return sign != 0 ? -magnitude : magnitude;
    }
    return sx_f32_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

static inline uint16_t sx_f32_to_f16(float f)
{
    uint32_t u = sx_f32_bits(f), sign = (u >> 16) & 0x8000, magnitude = u & 0x7fffffffu;
    if (magnitude >= 0x7f800000u) {
        return (uint16_t)(sign | 0x7c00 | (magnitude > 0x7f800000u ? 0x200 : 0));
    }
    if (magnitude >= 0x477ff000u) { /* rounds beyond 65504 */
        return (uint16_t)(sign | 0x7c00);
    }
    if (magnitude < 0x38800000u) { /* subnormal: adding 0.5 aligns and rounds the fraction */
        float aligned = sx_f32_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (sx_f32_bits(aligned) - 0x3f000000u));
    }
    return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1)) >> 13));
}

#endif
