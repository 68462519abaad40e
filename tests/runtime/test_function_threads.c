/* Threads that run functions of one runner at once: which locks they take, and that frames and
 * programs that are evicted meanwhile are nobody's. */
#include "function_running.h"

#include <pthread.h>
#include <stdatomic.h>

/* Every lock that the library takes is counted (cmake/tests.cmake: linked with --wrap). */
static atomic_long n_locks;

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    atomic_fetch_add(&n_locks, 1);
    return __real_pthread_mutex_lock(mutex);
}

int __real_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    atomic_fetch_add(&n_locks, 1);
    return __real_pthread_rwlock_rdlock(lock);
}

/* exp of the numbers of the elements that are not zero: a late call. */
static const char steps[] = "sextant-library 2\nfunction \"main\"\ninput %1 float32[?] \"x\"\n"
                            "%2 = where(%1) int64[?,1] \"where\"\n"
                            "%3 = cast(%2) {dtype=float32} float32[?,1] \"cast\"\n"
                            "%4 = exp(%3) float32[?,1] \"exp\"\noutput \"y\" %4\nend\n";

/* While it is set, two threads meet whenever they check for cancellation, before each step: both
 * have a frame for what they run. */
static _Atomic(pthread_barrier_t *) meeting;

sx_status __real_sx_cancel_check(const sx_cancel *cancel);
sx_status __wrap_sx_cancel_check(const sx_cancel *cancel);
sx_status __wrap_sx_cancel_check(const sx_cancel *cancel)
{
    pthread_barrier_t *here = atomic_load(&meeting);
    if (here != NULL) {
        pthread_barrier_wait(here);
    }
    return __real_sx_cancel_check(cancel);
}

enum { THREADS = 4, MAX_X = 64 };

typedef struct worker {
    running *t;
    const char *name; /* of a function of x and, if n_in is 2, of an int32 */
    int n_in, n_out;
    int64_t first, last, runs; /* sizes of x */
    bool small_budget;         /* whether RESOURCE_EXHAUSTED may happen */
    bool right;
} worker;

static void *work(void *user)
{
    worker *w = user;
    float x[MAX_X];
    int32_t trips = 3;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    for (int i = 0; i < MAX_X; i++) {
        x[i] = 1;
    }
    w->right = true;
    for (int64_t k = 0; k < w->runs; k++) {
        const int64_t n = w->first + k % (w->last - w->first + 1);
        sx_tensor in[2] = {floats(x, 1, n, 0), {sx_scalar_type(SX_I32), &trips}}, y[2];
        sx_arena_reset(&arena);
        sx_status status =
            sx_runner_run(w->t->runner, w->name, in, w->n_in, y, w->n_out, &arena, NULL);
        if (status == SX_OK) {
            const int64_t elems = sx_type_elems(&y[0].type);
            const int64_t expected = strcmp(w->name, "grow") == 0 ? n << trips : n;
            const float last = ((const float *)y[0].data)[elems - 1];
            w->right = w->right && elems == expected && last != 0;
        } else {
            w->right =
                w->right && w->small_budget && sx_status_code(status) == SX_RESOURCE_EXHAUSTED;
            sx_status_free(status);
        }
    }
    sx_arena_deinit(&arena);
    return NULL;
}

static void work_all(worker *workers, int n)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < n; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        assert_true(workers[i].right);
    }
}

/* Device steps, host steps and late calls, loops that the host drives. */
static void test_runtime_function_threads__no_lock_at_known_shapes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
        int n_in, n_out;
    } cases[] = {{steps, "main", 1, 1}, {loops, "grow", 2, 2}, {loops, "double", 2, 2}};
    for (size_t d = 0; d < 2; d++) {
        for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
            running t;
            pthread_barrier_t together;
            worker workers[2];
            pthread_barrier_init(&together, NULL, 2);
            begin(&t, devices[d], parse(cases[k].text), (sx_runner_options){.seed = 1});
            for (int i = 0; i < 2; i++) {
                workers[i] = (worker){.t = &t,
                                      .name = cases[k].name,
                                      .n_in = cases[k].n_in,
                                      .n_out = cases[k].n_out,
                                      .first = 4,
                                      .last = 5,
                                      .runs = 2};
            }
            atomic_store(&n_locks, 0);
            work_all(workers, 1); /* compiles */
            atomic_store(&meeting, &together);
            work_all(workers, 2); /* makes a frame for each thread */
            atomic_store(&meeting, NULL);
            assert_in_range(atomic_load(&n_locks), 2, 100000);
            workers[0].runs = workers[1].runs = 500;
            atomic_store(&n_locks, 0);
            work_all(workers, 2);
            assert_int_equal(atomic_load(&n_locks), 0);
            pthread_barrier_destroy(&together);
            end(&t);
        }
    }
}

/* One thread's new shapes make room in a small memory, again and again, while others run at shapes
 * of their own. */
static void test_runtime_function_threads__frames_are_evicted_while_others_run(void **state)
{
    (void)state;
    enum { LIMIT = 300 << 10 };
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_budget memory;
        worker workers[THREADS];
        sx_budget_init(&memory, "a test", LIMIT, NULL);
        begin(&t, devices[d], parse(steps),
              (sx_runner_options){.memory = &memory, .max_programs = 8});
        for (int i = 0; i < THREADS; i++) {
            workers[i] = (worker){.t = &t,
                                  .name = "main",
                                  .n_in = 1,
                                  .n_out = 1,
                                  .first = i < 2 ? 3 : 1,
                                  .last = i < 2 ? 3 : 12,
                                  .runs = 300,
                                  .small_budget = true};
        }
        work_all(workers, THREADS);
        assert_in_range(programs_of(&t).evicted, 8, INT64_MAX);
        assert_in_range(sx_budget_used(&memory), 1, LIMIT);
        end(&t);
        assert_int_equal(sx_budget_used(&memory), 0);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_function_threads__no_lock_at_known_shapes),
    cmocka_unit_test(test_runtime_function_threads__frames_are_evicted_while_others_run),
};
SX_TEST_MAIN(tests)
