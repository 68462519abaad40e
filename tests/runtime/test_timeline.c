/* The step loop's timeline, and what it says bounds the loop: on our own plugin, whose steps and
 * copies take as long as it is told, in sleep; and on cpu. */
#include "loop_run.h"

#include "runtime/timeline_sums.h"

enum { LAUNCH = 4, LAUNCHES = 7, WARM_UP = 2 };

/* What is slow: ms of the device's step, of a launch's copies, to read a batch, to show a step. */
typedef struct slow {
    double step, copies, feed, show;
} slow;

typedef struct slow_run {
    run *r;
    slow slow;
    int fed;
} slow_run;

static void sleep_ms(double ms)
{
    usleep((useconds_t)(ms * 1e3));
}

static sx_status feed_slowly(void *user, sx_step_input *out)
{
    slow_run *s = user;
    const int k = s->fed++ % STEPS;
    sleep_ms(s->slow.feed);
    out->batch = BATCH;
    out->inputs[0] = s->r->x[k];
    out->inputs[1] = s->r->y[k];
    return SX_OK;
}

static bool show_slowly(void *user, const sx_step_scalars *scalars)
{
    const slow_run *s = user;
    assert_true(scalars->launch >= 1);
    sleep_ms(s->slow.show);
    return false;
}

/* Runs the loop and sums its timeline; `options` without the timeline. */
static void loop_slowly(sx_session_options options, slow how, int64_t steps, sx_arena *arena,
                        sx_timeline **timeline, sx_timeline_sums *out)
{
    int64_t done;
    assert_ok(sx_timeline_create(timeline));
    options.platform.timeline = *timeline;
    slow_run s = {.r = open_run(&options), .slow = how};
    const int ok = sx_program_find_output(s.r->program, SX_OK_OUTPUT);
    const sx_loop_args args = {
        .steps = steps, .feed = feed_slowly, .step = show_slowly, .user = &s, .ok_output = ok};
    assert_ok(sx_program_prepare_loop(s.r->program, BATCH, ok, NULL));
    assert_ok(sx_program_loop(s.r->program, &args, &done));
    assert_int_equal(done, steps);
    assert_ok(sx_timeline_sum(*timeline, WARM_UP + 1, INT64_MAX, arena, out));
    close_run(s.r);
}

/* On our plugin, in launches; `ms`: of a launch, at least, by what is slow. */
static void assert_bound(slow how, sx_bound expected, double ms)
{
    char settings[128];
    sx_arena arena;
    sx_timeline *timeline;
    sx_timeline_sums sums;
    const double bytes = (double)LAUNCH * BATCH * (FEATURES + 1) * 4;
    snprintf(settings, sizeof(settings), "delay=0,step=%.0f,mib=%.0f", how.step * 1e3,
             how.copies * 1e3 * (1 << 20) / bytes);
    setenv("SX_PJRT_REF", settings, 1);
    sx_arena_init(&arena, 0);
    loop_slowly((sx_session_options){.device = "pjrt",
                                     .platform.pjrt.plugin_path = ref_plugin(),
                                     .launch_steps = LAUNCH},
                how, (int64_t)LAUNCH * LAUNCHES, &arena, &timeline, &sums);
    unsetenv("SX_PJRT_REF");
    assert_int_equal(sums.n, LAUNCHES - WARM_UP);
    assert_int_equal(sums.all.steps, LAUNCH * (LAUNCHES - WARM_UP));
    assert_int_equal(sums.all.examples, sums.all.steps * BATCH);
    assert_true(sums.all.bytes > 0 && sums.all.bytes <= LAUNCHES * bytes);
    assert_true(sums.copies);
    for (int i = 0; i < sums.n; i++) {
        assert_int_equal(sums.rows[i].launch, WARM_UP + 1 + i);
        assert_int_equal(sums.rows[i].steps, LAUNCH);
        assert_true(sums.rows[i].end_ns > sums.rows[i].start_ns);
        assert_true(i == 0 || sums.rows[i].start_ns == sums.rows[i - 1].end_ns);
        assert_true(sums.rows[i].seconds[SX_SPAN_COMPUTE] >= LAUNCH * how.step * 0.95e-3);
    }
    double sum = 0; /* the loop's thread does one thing after another, all the time */
    for (int kind = 0; kind < SX_SPAN_TRANSFER; kind++) {
        assert_true(sums.all.seconds[kind] >= 0);
        sum += sums.all.seconds[kind];
    }
    assert_true(sum >= 0.8 * sums.total && sum <= 1.001 * sums.total);
    assert_true(sums.all.seconds[SX_SPAN_COMPUTE] <= 1.001 * sums.total);
    assert_true(sums.all.seconds[SX_SPAN_TRANSFER] <= 1.001 * sums.total);
    /* what was told is there: but for a launch, most of it */
    const double n = sums.n - 1.5;
    assert_true(sums.all.seconds[SX_SPAN_TRANSFER] >= n * how.copies * 1e-3);
    assert_true(sums.all.seconds[SX_SPAN_INPUT] >= n * LAUNCH * how.feed * 1e-3);
    assert_true(sums.all.seconds[SX_SPAN_SHOW] >= n * LAUNCH * how.show * 1e-3);
    assert_true(sums.idle >= -1e-9 && sums.idle <= sums.total);
    assert_true(sums.total >= (sums.n - 1) * ms * 1e-3);
    assert_int_equal(sums.bound, expected);
    assert_true(sx_timeline_busy(&sums, expected) >= 0.7 * sums.total);
    sx_timeline_destroy(timeline);
    sx_arena_deinit(&arena);
}

static void test_runtime_timeline__names_what_bounds_a_loop_on_a_device(void **state)
{
    (void)state;
    assert_bound((slow){.step = 15, .copies = 10}, SX_BOUND_COMPUTE, 60);
    assert_bound((slow){.step = 3, .copies = 60}, SX_BOUND_TRANSFER, 60);
    assert_bound((slow){.step = 3, .copies = 10, .feed = 15}, SX_BOUND_INPUT, 60);
    assert_bound((slow){.step = 3, .copies = 10, .show = 15}, SX_BOUND_HOST, 60);
}

/* Where a launch costs more than the time wished for, however short it is, launches get longer
 * nevertheless. */
static void test_runtime_timeline__costly_launches_get_longer(void **state)
{
    enum { FED = 150 };
    const sx_timeline_span *spans;
    const sx_timeline_launch *launches;
    int n, n_launches;
    int64_t done, most = 0;
    sx_timeline *timeline;
    (void)state;
    setenv("SX_PJRT_REF", "delay=0,out=30000", 1); /* each launch's results take 30 ms to fetch */
    assert_ok(sx_timeline_create(&timeline));
    slow_run s = {.r = open_run(&(sx_session_options){
                      .device = "pjrt",
                      .platform = {.pjrt.plugin_path = ref_plugin(), .timeline = timeline},
                      .launch_seconds = 0.01})};
    unsetenv("SX_PJRT_REF");
    const int ok = sx_program_find_output(s.r->program, SX_OK_OUTPUT);
    const sx_loop_args args = {.steps = FED, .feed = feed_slowly, .user = &s, .ok_output = ok};
    assert_ok(sx_program_prepare_loop(s.r->program, BATCH, ok, NULL));
    assert_ok(sx_program_loop(s.r->program, &args, &done));
    assert_int_equal(done, FED);
    assert_ok(sx_timeline_read(timeline, &spans, &n, &launches, &n_launches));
    for (int i = 0; i < n_launches; i++) {
        most = launches[i].steps > most ? launches[i].steps : most;
    }
    assert_true(most >= 16);
    close_run(s.r);
    sx_timeline_destroy(timeline);
}

/* A batch that replicas do not divide is copied to each of them. */
static void test_runtime_timeline__bytes_are_of_all_replicas(void **state)
{
    sx_arena arena;
    sx_timeline *timeline;
    sx_timeline_sums sums;
    (void)state;
    sx_arena_init(&arena, 0);
    for (int replicas = 1; replicas <= 2; replicas++) {
        const int batch = 7;
        const double bytes = batch * (FEATURES + 1) * 4.0;
        int64_t done;
        assert_ok(sx_timeline_create(&timeline));
        run *r = open_run(&(sx_session_options){.device = "pjrt",
                                                .platform = {.pjrt.plugin_path = ref_plugin(),
                                                             .pjrt.replicas = replicas,
                                                             .timeline = timeline},
                                                .launch_steps = LAUNCH});
        for (int k = 0; k < STEPS; k++) {
            r->sizes[k] = batch;
        }
        assert_ok(loop(r, 4, &done));
        assert_ok(sx_timeline_sum(timeline, 1, INT64_MAX, &arena, &sums));
        double copied = 0;
        for (int i = 0; i < sums.n_spans; i++) {
            copied += (double)sums.spans[i].bytes;
        }
        assert_float_equal(copied, 4 * bytes * replicas, 0.5);
        close_run(r);
        sx_timeline_destroy(timeline);
    }
    sx_arena_deinit(&arena);
}

/* Without memory of its own, a device computes on the loop's thread: nothing overlaps. */
static void test_runtime_timeline__times_of_cpu_add_up(void **state)
{
    sx_arena arena;
    sx_timeline *timeline;
    sx_timeline_sums sums;
    (void)state;
    sx_arena_init(&arena, 0);
    loop_slowly((sx_session_options){.device = "cpu"}, (slow){.feed = 5}, STEPS, &arena, &timeline,
                &sums);
    assert_int_equal(sums.n, STEPS - WARM_UP);
    assert_false(sums.copies);
    assert_int_equal(sums.bound, SX_BOUND_INPUT);
    assert_true(sums.all.seconds[SX_SPAN_INPUT] >= (sums.n - 1) * 5e-3);
    double sum = 0;
    for (int kind = 0; kind < SX_SPANS; kind++) {
        sum += kind == SX_SPAN_COMPUTE ? 0 : sums.all.seconds[kind]; /* within a wait */
    }
    assert_true(sum <= sums.total * 1.05);
    assert_true(sums.all.seconds[SX_SPAN_COMPUTE] <= sums.all.seconds[SX_SPAN_WAIT]);
    sx_timeline_destroy(timeline);
    sx_arena_deinit(&arena);
}

/* Launches one after the other, on a loop that does so many ms of each; `late`: until it learns
 * that a launch has ended. */
static void sum_sequence(double input, double compute, double late, double show, sx_arena *arena,
                         sx_timeline_sums *out)
{
    sx_timeline *t;
    assert_ok(sx_timeline_create(&t));
    for (int k = 0; k < 4; k++) {
        const int launch = sx_timeline_next_launch(t);
        int64_t start = sx_timeline_now(t);
        sx_timeline_set_steps(t, launch, 1, 8);
        sleep_ms(input);
        sx_timeline_add(t, SX_SPAN_INPUT, launch, start);
        start = sx_timeline_now(t);
        sx_timeline_work *work = sx_timeline_begin(t, SX_SPAN_COMPUTE, start, 0);
        sleep_ms(compute);
        sx_timeline_end(work);
        sleep_ms(late);
        sx_timeline_add(t, SX_SPAN_WAIT, launch, start);
        start = sx_timeline_now(t);
        sleep_ms(show);
        sx_timeline_add(t, SX_SPAN_SHOW, launch, start);
    }
    assert_ok(sx_timeline_sum(t, 2, INT64_MAX, arena, out));
    assert_float_equal(out->idle, out->idle_input + out->idle_host + out->idle_launch, 1e-6);
    assert_float_equal(out->idle, out->total - out->all.seconds[SX_SPAN_COMPUTE], 1e-6);
    sx_timeline_destroy(t);
}

static void test_runtime_timeline__tells_why_a_device_is_idle(void **state)
{
    sx_arena arena;
    sx_timeline_sums sums;
    (void)state;
    sx_arena_init(&arena, 0);
    sum_sequence(2, 6, 30, 2, &arena, &sums); /* short launches */
    assert_int_equal(sums.bound, SX_BOUND_IDLE);
    assert_true(sums.idle_launch >= 3 * 30e-3);
    assert_true(sums.idle_launch > sums.idle_input + sums.idle_host);
    sum_sequence(20, 24, 0, 12, &arena, &sums); /* nothing overlaps */
    assert_int_equal(sums.bound, SX_BOUND_IDLE);
    assert_true(sums.idle_input >= 3 * 20e-3 && sums.idle_host >= 2 * 12e-3);
    assert_true(sums.idle_input > sums.idle_host && sums.idle_host > sums.idle_launch);
    sum_sequence(5, 40, 0, 5, &arena, &sums); /* mostly computing */
    assert_int_equal(sums.bound, SX_BOUND_COMPUTE);
    sum_sequence(40, 5, 5, 5, &arena, &sums); /* idle, but by the input alone */
    assert_int_equal(sums.bound, SX_BOUND_INPUT);
    sx_arena_deinit(&arena);
}

/* What is handed to a device while it is busy begins when that ends. */
static void test_runtime_timeline__device_work_begins_when_it_can(void **state)
{
    const sx_timeline_span *spans;
    const sx_timeline_launch *launches;
    int n, n_launches;
    sx_timeline *t;
    (void)state;
    assert_ok(sx_timeline_create(&t));
    assert_int_equal(sx_timeline_next_launch(t), 1);
    const int64_t start = sx_timeline_now(t);
    sx_timeline_work *first = sx_timeline_begin(t, SX_SPAN_TRANSFER, start, 10);
    sx_timeline_work *second = sx_timeline_begin(t, SX_SPAN_TRANSFER, start + 1, 20);
    sx_timeline_work *launch = sx_timeline_begin(t, SX_SPAN_COMPUTE, start + 2, 0);
    sx_timeline_work *lost = sx_timeline_begin(t, SX_SPAN_COMPUTE, start + 3, 0);
    sx_timeline_set_steps(t, 1, 5, 40);
    sleep_ms(1);
    sx_timeline_end(first);
    sleep_ms(1);
    sx_timeline_end(second);
    sleep_ms(1);
    sx_timeline_end(launch);
    sx_timeline_drop(lost);
    assert_ok(sx_timeline_read(t, &spans, &n, &launches, &n_launches));
    assert_int_equal(n, 3);
    assert_int_equal(n_launches, 1);
    assert_int_equal(launches[0].steps, 5);
    assert_int_equal(launches[0].examples, 40);
    for (int i = 0; i < n; i++) {
        assert_int_equal(spans[i].launch, 1);
        assert_true(spans[i].end_ns - spans[i].start_ns >= 1000000);
        assert_true(i == 0 ? spans[i].start_ns == start : spans[i].start_ns == spans[i - 1].end_ns);
    }
    assert_int_equal(spans[1].bytes, 20);
    sx_timeline_destroy(t);
    /* without one, nothing is done */
    assert_int_equal(sx_timeline_next_launch(NULL), 0);
    assert_int_equal(sx_timeline_now(NULL), 0);
    assert_null(sx_timeline_begin(NULL, SX_SPAN_COMPUTE, 0, 0));
}

/* The thread that tells the end of a copy may compute first: the launch's time is not the copy's.
 */
static void test_runtime_timeline__a_copy_told_late_takes_no_time_of_its_launch(void **state)
{
    enum { LATE_MS = 40 };
    const sx_timeline_span *spans;
    const sx_timeline_launch *launches;
    int n, n_launches;
    (void)state;
    for (int told = 0; told < 2; told++) { /* told: there is a copy before, told in time */
        sx_timeline *t;
        assert_ok(sx_timeline_create(&t));
        if (told) {
            (void)sx_timeline_next_launch(t);
            sx_timeline_work *copy =
                sx_timeline_begin(t, SX_SPAN_TRANSFER, sx_timeline_now(t), 1 << 20);
            sleep_ms(2);
            sx_timeline_end(copy);
            sx_timeline_end(sx_timeline_begin(t, SX_SPAN_COMPUTE, sx_timeline_now(t), 0));
        }
        const int late = sx_timeline_next_launch(t);
        const int64_t start = sx_timeline_now(t), submitted = start + 1000;
        sx_timeline_work *copy = sx_timeline_begin(t, SX_SPAN_TRANSFER, start, 1 << 19);
        sx_timeline_work *launch = sx_timeline_begin(t, SX_SPAN_COMPUTE, submitted, 0);
        sleep_ms(LATE_MS);
        sx_timeline_end(launch);
        sx_timeline_end(copy);
        assert_ok(sx_timeline_read(t, &spans, &n, &launches, &n_launches));
        assert_int_equal(n, told ? 4 : 2);
        const sx_timeline_span *copied = &spans[n - 2], *computed = &spans[n - 1];
        assert_int_equal(copied->launch, late);
        assert_int_equal(copied->kind, SX_SPAN_TRANSFER);
        assert_int_equal(copied->start_ns, start);
        assert_int_equal(computed->kind, SX_SPAN_COMPUTE);
        assert_int_equal(computed->start_ns, copied->end_ns);
        const int64_t expected = told ? (spans[0].end_ns - spans[0].start_ns) / 2 : 1000;
        assert_true(llabs(copied->end_ns - copied->start_ns - expected) <= 1);
        assert_true(computed->end_ns - start >= LATE_MS * 1000000LL);
        sx_timeline_destroy(t);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_timeline__names_what_bounds_a_loop_on_a_device),
    cmocka_unit_test(test_runtime_timeline__costly_launches_get_longer),
    cmocka_unit_test(test_runtime_timeline__bytes_are_of_all_replicas),
    cmocka_unit_test(test_runtime_timeline__times_of_cpu_add_up),
    cmocka_unit_test(test_runtime_timeline__tells_why_a_device_is_idle),
    cmocka_unit_test(test_runtime_timeline__device_work_begins_when_it_can),
    cmocka_unit_test(test_runtime_timeline__a_copy_told_late_takes_no_time_of_its_launch),
};
SX_TEST_MAIN(tests)
