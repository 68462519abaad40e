/* Random streams and turns of the drawn data sets. */
#include "harness.h"

#include <math.h>

#include "image/draw.h"

static void test_image_draw__turns(void **state)
{
    (void)state;
    for (int i = -3000; i <= 3000; i++) {
        float turns = (float)i / 1000.0f;
        sx_point p = sx_turn(turns);
        assert_true(fabs((double)p.x - cos(2 * M_PI * (double)turns)) < 2e-6);
        assert_true(fabs((double)p.y - sin(2 * M_PI * (double)turns)) < 2e-6);
    }
    assert_true(sx_turn(0).x == 1.0f && sx_turn(0).y == 0.0f);
    assert_true(sx_turn(0.25f).y == 1.0f && sx_turn(-0.5f).x == -1.0f);
}

static void test_image_draw__streams(void **state)
{
    (void)state;
    sx_draws a = sx_draws_start("set", 7, 1), b = sx_draws_start("set", 7, 1);
    sx_draws other = sx_draws_start("other", 7, 1);
    int same = 0;
    for (int i = 0; i < 100; i++) {
        uint32_t bits = sx_draws_bits(&a);
        assert_int_equal(bits, sx_draws_bits(&b));
        same += bits == sx_draws_bits(&other);
    }
    assert_int_equal(same, 0);
    double sum = 0;
    for (int i = 0; i < 10000; i++) {
        float x = sx_draws_between(&a, -1, 3);
        assert_true(x >= -1 && x < 3);
        sum += (double)x;
        assert_in_range(sx_draws_below(&a, 7), 0, 6);
    }
    assert_true(fabs(sum / 10000 - 1) < 0.06); /* five standard deviations */
}

static void test_image_draw__coverage(void **state)
{
    (void)state;
    assert_true(sx_coverage(-2) == 0 && sx_coverage(0) == 0.5f && sx_coverage(2) == 1);
    assert_int_equal(sx_to_byte(-3), 0);
    assert_int_equal(sx_to_byte(254.6f), 255);
    assert_int_equal(sx_to_byte(1e9f), 255);
    assert_int_equal(sx_to_byte(12.4f), 12);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_image_draw__turns),
    cmocka_unit_test(test_image_draw__streams),
    cmocka_unit_test(test_image_draw__coverage),
};
SX_TEST_MAIN(tests)
