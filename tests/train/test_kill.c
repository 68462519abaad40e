/* SIGKILL at every write, fsync, rename and unlink of a run: what follows is as if nothing had
 * happened. */
#include "kill.h"

static void kill_at_call(long n)
{
    sx_failpoint_arm(n, SX_FAIL_KILL);
}

static long calls_of_a_run(const char *dir)
{
    sx_failpoint_arm(0, SX_FAIL_KILL);
    (void)train_all(dir, true);
    return sx_failpoint_count();
}

static void test_train_kill__any_system_call_may_be_the_last(void **state)
{
    (void)state;
    const char *straight = scratch("straight"), *dir = scratch("run");
    uint64_t expected = train_all(straight, true), hash = 0;
    long calls = calls_of_a_run(scratch("count")), stride = calls / 24 + 1;
    assert_true(calls > 50);
    for (long n = 1; n <= calls; n += stride) {
        bool finished = run_child(kill_at_call, n, dir, &hash);
        if (!finished) {
            assert_true(run_child(kill_at_call, 0, dir, &hash));
        }
        assert_true(hash == expected);
        assert_same_history(straight, dir);
        assert_ok(sx_run_delete(dir));
    }
}

/* Killed again and again, each time a little later. */
static void test_train_kill__progress_is_made_between_kills(void **state)
{
    (void)state;
    const char *straight = scratch("straight"), *dir = scratch("run");
    uint64_t expected = train_all(straight, true), hash = 0;
    int attempts = 0;
    while (!run_child(kill_at_call, 40, dir, &hash)) {
        assert_true(++attempts < 100);
    }
    assert_true(attempts > 3);
    assert_true(hash == expected);
    assert_same_history(straight, dir);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_train_kill__any_system_call_may_be_the_last),
    scratch_test(test_train_kill__progress_is_made_between_kills),
};
SX_TEST_MAIN(tests)
