#include "harness.h"

#include "base/cancel.h"
#include "base/clock.h"

static void test_base_cancel__stops_on_request_and_at_its_deadline(void **state)
{
    (void)state;
    sx_cancel cancel;
    sx_cancel_init(&cancel, INT64_MAX);
    assert_ok(sx_cancel_check(&cancel));
    assert_false(sx_cancel_requested(&cancel));
    sx_cancel_request(&cancel);
    assert_true(sx_cancel_requested(&cancel));
    assert_error(sx_cancel_check(&cancel), SX_CANCELLED, "cancelled by the caller");
    sx_cancel_init(&cancel, sx_now_ns() + (int64_t)3600 * 1000000000);
    assert_ok(sx_cancel_check(&cancel)); /* a new token, not yet due */
    sx_cancel_init(&cancel, sx_now_ns());
    assert_error(sx_cancel_check(&cancel), SX_DEADLINE_EXCEEDED, "deadline");
    assert_false(sx_cancel_requested(&cancel)); /* the clock is not looked at */
    sx_cancel_request(&cancel);
    assert_error(sx_cancel_check(&cancel), SX_DEADLINE_EXCEEDED, "deadline");
    assert_ok(sx_cancel_check(NULL));
    assert_false(sx_cancel_requested(NULL));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_cancel__stops_on_request_and_at_its_deadline),
};

SX_TEST_MAIN(tests)
