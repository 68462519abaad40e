/* Devices that fail while training: through our own PJRT plugin (tests/pjrt_ref), which fails when
 * it is told to. The step and the device are named, checkpoints stay, the run goes on from the last
 * one to the same bits. */
#include "run.h"

#include "../backends/pjrt_plugin.h"

enum { STEPS = 9 };

static void use_plugin(const char *fault)
{
    char names[SX_PJRT_PATH_BYTES + 8];
    snprintf(names, sizeof(names), "ref:%s", ref_plugin());
    setenv("PJRT_NAMES_AND_LIBRARY_PATHS", names, 1);
    if (fault != NULL) {
        setenv("SX_PJRT_REF_FAULT", fault, 1);
    } else {
        unsetenv("SX_PJRT_REF_FAULT");
    }
}

static sx_run_config config_of(const char *dir, seen *s)
{
    sx_run_config config = tiny_config(dir, s);
    config.device = "pjrt";
    config.no_compile_cache = true;
    config.iterations_per_loop = 1;
    config.save_checkpoints_steps = 2;
    config.save_checkpoints_secs = 0;
    return config;
}

/* A run of STEPS; the trainer's hash of all that it is, if it succeeded. */
static sx_status train(const sx_run_config *config, uint64_t *out_hash)
{
    sx_trainer *t = NULL;
    sx_dataset *data = tiny_data(0, EXAMPLES);
    const sx_trainer_options options = {.config = config, .def = &tiny, .data = data};
    sx_status status = sx_trainer_create(&options, &t);
    sx_dataset_release(data);
    status = status != SX_OK ? status : fit_tiny(t, STEPS, false);
    if (status == SX_OK && out_hash != NULL) {
        *out_hash = hash_variables(t);
    }
    sx_trainer_destroy(t);
    return status;
}

/* The run fails at step 6 with what `part` says, stays at checkpoint 4, and goes on from there. */
static void fails_and_goes_on(const char *fault, sx_code code, const char *part)
{
    seen s = {0};
    uint64_t expected = 0, got = 0;
    sx_run_config config = config_of(scratch("whole"), NULL);
    use_plugin(NULL);
    config.fresh = true;
    assert_ok(train(&config, &expected));
    config = config_of(scratch("run"), &s);
    config.fresh = true;
    use_plugin(fault);
    assert_error(train(&config, NULL), code, part);
    assert_int_equal(s.last_step, 5);
    use_plugin(NULL);
    config.fresh = false;
    s = (seen){0};
    assert_ok(train(&config, &got));
    assert_true(s.resumed);
    assert_int_equal(got, expected);
}

static void test_train_device_faults__a_device_is_lost(void **state)
{
    (void)state;
    fails_and_goes_on(
        "lost:6", SX_UNAVAILABLE,
        "step 6 failed (the checkpoint of step 4 is kept; the run can be resumed from "
        "it): executing on /device:CPU:0: PJRT LoadedExecutable_Execute: device lost");
}

static void test_train_device_faults__an_execution_fails_later(void **state)
{
    (void)state;
    fails_and_goes_on(
        "later:6:chip 3 is too hot", SX_UNAVAILABLE,
        "step 6 failed (the checkpoint of step 4 is kept; the run can be resumed from "
        "it): executing on /device:CPU:0: PJRT Event_Await: chip 3 is too hot");
}

static void test_train_device_faults__memory_runs_out(void **state)
{
    (void)state;
    fails_and_goes_on("oom:6", SX_RESOURCE_EXHAUSTED, "step 6 failed (the checkpoint of step 4");
}

/* Steps of one launch fail together. */
static void test_train_device_faults__a_launch_fails(void **state)
{
    (void)state;
    seen s = {0};
    sx_run_config config = config_of(scratch("run"), &s);
    config.fresh = true;
    config.iterations_per_loop = 3;
    config.save_checkpoints_steps = 3;
    use_plugin("lost:2");
    assert_error(train(&config, NULL), SX_UNAVAILABLE,
                 "one of steps 4 to 6 failed (the checkpoint of step 3 is kept");
    assert_int_equal(s.last_step, 3);
}

static void test_train_device_faults__without_a_checkpoint(void **state)
{
    (void)state;
    sx_run_config config = config_of(NULL, NULL);
    use_plugin("lost:3");
    assert_error(train(&config, NULL), SX_UNAVAILABLE,
                 "step 3 failed (nothing is saved): executing on");
}

/* What a checkpoint needs of the device. */
static void test_train_device_faults__saving_fails(void **state)
{
    (void)state;
    const char *dir = scratch("run");
    sx_run_config config = config_of(dir, NULL);
    char path[600];
    use_plugin(NULL);
    config.save_checkpoints_steps = 4;
    config.fresh = true;
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, 4, false));
    use_plugin("get:0");
    assert_error(fit_tiny(t, 8, false), SX_UNAVAILABLE, "the transfer from the device failed");
    sx_trainer_destroy(t);
    snprintf(path, sizeof(path), "%s/model.ckpt-4.index", dir);
    assert_int_equal(access(path, R_OK), 0);
    snprintf(path, sizeof(path), "%s/model.ckpt-8.index", dir);
    assert_int_not_equal(access(path, R_OK), 0);
}

/* The operator, the user's line, the plugin's words, and what to do. */
static void test_train_device_faults__a_program_is_rejected(void **state)
{
    (void)state;
    sx_run_config config = config_of(NULL, NULL);
    use_plugin("compile:0:loc(\"dense/matmul\"): error: not for me");
    assert_error(
        train(&config, NULL), SX_INVALID_ARGUMENT,
        ": matmul \"dense/matmul\": PJRT Client_Compile: loc(\"dense/matmul\"): error: not "
        "for me");
    assert_error(train(&config, NULL), SX_INVALID_ARGUMENT,
                 "rejected the program (use --dump-stablehlo DIR to see it): ");
    assert_error(train(&config, NULL), SX_INVALID_ARGUMENT, "tests/train/run.h:");
}

static void test_train_device_faults__a_plugin_is_missing(void **state)
{
    (void)state;
    sx_run_config config = config_of(NULL, NULL);
    unsetenv("PJRT_NAMES_AND_LIBRARY_PATHS");
    unsetenv("VIRTUAL_ENV");
    assert_error(train(&config, NULL), SX_UNAVAILABLE, "no PJRT plugin: pip install");
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_train_device_faults__a_device_is_lost),
    scratch_test(test_train_device_faults__an_execution_fails_later),
    scratch_test(test_train_device_faults__memory_runs_out),
    scratch_test(test_train_device_faults__a_launch_fails),
    scratch_test(test_train_device_faults__without_a_checkpoint),
    scratch_test(test_train_device_faults__saving_fails),
    scratch_test(test_train_device_faults__a_program_is_rejected),
    scratch_test(test_train_device_faults__a_plugin_is_missing),
};
SX_TEST_MAIN(tests)
