/* What fails while training: memory, the disk. Nothing is lost, nothing leaks, the message says it.
 */
#include "run.h"

#include <limits.h>

#include "io/failpoint.h"
#include "io/tfrecord.h"

enum { STEPS = 9 };

static sx_status fit_and_evaluate(sx_trainer *t, sx_dataset *data)
{
    const sx_fit_request request = {.train = data, .eval = data, .max_steps = STEPS};
    sx_eval_result result;
    SX_TRY(sx_trainer_fit(t, &request));
    return sx_trainer_evaluate(t, data, 0, &result);
}

static long arm_after_data; /* 0 = nothing fails */

/* tiny_data() asserts, so the countdown starts behind it. *out_hash is that of the trained
 * variables, 0 after an error. */
static sx_status armed_run(const char *dir, uint64_t *out_hash)
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
    *out_hash = status == SX_OK ? hash_variables(t) : 0;
    sx_trainer_destroy(t);
    sx_dataset_release(data);
    return status;
}

/* Allocation by allocation for the first ones, then in strides: a run makes thousands. One that
 * could be done without has changed no weight. */
static void test_train_failures__any_allocation_may_fail(void **state)
{
    (void)state;
    const char *dir = scratch("run");
    uint64_t expected, hash;
    arm_after_data = LONG_MAX / 2; /* objects of arenas are counted while one is to fail */
    long before = sx_alloc_count();
    assert_ok(armed_run(dir, &expected));
    long count = sx_alloc_count() - before, failed = 0;
    for (arm_after_data = 1; arm_after_data < count; arm_after_data += 1 + arm_after_data / 60) {
        sx_status status = armed_run(dir, &hash);
        failed += status != SX_OK;
        if (status != SX_OK && sx_status_code(status) != SX_RESOURCE_EXHAUSTED) {
            print_error("with allocation %ld failing: ", arm_after_data);
            assert_ok(status);
        }
        if (status == SX_OK && hash != expected) {
            fail_msg("with allocation %ld failing: other weights", arm_after_data);
        }
        sx_status_free(status);
    }
    assert_true(failed > 100);
    arm_after_data = 0;
    assert_ok(armed_run(dir, &hash));
    assert_true(hash == expected);
}

static sx_status run_on_disk(const char *dir, seen *s, bool evaluate, uint64_t *out_hash)
{
    sx_run_config config = tiny_config(dir, s);
    config.save_checkpoints_secs = 0;
    config.save_checkpoints_steps = 2;
    config.keep_checkpoint_max = 2;
    sx_trainer *t = open_tiny(&config);
    sx_status status = fit_tiny(t, STEPS, evaluate);
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
    seen s = {.stop_at = 0};
    sx_failpoint_arm(0, SX_FAIL_EIO);
    assert_ok(run_on_disk(scratch("straight"), &s, true, &expected));
    long calls = sx_failpoint_count();
    for (long n = 1, k = 0; n <= calls; n += 3, k++) {
        sx_failpoint_arm(n, modes[k % 2]);
        sx_status status = run_on_disk(dir, &s, true, &hash);
        sx_failpoint_arm(0, SX_FAIL_EIO);
        sx_code code = sx_status_code(status);
        assert_true(code == SX_CODE_OK || code == SX_RESOURCE_EXHAUSTED || code == SX_DATA_LOSS);
        sx_status_free(status);
        assert_ok(run_on_disk(dir, &s, true, &hash));
        assert_true(hash == expected);
        assert_ok(sx_run_delete(dir));
    }
}

/* A checkpoint is written while training goes on. If that fails, it is said at once, the steps
 * after it are trained and saved, and the fit ends with the error. (If an evaluation finds that
 * checkpoint to be the best, it ends there: it could not be kept.) */
static void test_train_failures__a_failed_write_ends_the_fit_at_its_end(void **state)
{
    (void)state;
    uint64_t expected, hash = 0;
    seen straight = {.stop_at = 0}, s = {.stop_at = 0};
    const char *dir = scratch("run");
    assert_ok(run_on_disk(scratch("straight"), &straight, false, &expected));
    bool found = false;
    sx_failpoint_arm(0, SX_FAIL_EIO);
    assert_ok(run_on_disk(scratch("count"), &s, false, &hash));
    const long calls = sx_failpoint_count();
    for (long n = calls / 3; n < calls && !found; n++) {
        s = (seen){.stop_at = 0};
        sx_failpoint_arm(n, SX_FAIL_ENOSPC);
        sx_status status = run_on_disk(dir, &s, false, &hash);
        sx_failpoint_arm(0, SX_FAIL_EIO);
        found = strstr(s.warning, "training goes on") != NULL;
        assert_true(!found || (sx_status_code(status) == SX_RESOURCE_EXHAUSTED &&
                               strstr(s.warning, sx_status_message(status)) != NULL));
        if (found) {
            assert_int_equal(s.last_step, STEPS);
            assert_true(s.count[SX_EVENT_CHECKPOINT] >= straight.count[SX_EVENT_CHECKPOINT] - 1);
        }
        sx_status_free(status);
        assert_ok(run_on_disk(dir, &s, false, &hash));
        assert_true(hash == expected);
        assert_ok(sx_run_delete(dir));
    }
    assert_true(found);
}

/* ---- Data that vanish ---- */

enum { ROW_BYTES = FEATURES * 4 + 8, TRUNCATE_AT = 20, MANY_STEPS = 120 };

static const char *records_path; /* what is truncated when step TRUNCATE_AT is shown */

static void truncate_at_step(void *user, const sx_train_event *e)
{
    see(user, e);
    if (e->kind == SX_EVENT_PROGRESS && e->step == TRUNCATE_AT && records_path != NULL) {
        assert_int_equal(truncate(records_path, 700), 0);
    }
}

static sx_status take_row(const sx_map_call *call, void *user)
{
    (void)user;
    const sx_bytes *record = call->in[0].data;
    if (record->size != ROW_BYTES) {
        return sx_error(SX_DATA_LOSS, "%zu bytes", record->size);
    }
    memcpy(call->out[0].data, record->data, FEATURES * 4);
    memcpy(call->out[1].data, (const char *)record->data + FEATURES * 4, 8);
    return SX_OK;
}

/* The tiny data as records. */
static void write_tiny_records(const char *prefix)
{
    sx_tfrecord_shards *shards = NULL;
    sx_dataset *data = tiny_data(0, EXAMPLES);
    sx_iterator *iterator = NULL;
    assert_ok(sx_tfrecord_shards_create(prefix, 1, SX_CODEC_NONE, &shards));
    assert_ok(sx_iterator_create(data, &iterator));
    for (int i = 0; i < EXAMPLES; i++) {
        const struct sx_batch_data *one;
        char row[ROW_BYTES];
        assert_ok(sx_iterator_next(iterator, &one));
        memcpy(row, one->components[0].data, FEATURES * 4);
        memcpy(row + FEATURES * 4, one->components[1].data, 8);
        assert_ok(sx_tfrecord_shards_write(shards, 0, (sx_bytes){row, sizeof(row)}));
    }
    assert_ok(sx_tfrecord_shards_finish(shards));
    sx_tfrecord_shards_destroy(shards);
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
}

static sx_dataset *open_tiny_records(const char *path)
{
    static const sx_component row[] = {{"features", {SX_F32, 1, {FEATURES}}},
                                       {"label", {SX_I64, 0, {0}}}};
    sx_dataset *data = NULL;
    assert_ok(sx_dataset_from_records(&path, 1, NULL, &data));
    assert_ok(sx_dataset_map(&data, .name = "row", .fn = take_row, .count = 2, .components = row));
    return data;
}

/* The records alone, or half of each batch from them and half, read before, from memory. */
static sx_status fit_records(const char *dir, const char *path, bool two_inputs, seen *s,
                             uint64_t *out_hash)
{
    sx_run_config config = tiny_config(dir, s);
    config.observer = truncate_at_step;
    config.observer_user = s;
    sx_trainer *t = open_tiny(&config);
    sx_dataset *data[] = {tiny_data(0, EXAMPLES), open_tiny_records(path)};
    sx_fit_request request = {.train = data[1], .max_steps = MANY_STEPS};
    if (two_inputs) {
        request.train = data[0];
        request.shards = data;
        request.n_shards = 2;
    }
    sx_status status = sx_trainer_fit(t, &request);
    *out_hash = hash_variables(t);
    sx_dataset_release(data[0]);
    sx_dataset_release(data[1]);
    sx_trainer_destroy(t);
    return status;
}

/* Another process truncates the record file while a run trains on it: the error names file and
 * record, the steps so far are saved, and with the file repaired the run goes on to the bit. */
static void test_train_failures__truncated_data_cost_no_step(void **state)
{
    (void)state;
    char prefix[600], path[620], dir[600];
    snprintf(prefix, sizeof(prefix), "%s/tiny", scratch_dir);
    snprintf(path, sizeof(path), "%s-00000-of-00001", prefix);
    for (int two = 0; two < 2; two++) {
        uint64_t expected, hash;
        seen s = {0};
        snprintf(dir, sizeof(dir), "%s/run%d", scratch_dir, two);
        write_tiny_records(prefix);
        records_path = NULL;
        assert_ok(fit_records(NULL, path, two, &s, &expected));
        records_path = path;
        s = (seen){0};
        sx_status status = fit_records(dir, path, two, &s, &hash);
        assert_true(s.last_step >= TRUNCATE_AT && s.last_step < MANY_STEPS);
        char saved[64];
        snprintf(saved, sizeof(saved), "(step %d is saved)", (int)s.last_step);
        assert_non_null(strstr(sx_status_message(status), saved));
        assert_non_null(strstr(sx_status_message(status), "tiny-00000-of-00001: record "));
        assert_error(status, SX_DATA_LOSS, "was it truncated?");
        records_path = NULL;
        write_tiny_records(prefix);
        int64_t reached = s.last_step;
        s = (seen){0};
        assert_ok(fit_records(dir, path, two, &s, &hash));
        assert_true(s.resumed);
        assert_int_equal(s.count[SX_EVENT_PROGRESS], MANY_STEPS - reached);
        assert_true(hash == expected);
    }
}

/* ---- Memory of the steady state ---- */

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
    scratch_test(test_train_failures__a_failed_write_ends_the_fit_at_its_end),
    scratch_test(test_train_failures__truncated_data_cost_no_step),
    cmocka_unit_test(test_train_failures__steady_state_allocates_nothing),
};
SX_TEST_MAIN(tests)
