#include "harness.h"

#include <stdatomic.h>
#include <unistd.h>

#include "serve/executor.h"

enum { JOBS = 2000, THREADS = 3 };

struct job {
    sx_executor_job job; /* first: a job's address is its executor job's */
    atomic_int *ran;
    atomic_bool *gate;
};

static void run(sx_executor_job *base, int worker)
{
    struct job *job = (struct job *)base;
    assert_in_range(worker, 0, THREADS - 1);
    while (job->gate && !atomic_load(job->gate)) {
        usleep(100);
    }
    atomic_fetch_add(job->ran, 1);
}

static void test_serve_executor__runs_every_accepted_job(void **state)
{
    (void)state;
    static struct job jobs[JOBS];
    atomic_int ran = 0;
    int accepted = 0;
    sx_executor *executor = NULL;
    assert_ok(sx_executor_create(THREADS, JOBS, &executor));
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.job = {.fn = run}, .ran = &ran};
        accepted += sx_executor_submit(executor, &jobs[i].job);
    }
    assert_int_equal(accepted, JOBS);
    sx_executor_stop(executor); /* what is queued is run first */
    assert_int_equal(atomic_load(&ran), JOBS);
    assert_false(sx_executor_submit(executor, &jobs[0].job));
    sx_executor_destroy(executor);
}

static void test_serve_executor__refuses_beyond_its_bound(void **state)
{
    (void)state;
    struct job jobs[THREADS + 6];
    atomic_int ran = 0;
    atomic_bool gate = false;
    int accepted = 0;
    sx_executor *executor = NULL;
    assert_ok(sx_executor_create(THREADS, 4, &executor));
    for (int i = 0; i < THREADS + 6; i++) {
        jobs[i] = (struct job){.job = {.fn = run}, .ran = &ran, .gate = &gate};
        for (int wait = 0; i < THREADS && wait < 1000 && sx_executor_queued(executor) > 0; wait++) {
            usleep(1000); /* each thread takes one, so that the queue alone is counted */
        }
        accepted += sx_executor_submit(executor, &jobs[i].job);
    }
    assert_in_range(accepted, 4, THREADS + 4);
    atomic_store(&gate, true);
    sx_executor_destroy(executor);
    assert_int_equal(atomic_load(&ran), accepted);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_executor__runs_every_accepted_job),
    cmocka_unit_test(test_serve_executor__refuses_beyond_its_bound),
};
SX_TEST_MAIN(tests)
