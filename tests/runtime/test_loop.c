/* The step loop: collecting, launching, replaying; over XLA's CPU plugin where the device loops,
 * and over ref, where a launch is one step. */
#include "loop_run.h"

#include "backends/timeline.h"

static void loop_all(run *r)
{
    int64_t done, step;
    assert_ok(loop(r, STEPS, &done));
    assert_int_equal(done, STEPS);
    assert_ok(sx_session_read_step(r->session, &step));
    assert_int_equal(step, STEPS);
    for (int k = 0; k < STEPS; k++) {
        assert_int_equal(r->steps[k], k + 1);
        assert_true(r->read[k] == (float)r->losses[k]);
        assert_true(k == 0 || r->ended[k] >= r->ended[k - 1]);
    }
}

/* Every variable, one behind the other; returns how many numbers. */
static int read_variables(const run *r, float *out)
{
    int n = 0;
    for (int i = 0; i < sx_session_variable_count(r->session); i++) {
        const sx_session_variable *v = sx_session_variable_at(r->session, i);
        int64_t elems = sx_type_elems(&v->type);
        if (v->type.dtype == SX_F32) {
            assert_true(n + elems <= MOST_VALUES);
            assert_ok(sx_session_read_variable(r->session, i, out + n));
            n += (int)elems;
        }
    }
    assert_true(n > 0);
    return n;
}

static void assert_close(const float *a, const float *b, int n, double tolerance)
{
    for (int i = 0; i < n; i++) {
        if (!(fabs((double)a[i] - (double)b[i]) <= tolerance)) {
            fail_msg("number %d is %.9g, expected %.9g", i, (double)a[i], (double)b[i]);
        }
    }
}

static void assert_same_run(const run *a, const run *b, double tolerance)
{
    float x[MOST_VALUES], y[MOST_VALUES];
    int n = read_variables(a, x);
    assert_int_equal(read_variables(b, y), n);
    assert_close(x, y, n, tolerance);
    for (int k = 0; k < STEPS; k++) {
        assert_true(fabs(a->losses[k] - b->losses[k]) <= tolerance);
    }
}

/* ---- Without a loop ---- */

static void test_runtime_loop__one_step_at_a_time_where_the_device_cannot(void **state)
{
    (void)state;
    run *r = open_run(&(sx_session_options){.device = "host", .seed = 3});
    r->sizes[4] = 3;
    loop_all(r);
    assert_int_equal(sx_program_launch_steps(r->program), 1);
    for (int k = 0; k < STEPS; k++) {
        assert_int_equal(r->fed_when_shown[k], k + 1);
    }
    close_run(r);
}

static void test_runtime_loop__ends_where_step_says_so(void **state)
{
    (void)state;
    int64_t done;
    run *r = open_run(&(sx_session_options){.device = "host", .seed = 3});
    r->stop_at = 3;
    assert_ok(loop(r, STEPS, &done));
    assert_int_equal(done, 3);
    assert_int_equal(r->n_fed, 3);
    close_run(r);
}

/* ---- Launches ---- */

static void test_runtime_loop__launches_show_every_step(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    run *r = open_pjrt(4, 1, false), *ref;
    /* The next launch is fed before the steps of one are shown. */
    static const int fed[STEPS] = {8, 8, 8, 8, 12, 12, 12, 12, 12, 12, 12, 12};
    loop_all(r);
    assert_int_equal(sx_program_launch_steps(r->program), 4);
    for (int k = 0; k < STEPS; k++) {
        assert_int_equal(r->fed_when_shown[k], fed[k]);
    }
    ref = open_run(&(sx_session_options){.device = "host", .seed = 3});
    loop_all(ref);
    assert_same_run(r, ref, 1e-5);
    close_run(r);
    close_run(ref);
}

static void test_runtime_loop__the_lengths_of_launches_change_no_bit(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    run *a = open_pjrt(5, 1, false), *b = open_pjrt(5, 1, false);
    b->ends[0] = b->ends[2] = b->ends[3] = b->ends[8] = true;
    loop_all(a);
    loop_all(b);
    assert_int_equal(b->fed_when_shown[0], 1);
    assert_int_equal(b->fed_when_shown[1], 3);
    assert_same_run(a, b, 0);
    close_run(a);
    close_run(b);
}

static sx_status plan(void *user, int64_t *steps)
{
    run *r = user;
    const int64_t planned = r->plans[r->n_planned++];
    assert_true(*steps > 0);
    *steps = planned < 0 ? *steps + 1 : planned;
    return SX_OK;
}

/* Who plans decides how many steps a launch has, and ends the loop with 0. */
static void test_runtime_loop__launches_as_planned(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    static const int fed[9] = {3, 3, 7, 9, 9, 9, 9, 9, 9};
    run *r = open_pjrt(4, 1, false);
    int64_t done;
    const sx_loop_args args = {.steps = STEPS,
                               .feed = feed,
                               .step = show,
                               .plan = plan,
                               .user = r,
                               .ok_output = sx_program_find_output(r->program, SX_OK_OUTPUT)};
    memcpy(r->plans, (const int64_t[]){2, 1, 4, 2, 0}, 5 * sizeof(int64_t));
    assert_ok(sx_program_prepare_loop(r->program, BATCH, args.ok_output, NULL));
    assert_ok(sx_program_loop(r->program, &args, &done));
    assert_int_equal(done, 9);
    assert_int_equal(r->n_planned, 5);
    for (int k = 0; k < 9; k++) {
        assert_int_equal(r->fed_when_shown[k], fed[k]);
    }
    r->plans[5] = -1;
    assert_error(sx_program_loop(r->program, &args, &done), SX_INTERNAL, "it has room for");
    close_run(r);

    r = open_run(&(sx_session_options){.device = "host", .seed = 3}); /* one step at a time */
    memcpy(r->plans, (const int64_t[]){1, 1, 0}, 3 * sizeof(int64_t));
    const sx_loop_args single = {
        .steps = STEPS, .feed = feed, .step = show, .plan = plan, .user = r, .ok_output = -1};
    assert_ok(sx_program_loop(r->program, &single, &done));
    assert_int_equal(done, 2);
    assert_int_equal(r->n_fed, 2);
    close_run(r);
}

/* The number of another process, whose clock lets it choose more. */
static void test_runtime_loop__a_launch_longer_than_its_own(void **state)
{
    (void)state;
    const sx_platform_options platform = {.pjrt.plugin_path = ref_plugin()};
    run *r = open_run(&(sx_session_options){
        .device = "pjrt", .platform = platform, .seed = 3, .launch_seconds = 1e-12});
    int64_t done;
    const sx_loop_args args = {.steps = STEPS,
                               .feed = feed,
                               .step = show,
                               .plan = plan,
                               .user = r,
                               .ok_output = sx_program_find_output(r->program, SX_OK_OUTPUT)};
    memcpy(r->plans, (const int64_t[]){1, 4, 3, 0}, 4 * sizeof(int64_t));
    assert_ok(sx_program_prepare_loop(r->program, BATCH, args.ok_output, NULL));
    assert_ok(sx_program_loop(r->program, &args, &done));
    assert_int_equal(done, 8);
    close_run(r);
}

static void test_runtime_loop__another_size_ends_a_launch(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    run *r = open_pjrt(5, 1, false);
    run *ref = open_run(&(sx_session_options){.device = "host", .seed = 3});
    r->sizes[2] = ref->sizes[2] = 3;
    loop_all(r);
    assert_int_equal(r->fed_when_shown[0], 3);
    assert_int_equal(r->fed_when_shown[2], 3);
    assert_int_equal(r->fed_when_shown[3], 12); /* a launch of five, and the next of four */
    loop_all(ref);
    assert_same_run(r, ref, 1e-5);
    close_run(r);
    close_run(ref);
}

static void test_runtime_loop__a_launch_is_run_whole_when_step_ends_the_loop(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    int64_t done;
    run *r = open_pjrt(4, 1, false);
    r->sizes[7] = 5; /* fed before the steps are shown: it is run too */
    r->stop_at = 6;
    assert_ok(loop(r, STEPS, &done));
    assert_int_equal(done, 8);
    assert_int_equal(r->n_shown, 8);
    assert_int_equal(r->n_fed, 8);
    close_run(r);
}

static void test_runtime_loop__what_was_fed_before_an_end_is_run(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    int64_t done;
    run *r = open_pjrt(4, 1, false);
    r->end_at = 6;
    assert_ok(loop(r, STEPS, &done));
    assert_int_equal(done, 6);
    r->end_at = -1;
    r->fail_at = 9;
    assert_error(loop(r, STEPS, &done), SX_DATA_LOSS, "record 7 is broken");
    assert_int_equal(done, 3);
    assert_int_equal(r->n_shown, 9);
    close_run(r);
}

static void test_runtime_loop__launches_last_about_as_long_as_asked(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    int64_t done;
    const sx_platform_options platform = {.pjrt.plugin_path = pjrt_plugin()};
    run *r = open_run(
        &(sx_session_options){.device = "pjrt", .platform = platform, .launch_seconds = 1e-9});
    assert_ok(loop(r, STEPS, &done));
    assert_int_equal(sx_program_launch_steps(r->program), 1024);
    for (int k = 0; k < STEPS; k++) {
        /* Each is longer than that: one step, and the one that is fed meanwhile. */
        assert_int_equal(r->fed_when_shown[k], k + 2 < STEPS ? k + 2 : STEPS);
    }
    close_run(r);
}

/* Runs STEPS launches of one step each, with room for 1024; the bytes copied to the device. */
static int64_t bytes_of_short_launches(const char *plugin, double losses[STEPS])
{
    const sx_timeline_span *spans;
    const sx_timeline_launch *launches;
    int n, n_launches;
    int64_t done, bytes = 0;
    sx_timeline *timeline;
    assert_ok(sx_timeline_create(&timeline));
    run *r = open_run(
        &(sx_session_options){.device = "pjrt",
                              .platform = {.pjrt.plugin_path = plugin, .timeline = timeline},
                              .seed = 3,
                              .launch_seconds = 1e-9});
    assert_ok(loop(r, STEPS, &done));
    assert_ok(sx_timeline_read(timeline, &spans, &n, &launches, &n_launches));
    for (int i = 0; i < n; i++) {
        bytes += spans[i].bytes;
    }
    memcpy(losses, r->losses, sizeof(r->losses));
    close_run(r);
    sx_timeline_destroy(timeline);
    return bytes;
}

/* Of a superbatch, the rows that a launch has are copied, where the device lays them out as the
 * host. */
static void test_runtime_loop__short_launches_copy_their_rows_alone(void **state)
{
    enum { STEP_BYTES = BATCH * (FEATURES + 1) * 4 };
    double losses[STEPS], whole[STEPS];
    (void)state;
    SKIP_WITHOUT_PJRT();
    assert_int_equal(bytes_of_short_launches(pjrt_plugin(), losses), STEPS * STEP_BYTES);
    setenv("SX_PJRT_REF", "platform=tpu", 1); /* which may tile its arrays */
    const int64_t bytes = bytes_of_short_launches(ref_plugin(), whole);
    unsetenv("SX_PJRT_REF");
    assert_int_equal(bytes, STEPS * 1024 * STEP_BYTES);
    for (int k = 0; k < STEPS; k++) { /* of ours, or of XLA's */
        assert_float_equal(losses[k], whole[k], 1e-5);
    }
}

/* After a loop an output is that of its last step: after a launch of one step or several, one that
 * `step` wanted to end in its middle, and after a last batch that ran on its own. */
static void test_runtime_loop__outputs_stay_readable_afterwards(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    static const int64_t lengths[] = {1, 3, 4, 4};
    run *r = open_pjrt(4, 1, false);
    int output = sx_program_find_output(r->program, SX_LOSS);
    r->sizes[7] = 5; /* the last of the third loop */
    r->stop_at = 10; /* in the fourth */
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        int64_t done;
        float loss = 0;
        assert_ok(loop(r, lengths[i], &done));
        assert_int_equal(done, lengths[i]);
        assert_ok(sx_program_read_output(r->program, output, &loss));
        assert_true(loss == (float)r->losses[r->n_shown - 1]);
        assert_true(r->n_shown == 1 || loss != (float)r->losses[r->n_shown - 2]);
    }
    close_run(r);
}

/* While the steps of a launch are shown, the next one is on its way: its variables are those of its
 * end. Where nothing may follow before a step is seen, nothing does. */
static bool keep_step(void *user, const sx_step_scalars *s)
{
    run *r = user;
    assert_ok(sx_session_read_step(r->session, &r->device_step[r->n_shown]));
    return show(user, s);
}

static void test_runtime_loop__the_next_launch_computes_while_steps_are_shown(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    static const int64_t expected[STEPS] = {6, 6, 6, 6, 6, 6, 12, 12, 12, 12, 12, 12};
    run *r = open_pjrt(4, 1, false);
    int64_t done;
    const int ok = sx_program_find_output(r->program, SX_OK_OUTPUT);
    const sx_loop_args args = {
        .steps = STEPS, .feed = feed, .step = keep_step, .user = r, .ok_output = ok};
    r->ends[5] = true;
    assert_ok(sx_program_prepare_loop(r->program, BATCH, ok, NULL));
    assert_ok(sx_program_loop(r->program, &args, &done));
    for (int k = 0; k < STEPS; k++) {
        assert_int_equal(r->device_step[k], expected[k]);
    }
    close_run(r);
}

/* ---- What is not finite ---- */

static void assert_step_6_is_withheld(run *r, const char *cause)
{
    int64_t done, step;
    float before = 0;
    assert_error(loop(r, STEPS, &done), SX_ABORTED, "step 6");
    assert_int_equal(done, 5);
    assert_int_equal(r->n_shown, 5);
    assert_ok(sx_session_read_step(r->session, &step));
    assert_int_equal(step, 5);
    assert_error(sx_program_read_output(r->program, 0, &before), SX_FAILED_PRECONDITION, "loss");
    assert_error(sx_program_find_nonfinite(r->program), SX_DATA_LOSS, cause);
}

static void test_runtime_loop__a_bad_step_inside_a_launch_is_found(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    run *r = open_pjrt(4, 1, false);
    r->x[5][2][3] = NAN;
    assert_step_6_is_withheld(r, "input \"features\" is not finite");
    close_run(r);
    r = open_pjrt(4, 2, false);
    r->x[5][2][3] = 3e38f;
    r->x[5][2][4] = 3e38f;
    r->x[5][2][5] = -3e38f;
    assert_step_6_is_withheld(r, "(loop_run.h:");
    close_run(r);
}

static void test_runtime_loop__steps_before_a_bad_one_count(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    int64_t done;
    float x[MOST_VALUES], y[MOST_VALUES];
    run *bad = open_pjrt(4, 1, false), *good = open_pjrt(4, 1, false);
    bad->x[5][0][0] = INFINITY;
    assert_error(loop(bad, STEPS, &done), SX_ABORTED, "step 6");
    assert_ok(loop(good, 5, &done));
    int n = read_variables(bad, x);
    assert_int_equal(read_variables(good, y), n);
    assert_memory_equal(x, y, (size_t)n * sizeof(float));
    close_run(bad);
    close_run(good);
}

/* The device knows of a bad step before the host does: a launch that was submitted after it changes
 * nothing. Afterwards, training goes on as if the step had not been tried. */
static void test_runtime_loop__a_launch_behind_a_bad_step_changes_nothing(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    for (int64_t launch_steps = 1; launch_steps <= 3; launch_steps += 2) {
        int64_t done, step;
        run *good = open_pjrt(launch_steps, 1, false), *bad = open_pjrt(launch_steps, 1, false);
        const float was = bad->x[5][0][0];
        good->sizes[8] = bad->sizes[8] = 5; /* which runs alone */
        bad->x[5][0][0] = INFINITY;
        assert_error(loop(bad, STEPS, &done), SX_ABORTED, "step 6");
        assert_int_equal(done, 5);
        assert_error(sx_program_find_nonfinite(bad->program), SX_DATA_LOSS, "is not finite");
        assert_ok(sx_session_read_step(bad->session, &step));
        assert_int_equal(step, 5);
        bad->x[5][0][0] = was;
        bad->n_fed = bad->n_shown = 5;
        assert_ok(loop(bad, STEPS - 5, &done));
        loop_all(good);
        assert_same_run(bad, good, 0);
        close_run(bad);
        close_run(good);
    }
}

/* ---- What is asked of the plugin ---- */

static run *open_ref(int64_t launch_steps)
{
    const sx_platform_options platform = {.pjrt.plugin_path = ref_plugin()};
    return open_run(&(sx_session_options){
        .device = "pjrt", .platform = platform, .seed = 3, .launch_steps = launch_steps});
}

/* Whatever its scalars: one copy for each launch, and one for the step that the loop begins at. */
static void test_runtime_loop__a_launch_is_read_at_once(void **state)
{
    (void)state;
    for (int64_t launch_steps = 1; launch_steps <= 4; launch_steps += 3) {
        run *r = open_ref(launch_steps);
        const int ok = sx_program_find_output(r->program, SX_OK_OUTPUT);
        assert_ok(sx_program_prepare_loop(r->program, BATCH, ok, NULL));
        const ref_counts *counts = ref_plugin_counts();
        const long gets = counts->gets, executions = counts->executions;
        loop_all(r);
        assert_int_equal(counts->executions - executions, STEPS / launch_steps);
        assert_int_equal(counts->gets - gets - 2, STEPS / launch_steps); /* loop_all() reads one */
        close_run(r);
    }
}

static void test_runtime_loop__a_launch_is_submitted_before_the_last_is_read(void **state)
{
    (void)state;
    int64_t done;
    run *r = open_ref(4);
    r->x[5][0][0] = INFINITY; /* of the second */
    const int ok = sx_program_find_output(r->program, SX_OK_OUTPUT);
    assert_ok(sx_program_prepare_loop(r->program, BATCH, ok, NULL));
    const ref_counts *counts = ref_plugin_counts();
    const long executions = counts->executions;
    assert_error(loop(r, STEPS, &done), SX_ABORTED, "step 6");
    assert_int_equal(counts->executions - executions, 3);
    close_run(r);
}

/* The device copies what is staged from where it is, and need not keep it. */
static void test_runtime_loop__what_is_staged_is_pinned_and_donated(void **state)
{
    (void)state;
    for (int64_t launch_steps = 1; launch_steps <= 4; launch_steps += 3) {
        const int64_t launches = STEPS / launch_steps, inputs = 2;
        run *r = open_ref(launch_steps);
        const int ok = sx_program_find_output(r->program, SX_OK_OUTPUT);
        assert_ok(sx_program_prepare_loop(r->program, BATCH, ok, NULL));
        const ref_counts *counts = ref_plugin_counts();
        const long donations = counts->donations, pinned = counts->pinned_bytes;
        loop_all(r);
        assert_int_equal(counts->donations - donations, launches * inputs);
        assert_int_equal(counts->pinned_bytes - pinned,
                         (int64_t)STEPS * BATCH * (FEATURES + 1) * (int64_t)sizeof(float));
        close_run(r);
    }
}

/* ---- Replicas ---- */

static void test_runtime_loop__replicas_compute_what_one_device_does(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    run *ref = open_run(&(sx_session_options){.device = "host", .seed = 3});
    ref->sizes[4] = 5; /* of all batches the only one that nothing divides */
    loop_all(ref);
    for (int replicas = 1; replicas <= 4; replicas *= 2) {
        run *r = open_pjrt(4, replicas, false);
        r->sizes[4] = 5;
        loop_all(r);
        assert_same_run(r, ref, 1e-5);
        close_run(r);
    }
    close_run(ref);
}

static void test_runtime_loop__full_batches_divide_by_the_replicas(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    run *r = open_pjrt(4, 4, false);
    assert_error(sx_program_prepare_loop(r->program, 6, -1, NULL), SX_INVALID_ARGUMENT,
                 "batch size 6 is not a multiple of 4 replicas; the nearest are 4 and 8");
    assert_error(sx_program_prepare_loop(r->program, 3, -1, NULL), SX_INVALID_ARGUMENT,
                 "the smallest is 4");
    close_run(r);
}

/* TensorFlow's batch norm: each replica by its own moments. Then a step of n replicas is the mean
 * of n devices' steps from the same weights on the parts: losses, averages, and, as the optimizer
 * is plain SGD, weights. */
static void test_runtime_loop__batch_norm_of_each_replica(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    enum { PARTS = 2, PART = BATCH / PARTS };
    int64_t done;
    float whole[MOST_VALUES], part[MOST_VALUES], mean[MOST_VALUES] = {0};
    double loss = 0;
    int n = 0;
    for (int k = 0; k < PARTS; k++) {
        run *r = open_run(&(sx_session_options){.device = "host", .seed = 3});
        memmove(r->x[0][0], r->x[0][k * PART], PART * sizeof(r->x[0][0]));
        memmove(&r->y[0][0], &r->y[0][k * PART], PART * sizeof(r->y[0][0]));
        r->sizes[0] = PART;
        assert_ok(loop(r, 1, &done));
        n = read_variables(r, part);
        for (int i = 0; i < n; i++) {
            mean[i] += part[i] / PARTS;
        }
        loss += r->losses[0] / PARTS;
        close_run(r);
    }
    for (int launch = 1; launch <= 2; launch++) {
        run *r = open_pjrt(launch, PARTS, true);
        assert_ok(loop(r, 1, &done));
        assert_int_equal(read_variables(r, whole), n);
        assert_close(whole, mean, n, 1e-6);
        assert_true(fabs(r->losses[0] - loss) < 1e-6);
        close_run(r);
    }
    run *sync = open_pjrt(1, PARTS, false);
    assert_ok(loop(sync, 1, &done));
    assert_true(fabs(sync->losses[0] - loss) > 1e-4); /* the modes do differ */
    close_run(sync);
}

/* A launch is as long as 16 MiB of inputs and outputs allow, 1 GiB if its length was asked for, and
 * never longer than asked or 1024 steps. */
static void test_runtime_loop__a_launch_stages_so_many_bytes(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    static const struct {
        int64_t asked, batch, steps;
    } rows[] = {
        {0, 30000, 19}, /* 16 MiB / 840 kB = 19.97 */
        {5000, 8, 1024},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        run *r = open_pjrt(rows[i].asked, 1, false);
        assert_ok(sx_program_prepare_loop(r->program, rows[i].batch, -1, NULL));
        assert_int_equal(sx_program_launch_steps(r->program), rows[i].steps);
        close_run(r);
    }
}

/* The lengths of launches, by the clock, on a device that computes within the call: each is about
 * as long as it was asked for, whatever those before it were. */
typedef struct lengths {
    run *r;
    int fed;
    int64_t steps[64]; /* by launch */
} lengths;

static sx_status feed_again(void *user, sx_step_input *out)
{
    lengths *l = user;
    const int k = l->fed++ % STEPS;
    out->batch = BATCH;
    out->inputs[0] = l->r->x[k];
    out->inputs[1] = l->r->y[k];
    return SX_OK;
}

static bool count_steps(void *user, const sx_step_scalars *s)
{
    lengths *l = user;
    assert_in_range(s->launch, 1, 63);
    l->steps[s->launch]++;
    return s->launch >= 12;
}

static void test_runtime_loop__launches_within_a_call_are_as_long_as_others(void **state)
{
    (void)state;
    enum { STEP_US = 5000, EXPECTED = 16 };
    int64_t done;
    char settings[64];
    snprintf(settings, sizeof(settings), "delay=0,within=1,step=%d", STEP_US);
    setenv("SX_PJRT_REF", settings, 1);
    lengths l = {.r = open_run(&(sx_session_options){.device = "pjrt",
                                                     .platform.pjrt.plugin_path = ref_plugin(),
                                                     .launch_seconds = STEP_US * 1e-6 * EXPECTED})};
    const int ok = sx_program_find_output(l.r->program, SX_OK_OUTPUT);
    const sx_loop_args args = {
        .steps = 1000, .feed = feed_again, .step = count_steps, .user = &l, .ok_output = ok};
    assert_ok(sx_program_prepare_loop(l.r->program, BATCH, ok, NULL));
    assert_ok(sx_program_loop(l.r->program, &args, &done));
    unsetenv("SX_PJRT_REF");
    int good = 0; /* a step takes longer than it sleeps; on a busy machine much longer */
    for (int k = 4; k <= 12; k++) {
        good += l.steps[k] >= EXPECTED / 8 && l.steps[k] <= EXPECTED;
    }
    assert_true(good >= 7);
    close_run(l.r);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_loop__one_step_at_a_time_where_the_device_cannot),
    cmocka_unit_test(test_runtime_loop__ends_where_step_says_so),
    cmocka_unit_test(test_runtime_loop__launches_show_every_step),
    cmocka_unit_test(test_runtime_loop__the_lengths_of_launches_change_no_bit),
    cmocka_unit_test(test_runtime_loop__launches_as_planned),
    cmocka_unit_test(test_runtime_loop__a_launch_longer_than_its_own),
    cmocka_unit_test(test_runtime_loop__another_size_ends_a_launch),
    cmocka_unit_test(test_runtime_loop__a_launch_is_run_whole_when_step_ends_the_loop),
    cmocka_unit_test(test_runtime_loop__what_was_fed_before_an_end_is_run),
    cmocka_unit_test(test_runtime_loop__short_launches_copy_their_rows_alone),
    cmocka_unit_test(test_runtime_loop__outputs_stay_readable_afterwards),
    cmocka_unit_test(test_runtime_loop__launches_last_about_as_long_as_asked),
    cmocka_unit_test(test_runtime_loop__the_next_launch_computes_while_steps_are_shown),
    cmocka_unit_test(test_runtime_loop__a_bad_step_inside_a_launch_is_found),
    cmocka_unit_test(test_runtime_loop__steps_before_a_bad_one_count),
    cmocka_unit_test(test_runtime_loop__a_launch_behind_a_bad_step_changes_nothing),
    cmocka_unit_test(test_runtime_loop__a_launch_is_read_at_once),
    cmocka_unit_test(test_runtime_loop__a_launch_is_submitted_before_the_last_is_read),
    cmocka_unit_test(test_runtime_loop__what_is_staged_is_pinned_and_donated),
    cmocka_unit_test(test_runtime_loop__replicas_compute_what_one_device_does),
    cmocka_unit_test(test_runtime_loop__full_batches_divide_by_the_replicas),
    cmocka_unit_test(test_runtime_loop__batch_norm_of_each_replica),
    cmocka_unit_test(test_runtime_loop__a_launch_stages_so_many_bytes),
    cmocka_unit_test(test_runtime_loop__launches_within_a_call_are_as_long_as_others),
};
SX_TEST_MAIN(tests)
