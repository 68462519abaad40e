#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/memory.h"
#include "base/pool.h"

enum { MAX = 8 };

typedef struct counters {
    sx_pool *pool;
    int workers;
    long calls[MAX][16]; /* [worker][0], a cache line each */
    long stage[MAX][16];
    atomic_long mismatches;
} counters;

static void count_call(void *user, int worker)
{
    counters *c = user;
    c->calls[worker][0]++;
}

static void test_base_pool__every_worker_runs_once_per_run(void **state)
{
    (void)state;
    for (int workers = 1; workers <= MAX; workers++) {
        counters c = {.workers = workers};
        assert_ok(sx_pool_create(workers, &c.pool));
        assert_int_equal(sx_pool_workers(c.pool), workers);
        for (int run = 0; run < 300; run++) {
            sx_pool_run(c.pool, count_call, &c);
        }
        for (int w = 0; w < workers; w++) {
            assert_int_equal(c.calls[w][0], 300);
        }
        sx_pool_destroy(c.pool);
    }
}

/* Each worker writes its stage and checks that all others have written theirs. */
static void march(void *user, int worker)
{
    counters *c = user;
    for (long stage = 1; stage <= 200; stage++) {
        c->stage[worker][0] = stage;
        sx_pool_barrier(c->pool);
        for (int w = 0; w < c->workers; w++) {
            if (c->stage[w][0] != stage) {
                atomic_fetch_add(&c->mismatches, 1);
            }
        }
        sx_pool_barrier(c->pool);
    }
}

static void test_base_pool__barrier_separates_stages(void **state)
{
    (void)state;
    for (int workers = 1; workers <= MAX; workers++) {
        counters c = {.workers = workers};
        assert_ok(sx_pool_create(workers, &c.pool));
        sx_pool_run(c.pool, march, &c);
        sx_pool_run(c.pool, march, &c);
        assert_int_equal(c.mismatches, 0);
        sx_pool_destroy(c.pool);
    }
}

static void test_base_pool__wakes_sleeping_workers(void **state)
{
    (void)state;
    counters c = {.workers = 2};
    assert_ok(sx_pool_create(2, &c.pool));
    for (int run = 0; run < 20; run++) {
        usleep(2000); /* far beyond the spin */
        sx_pool_run(c.pool, count_call, &c);
    }
    assert_int_equal(c.calls[1][0], 20);
    sx_pool_destroy(c.pool);
}

static void slow_worker(void *user, int worker)
{
    counters *c = user;
    if (worker == 1) {
        usleep(3000);
    }
    c->calls[worker][0]++;
}

static void test_base_pool__waits_for_a_slow_worker(void **state)
{
    (void)state;
    counters c = {.workers = 3};
    assert_ok(sx_pool_create(3, &c.pool));
    for (int run = 1; run <= 10; run++) {
        sx_pool_run(c.pool, slow_worker, &c);
        assert_int_equal(c.calls[1][0], run);
    }
    sx_pool_destroy(c.pool);
}

static void record_signal_mask(void *user, int worker)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    ((counters *)user)->calls[worker][0] = sigismember(&mask, SIGINT);
}

static void test_base_pool__workers_take_no_signals(void **state)
{
    (void)state;
    counters c = {.workers = 2};
    assert_ok(sx_pool_create(2, &c.pool));
    sx_pool_run(c.pool, record_signal_mask, &c);
    assert_int_equal(c.calls[0][0], 0);
    assert_int_equal(c.calls[1][0], 1);
    sx_pool_destroy(c.pool);
}

static void test_base_pool__refuses_and_fails_cleanly(void **state)
{
    (void)state;
    sx_pool *pool = NULL;
    assert_error(sx_pool_create(100000, &pool), SX_INVALID_ARGUMENT, "the maximum is 1024");
    sx_alloc_fail_after(1);
    sx_status status = sx_pool_create(2, &pool);
    sx_alloc_fail_after(0);
    assert_error(status, SX_RESOURCE_EXHAUSTED, "out of memory for");
    assert_null(pool);
    sx_pool_destroy(NULL);
}

static void test_base_pool__runs_allocate_nothing(void **state)
{
    (void)state;
    counters c = {.workers = 2};
    assert_ok(sx_pool_create(2, &c.pool));
    long before = sx_alloc_count();
    for (int run = 0; run < 100; run++) {
        sx_pool_run(c.pool, count_call, &c);
    }
    assert_int_equal(sx_alloc_count(), before);
    sx_pool_destroy(c.pool);
}

static void test_base_pool__default_is_what_the_process_may_use(void **state)
{
    (void)state;
    cpu_set_t before, one;
    sched_getaffinity(0, sizeof(before), &before);
    int cpus = sx_cpu_count();
    assert_in_range(cpus, 1, CPU_COUNT(&before));
    int first = 0;
    assert_int_equal(sx_cpu_affinity(&first, 1), CPU_COUNT(&before));
    CPU_ZERO(&one);
    CPU_SET((size_t)first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(sx_cpu_count(), 1);
    sx_pool *pool = NULL;
    assert_ok(sx_pool_create(0, &pool));
    assert_int_equal(sx_pool_workers(pool), 1);
    sx_pool_destroy(pool);
    sched_setaffinity(0, sizeof(before), &before);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_pool__every_worker_runs_once_per_run),
    cmocka_unit_test(test_base_pool__barrier_separates_stages),
    cmocka_unit_test(test_base_pool__wakes_sleeping_workers),
    cmocka_unit_test(test_base_pool__waits_for_a_slow_worker),
    cmocka_unit_test(test_base_pool__workers_take_no_signals),
    cmocka_unit_test(test_base_pool__refuses_and_fails_cleanly),
    cmocka_unit_test(test_base_pool__runs_allocate_nothing),
    cmocka_unit_test(test_base_pool__default_is_what_the_process_may_use),
};

SX_TEST_MAIN(tests)
