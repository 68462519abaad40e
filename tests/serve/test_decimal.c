#include "harness.h"

#include <math.h>

#include "base/checked.h"
#include "base/threefry.h"
#include "serve/decimal.h"
#include "serve/decimal_list.h"

/* Random bits, the same in every run. */
static uint64_t random_bits(uint32_t *counter)
{
    const sx_u32x2 bits = sx_threefry2x32((sx_u32x2){42, 7}, (sx_u32x2){(*counter)++, 0});
    return (uint64_t)bits.a << 32 | bits.b;
}

/* The same number in a list: with text behind it, short numbers are read in a way of their own. */
static void check_in_list(const char *text, float wanted_f, double wanted_d)
{
    char list[1400];
    const size_t size = strlen(text);
    const int length = snprintf(list, sizeof(list), "%s,%100s", text, "]");
    assert_true(length > 0 && (size_t)length < sizeof(list));
    float f = 0;
    double d = 0;
    size_t count;
    const char *end = sx_decimal_read_list(list, list + length, SX_F32, &f, 1, &count);
    if (isinf(wanted_f)) {
        assert_int_equal(count, 0);
    } else if (count != 1 || end != list + size || memcmp(&f, &wanted_f, sizeof(f)) != 0) {
        fail_msg("[%s]: got %a, expected %a", text, (double)f, (double)wanted_f);
    }
    end = sx_decimal_read_list(list, list + length, SX_F64, &d, 1, &count);
    if (isinf(wanted_d)) {
        assert_int_equal(count, 0);
    } else if (count != 1 || end != list + size || memcmp(&d, &wanted_d, sizeof(d)) != 0) {
        fail_msg("[%s]: got %a, expected %a", text, d, wanted_d);
    }
}

static void check(const char *text)
{
    const size_t size = strlen(text);
    sx_decimal number;
    if (!sx_decimal_scan(text, text + size, &number) || number.end != text + size) {
        fail_msg("does not scan: %s", text);
    }
    const float f = sx_decimal_to_f32(&number), wanted_f = strtof(text, NULL);
    const double d = sx_decimal_to_f64(&number), wanted_d = strtod(text, NULL);
    if (memcmp(&f, &wanted_f, sizeof(f)) != 0 || memcmp(&d, &wanted_d, sizeof(d)) != 0) {
        fail_msg("%s: got %a and %a, expected %a and %a", text, (double)f, d, (double)wanted_f,
                 wanted_d);
    }
    check_in_list(text, wanted_f, wanted_d);
}

static void test_serve_decimal__edges_are_rounded_right(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0",
        "0.0",
        "-0.0e5",
        "1",
        "-1",
        "123456789012345678",
        "1e0",
        "1E+5",
        "1e-5",
        "16777216",
        "16777217",
        "16777218",
        "16777219", /* ties of float */
        "9007199254740992",
        "9007199254740993",
        "9007199254740993.0000000000000000000001",
        "1.00000005960464477539062500",
        "1.00000005960464477539062501",
        "1.00000005960464477539062499",
        "3.4028234663852886e38",
        "3.4028235677973366e38",
        "3.4028235677973367e38",
        "1e39",
        "1e309",
        "-1e400",
        "1e999999999999",
        "1e-999999999999",
        "1.401298464324817e-45",
        "7.006492321624085e-46",
        "7.0064923216240854e-46",
        "7e-46",
        "1.1754943508222875e-38",
        "1.1754942807573643e-38",
        "4.9406564584124654e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "0.000000000000000000000000000000000000000000000000000000000000000000000000000000001",
        "100000000000000000000000000000000000000000000000000000000000000000000000000000000",
        "0.1e1",
        "123456789.123456789123456789123456789",
        "99999999999999999999",
        "18446744073709551615",
        "18446744073709551616",
        "8.5899345920e9",
        "1e23",
        "9e22",
        "8.98846567431158e307",
        "6.631236846766476e-316",
        "0.3e-322",
    };
    for (size_t i = 0; i < SX_COUNT(texts); i++) {
        check(texts[i]);
    }
}

/* Bit-equal to strtof and strtod on a million values: shortest and long texts, random digits and
 * exponents, and the exact midpoints between neighbouring floats. */
static void test_serve_decimal__random_values_equal_strtod(void **state)
{
    (void)state;
    uint32_t counter = 0;
    char text[400];
    for (int i = 0; i < 250000; i++) {
        const uint64_t bits = random_bits(&counter);
        float f, next;
        double d;
        const uint32_t narrow = (uint32_t)bits;
        memcpy(&f, &narrow, sizeof(f));
        memcpy(&d, &bits, sizeof(d));
        if (isfinite(f)) {
            snprintf(text, sizeof(text), "%.9g", (double)f);
            check(text);
            next = nextafterf(f, INFINITY);
            snprintf(text, sizeof(text), "%.*e", i % 3 == 0 ? 160 : 17,
                     ((double)f + (double)next) / 2);
            if (isfinite(next)) {
                check(text);
            }
        }
        if (isfinite(d)) {
            snprintf(text, sizeof(text), "%.17g", d);
            check(text);
        }
        snprintf(text, sizeof(text), "%s%llu.%llue%d", bits & 1 ? "-" : "",
                 (unsigned long long)(random_bits(&counter) >> (bits % 64)),
                 (unsigned long long)random_bits(&counter), (int)(bits >> 32) % 400);
        check(text);
        snprintf(text, sizeof(text), "%s%llu.%0*llu", bits & 1 ? "-" : "",
                 (unsigned long long)bits >> 40 >> bits / 2 % 24, 1 + i % 17,
                 (unsigned long long)random_bits(&counter) >> (8 + i % 50));
        check(text);
    }
}

static void test_serve_decimal__refuses_what_json_refuses(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",    "-",     "+1",    ".5",  "1.",  "01",  "-01",  "00",        "1e",
        "1e+", "e5",    "1.e5",  "a",   "NaN", "--1", " 1",   "0x1",       "1/2",
        "/",   "1.2.3", "1.2-3", "1-2", "-",   "-.5", "00.5", "12345678/", "0.12345678-"};
    for (size_t i = 0; i < SX_COUNT(texts); i++) {
        sx_decimal number;
        const size_t size = strlen(texts[i]);
        /* "0x1" is the number 0 followed by something else. */
        const bool scanned = sx_decimal_scan(texts[i], texts[i] + size, &number);
        assert_false(scanned && number.end == texts[i] + size);
        char list[200];
        float value;
        size_t count;
        const int length = snprintf(list, sizeof(list), "%s,%100s", texts[i], "]");
        assert_true(length > 0);
        const char *end = sx_decimal_read_list(list, list + length, SX_F32, &value, 1, &count);
        assert_true(count == 0 || *end != ',');
    }
}

static void test_serve_decimal__integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool fits_i64, fits_u64;
        int64_t i64;
        uint64_t u64;
    } rows[] = {
        {"0", true, true, 0, 0},
        {"-0", true, true, 0, 0},
        {"-7", true, false, -7, 0},
        {"9223372036854775807", true, true, INT64_MAX, INT64_MAX},
        {"9223372036854775808", false, true, 0, (uint64_t)INT64_MAX + 1},
        {"-9223372036854775808", true, false, INT64_MIN, 0},
        {"-9223372036854775809", false, false, 0, 0},
        {"18446744073709551615", false, true, 0, UINT64_MAX},
        {"18446744073709551616", false, false, 0, 0},
        {"99999999999999999999999", false, false, 0, 0},
        {"1.0", false, false, 0, 0},
        {"1e3", false, false, 0, 0},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_decimal number;
        int64_t i64 = 0;
        uint64_t u64 = 0;
        assert_true(sx_decimal_scan(rows[i].text, rows[i].text + strlen(rows[i].text), &number));
        assert_int_equal(sx_decimal_to_i64(&number, &i64), rows[i].fits_i64);
        assert_int_equal(sx_decimal_to_u64(&number, &u64), rows[i].fits_u64);
        assert_true(i64 == rows[i].i64 && u64 == rows[i].u64);
    }
}

/* The text ends where it is said to, whatever stands behind it: no byte there is read. */
static void test_serve_decimal__lists_end_at_the_end(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size; /* of it */
        size_t count, done;
    } rows[] = {
        {"1, 2 , 3", 8, 3, 8},     {"1, 2 , 3]", 8, 3, 8}, {"1, 2 ,3", 5, 2, 4},
        {"1 ,2", 1, 1, 1},         {"1 ,2", 2, 1, 1},      {"1 ,2", 3, 1, 1},
        {"12", 1, 1, 1},           {"1  , 2", 2, 1, 1},    {"1,  2", 3, 1, 1},
        {"1,\t\n\r 2 3", 7, 2, 7}, {"", 0, 0, 0},          {"1e999, 2", 8, 0, 0},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        float f32[8];
        double f64[8];
        size_t n32 = 9, n64 = 9;
        const char *end = rows[i].text + rows[i].size;
        assert_ptr_equal(sx_decimal_read_list(rows[i].text, end, SX_F32, f32, 8, &n32),
                         rows[i].text + rows[i].done);
        assert_ptr_equal(sx_decimal_read_list(rows[i].text, end, SX_F64, f64, 8, &n64),
                         rows[i].text + rows[i].done);
        assert_int_equal(n32, rows[i].count);
        assert_int_equal(n64, rows[i].count);
        for (size_t k = 0; k < n32; k++) {
            assert_true(f32[k] == (float)(k + 1) && f64[k] == (double)(k + 1));
        }
    }
    double two[2];
    size_t n = 0;
    const char *text = "1,2,3";
    assert_ptr_equal(sx_decimal_read_list(text, text + 5, SX_F64, two, 2, &n), text + 3);
    assert_int_equal(n, 2);
}

/* Lists of two numbers, as those of images' pixels. */
static void test_serve_decimal__rows(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t count, done; /* rows, and the end of the last one */
    } rows[] = {
        {"[1,2],[3,4],[5,6]", 3, 17},
        {"[1,2],[3,4],[5,6]]                                            ", 3, 17},
        {"[1.0,2.0],[3.000,4],[5,6e0],                                  ", 3, 27},
        {"[ 1 ,\t2 ]\n, [3, 4.0] ,\r[5,6] ]                             ", 3, 28},
        {"[1,2],[3,4],[5,6],[7,8],[9,10]", 4, 23},
        {"[1,2],[3],[5,6]                                               ", 1, 5},
        {"[1,2],[3,4,5],[5,6]                                           ", 1, 5},
        {"[1,2],[3,4,],[5,6]                                            ", 1, 5},
        {"[1,2],[3,NaN],[5,6]                                           ", 1, 5},
        {"[1,2],[3,1e999],[5,6]                                         ", 1, 5},
        {"[1,2],[],[5,6]                                                ", 1, 5},
        {"[1,2],[[3,4]]                                                 ", 1, 5},
        {"[1,2][3,4]                                                    ", 1, 5},
        {"[1,2],,[3,4]                                                  ", 1, 5},
        {"[1,2],3,4]                                                    ", 1, 5},
        {"[1,2],[3,4", 1, 5},
        {"[1,2],[", 1, 5},
        {"[1,2", 0, 0},
        {"1,2", 0, 0},
        {"", 0, 0},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        float f32[8];
        double f64[8];
        size_t n32 = 9, n64 = 9;
        const char *text = rows[i].text, *end = text + strlen(text);
        assert_ptr_equal(sx_decimal_read_rows(text, end, SX_F32, f32, 2, 4, &n32),
                         text + rows[i].done);
        assert_ptr_equal(sx_decimal_read_rows(text, end, SX_F64, f64, 2, 4, &n64),
                         text + rows[i].done);
        assert_int_equal(n32, rows[i].count);
        assert_int_equal(n64, rows[i].count);
        for (size_t k = 0; k < 2 * n32; k++) {
            assert_true(f32[k] == (float)(k + 1) && f64[k] == (double)(k + 1));
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_decimal__edges_are_rounded_right),
    cmocka_unit_test(test_serve_decimal__random_values_equal_strtod),
    cmocka_unit_test(test_serve_decimal__refuses_what_json_refuses),
    cmocka_unit_test(test_serve_decimal__integers),
    cmocka_unit_test(test_serve_decimal__lists_end_at_the_end),
    cmocka_unit_test(test_serve_decimal__rows),
};
SX_TEST_MAIN(tests)
