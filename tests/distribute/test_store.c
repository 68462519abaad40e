/* The store of a run's processes: requests, who waits for whom, and what ends a run. */
#include "harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "distribute/store.h"

/* A call, and its answer. */
typedef struct call {
    bool answered, gone;
    sx_code code;
    char body[256];
} call;

static void answer(void *user, sx_code code, sx_bytes body)
{
    call *c = user;
    assert_false(c->answered);
    c->answered = true;
    c->code = code;
    snprintf(c->body, sizeof(c->body), "%.*s", (int)body.size, (const char *)body.data);
}

static bool is_gone(void *user)
{
    return ((const call *)user)->gone;
}

static sx_store *store_of(int processes, int64_t join_ms, int64_t lost_ms)
{
    sx_store *s;
    assert_ok(sx_store_create(&(sx_store_options){.processes = processes,
                                                  .join_ms = join_ms,
                                                  .lost_ms = lost_ms,
                                                  .answer = answer,
                                                  .gone = is_gone},
                              &s));
    return s;
}

static void take(sx_store *s, call *c, const char *verb, int process, int64_t a, const char *key,
                 const char *value)
{
    char text[512];
    const int n = snprintf(text, sizeof(text), "%s %d %lld 0 %zu\n%s%s", verb, process,
                           (long long)a, strlen(key), key, value);
    *c = (call){.answered = false};
    sx_store_take(s, c, (sx_bytes){text, (size_t)n});
}

static void expect(const call *c, sx_code code, const char *body)
{
    assert_true(c->answered);
    assert_int_equal(c->code, code);
    if (strstr(c->body, body) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", c->body, body);
    }
}

static void nap(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

/* All processes join. */
static void join_all(sx_store *s, int n)
{
    call joins[8];
    for (int i = 0; i < n; i++) {
        char who[16];
        snprintf(who, sizeof(who), "host%d", i);
        take(s, &joins[i], "JOIN", i, n, "", who);
        assert_int_equal(joins[i].answered, i + 1 == n);
    }
    for (int i = 0; i < n; i++) {
        expect(&joins[i], SX_CODE_OK, "");
    }
}

static void test_distribute_store__keeps_values(void **state)
{
    (void)state;
    sx_store *s = store_of(2, 10000, 10000);
    call c, waits, other;
    join_all(s, 2);
    take(s, &c, "GET", 0, 0, "a", "");
    expect(&c, SX_NOT_FOUND, "");
    take(s, &waits, "GET", 0, 5000, "a", "");
    take(s, &other, "GET", 1, 1, "b", "");
    assert_false(waits.answered);
    take(s, &c, "PUT", 1, 0, "a", "x");
    expect(&c, SX_CODE_OK, "");
    expect(&waits, SX_CODE_OK, "x");
    take(s, &c, "GET", 1, 0, "a", "");
    expect(&c, SX_CODE_OK, "x");
    take(s, &c, "PUT", 0, 0, "a", "x"); /* the same again */
    expect(&c, SX_CODE_OK, "");
    take(s, &c, "PUT", 0, 0, "a", "y");
    expect(&c, SX_ALREADY_EXISTS, "another value");
    nap(5);
    sx_store_tick(s);
    expect(&other, SX_DEADLINE_EXCEEDED, "");
    /* After its readers have come, a value is gone. */
    take(s, &c, "PUT", 0, 2, "twice", "t");
    take(s, &c, "GET", 1, 0, "twice", "");
    expect(&c, SX_CODE_OK, "t");
    take(s, &c, "GET", 1, 0, "twice", "");
    expect(&c, SX_CODE_OK, "t");
    take(s, &c, "GET", 1, 0, "twice", "");
    expect(&c, SX_NOT_FOUND, "");
    take(s, &waits, "GET", 1, 5000, "end", "");
    sx_store_end(s);
    expect(&waits, SX_UNAVAILABLE, "process 0 of 2, the chief, has ended");
    sx_store_destroy(s);
}

static void test_distribute_store__processes_meet(void **state)
{
    (void)state;
    sx_store *s = store_of(3, 10000, 10000);
    call meets[3], late, c;
    join_all(s, 3);
    take(s, &late, "MEET", 0, 1, "m", "");
    nap(5);
    sx_store_tick(s);
    expect(&late, SX_DEADLINE_EXCEEDED, ""); /* it no longer counts */
    for (int i = 0; i < 3; i++) {
        take(s, &meets[i], "MEET", i, 5000, "m", "");
        assert_int_equal(meets[i].answered, i == 2);
    }
    expect(&meets[0], SX_CODE_OK, "");
    take(s, &c, "LEAVE", 1, 0, "", "");
    expect(&c, SX_CODE_OK, "");
    take(s, &c, "MEET", 0, 5000, "n", "");
    expect(&c, SX_UNAVAILABLE, "process 1 of 3 (host1) has ended, but others go on");
    assert_false(sx_store_is_done(s));
    take(s, &c, "LEAVE", 2, 0, "", "");
    assert_true(sx_store_is_done(s));
    sx_store_destroy(s);
}

static void test_distribute_store__names_who_does_not_come(void **state)
{
    (void)state;
    sx_store *s = store_of(4, 20, 10000);
    call a, b, c, again;
    take(s, &a, "JOIN", 0, 4, "", "host0");
    take(s, &b, "JOIN", 2, 4, "", "host2");
    take(s, &again, "JOIN", 2, 4, "", "host9");
    expect(&again, SX_ALREADY_EXISTS, "there is a process 2 already (host2)");
    sx_store_tick(s);
    assert_false(a.answered);
    nap(30);
    sx_store_tick(s);
    expect(&a, SX_UNAVAILABLE, "1024 0\nprocess 1 and 3 of 4 did not come within 0 s");
    expect(&b, SX_UNAVAILABLE, "process 1 and 3 of 4");
    take(s, &b, "GET", 0, 0, "k", "");
    expect(&b, SX_UNAVAILABLE, "process 1 and 3 of 4");
    sx_store_destroy(s);

    s = store_of(2, 10000, 10000); /* one that comes, goes and comes again */
    take(s, &a, "JOIN", 1, 2, "", "first");
    a.gone = true;
    sx_store_tick(s);
    take(s, &b, "JOIN", 1, 2, "", "second");
    assert_false(b.answered);
    take(s, &a, "JOIN", 0, 3, "", "host0");
    expect(&a, SX_UNAVAILABLE, "one of 3 processes, process 0 as one of 2");
    expect(&b, SX_UNAVAILABLE, "one of 3 processes");
    sx_store_destroy(s);

    s = store_of(30, 20, 10000); /* of many, a few are named */
    take(s, &a, "JOIN", 0, 30, "", "host0");
    take(s, &b, "JOIN", 28, 30, "", "host28");
    take(s, &c, "JOIN", 29, 30, "", "host29");
    nap(30);
    sx_store_tick(s);
    expect(&a, SX_UNAVAILABLE, "process 1, 2, 3, … 27 (of 30) did not come within 0 s");
    sx_store_destroy(s);
}

/* One that has not joined can neither leave nor fail, and does not count as come. */
static void test_distribute_store__only_who_has_joined_counts(void **state)
{
    (void)state;
    sx_store *s = store_of(2, 10000, 10000);
    call a, b, c;
    static const char *const others[] = {"LEAVE", "FAIL", "WATCH", "MEET", "PUT", "GET"};
    take(s, &a, "JOIN", 0, 2, "", "host0");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        take(s, &c, others[i], 1, 1, "k", "");
        expect(&c, SX_FAILED_PRECONDITION, "has not joined");
    }
    nap(1050); /* nobody is suspected */
    sx_store_tick(s);
    assert_false(a.answered);
    take(s, &c, "LEAVE", 0, 0, "", ""); /* before all have come: it may come again */
    expect(&a, SX_CANCELLED, "has left");
    take(s, &b, "JOIN", 1, 2, "", "host1");
    assert_false(b.answered);
    take(s, &a, "JOIN", 0, 2, "", "host0");
    expect(&a, SX_CODE_OK, "");
    expect(&b, SX_CODE_OK, "");
    sx_store_destroy(s);
}

/* One whose JOIN is refused has not come. */
static void test_distribute_store__a_refused_process_may_come_again(void **state)
{
    (void)state;
    enum { MOST = 8 * SX_MAX_PROCESSES };
    sx_store *s = store_of(2, 10000, 10000);
    call *waits = calloc(MOST, sizeof(*waits)), a, b, c;
    assert_non_null(waits);
    take(s, &a, "JOIN", 0, 2, "", "host0");
    for (int i = 0; i < MOST; i++) {
        take(s, &waits[i], "GET", 0, i + 1 < MOST ? 1 : 5000, "k", "");
    }
    take(s, &b, "JOIN", 1, 2, "", "host1");
    expect(&b, SX_RESOURCE_EXHAUSTED, "too many requests wait");
    assert_false(a.answered);
    nap(5);
    sx_store_tick(s);
    expect(&waits[0], SX_DEADLINE_EXCEEDED, "");
    take(s, &b, "JOIN", 1, 2, "", "host1");
    expect(&b, SX_CODE_OK, "");
    expect(&a, SX_CODE_OK, "");
    take(s, &c, "LEAVE", 0, 0, "", "");
    sx_store_destroy(s);
    free(waits);
}

static void test_distribute_store__names_who_is_lost(void **state)
{
    (void)state;
    sx_store *s = store_of(2, 10000, 10000);
    call watches[2], waits, c;
    join_all(s, 2);
    take(s, &watches[0], "WATCH", 0, 0, "", "");
    take(s, &watches[1], "WATCH", 1, 1, "", "");
    assert_true(sx_store_stop_wanted(s));
    take(s, &waits, "GET", 0, 5000, "k", "");
    sx_store_tick(s);
    assert_false(watches[0].answered);
    /* What another says of it comes first, and the loss itself second; the loss counts. */
    take(s, &c, "FAIL", 0, 0, "", "a collective has failed");
    assert_false(c.answered);
    watches[1].gone = true;
    sx_store_tick(s);
    expect(&waits, SX_UNAVAILABLE, "process 1 of 2 (host1) was lost: its connection was closed");
    expect(&c, SX_UNAVAILABLE, "process 1 of 2 (host1) was lost");
    expect(&watches[0], SX_UNAVAILABLE, "process 1 of 2 (host1) was lost");
    sx_store_destroy(s);

    s = store_of(2, 10000, 600);
    join_all(s, 2);
    nap(400);
    take(s, &c, "PUT", 0, 0, "k", ""); /* any request is a sign */
    nap(300);
    sx_store_tick(s);
    take(s, &c, "GET", 0, 0, "k", "");
    expect(&c, SX_UNAVAILABLE, "process 1 of 2 (host1) was lost: it has given no sign for 0 s");
    sx_store_destroy(s);

    s = store_of(2, 10000, 10000); /* a failure, with nobody lost */
    join_all(s, 2);
    take(s, &c, "FAIL", 1, 0, "", "no more memory");
    take(s, &waits, "MEET", 0, 5000, "m", "");
    nap(1050);
    sx_store_tick(s);
    expect(&waits, SX_UNAVAILABLE, "1 14\nprocess 1 of 2 (host1) failed: no more memory");
    expect(&c, SX_UNAVAILABLE, "process 1 of 2 (host1) failed: no more memory");
    sx_store_destroy(s);
}

static void test_distribute_store__answers_a_watch_within_a_second(void **state)
{
    (void)state;
    sx_store *s = store_of(2, 10000, 10000);
    call c, leave;
    join_all(s, 2);
    take(s, &c, "WATCH", 1, 0, "", "");
    nap(SX_STORE_WATCH_MS + 20);
    sx_store_tick(s);
    expect(&c, SX_CODE_OK, "");
    take(s, &c, "WATCH", 1, 0, "", "");
    take(s, &leave, "LEAVE", 1, 0, "", "");
    expect(&c, SX_CANCELLED, "has left");
    sx_store_destroy(s);
}

/* One that was asked to stop before it could ask the others ends the run. */
static void test_distribute_store__one_stops_alone(void **state)
{
    (void)state;
    sx_store *s = store_of(2, 10000, 10000);
    call waits, c;
    join_all(s, 2);
    take(s, &waits, "GET", 0, 5000, "k", "");
    take(s, &c, "LEAVE", 1, 1, "", "");
    expect(&c, SX_CODE_OK, "");
    expect(&waits, SX_UNAVAILABLE, "1 0\nprocess 1 of 2 (host1) was asked to stop");
    sx_store_destroy(s);
}

static void test_distribute_store__says_whose_failure_it_is(void **state)
{
    (void)state;
    sx_store_failure f;
    static const char *const bad[] = {"",       "1",         "1 0",    "1025 0\nx",
                                      "1 2\nx", "1 9999\nx", "-1 0\nx"};
    assert_ok(sx_store_parse_failure((sx_bytes){"1 3\nit failed: why", 18}, &f));
    assert_int_equal(f.process, 1);
    assert_int_equal(f.said_bytes, 3);
    assert_memory_equal(f.text.data, "it failed: why", f.text.size);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_error(sx_store_parse_failure((sx_bytes){bad[i], strlen(bad[i])}, &f),
                     SX_INVALID_ARGUMENT, "not the failure of a run");
    }
}

static const char good[] = "PUT 1 2 3 4\nkey1the value";

static void test_distribute_store__refuses_malformed_requests(void **state)
{
    (void)state;
    sx_store_request r;
    static const char *const bad[] = {
        "",
        "PUT",
        "put 1 2 3 0\n",
        "PUT 1 2 3\n",
        "PUT 1 2 3 4",
        "PUT 1 2",
        "PUT  1 2 3 0\n",
        "PUT 1024 2 3 0\n",
        "PUT -1 2 3 0\n",
        "PUT 1 2 3 5\nkey1",
        "GET 1 99999999999 0 0\n",
        "PUT 1 2 3 99999999999999999999\n",
        "WATCH 1 2 3 0 \n",
    };
    assert_ok(sx_store_parse((sx_bytes){good, sizeof(good) - 1}, &r));
    assert_int_equal(r.verb, SX_STORE_PUT);
    assert_int_equal(r.process, 1);
    assert_int_equal(r.a, 2);
    assert_int_equal(r.b, 3);
    assert_memory_equal(r.key.data, "key1", 4);
    assert_int_equal(r.key.size, 4);
    assert_memory_equal(r.value.data, "the value", 9);
    assert_int_equal(r.value.size, 9);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_error(sx_store_parse((sx_bytes){bad[i], strlen(bad[i])}, &r), SX_INVALID_ARGUMENT,
                     "not a request");
    }
    sx_store *s = store_of(2, 10000, 10000);
    call c;
    take(s, &c, "PUT", 2, 0, "k", "v");
    expect(&c, SX_INVALID_ARGUMENT, "no process of that number");
    sx_store_destroy(s);
}

/* Every prefix and every flipped byte of requests is answered or waits. */
static void test_distribute_store__survives_any_bytes(void **state)
{
    (void)state;
    char text[sizeof(good)];
    for (size_t i = 0; i < sizeof(good); i++) {
        for (int flip = 0; flip < 9; flip++) {
            sx_store *s = store_of(2, 10000, 10000);
            call c = {.answered = false};
            memcpy(text, good, sizeof(good));
            text[i] = (char)(flip < 8 ? text[i] ^ (1 << flip) : text[i]);
            sx_store_take(s, &c, (sx_bytes){text, flip < 8 ? sizeof(good) - 1 : i});
            sx_store_end(s);
            assert_true(c.answered);
            sx_store_destroy(s);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_distribute_store__keeps_values),
    cmocka_unit_test(test_distribute_store__processes_meet),
    cmocka_unit_test(test_distribute_store__names_who_does_not_come),
    cmocka_unit_test(test_distribute_store__only_who_has_joined_counts),
    cmocka_unit_test(test_distribute_store__a_refused_process_may_come_again),
    cmocka_unit_test(test_distribute_store__names_who_is_lost),
    cmocka_unit_test(test_distribute_store__one_stops_alone),
    cmocka_unit_test(test_distribute_store__says_whose_failure_it_is),
    cmocka_unit_test(test_distribute_store__answers_a_watch_within_a_second),
    cmocka_unit_test(test_distribute_store__refuses_malformed_requests),
    cmocka_unit_test(test_distribute_store__survives_any_bytes),
};

SX_TEST_MAIN(tests)
