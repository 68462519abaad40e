/* Training: where it begins and ends, exact resume, stopping, values that are not finite. */
#include "run.h"

#include "nn/zoo/zoo.h"

static uint64_t train_straight(int64_t steps)
{
    sx_run_config config = tiny_config(NULL, NULL);
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, steps, false));
    assert_int_equal(sx_trainer_step(t), steps);
    uint64_t hash = hash_variables(t);
    sx_trainer_destroy(t);
    return hash;
}

static void test_train_fit__learns(void **state)
{
    (void)state;
    seen s = {0};
    sx_run_config config = tiny_config(NULL, &s);
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, 1, false));
    double first = s.last_loss;
    assert_true(s.final_loss == first);
    assert_ok(fit_tiny(t, 30 * STEPS_PER_EPOCH, false));
    assert_true(s.final_loss > 0 && s.final_loss != s.last_loss);
    assert_true(s.last_loss < 0.5 * first);
    assert_string_equal(s.end, "finished");
    assert_int_equal(s.epochs, 30);
    assert_int_equal(s.count[SX_EVENT_EPOCH], 30);
    assert_ok(fit_tiny(t, 30 * STEPS_PER_EPOCH, false));
    assert_string_equal(s.end, "already finished");
    assert_true(isnan(s.final_loss)); /* no step, no loss */
    sx_trainer_destroy(t);
}

static void test_train_fit__resumes_to_the_bit_at_every_step(void **state)
{
    (void)state;
    enum { STEPS = 2 * STEPS_PER_EPOCH + 3 };
    uint64_t expected = train_straight(STEPS);
    char *dir = scratch("run");
    for (int64_t k = 1; k < STEPS; k++) {
        seen s = {.stop_at = k};
        sx_run_config config = tiny_config(dir, &s);
        sx_trainer *t = open_tiny(&config);
        assert_error(fit_tiny(t, STEPS, false), SX_CANCELLED, "stopped at step");
        assert_int_equal(sx_trainer_step(t), k);
        sx_trainer_destroy(t);
        s = (seen){0};
        t = open_tiny(&config);
        assert_ok(fit_tiny(t, STEPS, false));
        assert_true(s.resumed);
        assert_string_equal(s.warning, "");
        assert_true(hash_variables(t) == expected);
        sx_trainer_destroy(t);
        assert_ok(sx_run_delete(dir));
    }
}

/* Pictures decoded and augmented on the way, several threads, the default device, a partial last
 * batch. */
static uint64_t train_pictures(const char *dir, int64_t stop_at)
{
    seen s = {.stop_at = stop_at};
    sx_run_config config = tiny_config(dir, &s);
    sx_model_def def = *sx_zoo_find("mlp");
    sx_dataset *data = NULL;
    sx_trainer *t = NULL;
    def.augment = SX_FLIP_LEFT_RIGHT;
    config.device = NULL;
    config.threads = 2;
    assert_ok(sx_data_open("generated:digits?n=70&seed=3", NULL, &data, NULL));
    const sx_trainer_options options = {.config = &config, .def = &def, .data = data};
    assert_ok(sx_trainer_create(&options, &t));
    const sx_fit_request request = {.train = data, .epochs = 2};
    sx_status status = sx_trainer_fit(t, &request);
    assert_int_equal(sx_status_code(status), stop_at > 0 ? SX_CANCELLED : SX_CODE_OK);
    sx_status_free(status);
    uint64_t hash = hash_variables(t);
    sx_trainer_destroy(t);
    sx_dataset_release(data);
    return hash;
}

static void test_train_fit__resumes_to_the_bit_on_pictures(void **state)
{
    (void)state;
    uint64_t expected = train_pictures(NULL, 0);
    for (int64_t k = 1; k < 18; k += 4) {
        char *dir = scratch("run");
        train_pictures(dir, k);
        assert_true(train_pictures(dir, 0) == expected);
        assert_ok(sx_run_delete(dir));
    }
}

/* The means that a resumed epoch reports are those of the whole epoch. */
static void test_train_fit__resumes_running_means(void **state)
{
    (void)state;
    seen s = {0};
    sx_run_config config = tiny_config(NULL, &s);
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, 6, false));
    double expected = s.last_loss;
    sx_trainer_destroy(t);
    config = tiny_config(scratch("run"), &s);
    for (int64_t steps = 3; steps <= 6; steps += 3) {
        t = open_tiny(&config);
        assert_ok(fit_tiny(t, steps, false));
        sx_trainer_destroy(t);
    }
    assert_true(s.last_loss == expected);
}

static void test_train_fit__seeds_decide_the_bits(void **state)
{
    (void)state;
    assert_true(train_straight(5) == train_straight(5));
    sx_run_config config = tiny_config(NULL, NULL);
    config.tf_random_seed = 8;
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, 5, false));
    assert_true(hash_variables(t) != train_straight(5));
    sx_trainer_destroy(t);
}

static int64_t fit_from(const char *dir, sx_fit_request request, seen *s)
{
    sx_run_config config = tiny_config(dir, s);
    sx_trainer *t = open_tiny(&config);
    sx_dataset *data = tiny_data(0, EXAMPLES);
    request.train = data;
    assert_ok(sx_trainer_fit(t, &request));
    int64_t step = sx_trainer_step(t);
    sx_trainer_destroy(t);
    sx_dataset_release(data);
    return step;
}

static void test_train_fit__counts_steps_and_epochs(void **state)
{
    (void)state;
    char *dir = scratch("run");
    seen s = {0};
    assert_int_equal(fit_from(dir, (sx_fit_request){.steps = 3}, &s), 3);
    assert_int_equal(fit_from(dir, (sx_fit_request){.steps = 2}, &s), 5);
    assert_int_equal(fit_from(dir, (sx_fit_request){.epochs = 1}, &s), STEPS_PER_EPOCH);
    assert_int_equal(s.epochs, 1);
    assert_int_equal(fit_from(dir, (sx_fit_request){.max_steps = 9}, &s), 9);
    assert_int_equal(s.total_steps, 9);
    assert_int_equal(fit_from(dir, (sx_fit_request){.epochs = 2}, &s), 2 * STEPS_PER_EPOCH);
    assert_int_equal(fit_from(scratch("other"), (sx_fit_request){0}, &s), STEPS_PER_EPOCH);
}

static void test_train_fit__leaves_a_finished_run_alone(void **state)
{
    (void)state;
    char *dir = scratch("run");
    seen s = {0};
    fit_from(dir, (sx_fit_request){.max_steps = 4}, &s);
    s = (seen){0};
    assert_int_equal(fit_from(dir, (sx_fit_request){.max_steps = 4}, &s), 4);
    assert_string_equal(s.end, "already finished");
    assert_int_equal(s.count[SX_EVENT_CHECKPOINT] + s.count[SX_EVENT_COMPILE_BEGIN], 0);
    assert_int_equal(fit_from(dir, (sx_fit_request){.max_steps = 2}, &s), 4);
}

static void test_train_fit__refuses_senseless_requests(void **state)
{
    (void)state;
    sx_run_config config = tiny_config(NULL, NULL);
    sx_trainer *t = open_tiny(&config);
    sx_dataset *data = tiny_data(0, EXAMPLES);
    const struct {
        sx_fit_request request;
        const char *message;
    } bad[] = {
        {{.train = data, .steps = 1, .max_steps = 1}, "cannot be combined"},
        {{.train = data, .steps = -1}, "negative"},
        {{.steps = 1}, "no training data"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_error(sx_trainer_fit(t, &bad[i].request), SX_INVALID_ARGUMENT, bad[i].message);
    }
    sx_dataset_release(data);
    sx_trainer_destroy(t);
}

/* Weights that overflow: the step is withheld and named, and what was saved stays good. */
static void test_train_fit__names_what_is_not_finite(void **state)
{
    (void)state;
    seen s = {0};
    sx_run_config config = tiny_config(scratch("run"), &s);
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, 3, false));
    sx_trainer_destroy(t);

    static float x[16][FEATURES];
    static int64_t y[16];
    x[13][2] = NAN;
    const char *names[] = {"features", "label"};
    const sx_tensor tensors[] = {{sx_type_of(SX_F32, 16, FEATURES), x},
                                 {sx_type_of(SX_I64, 16), y}};
    sx_dataset *data = NULL;
    assert_ok(sx_dataset_from_tensors(2, names, tensors, NULL, NULL, &data));
    config.no_shuffle = true;
    config.save_checkpoints_steps = 1;
    config.save_checkpoints_secs = 0;
    t = open_tiny(&config);
    const sx_fit_request request = {.train = data, .max_steps = 20};
    assert_error(sx_trainer_fit(t, &request), SX_ABORTED, "input \"features\" is not finite");
    assert_int_equal(s.count[SX_EVENT_NONFINITE], 1);
    int64_t step = sx_trainer_step(t);
    sx_trainer_destroy(t);
    t = open_tiny(&config);
    assert_ok(sx_trainer_restore(t, "latest"));
    assert_int_equal(sx_trainer_step(t), step);
    sx_trainer_destroy(t);
    sx_dataset_release(data);
}

/* Data that are batched already are taken as they are, and training ends where they end. */
static void test_train_fit__ends_with_the_data(void **state)
{
    (void)state;
    seen s = {0};
    sx_run_config config = tiny_config(scratch("run"), &s);
    for (int round = 1; round <= 2; round++) {
        sx_trainer *t = open_tiny(&config);
        sx_dataset *data = tiny_data(0, EXAMPLES);
        assert_ok(sx_dataset_batch(&data, .size = 10));
        const sx_fit_request request = {.train = data};
        assert_ok(sx_trainer_fit(t, &request));
        assert_string_equal(s.end, "end of data");
        assert_int_equal(sx_trainer_step(t), 6 * round);
        sx_dataset_release(data);
        sx_trainer_destroy(t);
    }
}

static void test_train_fit__says_when_data_do_not_fit(void **state)
{
    (void)state;
    float x[4][5] = {{0}};
    int64_t y[4] = {0, 1, 2, 3};
    const char *names[] = {"features", "label"};
    sx_tensor tensors[] = {{sx_type_of(SX_F32, 4, 5), x}, {sx_type_of(SX_I64, 4), y}};
    sx_run_config config = tiny_config(NULL, NULL);
    sx_trainer *t = open_tiny(&config);
    sx_dataset *data = NULL;
    assert_ok(sx_dataset_from_tensors(2, names, tensors, NULL, NULL, &data));
    sx_fit_request request = {.train = data, .steps = 1};
    assert_error(
        sx_trainer_fit(t, &request), SX_INVALID_ARGUMENT,
        "\"features\" of the data is float32[N,5], but model \"tiny\" expects float32[N,6]");
    sx_dataset_release(data);
    float wide[4][FEATURES] = {{0}};
    tensors[0] = (sx_tensor){sx_type_of(SX_F32, 4, FEATURES), wide};
    assert_ok(sx_dataset_from_tensors(1, names, tensors, NULL, NULL, &data));
    request.train = data;
    assert_error(sx_trainer_fit(t, &request), SX_INVALID_ARGUMENT, "no labels");
    sx_dataset_release(data);
    assert_ok(sx_dataset_from_tensors(2, names, tensors, NULL, NULL, &data));
    request.train = data;
    assert_error(sx_trainer_fit(t, &request), SX_INVALID_ARGUMENT,
                 "label 3 is outside the classes [0, 3)");
    sx_dataset_release(data);
    sx_trainer_destroy(t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_train_fit__learns),
    scratch_test(test_train_fit__resumes_to_the_bit_at_every_step),
    scratch_test(test_train_fit__resumes_to_the_bit_on_pictures),
    scratch_test(test_train_fit__resumes_running_means),
    cmocka_unit_test(test_train_fit__seeds_decide_the_bits),
    scratch_test(test_train_fit__counts_steps_and_epochs),
    scratch_test(test_train_fit__leaves_a_finished_run_alone),
    cmocka_unit_test(test_train_fit__refuses_senseless_requests),
    scratch_test(test_train_fit__names_what_is_not_finite),
    scratch_test(test_train_fit__ends_with_the_data),
    cmocka_unit_test(test_train_fit__says_when_data_do_not_fit),
};
SX_TEST_MAIN(tests)
