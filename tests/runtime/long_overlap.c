/* The step loop waits neither for copies nor for what is shown: with our own plugin, whose steps
 * and copies take as long as it is told, in sleep. Compares times by the clock, on an idle machine;
 * the best of some rounds counts, until one is good `enough`. */
#include "loop_run.h"

/* ---- What overlaps ----
 *
 * With our own plugin, whose steps and copies take as long as it is told, in sleep. The machine may
 * be busy: the best of some rounds counts. */

enum { ROUNDS = 12, TIMED = 6 }; /* launches */

/* The time from one launch's end to the next, in steady state, over that of the slower of copying
 * and computing. `show_ms`: what the caller does with the steps of a launch meanwhile; `delay_ms`:
 * what the device waits for before it does anything. */
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

static double best_period(int64_t launch_steps, double step_ms, double copy_ms, double show_ms,
                          double delay_ms, double enough)
{
    double best = INFINITY;
    char settings[128];
    const double bytes = (double)launch_steps * BATCH * (FEATURES + 1) * 4;
    snprintf(settings, sizeof(settings), "delay=%.0f,step=%.0f,mib=%.0f", delay_ms * 1e3,
             step_ms * 1e3, copy_ms * 1e3 * (1 << 20) / bytes);
    setenv("SX_PJRT_REF", settings, 1);
    for (int round = 0; round < ROUNDS && best > enough; round++) {
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
        const double slower = fmax(copy_ms, step_ms * (double)launch_steps + delay_ms);
        best = fmin(best, ms / slower);
        close_run(t.r);
    }
    unsetenv("SX_PJRT_REF");
    print_message(
        "%lld steps of %.0f ms, copies of %.0f ms, %.0f ms to show, delay %.0f ms: %.4f\n",
        (long long)launch_steps, step_ms, copy_ms, show_ms, delay_ms, best);
    assert_true(best > 0.9); /* the times are the plugin's */
    return best;
}

static void test_runtime_overlap__copies_and_steps_overlap(void **state)
{
    (void)state;
    assert_true(best_period(4, 40, 120, 0, 0, 1.05) <= 1.05);
    assert_true(best_period(4, 30, 160, 0, 0, 1.05) <= 1.05);
    assert_true(best_period(1, 120, 80, 0, 0, 1.05) <= 1.05); /* too large for more than one */
    assert_true(best_period(1, 80, 120, 0, 0, 1.05) <= 1.05);
}

/* Results that take long to arrive cost nothing: the next launch is there before they are read. */
static void test_runtime_overlap__far_devices_do_not_wait_for_the_host(void **state)
{
    (void)state;
    assert_true(best_period(4, 50, 40, 0, 20, 1.05) <= 1.05);
    assert_true(best_period(1, 200, 40, 0, 20, 1.05) <= 1.05);
}

/* Launches of 2 s, of which the caller takes 0.2 s to look at: the device is idle for 1 % at most.
 * So it is where a step is a launch. */
static void test_runtime_overlap__the_device_does_not_wait_for_what_is_shown(void **state)
{
    (void)state;
    assert_true(best_period(4, 500, 100, 200, 0, 1.01) <= 1.01);
    assert_true(best_period(1, 500, 100, 200, 0, 1.01) <= 1.01);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_overlap__copies_and_steps_overlap),
    cmocka_unit_test(test_runtime_overlap__far_devices_do_not_wait_for_the_host),
    cmocka_unit_test(test_runtime_overlap__the_device_does_not_wait_for_what_is_shown),
};
SX_TEST_MAIN(tests)
