#include "harness.h"

#include "base/threefry.h"

/* Known answers of threefry2x32-20 from Random123's kat_vectors. */
static void test_base_threefry__known_answers(void **state)
{
    (void)state;
    static const struct {
        sx_u32x2 counter, key, expected;
    } rows[] = {
        {{0, 0}, {0, 0}, {0x6b200159u, 0x99ba4efeu}},
        {{0xffffffffu, 0xffffffffu}, {0xffffffffu, 0xffffffffu}, {0x1cb996fcu, 0xbb002be7u}},
        {{0x243f6a88u, 0x85a308d3u}, {0x13198a2eu, 0x03707344u}, {0xc4923a9cu, 0x483df7a0u}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_u32x2 got = sx_threefry2x32(rows[i].key, rows[i].counter);
        assert_int_equal(got.a, rows[i].expected.a);
        assert_int_equal(got.b, rows[i].expected.b);
    }
}

static void test_base_threefry__uniform_stays_below_one(void **state)
{
    (void)state;
    assert_true(sx_uniform_f32(0) == 0.0f);
    assert_true(sx_uniform_f32(UINT32_MAX) < 1.0f);
    assert_true(sx_uniform_f32(0x80000000u) == 0.5f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_threefry__known_answers),
    cmocka_unit_test(test_base_threefry__uniform_stays_below_one),
};

SX_TEST_MAIN(tests)
