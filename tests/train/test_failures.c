/* What fails while training: memory, the disk. Nothing is lost, nothing leaks, the message says it.
 */
#include "run.h"

#include "io/failpoint.h"

enum { STEPS = 9 };

static sx_status fit_and_evaluate(sx_trainer *t, sx_dataset *data)
{
    const sx_fit_request request = {.train = data, .eval = data, .max_steps = STEPS};
    sx_eval_result result;
    SX_TRY(sx_trainer_fit(t, &request));
    return sx_trainer_evaluate(t, data, 0, &result);
}

static long arm_after_data; /* 0 = nothing fails */

/* tiny_data() asserts, so the countdown starts behind it. */
static sx_status armed_run(const char *dir)
{
    sx_run_config config = tiny_config(dir, NULL);
    config.fresh = true;
    sx_trainer *t = NULL;
    sx_dataset *data = tiny_data(0, EXAMPLES);
    const sx_trainer_options options = {.config = &config, .def = &tiny, .data = data};
    sx_alloc_fail_after(arm_after_data);
    sx_status status = sx_trainer_create(&options, &t);
    if (status == SX_OK) {
        status = fit_and_evaluate(t, data);
    }
    sx_alloc_fail_after(0);
    sx_trainer_destroy(t);
    sx_dataset_release(data);
    return status;
}

/* Allocation by allocation for the first ones, then in strides: a run makes thousands. */
static void test_train_failures__any_allocation_may_fail(void **state)
{
    (void)state;
    const char *dir = scratch("run");
    arm_after_data = 0;
    long before = sx_alloc_count();
    assert_ok(armed_run(dir));
    long count = sx_alloc_count() - before, failed = 0;
    for (arm_after_data = 1; arm_after_data < count; arm_after_data += 1 + arm_after_data / 60) {
        sx_status status = armed_run(dir);
        failed += status != SX_OK;
        if (status != SX_OK && sx_status_code(status) != SX_RESOURCE_EXHAUSTED) {
            print_error("with allocation %ld failing: ", arm_after_data);
            assert_ok(status);
        }
        sx_status_free(status);
    }
    assert_true(failed > 100);
    arm_after_data = 0;
    assert_ok(armed_run(dir));
}

static sx_status run_on_disk(const char *dir, uint64_t *out_hash)
{
    sx_run_config config = tiny_config(dir, NULL);
    config.save_checkpoints_secs = 0;
    config.save_checkpoints_steps = 2;
    config.keep_checkpoint_max = 2;
    sx_trainer *t = open_tiny(&config);
    sx_status status = fit_tiny(t, STEPS, true);
    if (status == SX_OK) {
        *out_hash = hash_variables(t);
    }
    sx_trainer_destroy(t);
    return status;
}

/* A disk that is full or broken at each call: a clean error, and the next run goes on to the bit.
 */
static void test_train_failures__the_disk_may_fail_at_any_call(void **state)
{
    (void)state;
    static const sx_fail_mode modes[] = {SX_FAIL_ENOSPC, SX_FAIL_EIO};
    const char *dir = scratch("run");
    uint64_t expected, hash = 0;
    sx_failpoint_arm(0, SX_FAIL_EIO);
    assert_ok(run_on_disk(scratch("straight"), &expected));
    long calls = sx_failpoint_count();
    for (long n = 1, k = 0; n <= calls; n += 3, k++) {
        sx_failpoint_arm(n, modes[k % 2]);
        sx_status status = run_on_disk(dir, &hash);
        sx_failpoint_arm(0, SX_FAIL_EIO);
        sx_code code = sx_status_code(status);
        assert_true(code == SX_CODE_OK || code == SX_RESOURCE_EXHAUSTED || code == SX_DATA_LOSS);
        sx_status_free(status);
        assert_ok(run_on_disk(dir, &hash));
        assert_true(hash == expected);
        assert_ok(sx_run_delete(dir));
    }
}

static struct {
    long at_start, at_end;
} allocations;

static void count_allocations(void *user, const sx_train_event *e)
{
    (void)user;
    if (e->kind == SX_EVENT_PROGRESS && e->step == 20) {
        allocations.at_start = sx_alloc_count();
    } else if (e->kind == SX_EVENT_PROGRESS && e->step == 40) {
        allocations.at_end = sx_alloc_count();
    }
}

static void test_train_failures__steady_state_allocates_nothing(void **state)
{
    (void)state;
    sx_run_config config = tiny_config(NULL, NULL);
    config.observer = count_allocations;
    config.train_batch_size = 1; /* one epoch of more than 40 steps */
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, 45, false));
    assert_true(allocations.at_start > 0);
    assert_int_equal(allocations.at_end, allocations.at_start);
    sx_trainer_destroy(t);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_train_failures__any_allocation_may_fail),
    scratch_test(test_train_failures__the_disk_may_fail_at_any_call),
    cmocka_unit_test(test_train_failures__steady_state_allocates_nothing),
};
SX_TEST_MAIN(tests)
