#include "harness.h"

#include "serve/batch_queue.h"

enum { MS = 1000000, CALLS = 40 };

/* Calls of one row each, unless told otherwise, that the clock of the test has let in. */
struct scene {
    sx_batch_queue queue;
    sx_batch_call calls[CALLS];
    sx_cancel cancels[CALLS];
    sx_tensor inputs[CALLS];
    int count;
};

static void open_scene(struct scene *s, sx_batch_policy policy, int64_t max_rows)
{
    static const int64_t sizes[] = {1, 2, 4, 8, 16};
    *s = (struct scene){.queue.input_count = 1};
    s->queue.rules = (sx_batch_rules){
        .policy = policy, .max_rows = max_rows, .max_queued_rows = 30, .timeout_ns = 10 * MS};
    for (int i = 0; i < 5 && policy == SX_BATCH_CONSERVE; i++) {
        s->queue.rules.sizes[s->queue.rules.size_count++] = sizes[i];
    }
}

/* Adds a call; `deadline_ms` 0: none. */
static sx_status add(struct scene *s, int64_t now_ms, int64_t rows, int64_t deadline_ms)
{
    const int i = s->count++;
    sx_cancel_init(&s->cancels[i], deadline_ms == 0 ? INT64_MAX : deadline_ms * MS);
    s->inputs[i].type = (sx_type){SX_F32, 2, {rows, 3}};
    s->calls[i] = (sx_batch_call){
        .inputs = &s->inputs[i], .rows = rows, .arrived_ns = now_ms * MS, .cancel = &s->cancels[i]};
    return sx_batch_queue_add(&s->queue, &s->calls[i]);
}

/* The numbers of the calls of a list: "0 2 5". */
static void assert_calls(const struct scene *s, const sx_batch_call *list, const char *expected)
{
    char text[200] = "";
    for (const sx_batch_call *call = list; call != NULL; call = call->next) {
        const size_t length = strlen(text);
        snprintf(text + length, sizeof(text) - length, "%s%d", length > 0 ? " " : "",
                 (int)(call - s->calls));
    }
    assert_string_equal(text, expected);
}

static void test_serve_batch_queue__takes_what_waits_by_deadline(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, SX_BATCH_CONSERVE, 4);
    assert_int_equal(sx_batch_queue_due_ns(&s.queue), INT64_MAX);
    assert_null(sx_batch_queue_take(&s.queue));
    assert_ok(add(&s, 0, 1, 0));
    assert_true(sx_batch_queue_due_ns(&s.queue) <= 0); /* at once */
    assert_calls(&s, sx_batch_queue_take(&s.queue), "0");

    assert_ok(add(&s, 1, 1, 500));
    assert_ok(add(&s, 2, 1, 100));
    assert_ok(add(&s, 3, 1, 0)); /* without one, after 30 s */
    assert_ok(add(&s, 4, 1, 40000));
    assert_ok(add(&s, 5, 1, 300));
    assert_calls(&s, sx_batch_queue_take(&s.queue), "2 5 1 3");
    assert_calls(&s, sx_batch_queue_take(&s.queue), "4");
    assert_int_equal(s.queue.rows, 0);
    assert_ok(add(&s, 6, 1, 0)); /* the end of the list is right after all */
    assert_ok(add(&s, 7, 1, 0));
    assert_calls(&s, sx_batch_queue_take(&s.queue), "6 7");
}

static void test_serve_batch_queue__fills_sizes(void **state)
{
    static const struct {
        int waiting, runs;
    } rows[] = {{1, 1}, {2, 2},  {3, 3},   {5, 4},   {6, 6},
                {9, 8}, {11, 8}, {12, 12}, {16, 16}, {20, 16}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scene s;
        open_scene(&s, SX_BATCH_CONSERVE, 16);
        for (int k = 0; k < rows[i].waiting; k++) {
            assert_ok(add(&s, k, 1, 0));
        }
        int taken = 0;
        for (const sx_batch_call *call = sx_batch_queue_take(&s.queue); call != NULL;
             call = call->next) {
            taken++;
        }
        assert_int_equal(taken, rows[i].runs);
        assert_int_equal(s.queue.rows, rows[i].waiting - rows[i].runs);
    }
}

static void test_serve_batch_queue__merges_only_what_fits(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, SX_BATCH_CONSERVE, 8);
    assert_ok(add(&s, 0, 2, 0));
    assert_ok(add(&s, 1, 1, 0));
    s.inputs[1].type.dims[1] = 5; /* another shape */
    assert_ok(add(&s, 2, 7, 0));  /* too many rows for the first's batch */
    assert_ok(add(&s, 3, 2, 0));
    assert_ok(add(&s, 4, 1, 0));
    s.calls[4].alone = true;
    assert_calls(&s, sx_batch_queue_take(&s.queue), "0 3");
    assert_calls(&s, sx_batch_queue_take(&s.queue), "1");
    assert_calls(&s, sx_batch_queue_take(&s.queue), "2");
    assert_calls(&s, sx_batch_queue_take(&s.queue), "4");
}

static void test_serve_batch_queue__drops_what_nobody_waits_for(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, SX_BATCH_CONSERVE, 4);
    for (int i = 0; i < 5; i++) {
        assert_ok(add(&s, 0, 1, 100 + 10 * i));
    }
    sx_cancel_request(&s.cancels[3]);
    assert_calls(&s, sx_batch_queue_drop(&s.queue, 99 * MS), "3");
    assert_calls(&s, sx_batch_queue_drop(&s.queue, 110 * MS), "0 1");
    /* One that could not be in time is not begun; but the guess is not trusted for ever. */
    sx_batch_queue_note_run(&s.queue, 1, 50 * MS);
    assert_calls(&s, sx_batch_queue_drop(&s.queue, 111 * MS), "2 4");
    assert_int_equal(s.queue.calls, 0);
    assert_true(sx_batch_queue_run_ns(&s.queue, 1) < 50 * MS);
    assert_ok(add(&s, 111, 1, 200));
    assert_calls(&s, sx_batch_queue_drop(&s.queue, 111 * MS), "");
    assert_calls(&s, sx_batch_queue_take(&s.queue), "5");
}

/* Three times as many calls as can be run, each with 100 ms: most of the time goes to calls that
 * are in time, although runs take longer now and then. */
static void test_serve_batch_queue__overload_leaves_goodput(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    static sx_batch_call calls[MANY];
    static sx_cancel cancels[MANY];
    struct scene s;
    int64_t now_us = 0, good_us = 0;
    int arrived = 0;
    open_scene(&s, SX_BATCH_CONSERVE, 1);
    s.queue.rules.max_queued_rows = MANY;
    for (int run = 0; arrived < MANY; run++) {
        for (; arrived < MANY && arrived * 3500 <= now_us; arrived++) {
            sx_cancel_init(&cancels[arrived], (arrived * (int64_t)3500 + 100000) * 1000);
            calls[arrived] = (sx_batch_call){.inputs = s.inputs,
                                             .rows = 1,
                                             .arrived_ns = now_us * 1000,
                                             .cancel = &cancels[arrived]};
            assert_ok(sx_batch_queue_add(&s.queue, &calls[arrived]));
        }
        sx_batch_queue_drop(&s.queue, now_us * 1000);
        const sx_batch_call *call = sx_batch_queue_take(&s.queue);
        if (call == NULL) {
            now_us += 100;
            continue;
        }
        const int64_t run_us = 10000 + run * 7 % 5 * 800; /* 10 to 13.2 ms */
        now_us += run_us;
        if (now_us * 1000 <= call->cancel->deadline_ns) {
            good_us += run_us;
            sx_batch_queue_note_run(&s.queue, 1, run_us * 1000);
        }
    }
    assert_true(good_us > now_us * 9 / 10);
}

static void test_serve_batch_queue__is_bounded(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, SX_BATCH_CONSERVE, 4);
    for (int i = 0; i < 30; i++) {
        assert_ok(add(&s, 0, 1, 0));
    }
    assert_error(add(&s, 0, 1, 0), SX_UNAVAILABLE,
                 "queue to which this task was submitted is full");
    assert_calls(&s, sx_batch_queue_take(&s.queue), "0 1 2 3");
    assert_ok(add(&s, 0, 4, 0));
}

/* A batch is closed by the call that does not fit, or runs when its first has waited. */
static void test_serve_batch_queue__tfs_waits(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, SX_BATCH_TFS, 4);
    assert_ok(add(&s, 5, 2, 0));
    assert_int_equal(sx_batch_queue_due_ns(&s.queue), 15 * MS);
    assert_ok(add(&s, 7, 1, 6)); /* in the order of arrival; past its deadline, but not alone so */
    assert_int_equal(sx_batch_queue_due_ns(&s.queue), 15 * MS);
    assert_calls(&s, sx_batch_queue_drop(&s.queue, 15 * MS), "");
    assert_ok(add(&s, 8, 2, 0));
    assert_int_equal(sx_batch_queue_due_ns(&s.queue), 5 * MS); /* closed */
    assert_calls(&s, sx_batch_queue_take(&s.queue), "0 1");
    assert_int_equal(sx_batch_queue_due_ns(&s.queue), 18 * MS);
    assert_ok(add(&s, 9, 2, 0));
    assert_int_equal(sx_batch_queue_due_ns(&s.queue), 8 * MS); /* full */
    assert_calls(&s, sx_batch_queue_take(&s.queue), "2 3");
    assert_ok(add(&s, 10, 2, 20));
    assert_ok(add(&s, 11, 2, 21));
    assert_calls(&s, sx_batch_queue_drop(&s.queue, 20 * MS), "");
    assert_calls(&s, sx_batch_queue_drop(&s.queue, 21 * MS), "4 5"); /* all of it */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_batch_queue__takes_what_waits_by_deadline),
    cmocka_unit_test(test_serve_batch_queue__fills_sizes),
    cmocka_unit_test(test_serve_batch_queue__merges_only_what_fits),
    cmocka_unit_test(test_serve_batch_queue__drops_what_nobody_waits_for),
    cmocka_unit_test(test_serve_batch_queue__overload_leaves_goodput),
    cmocka_unit_test(test_serve_batch_queue__is_bounded),
    cmocka_unit_test(test_serve_batch_queue__tfs_waits),
};
SX_TEST_MAIN(tests)
