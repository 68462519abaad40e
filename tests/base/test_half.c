/* The 16-bit formats against what their definition says, in double arithmetic: for every one of the
 * 65536 bit patterns, and for float32 values on, beside and between their neighbours. */
#include "harness.h"

#include <math.h>

#include "base/half.h"

typedef struct format {
    const char *name;
    int fraction_bits, bias; /* the exponent field takes what is left of 15 bits */
    float (*widen)(uint16_t h);
    uint16_t (*narrow)(float f);
} format;

static const format formats[] = {
    {"float16", 10, 15, sx_f16_to_f32, sx_f32_to_f16},
    {"bfloat16", 7, 127, sx_bf16_to_f32, sx_f32_to_bf16},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* (-1)^s 2^(e - bias) 1.f, or 2^(1 - bias) 0.f where e is 0. */
static double value_of(const format *f, uint16_t h)
{
    int exponent = (h & 0x7fff) >> f->fraction_bits;
    int fraction = h & ((1 << f->fraction_bits) - 1);
    double magnitude;
    if (exponent == (0x7fff >> f->fraction_bits)) {
        magnitude = fraction != 0 ? NAN : INFINITY;
    } else if (exponent == 0) {
        magnitude = ldexp(fraction, 1 - f->bias - f->fraction_bits);
    } else {
        magnitude =
            ldexp(fraction + (1 << f->fraction_bits), exponent - f->bias - f->fraction_bits);
    }
    return h & 0x8000 ? -magnitude : magnitude;
}

static void test_base_half__every_pattern(void **state)
{
    (void)state;
    for (int k = 0; k < FORMATS; k++) {
        const format *f = &formats[k];
        for (uint32_t h = 0; h < 65536; h++) {
            double expected = value_of(f, (uint16_t)h), wide = (double)f->widen((uint16_t)h);
            if (isnan(expected)) {
                assert_true(isnan(wide));
                assert_true(isnan(value_of(f, f->narrow((float)wide))));
                continue;
            }
            if (wide != expected || signbit(wide) != signbit(expected) ||
                f->narrow((float)wide) != h) {
                fail_msg("%s 0x%04x: got %a, expected %a, back 0x%04x", f->name, h, wide, expected,
                         f->narrow((float)wide));
            }
        }
    }
}

/* Between each two neighbours: below the middle, the middle (to the even one), above it. */
static void test_base_half__rounds_to_nearest_even(void **state)
{
    (void)state;
    for (int k = 0; k < FORMATS; k++) {
        const format *f = &formats[k];
        const uint16_t infinity = (uint16_t)(0x7fff >> f->fraction_bits << f->fraction_bits);
        for (uint32_t h = 0; h < infinity; h++) {
            /* Beyond the largest lies infinity, as if it were the next number. */
            double low = value_of(f, (uint16_t)h);
            double high = h + 1 < infinity ? value_of(f, (uint16_t)(h + 1))
                                           : 2 * low - value_of(f, (uint16_t)(h - 1));
            float middle = (float)((low + high) / 2);
            assert_true((double)middle == (low + high) / 2);
            const uint16_t even = (uint16_t)(h + (h & 1));
            for (uint32_t sign = 0; sign < 2; sign++) {
                float s = sign ? -1.0f : 1.0f;
                uint16_t bit = (uint16_t)(sign << 15);
                assert_int_equal(f->narrow(s * middle), even | bit);
                assert_int_equal(f->narrow(s * nextafterf(middle, 0)), h | bit);
                assert_int_equal(f->narrow(s * nextafterf(middle, INFINITY)), (h + 1) | bit);
            }
        }
        assert_int_equal(f->narrow(INFINITY), infinity);
        assert_int_equal(f->narrow(-INFINITY), infinity | 0x8000);
        assert_int_equal(f->narrow(0x1.fffffep127f), infinity);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_half__every_pattern),
    cmocka_unit_test(test_base_half__rounds_to_nearest_even),
};
SX_TEST_MAIN(tests)
