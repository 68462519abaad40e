/* SIGKILL at random moments, and at every single system call that changes the disk. */
#include "kill.h"

#include <time.h>

static void die_after(long microseconds)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    const struct itimerspec when = {.it_value = {.tv_nsec = 1000 * microseconds}};
    if (microseconds > 0 && (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
                             timer_settime(timer, 0, &when, NULL) != 0)) {
        _exit(4);
    }
}

static int64_t time_of_a_run(const char *dir)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    (void)train_all(dir, true);
    clock_gettime(CLOCK_MONOTONIC, &b);
    return (b.tv_sec - a.tv_sec) * 1000000 + (b.tv_nsec - a.tv_nsec) / 1000;
}

static void test_train_kill__at_twenty_random_moments(void **state)
{
    (void)state;
    const char *straight = scratch("straight"), *dir = scratch("run");
    uint64_t expected = train_all(straight, true), hash = 0;
    int64_t whole = time_of_a_run(scratch("time"));
    int killed = 0;
    srand(1);
    for (int round = 0; killed < 20; round++) {
        assert_true(round < 200); /* enough of the kills must strike */
        bool finished = run_child(die_after, 1 + (long)(rand() % whole), dir, &hash);
        killed += !finished;
        if (finished) {
            assert_true(hash == expected);
            assert_same_folder(straight, dir);
            assert_ok(sx_run_delete(dir));
        }
    }
    assert_true(run_child(die_after, 0, dir, &hash));
    assert_true(hash == expected);
}

static void kill_at_call(long n)
{
    sx_failpoint_arm(n, SX_FAIL_KILL);
}

static void test_train_kill__at_every_system_call(void **state)
{
    (void)state;
    const char *straight = scratch("straight"), *dir = scratch("run");
    uint64_t expected = train_all(straight, true), hash = 0;
    for (long n = 1; !run_child(kill_at_call, n, dir, &hash); n++) {
        assert_true(run_child(kill_at_call, 0, dir, &hash));
        assert_true(hash == expected);
        assert_same_folder(straight, dir);
        assert_ok(sx_run_delete(dir));
    }
}

static const struct CMUnitTest tests[] = {
    kill_test(test_train_kill__at_twenty_random_moments),
    kill_test(test_train_kill__at_every_system_call),
};
SX_TEST_MAIN(tests)
