#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "serve/executor.h"

enum { JOBS = 2000, THREADS = 3 };

struct job {
    sx_executor_job job; /* first: a job's address is its executor job's */
    atomic_int *ran, *begun;
    atomic_bool *gate;
};

static bool run(sx_executor_job *base, int worker)
{
    struct job *job = (struct job *)base;
    assert_in_range(worker, 0, THREADS - 1);
    if (job->begun) {
        atomic_fetch_add(job->begun, 1);
    }
    while (job->gate && !atomic_load(job->gate)) {
        usleep(100);
    }
    atomic_fetch_add(job->ran, 1);
    return true;
}

static void test_serve_executor__runs_every_accepted_job(void **state)
{
    (void)state;
    static struct job jobs[JOBS];
    atomic_int ran = 0;
    int accepted = 0;
    sx_executor *executor = NULL;
    assert_ok(sx_executor_create(THREADS, 0, JOBS, &executor));
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.job = {.fn = run}, .ran = &ran};
        accepted += sx_executor_submit(executor, &jobs[i].job);
    }
    assert_int_equal(accepted, JOBS);
    sx_executor_stop(executor); /* what is queued is run first */
    assert_int_equal(atomic_load(&ran), JOBS);
    assert_false(sx_executor_submit(executor, &jobs[0].job));
    sx_executor_destroy(executor);
    sx_executor_destroy(NULL);
}

/* With every thread busy, exactly so many wait; one more is accepted for each that is taken. */
static void test_serve_executor__refuses_beyond_its_bound(void **state)
{
    (void)state;
    enum { QUEUED = 4 };
    struct job jobs[THREADS + 2 * QUEUED];
    atomic_int ran = 0, begun = 0;
    atomic_bool gate = false, opened = true;
    sx_executor *executor = NULL;
    int n = 0;
    assert_ok(sx_executor_create(THREADS, 0, QUEUED, &executor));
    for (; n < THREADS; n++) {
        jobs[n] = (struct job){.job = {.fn = run}, .ran = &ran, .begun = &begun, .gate = &gate};
        assert_true(sx_executor_submit(executor, &jobs[n].job));
    }
    while (atomic_load(&begun) < THREADS) {
        usleep(100);
    }
    for (int i = 0; i < QUEUED; i++, n++) {
        assert_int_equal(sx_executor_queued(executor), i);
        jobs[n] = (struct job){.job = {.fn = run}, .ran = &ran, .begun = &begun, .gate = &opened};
        assert_true(sx_executor_submit(executor, &jobs[n].job));
    }
    jobs[n] = (struct job){.job = {.fn = run}, .ran = &ran, .begun = &begun, .gate = &opened};
    assert_false(sx_executor_submit(executor, &jobs[n].job));
    assert_int_equal(sx_executor_queued(executor), QUEUED);
    atomic_store(&gate, true);
    while (sx_executor_queued(executor) > 0) {
        usleep(100);
    }
    assert_true(sx_executor_submit(executor, &jobs[n].job));
    sx_executor_destroy(executor);
    assert_int_equal(atomic_load(&ran), n + 1);
}

/* Jobs that run a model leave their place to others, up to a bound of threads. */
struct leaver {
    sx_executor_job job;
    sx_executor *executor;
    atomic_int *away, *workers;
    atomic_bool *gate;
    bool left;
};

static bool leave(sx_executor_job *base, int worker)
{
    struct leaver *job = (struct leaver *)base;
    assert_in_range(worker, 0, 2 * THREADS - 1);
    if (job->left) {
        return true;
    }
    job->left = true;
    sx_executor_leave(job->executor, worker);
    atomic_fetch_or(job->workers, 1 << worker);
    atomic_fetch_add(job->away, 1);
    while (!atomic_load(job->gate)) {
        usleep(100);
    }
    const bool ended = sx_executor_return(job->executor, worker);
    if (!ended) {
        sx_executor_resume(job->executor, &job->job, false);
    }
    return ended;
}

static void test_serve_executor__others_replace_jobs_that_run(void **state)
{
    (void)state;
    struct leaver jobs[3 * THREADS];
    atomic_int away = 0, workers = 0;
    atomic_bool gate = false;
    sx_executor *executor = NULL;
    assert_ok(sx_executor_create(THREADS, THREADS, 3 * THREADS, &executor));
    for (int i = 0; i < 3 * THREADS; i++) {
        jobs[i] = (struct leaver){{.fn = leave}, executor, &away, &workers, &gate, false};
        assert_true(sx_executor_submit(executor, &jobs[i].job));
    }
    while (atomic_load(&away) < 2 * THREADS) {
        usleep(100);
    }
    assert_int_equal(atomic_load(&workers), (1 << 2 * THREADS) - 1);
    assert_int_equal(sx_executor_queued(executor), THREADS);
    atomic_store(&gate, true);
    sx_executor_destroy(executor);
    assert_int_equal(atomic_load(&away), 3 * THREADS);
}

/* A job that waits holds no thread, goes on before those that have not begun, and is waited for
 * when the executor stops. */
struct waiter {
    sx_executor_job job;
    atomic_int *begun, *order;
    int ended_as; /* the how-many-eth of all */
    bool waits;
};

static bool wait_once(sx_executor_job *base, int worker)
{
    struct waiter *job = (struct waiter *)base;
    (void)worker;
    if (job->waits) {
        job->waits = false;
        atomic_fetch_add(job->begun, 1);
        return false;
    }
    job->ended_as = atomic_fetch_add(job->order, 1);
    return true;
}

static void *stop(void *executor)
{
    sx_executor_stop(executor);
    return NULL;
}

static void test_serve_executor__jobs_wait_without_threads(void **state)
{
    (void)state;
    static struct waiter jobs[JOBS];
    struct job blocker, late;
    atomic_int begun = 0, order = 0, ran = 0;
    atomic_bool gate = false;
    pthread_t stopper;
    sx_executor *executor = NULL;
    assert_ok(sx_executor_create(1, 0, JOBS, &executor));
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct waiter){{.fn = wait_once}, &begun, &order, -1, true};
        assert_true(sx_executor_submit(executor, &jobs[i].job));
    }
    while (atomic_load(&begun) < JOBS) {
        usleep(100);
    }
    blocker = (struct job){.job = {.fn = run}, .ran = &ran, .gate = &gate};
    late = (struct job){.job = {.fn = run}, .ran = &order};
    assert_true(sx_executor_submit(executor, &blocker.job));
    assert_true(sx_executor_submit(executor, &late.job));
    for (int i = 0; i < JOBS / 2; i++) {
        sx_executor_resume(executor, &jobs[i].job, false);
    }
    atomic_store(&gate, true);
    while (atomic_load(&order) < JOBS / 2 + 1) { /* and the late one, which is the last of them */
        usleep(100);
    }
    for (int i = 0; i < JOBS / 2; i++) {
        assert_int_equal(jobs[i].ended_as, i);
    }
    assert_int_equal(pthread_create(&stopper, NULL, stop, executor), 0);
    usleep(10000);
    for (int i = JOBS / 2; i < JOBS; i++) {
        sx_executor_resume(executor, &jobs[i].job, false);
    }
    pthread_join(stopper, NULL);
    assert_int_equal(atomic_load(&order), JOBS + 1);
    sx_executor_destroy(executor);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_executor__runs_every_accepted_job),
    cmocka_unit_test(test_serve_executor__refuses_beyond_its_bound),
    cmocka_unit_test(test_serve_executor__others_replace_jobs_that_run),
    cmocka_unit_test(test_serve_executor__jobs_wait_without_threads),
};
SX_TEST_MAIN(tests)
