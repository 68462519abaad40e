/* Processes over the store's server: here, threads that join as such. */
#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "backends/pjrt/key_values.h"
#include "distribute/processes.h"
#include "distribute/store_server.h"

enum { MOST = 4 };

static volatile sig_atomic_t stop; /* of process 1 */

/* A port that is free a moment before. */
static int free_port(void)
{
    sx_store_server *s;
    const sx_store_options options = {.processes = 1, .join_ms = 1000, .lost_ms = 1000};
    assert_ok(sx_store_server_start("127.0.0.1", 0, &options, &s));
    const int port = sx_store_server_port(s);
    sx_store_server_stop(s, 0);
    return port;
}

typedef struct member {
    sx_process_plan plan;
    char coordinator[32];
    void (*work)(struct member *m);
    sx_processes *p;
    sx_status joined;
    int64_t values[2];
    sx_status status;
} member;

static void *run(void *user)
{
    member *m = user;
    m->joined =
        sx_processes_join(&(sx_processes_options){.plan = &m->plan,
                                                  .join_secs = 20,
                                                  .lost_secs = 5,
                                                  .stop = m->plan.index == 1 ? &stop : NULL},
                          &m->p);
    if (m->joined == SX_OK) {
        m->work(m);
        sx_processes_destroy(m->p);
    }
    return NULL;
}

/* Runs `work` in n processes. */
static void run_all(member *members, int n, void (*work)(member *m))
{
    pthread_t threads[MOST];
    const int port = free_port();
    stop = 0;
    for (int i = 0; i < n; i++) {
        members[i] = (member){.work = work};
        snprintf(members[i].coordinator, sizeof(members[i].coordinator), "127.0.0.1:%d", port);
        members[i].plan =
            (sx_process_plan){.count = n, .index = i, .coordinator = members[i].coordinator};
        assert_int_equal(pthread_create(&threads[i], NULL, run, &members[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void agree(member *m)
{
    const int index = sx_processes_index(m->p);
    for (int k = 0; k < 20 && m->status == SX_OK; k++) {
        m->values[0] = index == 0 ? 100 + k : -1;
        m->values[1] = index == 0 ? INT64_MIN : 7;
        m->status = sx_processes_agree(m->p, m->values, 2);
    }
    if (m->status == SX_OK) {
        m->status = sx_processes_meet(m->p);
    }
    if (m->status == SX_OK) {
        m->status = sx_processes_compare(m->p, "a thing", "alike");
    }
}

static void test_distribute_processes__agree_in_step(void **state)
{
    (void)state;
    member all[MOST];
    run_all(all, MOST, agree);
    for (int i = 0; i < MOST; i++) {
        assert_ok(all[i].joined);
        assert_ok(all[i].status);
        assert_true(all[i].values[0] == 119 && all[i].values[1] == INT64_MIN);
    }
}

static void compare(member *m)
{
    m->status =
        sx_processes_compare(m->p, "its colour", sx_processes_index(m->p) == 2 ? "red" : "blue");
    if (m->status == SX_OK) {
        m->status = sx_processes_meet(m->p);
    }
}

static void test_distribute_processes__name_what_differs(void **state)
{
    (void)state;
    member all[3];
    run_all(all, 3, compare);
    for (int i = 0; i < 3; i++) {
        assert_ok(all[i].joined);
        assert_error(all[i].status, i == 2 ? SX_FAILED_PRECONDITION : SX_UNAVAILABLE,
                     "process 2 differs from process 0 in its colour (red, not blue)");
    }
}

static void fail_one(member *m)
{
    if (sx_processes_index(m->p) == 1) {
        m->status = sx_processes_blame(m->p, sx_error(SX_DATA_LOSS, "record 7 is broken"));
        return;
    }
    m->status = sx_processes_meet(m->p);
    sx_status known = sx_processes_check(m->p), given_up = sx_processes_give_up(m->p);
    assert_error(known, SX_UNAVAILABLE, "record 7");
    assert_ok(given_up); /* not yet */
    m->status = sx_processes_end(m->p, m->status);
}

static void test_distribute_processes__one_failure_is_that_of_all(void **state)
{
    (void)state;
    member all[3];
    run_all(all, 3, fail_one);
    assert_error(all[1].status, SX_DATA_LOSS, "record 7 is broken");
    assert_error(all[0].status, SX_UNAVAILABLE, "process 1 of 3 (");
    assert_error(all[2].status, SX_UNAVAILABLE, ") failed: record 7 is broken");
}

static void fail_all(member *m)
{
    m->status = sx_processes_end(m->p, sx_error(SX_DATA_LOSS, "record 7 is broken"));
}

static void test_distribute_processes__all_fail_alike(void **state)
{
    (void)state;
    member all[3];
    run_all(all, 3, fail_all);
    for (int i = 0; i < 3; i++) {
        assert_error(all[i].status, SX_DATA_LOSS, "record 7 is broken");
    }
}

static void want_stop(member *m)
{
    if (sx_processes_index(m->p) > 0) {
        sx_processes_want_stop(m->p);
    }
    const int64_t until_ns = sx_now_ns() + (int64_t)10 * 1000000000;
    while (sx_processes_index(m->p) == 0 && !sx_processes_stop_wanted(m->p) &&
           sx_now_ns() < until_ns) {
        usleep(10000);
    }
    m->values[0] = sx_processes_stop_wanted(m->p);
    m->status = sx_processes_meet(m->p);
}

static void test_distribute_processes__a_stop_reaches_the_chief(void **state)
{
    (void)state;
    member all[2];
    run_all(all, 2, want_stop);
    assert_ok(all[0].status);
    assert_ok(all[1].status);
    assert_int_equal(all[0].values[0], 1);
}

/* ---- A process that is asked to stop ---- */

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

/* Interrupts the thread that has started it. */
static void *ask_to_stop(void *user)
{
    usleep(300000);
    pthread_kill(*(pthread_t *)user, SIGUSR1);
    return NULL;
}

static pthread_t stop_soon(pthread_t *self)
{
    pthread_t thread;
    *self = pthread_self();
    signal(SIGUSR1, on_signal);
    assert_int_equal(pthread_create(&thread, NULL, ask_to_stop, self), 0);
    return thread;
}

static double seconds_since(int64_t start_ns)
{
    return (double)(sx_now_ns() - start_ns) / 1e9;
}

/* Waits for others that do not come: as the chief, and for one. */
static void test_distribute_processes__a_stop_ends_joining(void **state)
{
    (void)state;
    for (int index = 0; index < 2; index++) {
        sx_processes *p;
        pthread_t self;
        char coordinator[32];
        snprintf(coordinator, sizeof(coordinator), "127.0.0.1:%d", free_port());
        const sx_process_plan plan = {.count = 2, .index = index, .coordinator = coordinator};
        const int64_t start_ns = sx_now_ns();
        stop = 0;
        const pthread_t thread = stop_soon(&self);
        assert_error(sx_processes_join(&(sx_processes_options){.plan = &plan, .stop = &stop}, &p),
                     SX_CANCELLED, "stopped before");
        pthread_join(thread, NULL);
        assert_true(seconds_since(start_ns) < 5);
    }
}

static void stop_alone(member *m)
{
    if (sx_processes_index(m->p) == 1) { /* the chief has nothing to agree on yet */
        pthread_t self;
        const int64_t start_ns = sx_now_ns();
        const pthread_t thread = stop_soon(&self);
        m->status = sx_processes_agree(m->p, m->values, 1);
        pthread_join(thread, NULL);
        assert_true(seconds_since(start_ns) < 4);
        m->status = sx_processes_end(m->p, m->status);
        return;
    }
    const sx_pjrt_processes *plugin = sx_processes_of_pjrt(m->p);
    sx_buf value;
    sx_buf_init(&value, 0);
    m->status = plugin->get(plugin->store, (sx_bytes){"k", 1}, 10000, &value);
    sx_buf_deinit(&value);
}

static void test_distribute_processes__a_stop_before_they_agree(void **state)
{
    (void)state;
    member all[2];
    run_all(all, 2, stop_alone);
    assert_error(all[1].status, SX_CANCELLED, "stopped before");
    assert_error(all[0].status, SX_UNAVAILABLE, ") was asked to stop before");
}

/* ---- A chief that is lost ---- */

/* Starts the chief of two as a process of its own, which joins, and waits; the other one is here.
 */
static pid_t fork_chief(const char *coordinator, sx_processes **out)
{
    const pid_t pid = fork();
    const sx_process_plan plan = {.count = 2, .index = pid != 0, .coordinator = coordinator};
    assert_true(pid >= 0);
    if (pid == 0) {
        sx_status status = sx_processes_join(&(sx_processes_options){.plan = &plan}, out);
        if (status == SX_OK) {
            pause();
        }
        _exit(1);
    }
    assert_ok(sx_processes_join(&(sx_processes_options){.plan = &plan, .lost_secs = 60}, out));
    return pid;
}

static void test_distribute_processes__a_lost_chief_is_named(void **state)
{
    (void)state;
    char coordinator[32];
    sx_processes *p;
    snprintf(coordinator, sizeof(coordinator), "127.0.0.1:%d", free_port());
    const pid_t chief = fork_chief(coordinator, &p);
    kill(chief, SIGKILL);
    waitpid(chief, NULL, 0);
    sx_status met = sx_processes_meet(p); /* perhaps before the watcher has noticed */
    sx_status ended = sx_processes_end(p, sx_error(SX_INTERNAL, "a device has failed"));
    assert_error(met, SX_UNAVAILABLE, "process 0 of 2, the chief, at 127.0.0.1:");
    assert_error(ended, SX_INTERNAL, "a device has failed"); /* it is told already */
    /* Words that are a part of those of the loss are no other failure. */
    assert_error(sx_processes_blame(p, sx_error(SX_INTERNAL, "lost")), SX_UNAVAILABLE,
                 "process 0 of 2, the chief, at 127.0.0.1:");
    sx_processes_destroy(p);
}

/* One that does not answer keeps nobody. */
static void test_distribute_processes__leaves_a_silent_chief_at_once(void **state)
{
    (void)state;
    char coordinator[32];
    sx_processes *p;
    snprintf(coordinator, sizeof(coordinator), "127.0.0.1:%d", free_port());
    const pid_t chief = fork_chief(coordinator, &p);
    kill(chief, SIGSTOP);
    const int64_t start_ns = sx_now_ns();
    sx_processes_destroy(p);
    const double secs = seconds_since(start_ns);
    kill(chief, SIGKILL);
    waitpid(chief, NULL, 0);
    assert_true(secs < 10);
}

/* What the pjrt backend is given. */
static void use_keys(member *m)
{
    const sx_pjrt_processes *p = sx_processes_of_pjrt(m->p);
    sx_buf value;
    sx_buf_init(&value, 100);
    assert_int_equal(p->count, 2);
    sx_status missing = p->get(p->store, (sx_bytes){"none", 4}, 0, &value);
    assert_error(missing, SX_NOT_FOUND, "");
    missing = p->get(p->store, (sx_bytes){"none", 4}, 30, &value);
    assert_error(missing, SX_DEADLINE_EXCEEDED, "");
    const char key[] = {'k', 0, '\n', 'x'}, bytes[] = {1, 0, 2, '\n'};
    m->status = p->index == 1 ? p->put(p->store, (sx_bytes){key, 4}, (sx_bytes){bytes, 4})
                              : p->get(p->store, (sx_bytes){key, 4}, 10000, &value);
    if (m->status == SX_OK && p->index == 0) {
        assert_int_equal(value.size, 4);
        assert_memory_equal(value.data, bytes, 4);
    }
    sx_buf_deinit(&value);
    sx_status met = sx_processes_meet(m->p);
    assert_ok(met);
}

static void test_distribute_processes__keys_for_a_plugin(void **state)
{
    (void)state;
    member all[2];
    run_all(all, 2, use_keys);
    assert_ok(all[0].status);
    assert_ok(all[1].status);
}

static void *error_of_code(int code, const char *message, size_t size)
{
    (void)code;
    fail_msg("%.*s", (int)size, message);
    return NULL;
}

/* The greatest value that the store takes, by the callbacks of a plugin. */
static void use_greatest_value(member *m)
{
    sx_pjrt_key_values kv = {.processes = sx_processes_of_pjrt(m->p)};
    sx_pjrt_client_create args = {0};
    sx_pjrt_make_error *make = error_of_code;
    char *value = sx_alloc(SX_STORE_VALUE_BYTES, 1);
    assert_non_null(value);
    memset(value, 'v', SX_STORE_VALUE_BYTES);
    sx_pjrt_offer_key_values(&args, &kv);
    if (kv.processes->index == 0) {
        sx_pjrt_kv_put put = {.key = "k",
                              .key_size = 1,
                              .value = value,
                              .value_size = SX_STORE_VALUE_BYTES,
                              .error = &make,
                              .user = &kv};
        assert_null(args.kv_put(&put));
    } else {
        sx_pjrt_kv_get get = {
            .key = "k", .key_size = 1, .timeout_ms = 10000, .error = &make, .user = &kv};
        assert_null(args.kv_get(&get));
        assert_int_equal(get.value_size, SX_STORE_VALUE_BYTES);
        assert_memory_equal(get.value, value, SX_STORE_VALUE_BYTES);
        get.release(get.value);
    }
    sx_free(value);
    m->status = sx_processes_meet(m->p);
}

static void test_distribute_processes__the_greatest_value_of_a_plugin(void **state)
{
    (void)state;
    member all[2];
    run_all(all, 2, use_greatest_value);
    assert_ok(all[0].status);
    assert_ok(all[1].status);
}

static void test_distribute_processes__the_port_must_be_free(void **state)
{
    (void)state;
    sx_store_server *s;
    sx_processes *p;
    char coordinator[32];
    const sx_store_options options = {.processes = 2, .join_ms = 1000, .lost_ms = 1000};
    assert_ok(sx_store_server_start("127.0.0.1", 0, &options, &s));
    snprintf(coordinator, sizeof(coordinator), "127.0.0.1:%d", sx_store_server_port(s));
    const sx_process_plan plan = {.count = 2, .coordinator = coordinator};
    assert_error(sx_processes_join(&(sx_processes_options){.plan = &plan}, &p), SX_ALREADY_EXISTS,
                 "process 0 cannot serve the others at 127.0.0.1:");
    sx_store_server_stop(s, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_distribute_processes__agree_in_step),
    cmocka_unit_test(test_distribute_processes__name_what_differs),
    cmocka_unit_test(test_distribute_processes__one_failure_is_that_of_all),
    cmocka_unit_test(test_distribute_processes__all_fail_alike),
    cmocka_unit_test(test_distribute_processes__a_stop_reaches_the_chief),
    cmocka_unit_test(test_distribute_processes__a_stop_ends_joining),
    cmocka_unit_test(test_distribute_processes__a_stop_before_they_agree),
    cmocka_unit_test(test_distribute_processes__a_lost_chief_is_named),
    cmocka_unit_test(test_distribute_processes__leaves_a_silent_chief_at_once),
    cmocka_unit_test(test_distribute_processes__keys_for_a_plugin),
    cmocka_unit_test(test_distribute_processes__the_greatest_value_of_a_plugin),
    cmocka_unit_test(test_distribute_processes__the_port_must_be_free),
};

SX_TEST_MAIN(tests)
