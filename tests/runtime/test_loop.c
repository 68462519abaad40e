/* The step loop: collecting, launching, replaying; over XLA's CPU plugin where the device loops,
 * and over ref, where a launch is one step. */
#include "harness.h"

#include <math.h>
#include <unistd.h>

#include "../backends/pjrt_plugin.h"
#include "base/memory.h"
#include "nn/model_program.h"
#include "runtime/session.h"

enum { BATCH = 8, FEATURES = 6, CLASSES = 3, STEPS = 12, MOST_VALUES = 4096 };

/* A model with everything that meets over replicas: dense layers, batch norm, a mean loss. */
static sx_spec normed_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_dense(b, in->features, 5);
    x = sx_relu(b, sx_batch_norm(b, x));
    sx_value logits = sx_dense(b, x, CLASSES);
    return sx_classifier_spec(b, logits, in->labels, .optimizer = sx_sgd(.learning_rate = 0.1));
}

static const sx_model_def normed =
    SX_MODEL_DEF(.name = "normed", .build = normed_build, .features = FEATURES);

/* What the loop was fed and has shown. */
typedef struct run {
    sx_graph *graph;
    sx_session *session;
    sx_program *program;
    float x[STEPS][BATCH][FEATURES];
    int32_t y[STEPS][BATCH];
    int64_t sizes[STEPS];
    bool ends[STEPS];
    int n_fed, n_shown,
        end_at; /* end_at: feed says OUT_OF_RANGE there; fail_at likewise an error */
    int fail_at, stop_at;
    int fed_when_shown[STEPS];
    double losses[STEPS];
    float read[STEPS]; /* the loss again, by sx_program_read_output() */
    int64_t steps[STEPS], ended[STEPS];
} run;

static sx_status feed(void *user, sx_step_input *out)
{
    run *r = user;
    int k = r->n_fed;
    if (k == r->fail_at) {
        return sx_error(SX_DATA_LOSS, "record 7 is broken");
    }
    if (k == r->end_at) {
        return sx_error(SX_OUT_OF_RANGE, "end");
    }
    r->n_fed++;
    out->batch = r->sizes[k];
    out->inputs[0] = r->x[k];
    out->inputs[1] = r->y[k];
    out->ends_launch = r->ends[k];
    return SX_OK;
}

static bool show(void *user, const sx_step_scalars *s)
{
    run *r = user;
    int k = r->n_shown++;
    r->losses[k] = s->values[0];
    r->steps[k] = s->step;
    r->ended[k] = s->ended_ns;
    r->fed_when_shown[k] = r->n_fed;
    assert_int_equal(s->batch, r->sizes[k]);
    assert_ok(sx_program_read_output(r->program, 0, &r->read[k]));
    return k + 1 == r->stop_at;
}

static run *open_run(const sx_session_options *options)
{
    run *r = sx_alloc(1, sizeof(*r));
    const sx_program_request request = {.def = &normed, .mode = SX_TRAIN};
    assert_non_null(r);
    assert_ok(sx_build_program(&request, &r->graph));
    assert_ok(sx_session_create(options, &r->session));
    assert_ok(sx_session_add_program(r->session, r->graph, &r->program));
    for (int k = 0; k < STEPS; k++) {
        for (int i = 0; i < BATCH; i++) {
            r->y[k][i] = (k + i * 5) % CLASSES;
            for (int f = 0; f < FEATURES; f++) {
                r->x[k][i][f] = (float)((k * 7 + i * 13 + f * 5 + i * f) % 17) / 17.0f -
                                (f == r->y[k][i] ? 0.5f : 0.0f);
            }
        }
        r->sizes[k] = BATCH;
    }
    r->fail_at = r->end_at = -1;
    return r;
}

static run *open_pjrt(int64_t launch_steps, int replicas, bool own_moments)
{
    const sx_platform_options platform = {
        .pjrt.plugin_path = pjrt_plugin(), .pjrt.virtual_devices = 4, .pjrt.replicas = replicas};
    return open_run(&(sx_session_options){.device = "pjrt",
                                          .platform = platform,
                                          .own_moments = own_moments,
                                          .seed = 3,
                                          .launch_steps = launch_steps});
}

static void close_run(run *r)
{
    sx_session_destroy(r->session);
    sx_graph_destroy(r->graph);
    sx_free(r);
}

static sx_status loop(run *r, int64_t steps, int64_t *out_done)
{
    int ok = sx_program_find_output(r->program, SX_OK_OUTPUT);
    const sx_loop_args args = {
        .steps = steps, .feed = feed, .step = show, .user = r, .ok_output = ok};
    assert_ok(sx_program_prepare_loop(r->program, BATCH, ok, NULL));
    return sx_program_loop(r->program, &args, out_done);
}

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

/* ---- What overlaps ----
 *
 * With our own plugin, whose steps and copies take as long as it is told, in sleep. The machine may
 * be busy: the best of some rounds counts. */

enum { ROUNDS = 8, TIMED = 6 }; /* launches */

/* The time from one launch's end to the next, in steady state, over that of the slower of copying
 * and computing. `show_ms`: what the caller does with the steps of a launch meanwhile. */
typedef struct timed {
    run *r;
    int64_t launch_steps, ended[TIMED], shown;
    int fed;
    double show_ms;
} timed;

static sx_status feed_timed(void *user, sx_step_input *out)
{
    timed *t = user;
    const int k = t->fed++ % STEPS;
    out->batch = BATCH;
    out->inputs[0] = t->r->x[k];
    out->inputs[1] = t->r->y[k];
    return SX_OK;
}

static bool show_timed(void *user, const sx_step_scalars *s)
{
    timed *t = user;
    if (++t->shown % t->launch_steps == 0) {
        t->ended[t->shown / t->launch_steps - 1] = s->ended_ns;
        usleep((useconds_t)(t->show_ms * 1e3));
    }
    return false;
}

static double best_period(int64_t launch_steps, double step_ms, double copy_ms, double show_ms)
{
    double best = INFINITY;
    char settings[128];
    const double bytes = (double)launch_steps * BATCH * (FEATURES + 1) * 4;
    snprintf(settings, sizeof(settings), "delay=0,step=%.0f,mib=%.0f", step_ms * 1e3,
             copy_ms * 1e3 * (1 << 20) / bytes);
    setenv("SX_PJRT_REF", settings, 1);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t done;
        const sx_platform_options platform = {.pjrt.plugin_path = ref_plugin()};
        timed t = {.launch_steps = launch_steps, .show_ms = show_ms};
        t.r = open_run(&(sx_session_options){
            .device = "pjrt", .platform = platform, .launch_steps = launch_steps});
        const int ok = sx_program_find_output(t.r->program, SX_OK_OUTPUT);
        const sx_loop_args args = {.steps = launch_steps * TIMED,
                                   .feed = feed_timed,
                                   .step = show_timed,
                                   .user = &t,
                                   .ok_output = ok};
        assert_ok(sx_program_prepare_loop(t.r->program, BATCH, ok, NULL));
        assert_int_equal(sx_program_launch_steps(t.r->program), launch_steps);
        assert_ok(sx_program_loop(t.r->program, &args, &done));
        assert_int_equal(done, launch_steps * TIMED);
        const double ms = (double)(t.ended[TIMED - 1] - t.ended[1]) * 1e-6 / (TIMED - 2);
        const double slower = fmax(copy_ms, step_ms * (double)launch_steps);
        best = fmin(best, ms / slower);
        close_run(t.r);
        if (best < 1.005) {
            break;
        }
    }
    unsetenv("SX_PJRT_REF");
    print_message("%lld steps of %.0f ms, copies of %.0f ms, %.0f ms to show: %.4f\n",
                  (long long)launch_steps, step_ms, copy_ms, show_ms, best);
    assert_true(best > 0.98); /* the times are the plugin's */
    return best;
}

static void test_runtime_loop__copies_and_steps_overlap(void **state)
{
    (void)state;
    assert_true(best_period(4, 20, 60, 0) <= 1.05);
    assert_true(best_period(4, 15, 80, 0) <= 1.05);
    assert_true(best_period(1, 60, 40, 0) <= 1.05); /* too large for more than one */
    assert_true(best_period(1, 40, 60, 0) <= 1.05);
}

static void test_runtime_loop__the_device_does_not_wait_for_what_is_shown(void **state)
{
    (void)state;
    const double alone = best_period(4, 50, 10, 0);
    assert_true(best_period(4, 50, 10, 20) <= 1.01 * alone);
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
    assert_step_6_is_withheld(r, "(test_loop.c:");
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_loop__one_step_at_a_time_where_the_device_cannot),
    cmocka_unit_test(test_runtime_loop__ends_where_step_says_so),
    cmocka_unit_test(test_runtime_loop__launches_show_every_step),
    cmocka_unit_test(test_runtime_loop__the_lengths_of_launches_change_no_bit),
    cmocka_unit_test(test_runtime_loop__another_size_ends_a_launch),
    cmocka_unit_test(test_runtime_loop__a_launch_is_run_whole_when_step_ends_the_loop),
    cmocka_unit_test(test_runtime_loop__what_was_fed_before_an_end_is_run),
    cmocka_unit_test(test_runtime_loop__outputs_stay_readable_afterwards),
    cmocka_unit_test(test_runtime_loop__launches_last_about_as_long_as_asked),
    cmocka_unit_test(test_runtime_loop__copies_and_steps_overlap),
    cmocka_unit_test(test_runtime_loop__the_device_does_not_wait_for_what_is_shown),
    cmocka_unit_test(test_runtime_loop__a_bad_step_inside_a_launch_is_found),
    cmocka_unit_test(test_runtime_loop__steps_before_a_bad_one_count),
    cmocka_unit_test(test_runtime_loop__replicas_compute_what_one_device_does),
    cmocka_unit_test(test_runtime_loop__full_batches_divide_by_the_replicas),
    cmocka_unit_test(test_runtime_loop__batch_norm_of_each_replica),
    cmocka_unit_test(test_runtime_loop__a_launch_stages_so_many_bytes),
};
SX_TEST_MAIN(tests)
