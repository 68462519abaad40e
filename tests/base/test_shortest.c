#include "harness.h"

#include <math.h>

#include "base/checked.h"
#include "base/threefry.h"
#include "base/shortest.h"

static void test_base_shortest__layout(void **state)
{
    (void)state;
    static const struct {
        float value;
        const char *text;
    } floats[] = {
        {0.0f, "0.0"},
        {-0.0f, "-0.0"},
        {1, "1.0"},
        {-1.5f, "-1.5"},
        {0.1f, "0.1"},
        {100, "100.0"},
        {16777216, "16777216.0"},
        {0.0001f, "0.0001"},
        {0.00001f, "1e-05"},
        {1e16f, "1e+16"},
        {1e15f, "1000000000000000.0"},
        {3.4028235e38f, "3.4028235e+38"},
        {1e-45f, "1e-45"},
        {0.3f, "0.3"},
        {1.1754944e-38f, "1.1754944e-38"},
        {NAN, "NaN"},
        {INFINITY, "Infinity"},
        {-INFINITY, "-Infinity"},
        {33554432.0f, "33554432.0"},
        {9.5367431640625e-7f, "9.536743e-07"},
    };
    static const struct {
        double value;
        const char *text;
    } doubles[] = {
        {0.1, "0.1"},
        {1e22, "1e+22"},
        {1e23, "1e+23"},
        {5e-324, "5e-324"},
        {1e15, "1000000000000000.0"},
        {9007199254740993.0, "9007199254740992.0"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {123456.789, "123456.789"},
        {-NAN, "NaN"},
    };
    char text[SX_NUMBER_TEXT + 1];
    for (size_t i = 0; i < SX_COUNT(floats); i++) {
        *sx_print_f32(text, floats[i].value) = '\0';
        assert_string_equal(text, floats[i].text);
    }
    for (size_t i = 0; i < SX_COUNT(doubles); i++) {
        *sx_print_f64(text, doubles[i].value) = '\0';
        assert_string_equal(text, doubles[i].text);
    }
}

static int significant_digits(const char *text)
{
    int digits = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (digits == 0 && *text == '0')) {
            continue;
        }
        digits++;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return digits - zeros;
}

/* Random values read back to the same bits, by no more digits than printf needs. */
static void test_base_shortest__reads_back_and_is_short(void **state)
{
    (void)state;
    char text[SX_NUMBER_TEXT + 1], other[64];
    for (uint32_t i = 0; i < 300000; i++) {
        const sx_u32x2 bits = sx_threefry2x32((sx_u32x2){1, 2}, (sx_u32x2){i, 0});
        float f;
        double d;
        int needed = 1;
        memcpy(&f, &bits.a, sizeof(f));
        memcpy(&d, &bits, sizeof(d));
        if (!isfinite(f) || !isfinite(d)) {
            continue;
        }
        *sx_print_f32(text, f) = '\0';
        const float f_back = strtof(text, NULL);
        assert_memory_equal(&f_back, &f, sizeof(f));
        for (; needed < 9; needed++) {
            snprintf(other, sizeof(other), "%.*e", needed - 1, (double)f);
            if (strtof(other, NULL) == f) {
                break;
            }
        }
        assert_true(significant_digits(text) <= needed);
        *sx_print_f64(text, d) = '\0';
        const double d_back = strtod(text, NULL);
        assert_memory_equal(&d_back, &d, sizeof(d));
        for (needed = 15; needed < 17; needed++) {
            snprintf(other, sizeof(other), "%.*e", needed - 1, d);
            if (strtod(other, NULL) == d) {
                break;
            }
        }
        assert_true(significant_digits(text) <= needed);
    }
}

/* All powers of two, whose lower neighbour is nearer, and their neighbours. */
static void test_base_shortest__powers_of_two(void **state)
{
    (void)state;
    char text[SX_NUMBER_TEXT + 1];
    for (int exponent = -1074; exponent < 1024; exponent++) {
        const double d = ldexp(1, exponent),
                     around[3] = {nextafter(d, 0), d, nextafter(d, INFINITY)};
        for (int i = 0; i < 3; i++) {
            const float f = (float)around[i];
            *sx_print_f64(text, around[i]) = '\0';
            assert_true(strtod(text, NULL) == around[i]);
            *sx_print_f32(text, f) = '\0';
            assert_true(isinf(f) || strtof(text, NULL) == f);
        }
    }
}

static void test_base_shortest__integers(void **state)
{
    (void)state;
    static const uint64_t values[] = {0,
                                      9,
                                      10,
                                      99,
                                      100,
                                      4095,
                                      4096,
                                      UINT32_MAX,
                                      9999999999,
                                      10000000000,
                                      INT64_MAX,
                                      (uint64_t)INT64_MAX + 1,
                                      UINT64_MAX,
                                      9999999999999999999u,
                                      10000000000000000000u};
    char text[SX_NUMBER_TEXT + 1], other[32];
    for (size_t i = 0; i < SX_COUNT(values); i++) {
        *sx_print_u64(text, values[i]) = '\0';
        snprintf(other, sizeof(other), "%llu", (unsigned long long)values[i]);
        assert_string_equal(text, other);
        *sx_print_i64(text, (int64_t)values[i]) = '\0';
        snprintf(other, sizeof(other), "%lld", (long long)values[i]);
        assert_string_equal(text, other);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_shortest__layout),
    cmocka_unit_test(test_base_shortest__reads_back_and_is_short),
    cmocka_unit_test(test_base_shortest__powers_of_two),
    cmocka_unit_test(test_base_shortest__integers),
};
SX_TEST_MAIN(tests)
