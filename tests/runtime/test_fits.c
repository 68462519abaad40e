/* Which batch fits: the line through two. */
#include "harness.h"

#include "runtime/memory_fit.h"

static void test_runtime_fits__the_line(void **state)
{
    (void)state;
    /* 1000 + 10 a batch */
    assert_int_equal(sx_batch_within(10, 1100, 20, 1200, 2000, 1), 100);
    assert_int_equal(sx_batch_within(20, 1200, 10, 1100, 2000, 1), 100);
    assert_int_equal(sx_batch_within(10, 1100, 20, 1200, 2009, 8), 96);
    assert_int_equal(sx_batch_within(10, 1100, 20, 1200, 1005, 1), 0); /* not even one */
}

static void test_runtime_fits__no_line_says_nothing(void **state)
{
    (void)state;
    assert_int_equal(sx_batch_within(10, 1100, 10, 1200, 2000, 1), 0);
    assert_int_equal(sx_batch_within(10, 1100, 20, 1100, 2000, 1), 0);
    assert_int_equal(sx_batch_within(10, 1200, 20, 1100, 2000, 1), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_fits__the_line),
    cmocka_unit_test(test_runtime_fits__no_line_says_nothing),
};
SX_TEST_MAIN(tests)
