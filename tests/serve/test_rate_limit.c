#include "harness.h"

#include "serve/rate_limit.h"

static const int64_t second = 1000000000;

/* How many of requests at `asked` a second, for ten seconds, are let through. */
static int let_through(sx_rate_limit *limit, uint64_t key, double per_second, int asked,
                       int64_t begin_ns)
{
    int taken = 0;
    for (int i = 0; i < 10 * asked; i++) {
        taken += sx_rate_limit_take(limit, key, per_second, begin_ns + i * second / asked);
    }
    return taken;
}

static void test_serve_rate_limit__buckets(void **state)
{
    (void)state;
    static sx_rate_limit limit;
    sx_rate_limit_init(&limit);
    assert_in_range(let_through(&limit, 1, 20, 100, 100 * second), 219, 221); /* and a second's */
    assert_in_range(let_through(&limit, 1, 20, 100, 110 * second), 199, 201);
    assert_int_equal(let_through(&limit, 2, 20, 10, 110 * second), 100); /* another client */
    assert_in_range(let_through(&limit, 3, 0.5, 100, 110 * second), 5, 6);
    assert_false(sx_rate_limit_take(&limit, 3, 0.5, 90 * second)); /* a clock that went back */
    /* more clients than buckets: each begins with a full one, and nothing grows */
    for (uint64_t key = 100; key < 100 + 3 * SX_RATE_BUCKETS; key++) {
        assert_true(sx_rate_limit_take(&limit, key, 1, 200 * second + (int64_t)key));
    }
    sx_rate_limit_deinit(&limit);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_rate_limit__buckets),
};
SX_TEST_MAIN(tests)
