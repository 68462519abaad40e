/* The trainer over a plugin: launches of several steps, replicas, and what of a run moves from one
 * device to another. */
#include "child.h"
#include "run.h"

#include "../backends/pjrt_plugin.h"
#include "io/path.h"

enum { ALL_STEPS = 3 * STEPS_PER_EPOCH, MANY = 101 };

/* Launches of at most 3 steps; an epoch is 6 of 8 examples and one of 5. */
static sx_run_config pjrt_config(const char *dir, seen *s, int replicas)
{
    sx_run_config config = tiny_config(dir, s);
    config.device = "pjrt";
    config.pjrt_plugin = pjrt_plugin();
    config.virtual_devices = 4;
    config.replicas = replicas;
    config.iterations_per_loop = 3;
    return config;
}

static void read_weights(sx_trainer *t, float *out, int n)
{
    sx_session *s = sx_trainer_session(t);
    for (int i = 0; i < sx_session_variable_count(s); i++) {
        const sx_session_variable *v = sx_session_variable_at(s, i);
        if (v->type.dtype == SX_F32 && sx_type_elems(&v->type) <= n) {
            assert_ok(sx_session_read_variable(s, i, out));
            out += sx_type_elems(&v->type);
            n -= (int)sx_type_elems(&v->type);
        }
    }
}

enum { WEIGHTS = 512 };

static void assert_weights_close(sx_trainer *a, sx_trainer *b, double tolerance)
{
    float x[WEIGHTS] = {0}, y[WEIGHTS] = {0};
    read_weights(a, x, WEIGHTS);
    read_weights(b, y, WEIGHTS);
    for (int i = 0; i < WEIGHTS; i++) {
        if (!(fabs((double)x[i] - (double)y[i]) <= tolerance)) {
            fail_msg("number %d is %.9g and %.9g", i, (double)x[i], (double)y[i]);
        }
    }
}

static void test_train_replicas__replicas_train_as_one_device_does(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    seen expected = {0};
    sx_run_config config = tiny_config(NULL, &expected);
    sx_trainer *ref = open_tiny(&config);
    assert_ok(fit_tiny(ref, ALL_STEPS, true));
    for (int replicas = 1; replicas <= 4; replicas *= 2) {
        seen s = {0};
        config = pjrt_config(NULL, &s, replicas);
        sx_trainer *t = open_tiny(&config);
        assert_ok(fit_tiny(t, ALL_STEPS, true));
        assert_weights_close(t, ref, 1e-4);
        assert_int_equal(s.count[SX_EVENT_PROGRESS], ALL_STEPS);
        assert_int_equal(s.count[SX_EVENT_EPOCH], 3);
        assert_int_equal(s.count[SX_EVENT_EVAL], expected.count[SX_EVENT_EVAL]);
        assert_true(fabs(s.last_loss - expected.last_loss) < 1e-4);
        sx_trainer_destroy(t);
    }
    sx_trainer_destroy(ref);
}

static uint64_t train_straight(int replicas)
{
    sx_run_config config = pjrt_config(NULL, NULL, replicas);
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, ALL_STEPS, false));
    uint64_t hash = hash_variables(t);
    sx_trainer_destroy(t);
    return hash;
}

/* A stop inside a launch lets it end, and saves there. */
static void test_train_replicas__stops_at_the_end_of_a_launch_and_resumes_to_the_bit(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    static const int64_t stops[] = {1, 2, 5, 7, 9}, ends[] = {3, 3, 6, 7, 10};
    uint64_t expected = train_straight(2);
    char *dir = scratch("stopped");
    for (int k = 0; k < 5; k++) {
        seen s = {.stop_at = stops[k]};
        sx_run_config config = pjrt_config(dir, &s, 2);
        sx_trainer *t = open_tiny(&config);
        assert_error(fit_tiny(t, ALL_STEPS, false), SX_CANCELLED, "stopped at step");
        assert_int_equal(sx_trainer_step(t), ends[k]);
        sx_trainer_destroy(t);
        s = (seen){0};
        t = open_tiny(&config);
        assert_ok(fit_tiny(t, ALL_STEPS, false));
        assert_true(s.resumed);
        assert_string_equal(s.warning, "");
        assert_true(hash_variables(t) == expected);
        sx_trainer_destroy(t);
        assert_ok(sx_run_delete(dir));
    }
}

/* A run of 4 replicas goes on with 1, and on the cpu backend; each is warned that bits may differ.
 */
static void test_train_replicas__a_checkpoint_of_replicas_goes_on_elsewhere(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    sx_run_config config = tiny_config(NULL, NULL);
    sx_trainer *ref = open_tiny(&config);
    assert_ok(fit_tiny(ref, ALL_STEPS, false));
    for (int other = 0; other < 3; other++) {
        char *dir = scratch("moved");
        config = pjrt_config(dir, NULL, 4);
        sx_trainer *t = open_tiny(&config);
        assert_ok(fit_tiny(t, 10, false));
        sx_trainer_destroy(t);
        seen s = {0};
        config = pjrt_config(dir, &s, other == 0 ? 1 : 4);
        if (other == 1) {
            config = tiny_config(dir, &s);
            config.device = "cpu";
        }
        t = open_tiny(&config);
        assert_ok(fit_tiny(t, ALL_STEPS, false));
        assert_true(s.resumed);
        assert_true(other == 2 ? s.warning[0] == '\0'
                               : strstr(s.warning, "results may differ in the last bits") != NULL);
        assert_weights_close(t, ref, 1e-4);
        sx_trainer_destroy(t);
        assert_ok(sx_run_delete(dir));
    }
    sx_trainer_destroy(ref);
}

static void test_train_replicas__batches_that_do_not_divide_are_refused_at_once(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    char *dir = scratch("refused");
    sx_run_config config = pjrt_config(dir, NULL, 4);
    config.train_batch_size = 10;
    sx_trainer *t = open_tiny(&config);
    assert_error(fit_tiny(t, 3, false), SX_INVALID_ARGUMENT,
                 "a training batch of 10 examples is not divisible by 4 replicas: the nearest are "
                 "8 and 12");
    assert_false(sx_path_exists(dir));
    sx_trainer_destroy(t);
}

static void test_train_replicas__less_data_than_a_batch_train_on_replicas_too(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    sx_run_config config = tiny_config(NULL, NULL);
    config.train_batch_size = 64;
    sx_trainer *ref = open_tiny(&config);
    assert_ok(fit_tiny(ref, 4, false));
    config = pjrt_config(NULL, NULL, 4);
    config.train_batch_size = 64;
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, 4, false)); /* 53 examples, the whole of them each time */
    assert_weights_close(t, ref, 1e-5);
    sx_trainer_destroy(t);
    sx_trainer_destroy(ref);
}

/* ---- Evaluation and prediction ---- */

typedef struct rows {
    int64_t count;
    float probabilities[MANY][CLASSES];
    int classid[MANY];
} rows;

static sx_status keep_row(void *user, const sx_prediction *row)
{
    rows *r = user;
    assert_int_equal(row->number, r->count);
    assert_int_equal(row->record, r->count);
    memcpy(r->probabilities[r->count], row->probabilities, sizeof(r->probabilities[0]));
    r->classid[r->count++] = row->classid;
    return SX_OK;
}

static void score(const sx_run_config *config, rows *out, sx_eval_result *result)
{
    sx_trainer *t = NULL;
    sx_dataset *data = tiny_data(200, MANY);
    assert_ok(sx_trainer_create(&(sx_trainer_options){.config = config}, &t));
    assert_ok(sx_trainer_restore(t, NULL));
    assert_ok(sx_trainer_evaluate(t, data, 0, result));
    assert_ok(sx_trainer_predict(t, data, 0, keep_row, out));
    assert_int_equal(result->examples, MANY);
    assert_int_equal(out->count, MANY);
    sx_dataset_release(data);
    sx_trainer_destroy(t);
}

/* 101 examples divide by nothing. Neither batch sizes nor replicas change a bit of the plugin's
 * results; another backend's are near. */
static void test_train_replicas__every_example_is_scored_once_on_any_replicas(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    static rows cpu, first, r;
    sx_eval_result of_cpu, of_first, result;
    char *dir = scratch("scored");
    sx_run_config config = tiny_config(dir, NULL);
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, 20, false));
    sx_trainer_destroy(t);
    config.device = "cpu";
    score(&config, &cpu, &of_cpu);
    for (int k = 0; k < 4; k++) {
        static const int replicas[] = {1, 2, 4, 4};
        config = pjrt_config(dir, NULL, replicas[k]);
        config.eval_batch_size = k == 3 ? 7 : 64;
        r.count = 0;
        score(&config, k == 0 ? &first : &r, k == 0 ? &of_first : &result);
        if (k > 0) {
            assert_memory_equal(&r, &first, sizeof(r));
            assert_true(result.loss == of_first.loss);
        }
    }
    assert_true(fabs(of_first.loss - of_cpu.loss) < 1e-5);
    for (int i = 0; i < MANY; i++) {
        for (int c = 0; c < CLASSES; c++) {
            float a = first.probabilities[i][c], b = cpu.probabilities[i][c];
            assert_true(fabs((double)a - (double)b) < 1e-5);
        }
    }
}

/* ---- A run that is killed ---- */

typedef struct attempt {
    const char *dir;
    int64_t kill_at;
} attempt;

static uint64_t make_attempt(void *user)
{
    const attempt *a = user;
    seen s = {.kill_at = a->kill_at};
    sx_run_config config = pjrt_config(a->dir, &s, 4);
    config.save_checkpoints_secs = 0;
    config.save_checkpoints_steps = 4;
    sx_trainer *t = open_tiny(&config);
    if (fit_tiny(t, ALL_STEPS, true) != SX_OK) {
        _exit(2);
    }
    return hash_variables(t);
}

/* Trains in a child, so that each has a plugin of its own, and kills itself when it sees step
 * `kill_at`. Returns whether it finished, and then the hash of its variables. */
static bool train_in_child(const char *dir, int64_t kill_at, uint64_t *out_hash)
{
    attempt a = {dir, kill_at};
    return finishes_in_child(make_attempt, &a, out_hash);
}

static void test_train_replicas__four_replicas_killed_and_resumed_are_bit_equal(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    uint64_t expected = 0, hash = 1;
    char *whole = scratch("uninterrupted"), *dir = scratch("killed");
    assert_true(train_in_child(whole, 0, &expected));
    assert_false(train_in_child(dir, 6, &hash));
    assert_false(train_in_child(dir, 11, &hash));
    assert_false(train_in_child(dir, 20, &hash));
    assert_true(train_in_child(dir, 0, &hash));
    assert_true(hash == expected);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_train_replicas__four_replicas_killed_and_resumed_are_bit_equal),
    scratch_test(test_train_replicas__replicas_train_as_one_device_does),
    scratch_test(test_train_replicas__stops_at_the_end_of_a_launch_and_resumes_to_the_bit),
    scratch_test(test_train_replicas__a_checkpoint_of_replicas_goes_on_elsewhere),
    scratch_test(test_train_replicas__batches_that_do_not_divide_are_refused_at_once),
    scratch_test(test_train_replicas__less_data_than_a_batch_train_on_replicas_too),
    scratch_test(test_train_replicas__every_example_is_scored_once_on_any_replicas),
};
SX_TEST_MAIN(tests)
