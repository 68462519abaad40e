/* The faces on every device: train and evaluate on each, a model that moves between them, and what
 * no device takes. */
#include "run.h"

#include "../backends/pjrt_plugin.h"

/* Lets the session find the plugin by itself. */
static void name_plugin(void)
{
    char names[SX_PJRT_PATH_BYTES + 8];
    snprintf(names, sizeof(names), "cpu:%s", pjrt_plugin());
    assert_int_equal(setenv("PJRT_NAMES_AND_LIBRARY_PATHS", names, 1), 0);
}

/* Without dropout: devices that differ in replicas draw the same masks, but sums differ enough. */
static sx_spec plain_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_dense(b, in->features, 16, .activation = SX_RELU);
    return sx_classifier_spec(b, sx_dense(b, x, CLASSES), in->labels,
                              .optimizer = sx_sgd(.learning_rate = .05, .momentum = .9));
}

static const sx_model_def plain =
    SX_MODEL_DEF(.name = "plain", .build = plain_build, .features = FEATURES);

static sx_status some_input(void *user, const sx_input_context *context, sx_dataset **out)
{
    (void)user;
    *out = context->mode == SX_TRAIN ? tiny_data(0, 48) : tiny_data(100, 41);
    return SX_OK;
}

static sx_status keep_row(void *ids, const sx_prediction *row)
{
    ((int64_t *)ids)[row->number] = row->record;
    return SX_OK;
}

/* --- train_and_evaluate --------------------------------------------------------------------------
 */

static sx_eval_result train_on(const char *device, int replicas, int64_t *ids)
{
    sx_estimator *e = NULL;
    sx_eval_result result;
    sx_run_config config = tiny_config(scratch(device), NULL);
    config.device = device;
    config.replicas = replicas;
    config.threads = 2;
    const sx_train_spec *train = sx_train_spec_of(.input = some_input, .max_steps = 12);
    const sx_eval_spec *eval = sx_eval_spec_of(.input = some_input, .every_steps = 6);
    assert_ok(sx_tpu_estimator_create(&plain, &e, .config = &config, .use_tpu = true));
    assert_ok(sx_train_and_evaluate(e, train, eval, &result));
    assert_ok(sx_estimator_predict(e, some_input, NULL, keep_row, ids));
    sx_estimator_destroy(e);
    return result;
}

static void check_near(const sx_eval_result *a, const sx_eval_result *b)
{
    assert_int_equal(a->step, 12);
    assert_int_equal(b->examples, 41);
    assert_int_equal(b->available, 41);
    assert_float_equal(a->loss, b->loss, 1e-5);
    assert_float_equal(a->metrics[0].value, b->metrics[0].value, 1.5 / 41);
}

static void test_train_devices__train_and_evaluate(void **state)
{
    (void)state;
    int64_t here[64] = {0}, there[64] = {0};
    sx_eval_result ref = train_on("host", 1, here), cpu = train_on("cpu", 1, there);
    check_near(&ref, &cpu);
    assert_memory_equal(here, there, sizeof(here));
}

static void test_train_devices__train_and_evaluate_on_replicas(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    name_plugin();
    int64_t here[64] = {0}, there[64] = {0};
    sx_eval_result ref = train_on("host", 1, here), pjrt = train_on("pjrt", 2, there);
    check_near(&ref, &pjrt);
    assert_memory_equal(here, there, sizeof(here));
}

/* ---- host_call in a device's loop ---- */

typedef struct told {
    int n;
    double sums[64];
    int64_t rows[64];
} told;

static sx_status tell(void *user, int64_t step, const sx_host_value *values, int n)
{
    told *t = user;
    assert_int_equal(n, 1);
    assert_int_equal(step, t->n + 1);
    t->rows[t->n] = values[0].type.dims[0];
    for (int64_t i = 0; i < values[0].type.dims[0]; i++) {
        t->sums[t->n] += (double)((const float *)values[0].data)[i];
    }
    t->n++;
    return SX_OK;
}

static told told_here;

static sx_spec told_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_spec spec = plain_build(b, in, p);
    if (in->mode == SX_TRAIN) {
        spec.host_call =
            (sx_host_call){.fn = tell, .user = &told_here, .tensors = {{"losses", spec.loss}}};
    }
    return spec;
}

static told train_and_tell(const char *device, int replicas)
{
    sx_model_def def = plain;
    sx_estimator *e = NULL;
    sx_run_config config = tiny_config(NULL, NULL);
    def.build = told_build;
    config.device = device;
    config.replicas = replicas;
    config.iterations_per_loop = 4;
    config.log_step_count_steps = SX_NEVER;
    told_here = (told){0};
    assert_ok(sx_estimator_create(&def, &config, NULL, &e));
    assert_ok(sx_estimator_train(e, some_input, NULL, .max_steps = 11));
    sx_estimator_destroy(e);
    return told_here;
}

/* Each step's own rows, of the whole batch, though four steps run in one launch. */
static void test_train_devices__host_call_sees_each_step_of_a_launch(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    name_plugin();
    told ref = train_and_tell("host", 1), pjrt = train_and_tell("pjrt:cpu", 2);
    assert_int_equal(pjrt.n, 11);
    for (int i = 0; i < 11; i++) {
        assert_int_equal(pjrt.rows[i], BATCH);
        assert_float_equal(pjrt.sums[i], ref.sums[i], 1e-4);
    }
}

/* ---- Moving ---- */

static sx_model *open_model(void)
{
    sx_model *m = NULL;
    assert_ok(sx_model_create(&tiny, NULL, &m));
    assert_ok(sx_model_compile(m, .seed = 7, .device = "cpu", .threads = 1));
    return m;
}

static double loss_of(sx_model *m)
{
    sx_eval_result result;
    sx_dataset *eval = tiny_data(100, 41);
    assert_ok(sx_model_evaluate(m, eval, &result));
    sx_dataset_release(eval);
    return result.loss;
}

static void fit_more(sx_model *m)
{
    sx_dataset *train = tiny_data(0, 48);
    assert_ok(sx_model_fit(m, train, .batch_size = 8));
    sx_dataset_release(train);
}

/* Away and back: as if it had never been away. Adam's slots and the step go with it. */
static void test_train_devices__a_move_changes_no_bit(void **state)
{
    (void)state;
    sx_model *stays = open_model(), *moves = open_model();
    fit_more(stays);
    fit_more(moves);
    assert_ok(sx_model_to(moves, .device = "host"));
    assert_float_equal(loss_of(moves), loss_of(stays), 1e-6);
    assert_ok(sx_model_to(moves, .device = "cpu", .threads = 1));
    assert_true(loss_of(moves) == loss_of(stays));
    fit_more(stays);
    fit_more(moves);
    assert_true(loss_of(moves) == loss_of(stays));
    sx_model_destroy(stays);
    sx_model_destroy(moves);
}

static void test_train_devices__to_replicas_and_back(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    name_plugin();
    sx_model *stays = open_model(), *moves = open_model();
    fit_more(stays);
    fit_more(moves);
    assert_ok(sx_model_to(moves, .device = "pjrt", .replicas = 2));
    assert_float_equal(loss_of(moves), loss_of(stays), 1e-6);
    fit_more(stays);
    fit_more(moves); /* on two replicas */
    assert_ok(sx_model_to(moves, .device = "cpu", .threads = 1));
    assert_float_equal(loss_of(moves), loss_of(stays), 1e-5);
    fit_more(stays);
    fit_more(moves);
    assert_float_equal(loss_of(moves), loss_of(stays), 1e-5);
    sx_model_destroy(stays);
    sx_model_destroy(moves);
}

static void test_train_devices__a_move_that_fails_changes_nothing(void **state)
{
    (void)state;
    sx_model *m = open_model();
    fit_more(m);
    double before = loss_of(m);
    assert_error(sx_model_to(m, .device = "abacus"), SX_INVALID_ARGUMENT, "abacus");
    assert_error(sx_model_to(m, .device = "cpu", .replicas = -3), SX_INVALID_ARGUMENT,
                 "replicas is -3");
    assert_true(loss_of(m) == before);
    fit_more(m);
    sx_model_destroy(m);
    m = open_model(); /* before fit(): where that will be */
    assert_ok(sx_model_to(m, .device = "host"));
    fit_more(m);
    sx_model_destroy(m);
}

/* ---- Strings ---- */

static sx_dataset *with_strings(bool features, bool labels)
{
    static const sx_bytes words[4] = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}};
    static const float x[4][FEATURES];
    static const int64_t y[4];
    const char *names[] = {"words", "label"};
    const sx_tensor tensors[] = {
        features ? (sx_tensor){sx_type_of(SX_STRING, 4), (void *)(uintptr_t)words}
                 : (sx_tensor){sx_type_of(SX_F32, 4, FEATURES), (void *)(uintptr_t)x},
        labels ? (sx_tensor){sx_type_of(SX_STRING, 4), (void *)(uintptr_t)words}
               : (sx_tensor){sx_type_of(SX_I64, 4), (void *)(uintptr_t)y}};
    sx_dataset *data = NULL;
    assert_ok(sx_dataset_from_tensors(2, names, tensors, NULL, NULL, &data));
    return data;
}

static sx_status make_trainer(sx_dataset *data, int features, sx_trainer **out)
{
    sx_run_config config = tiny_config(NULL, NULL);
    sx_model_def def = plain;
    def.features = features;
    return sx_trainer_create(&(sx_trainer_options){.config = &config, .def = &def, .data = data},
                             out);
}

static void test_train_devices__strings_are_refused_by_name(void **state)
{
    (void)state;
    sx_trainer *t = NULL;
    sx_dataset *features = with_strings(true, false), *labels = with_strings(false, true);
    assert_error(make_trainer(features, 0, &t), SX_INVALID_ARGUMENT,
                 "component \"words\" of the data is string[], and strings");
    assert_error(make_trainer(labels, FEATURES, &t), SX_INVALID_ARGUMENT,
                 "component \"label\" of the data is string");
    /* batches of strings for a model that wants numbers */
    t = open_tiny(&(sx_run_config){.struct_size = sizeof(sx_run_config), .device = "host"});
    assert_ok(sx_dataset_batch(&features, .size = 2));
    assert_error(sx_trainer_fit(t, &(sx_fit_request){.train = features, .steps = 1}),
                 SX_INVALID_ARGUMENT, "component \"words\" of the data is string[N], and strings");
    sx_trainer_destroy(t);
    sx_dataset_release(features);
    sx_dataset_release(labels);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_train_devices__train_and_evaluate),
    scratch_test(test_train_devices__train_and_evaluate_on_replicas),
    cmocka_unit_test(test_train_devices__host_call_sees_each_step_of_a_launch),
    cmocka_unit_test(test_train_devices__a_move_changes_no_bit),
    cmocka_unit_test(test_train_devices__to_replicas_and_back),
    cmocka_unit_test(test_train_devices__a_move_that_fails_changes_nothing),
    cmocka_unit_test(test_train_devices__strings_are_refused_by_name),
};
SX_TEST_MAIN(tests)
