#include "harness.h"

#include <pthread.h>

#include "base/budget.h"
#include "base/memory.h"

static void test_base_budget__charges_every_level_or_none(void **state)
{
    (void)state;
    sx_budget server, one, other;
    sx_budget_init(&server, "the server", 100, NULL);
    sx_budget_init(&one, "one request", 60, &server);
    sx_budget_init(&other, "one request", 60, &server);
    assert_true(sx_budget_charge(&one, 60));
    assert_false(sx_budget_charge(&one, 1)); /* its own limit, to the byte */
    assert_false(sx_budget_charge(&other, 41));
    assert_int_equal(sx_budget_used(&other), 0); /* the server refused, so nothing was charged */
    assert_true(sx_budget_charge(&other, 40));   /* the server's limit, to the byte */
    assert_int_equal(sx_budget_used(&server), 100);
    sx_budget_release(&one, 25);
    assert_int_equal(sx_budget_used(&one), 35);
    assert_int_equal(sx_budget_used(&server), 75);
    sx_budget_release_all(&one);
    assert_int_equal(sx_budget_used(&one), 0);
    assert_int_equal(sx_budget_used(&server), 40);
    assert_true(sx_budget_charge(NULL, SIZE_MAX));
    sx_budget_release(NULL, 1);
}

static void test_base_budget__tells_never_from_not_now(void **state)
{
    (void)state;
    sx_budget server, one, other;
    sx_budget_init(&server, "all requests", 100, NULL);
    sx_budget_init(&one, "one request", 0, &server);
    sx_budget_init(&other, "one request", 50, &server);
    assert_error(sx_budget_error(&one), SX_RESOURCE_EXHAUSTED, "out of memory");
    assert_error(sx_budget_error(NULL), SX_RESOURCE_EXHAUSTED, "out of memory");
    assert_true(sx_budget_charge(&other, 50));
    assert_false(sx_budget_refused(&one));
    assert_false(sx_budget_charge(&one, 51));
    assert_true(sx_budget_refused(&one));
    assert_false(sx_budget_never_fits(&one)); /* alone it would fit */
    assert_error(sx_budget_error(&one), SX_RESOURCE_EXHAUSTED,
                 "51 bytes more would exceed the memory limit of all requests: 50 of 100 bytes are "
                 "in use; try again later");
    assert_false(sx_budget_charge(&one, 101));
    assert_true(sx_budget_never_fits(&one));
    assert_false(sx_budget_charge(&one, SIZE_MAX));
    assert_true(sx_budget_never_fits(&one));
    assert_true(sx_budget_charge(&one, 10));
    assert_false(sx_budget_charge(&one, 95)); /* what it holds itself counts */
    assert_true(sx_budget_never_fits(&one));
    assert_false(sx_budget_charge(&other, 1));
    assert_true(sx_budget_never_fits(&other));
    assert_error(sx_budget_error(&other), SX_RESOURCE_EXHAUSTED,
                 "1 byte more would exceed the memory limit of one request: 50 of 50 bytes are in "
                 "use");
    sx_status status = sx_budget_over(&other, "an image", 3 << 20);
    assert_string_equal(
        sx_status_message(status),
        "an image of 3.0 MiB would exceed the memory limit of one request: 50 bytes "
        "of 50 bytes in use");
    assert_false(sx_status_is_no_memory(status));
    sx_status_free(status);
    assert_error(sx_budget_over(&other, "the graph", 0), SX_RESOURCE_EXHAUSTED,
                 "the graph would exceed");
    status = sx_budget_over(NULL, "the graph", 0);
    assert_string_equal(sx_status_message(status), "out of memory for the graph");
    assert_true(sx_status_is_no_memory(status));
    sx_status_free(status);
    sx_budget_release_all(&other);
    assert_true(sx_budget_charge(&other, 1));
    assert_false(sx_budget_refused(&other));
}

static void test_base_budget__keeps_room_free(void **state)
{
    (void)state;
    sx_budget server, free_of_limits;
    sx_budget_init(&server, "all requests", 100, NULL);
    sx_budget_init(&free_of_limits, "all requests", 0, NULL);
    assert_true(sx_budget_charge(&server, 20));
    assert_true(sx_budget_has_room(&server, 30, 50));
    assert_false(sx_budget_has_room(&server, 31, 50));
    assert_false(sx_budget_has_room(&server, SIZE_MAX, 1));
    assert_true(sx_budget_has_room(&free_of_limits, SIZE_MAX / 4, 1));
}

enum { THREADS = 4, ROUNDS = 20000 };

static void *charge_and_release(void *user)
{
    sx_budget mine;
    size_t held = 0;
    sx_budget_init(&mine, "one request", 0, user);
    for (int i = 0; i < ROUNDS; i++) {
        const size_t bytes = (size_t)(i % 7);
        held += sx_budget_charge(&mine, bytes) ? bytes : 0;
        assert_true(sx_budget_used(user) <= 50);
        if (i % 3 == 0) {
            sx_budget_release(&mine, held);
            held = 0;
        }
    }
    assert_int_equal(sx_budget_used(&mine), held);
    sx_budget_release_all(&mine);
    return NULL;
}

static void test_base_budget__threads_never_exceed_it(void **state)
{
    (void)state;
    sx_budget server;
    pthread_t threads[THREADS];
    sx_budget_init(&server, "all requests", 50, NULL);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, charge_and_release, &server), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(sx_budget_used(&server), 0);
}

/* An array that grows is charged for what it has; one that cannot is as it was. */
static void test_base_budget__grows_arrays(void **state)
{
    (void)state;
    sx_budget budget;
    int *array = NULL, capacity = 0;
    sx_budget_init(&budget, "a test", 100, NULL);
    assert_true(sx_budget_grow(&budget, (void **)&array, &capacity, 8, sizeof(*array)));
    array[7] = 5;
    assert_true(sx_budget_grow(&budget, (void **)&array, &capacity, 20, sizeof(*array)));
    assert_int_equal(sx_budget_used(&budget), 80);
    assert_false(sx_budget_grow(&budget, (void **)&array, &capacity, 40, sizeof(*array)));
    budget.limit_bytes = 0;
    sx_alloc_fail_after(1);
    assert_false(sx_budget_grow(&budget, (void **)&array, &capacity, 40, sizeof(*array)));
    sx_alloc_fail_after(0);
    assert_int_equal(sx_budget_used(&budget), 80);
    assert_true(capacity == 20 && array[7] == 5);
    sx_free(array);
}

/* Want of memory is told as the budget's where that refused it; other errors stay. */
static void test_base_budget__explains_want_of_memory(void **state)
{
    (void)state;
    sx_budget budget;
    sx_budget_init(&budget, "a test", 100, NULL);
    assert_ok(sx_budget_explain(&budget, "a thing", SX_OK));
    assert_error(sx_budget_explain(&budget, "a thing", sx_no_memory("for it")),
                 SX_RESOURCE_EXHAUSTED, "out of memory for it");
    assert_false(sx_budget_charge(&budget, 101));
    assert_error(sx_budget_explain(&budget, "a thing", sx_error(SX_NOT_FOUND, "it is not here")),
                 SX_NOT_FOUND, "it is not here");
    assert_error(sx_budget_explain(&budget, "a thing", sx_no_memory("for it")),
                 SX_RESOURCE_EXHAUSTED, "a thing would exceed the memory limit of a test");
    assert_error(sx_budget_explain(NULL, "a thing", sx_no_memory("for it")), SX_RESOURCE_EXHAUSTED,
                 "out of memory for it");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_budget__grows_arrays),
    cmocka_unit_test(test_base_budget__explains_want_of_memory),
    cmocka_unit_test(test_base_budget__charges_every_level_or_none),
    cmocka_unit_test(test_base_budget__tells_never_from_not_now),
    cmocka_unit_test(test_base_budget__keeps_room_free),
    cmocka_unit_test(test_base_budget__threads_never_exceed_it),
};

SX_TEST_MAIN(tests)
