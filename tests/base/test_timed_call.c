#include "harness.h"

#include <pthread.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/timed_call.h"

struct call {
    sx_timed_call call;
    int *gate; /* if not NULL, run() waits until a byte can be read from its first end */
    atomic_int *ran, *destroyed;
    pthread_t *destroyer;
};

static void run(sx_timed_call *call)
{
    struct call *c = (struct call *)call;
    char byte;
    if (c->gate != NULL) {
        assert_int_equal(read(c->gate[0], &byte, 1), 1);
    }
    atomic_fetch_add(c->ran, 1);
}

static void destroy(sx_timed_call *call)
{
    struct call *c = (struct call *)call;
    *c->destroyer = pthread_self();
    atomic_fetch_add(c->destroyed, 1);
    sx_free(c);
}

/* What a call leaves unclaimed is gone when its release returns, whichever thread is ahead. */
static void test_base_timed_call__a_release_frees_what_is_done(void **state)
{
    (void)state;
    atomic_int ran = 0, destroyed = 0;
    pthread_t destroyer;
    for (int i = 0; i < 2000; i++) {
        struct call *c = sx_alloc(1, sizeof(*c));
        assert_non_null(c);
        *c = (struct call){.call = {.run = run, .destroy = destroy},
                           .ran = &ran,
                           .destroyed = &destroyed,
                           .destroyer = &destroyer};
        assert_ok(sx_timed_call_start(&c->call));
        if (i % 2 == 0) {
            assert_ok(sx_timed_call_wait(&c->call, NULL));
        }
        while (!sx_timed_call_done(&c->call)) {
        }
        sx_timed_call_release(&c->call);
        assert_int_equal(destroyed, i + 1);
        assert_true(pthread_equal(destroyer, pthread_self()));
    }
    assert_int_equal(ran, 2000);
    sx_timed_call_release(NULL);
}

/* A call that was abandoned is freed by its thread, once it returns. */
static void test_base_timed_call__the_thread_frees_what_was_released(void **state)
{
    (void)state;
    atomic_int ran = 0, destroyed = 0;
    pthread_t destroyer;
    int gate[2];
    sx_cancel cancel;
    assert_int_equal(pipe(gate), 0);
    struct call *c = sx_alloc(1, sizeof(*c));
    assert_non_null(c);
    *c = (struct call){.call = {.run = run, .destroy = destroy},
                       .gate = gate,
                       .ran = &ran,
                       .destroyed = &destroyed,
                       .destroyer = &destroyer};
    assert_ok(sx_timed_call_start(&c->call));
    sx_cancel_init(&cancel, INT64_MAX);
    sx_cancel_request(&cancel);
    assert_error(sx_timed_call_wait(&c->call, &cancel), SX_CANCELLED, "cancelled");
    assert_false(sx_timed_call_done(&c->call));
    sx_timed_call_release(&c->call);
    assert_int_equal(destroyed, 0);
    assert_int_equal(write(gate[1], "x", 1), 1);
    while (atomic_load(&destroyed) == 0) {
        usleep(1000);
    }
    assert_int_equal(ran, 1);
    assert_false(pthread_equal(destroyer, pthread_self()));
    close(gate[0]);
    close(gate[1]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_timed_call__a_release_frees_what_is_done),
    cmocka_unit_test(test_base_timed_call__the_thread_frees_what_was_released),
};
SX_TEST_MAIN(tests)
