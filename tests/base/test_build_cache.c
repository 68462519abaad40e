/* Values made once by key: bounded, handed out referenced, failures not kept, waiting ends at a
 * deadline. */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/build_cache.h"
#include "base/clock.h"

static atomic_int alive;

static void destroy(void *value)
{
    atomic_fetch_sub(&alive, 1);
    sx_free(value);
}

/* What is made of a key: a copy of its int, which counts for as many bytes. */
typedef struct making {
    int value;
    bool fails, stopped;            /* stopped: by the caller's deadline */
    atomic_bool *started, *may_end; /* NULL: at once */
} making;

static sx_status make(void *user, void **out_value, int64_t *out_bytes)
{
    const making *m = user;
    if (m->started != NULL) {
        atomic_store(m->started, true);
        while (!atomic_load(m->may_end)) {
            usleep(200);
        }
    }
    if (m->stopped) {
        return sx_error(SX_DEADLINE_EXCEEDED, "deadline exceeded");
    }
    if (m->fails) {
        return sx_error(SX_UNIMPLEMENTED, "%d cannot be made", m->value);
    }
    int *value = sx_alloc(1, sizeof(*value));
    assert_non_null(value);
    *value = m->value;
    atomic_fetch_add(&alive, 1);
    *out_value = value;
    *out_bytes = m->value;
    return SX_OK;
}

static sx_status get(sx_build_cache *cache, int key, sx_built **out)
{
    making m = {.value = key};
    return sx_build_cache_get(cache, &key, sizeof(key), make, &m, NULL, out);
}

static void test_base_build_cache__keeps_the_most_recently_used(void **state)
{
    (void)state;
    sx_build_cache *cache;
    sx_build_cache_stats stats;
    sx_built *first, *b;
    assert_ok(sx_build_cache_create(&(sx_build_cache_options){.max_entries = 3, .destroy = destroy},
                                    &cache));
    assert_ok(get(cache, 1, &first));
    for (int key = 2; key <= 4; key++) {
        assert_ok(get(cache, key, &b));
        assert_int_equal(*(int *)sx_built_value(b), key);
        sx_built_release(b);
        assert_ok(get(cache, 2, &b)); /* stays young */
        sx_built_release(b);
    }
    sx_build_cache_get_stats(cache, &stats);
    assert_int_equal(stats.entries, 3);
    assert_int_equal(stats.builds, 4);
    assert_int_equal(stats.hits, 3);
    assert_int_equal(stats.evicted, 1);
    assert_int_equal(atomic_load(&alive), 4);
    assert_int_equal(*(int *)sx_built_value(first), 1); /* evicted, but held */
    sx_built_release(first);
    assert_int_equal(atomic_load(&alive), 3);
    assert_ok(get(cache, 2, &b));
    sx_built_release(b);
    sx_build_cache_get_stats(cache, &stats);
    assert_int_equal(stats.builds, 4);
    assert_int_equal(sx_build_cache_evict(cache, 2), 2); /* 3 and 4 */
    assert_ok(get(cache, 2, &b));
    sx_built_release(b);
    sx_build_cache_get_stats(cache, &stats);
    assert_int_equal(stats.builds, 4);
    assert_int_equal(sx_build_cache_evict(cache, 100), 1);
    assert_int_equal(atomic_load(&alive), 0);
    sx_build_cache_destroy(cache);
    assert_int_equal(atomic_load(&alive), 0);
}

static void test_base_build_cache__bytes_are_bounded(void **state)
{
    (void)state;
    sx_build_cache *cache;
    sx_build_cache_stats stats;
    sx_built *b;
    assert_ok(sx_build_cache_create(&(sx_build_cache_options){.max_bytes = 100, .destroy = destroy},
                                    &cache));
    for (int key = 40; key <= 43; key++) {
        assert_ok(get(cache, key, &b));
        sx_built_release(b);
    }
    sx_build_cache_get_stats(cache, &stats);
    assert_int_equal(stats.bytes, 42 + 43);
    assert_ok(get(cache, 1000, &b)); /* larger than all: handed out, not kept */
    assert_int_equal(*(int *)sx_built_value(b), 1000);
    sx_build_cache_get_stats(cache, &stats);
    assert_int_equal(stats.entries, 0);
    sx_built_release(b);
    sx_build_cache_destroy(cache);
    assert_int_equal(atomic_load(&alive), 0);
}

static void test_base_build_cache__failures_are_not_kept(void **state)
{
    (void)state;
    sx_build_cache *cache;
    sx_built *b;
    const int key = 7;
    making m = {.value = key, .fails = true};
    assert_ok(sx_build_cache_create(&(sx_build_cache_options){.destroy = destroy}, &cache));
    assert_error(sx_build_cache_get(cache, &key, sizeof(key), make, &m, NULL, &b), SX_UNIMPLEMENTED,
                 "7 cannot be made");
    assert_ok(get(cache, 7, &b));
    sx_built_release(b);
    sx_build_cache_destroy(cache);
}

typedef struct builder {
    sx_build_cache *cache;
    making making;
    bool right;
} builder;

static void *build_slowly(void *user)
{
    builder *t = user;
    sx_built *b = NULL;
    const int key = t->making.value;
    sx_status status = sx_build_cache_get(t->cache, &key, sizeof(key), make, &t->making, NULL, &b);
    t->right = sx_status_code(status) == (t->making.stopped ? SX_DEADLINE_EXCEEDED
                                          : t->making.fails ? SX_UNIMPLEMENTED
                                                            : SX_CODE_OK);
    sx_status_free(status);
    sx_built_release(b);
    return NULL;
}

static void test_base_build_cache__waiting_ends_at_a_deadline(void **state)
{
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        sx_build_cache *cache;
        sx_built *b;
        sx_cancel cancel;
        atomic_bool started = false, may_end = false;
        pthread_t thread, waiter;
        assert_ok(sx_build_cache_create(&(sx_build_cache_options){.destroy = destroy}, &cache));
        builder slow = {
            .cache = cache,
            .making = {.value = 5, .fails = fails != 0, .started = &started, .may_end = &may_end}};
        builder waits = slow; /* would wait for ever if it made the value itself */
        assert_int_equal(pthread_create(&thread, NULL, build_slowly, &slow), 0);
        while (!atomic_load(&started)) {
            usleep(200);
        }
        sx_cancel_init(&cancel, sx_now_ns() + 1000 * 1000);
        const int key = 5;
        assert_error(sx_build_cache_get(cache, &key, sizeof(key), make, &waits.making, &cancel, &b),
                     SX_DEADLINE_EXCEEDED, "another thread");
        assert_int_equal(pthread_create(&waiter, NULL, build_slowly, &waits), 0);
        atomic_store(&may_end, true);
        pthread_join(thread, NULL);
        pthread_join(waiter, NULL);
        assert_true(slow.right && waits.right);
        sx_build_cache_destroy(cache);
        assert_int_equal(atomic_load(&alive), 0);
    }
}

/* While one thread builds, others get other keys: built before, or by themselves. */
static void test_base_build_cache__a_slow_build_delays_nobody_else(void **state)
{
    (void)state;
    sx_build_cache *cache;
    sx_built *b;
    atomic_bool started = false, may_end = false;
    pthread_t thread;
    assert_ok(sx_build_cache_create(&(sx_build_cache_options){.max_entries = 2, .destroy = destroy},
                                    &cache));
    builder slow = {.cache = cache,
                    .making = {.value = 5, .started = &started, .may_end = &may_end}};
    assert_int_equal(pthread_create(&thread, NULL, build_slowly, &slow), 0);
    while (!atomic_load(&started)) {
        usleep(200);
    }
    for (int i = 0; i < 6; i++) { /* 6, 7, 8, and again, each evicted meanwhile */
        assert_ok(get(cache, 6 + i % 3, &b));
        assert_ok(get(cache, 6 + i % 3, &b));
        sx_built_release(b);
        sx_built_release(b);
    }
    assert_false(atomic_load(&may_end));
    atomic_store(&may_end, true);
    pthread_join(thread, NULL);
    assert_true(slow.right);
    sx_build_cache_stats stats;
    sx_build_cache_get_stats(cache, &stats);
    assert_int_equal(stats.builds, 7);
    assert_int_equal(stats.hits, 6);
    sx_build_cache_destroy(cache);
    assert_int_equal(atomic_load(&alive), 0);
}

/* The deadline of the thread that builds is none of those that wait. */
static void test_base_build_cache__who_waits_for_a_stopped_thread_builds(void **state)
{
    (void)state;
    sx_build_cache *cache;
    atomic_bool started = false, may_end = false;
    pthread_t thread, waiters[4];
    builder waits[4];
    assert_ok(sx_build_cache_create(&(sx_build_cache_options){.destroy = destroy}, &cache));
    builder stopped = {
        .cache = cache,
        .making = {.value = 5, .stopped = true, .started = &started, .may_end = &may_end}};
    assert_int_equal(pthread_create(&thread, NULL, build_slowly, &stopped), 0);
    while (!atomic_load(&started)) {
        usleep(200);
    }
    for (int i = 0; i < 4; i++) {
        waits[i] = (builder){.cache = cache, .making = {.value = 5}};
        assert_int_equal(pthread_create(&waiters[i], NULL, build_slowly, &waits[i]), 0);
    }
    usleep(20 * 1000); /* most wait by now */
    atomic_store(&may_end, true);
    pthread_join(thread, NULL);
    assert_true(stopped.right);
    for (int i = 0; i < 4; i++) {
        pthread_join(waiters[i], NULL);
        assert_true(waits[i].right);
    }
    sx_build_cache_stats stats;
    sx_build_cache_get_stats(cache, &stats);
    assert_int_equal(stats.entries, 1);
    assert_int_equal(stats.builds, 2);
    sx_build_cache_destroy(cache);
    assert_int_equal(atomic_load(&alive), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_build_cache__a_slow_build_delays_nobody_else),
    cmocka_unit_test(test_base_build_cache__keeps_the_most_recently_used),
    cmocka_unit_test(test_base_build_cache__bytes_are_bounded),
    cmocka_unit_test(test_base_build_cache__failures_are_not_kept),
    cmocka_unit_test(test_base_build_cache__waiting_ends_at_a_deadline),
    cmocka_unit_test(test_base_build_cache__who_waits_for_a_stopped_thread_builds),
};
SX_TEST_MAIN(tests)
