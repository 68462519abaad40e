/* Evaluation on devices of its own: eval_distribute, and TPUEstimator's eval_on_tpu=False. */
#include "run.h"

#include "../backends/pjrt_plugin.h"

/* Where programs were compiled, and what the evaluations were. */
typedef struct places {
    char train[64], eval[64];
    int n;
    double losses[8];
} places;

static void keep_places(void *user, const sx_train_event *e)
{
    places *p = user;
    if (e->kind == SX_EVENT_COMPILE_BEGIN) {
        bool eval = strcmp(e->text, "eval") == 0;
        snprintf(eval ? p->eval : p->train, sizeof(p->train), "%s", e->device);
    }
    if (e->kind == SX_EVENT_EVAL) {
        p->losses[p->n++] = e->metrics[0].value;
    }
}

static sx_status some_input(void *user, const sx_input_context *context, sx_dataset **out)
{
    int *eval_replicas = user;
    if (context->mode == SX_EVAL && eval_replicas != NULL) {
        *eval_replicas = context->num_replicas;
    }
    *out = context->mode == SX_TRAIN ? tiny_data(0, 48) : tiny_data(100, 41);
    return SX_OK;
}

static sx_run_config config_on(const char *device, places *p)
{
    sx_run_config config = tiny_config(scratch("run"), NULL);
    config.device = device;
    config.observer = p != NULL ? keep_places : NULL;
    config.observer_user = p;
    return config;
}

/* The loss of a checkpoint, evaluated on the CPU as everything else is. */
static double loss_of(const char *checkpoint)
{
    sx_estimator *e = NULL;
    sx_eval_result result;
    sx_run_config config = config_on("cpu", NULL);
    assert_ok(sx_estimator_create(&tiny, &config, NULL, &e));
    assert_ok(sx_estimator_evaluate(e, some_input, NULL, &result, .checkpoint = checkpoint));
    sx_estimator_destroy(e);
    return result.loss;
}

static void train_and_compare(sx_estimator *e, places *p)
{
    sx_eval_result result;
    int replicas = 0;
    const sx_train_spec *train = sx_train_spec_of(.input = some_input, .max_steps = 12);
    const sx_eval_spec *eval =
        sx_eval_spec_of(.input = some_input, .user = &replicas, .every_steps = 6);
    assert_ok(sx_train_and_evaluate(e, train, eval, &result));
    assert_int_equal(p->n, 2);
    assert_int_equal(replicas, 1);
    assert_true(p->losses[0] == loss_of("6")); /* each with the weights of its step */
    assert_true(p->losses[1] == loss_of("12"));
    assert_true(result.loss == p->losses[1] && result.loss != p->losses[0]);
    assert_ok(sx_estimator_evaluate(e, some_input, NULL, &result, .checkpoint = "6"));
    assert_true(result.loss == p->losses[0]);
    assert_string_equal(p->eval, "/device:CPU:0");
}

static void test_train_eval_place__follows_the_training(void **state)
{
    (void)state;
    places p = {0};
    sx_strategy *cpu = NULL;
    sx_estimator *e = NULL;
    sx_run_config config = config_on("host", &p);
    assert_ok(sx_one_device_strategy(&cpu, .device = "cpu"));
    config.eval_distribute = cpu;
    assert_ok(sx_estimator_create(&tiny, &config, NULL, &e));
    sx_strategy_release(cpu); /* the estimator holds it */
    train_and_compare(e, &p);
    sx_estimator_destroy(e);
}

static void test_train_eval_place__without_eval_on_tpu(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    places p = {0};
    sx_estimator *e = NULL;
    sx_run_config config = config_on("pjrt", &p);
    config.pjrt_plugin = pjrt_plugin();
    config.virtual_devices = config.replicas = 4;
    assert_ok(sx_tpu_estimator_create(&tiny, &e, .config = &config, .use_tpu = true,
                                      .no_eval_on_tpu = true));
    train_and_compare(e, &p);
    sx_estimator_destroy(e);
}

/* A variable that the evaluation has alone has no value where training runs. */
static sx_spec biased_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value logits = sx_dense(b, in->features, CLASSES);
    if (in->mode == SX_EVAL) {
        logits = sx_add(b, logits,
                        sx_variable(b, &(sx_variable_spec){.name = "eval_bias",
                                                           .type = sx_type_of(SX_F32, CLASSES),
                                                           .role = SX_ROLE_STATE}));
    }
    return sx_classifier_spec(b, logits, in->labels);
}

static void test_train_eval_place__names_a_variable_of_the_evaluation_alone(void **state)
{
    (void)state;
    static const sx_model_def biased =
        SX_MODEL_DEF(.name = "biased", .build = biased_build, .features = FEATURES);
    sx_strategy *cpu = NULL;
    sx_estimator *e = NULL;
    sx_eval_result result;
    sx_run_config config = config_on("host", NULL);
    assert_ok(sx_one_device_strategy(&cpu, .device = "cpu"));
    config.eval_distribute = cpu;
    assert_ok(sx_estimator_create(&biased, &config, NULL, &e));
    sx_strategy_release(cpu);
    assert_ok(sx_estimator_train(e, some_input, NULL, .max_steps = 2));
    assert_error(sx_estimator_evaluate(e, some_input, NULL, &result), SX_INTERNAL,
                 "no program has the variable \"eval_bias\"");
    sx_estimator_destroy(e);
}

static void test_train_eval_place__tpu_estimators_other_arguments(void **state)
{
    (void)state;
    sx_estimator *e = NULL;
    sx_strategy *cpu = NULL;
    sx_run_config config = config_on("host", NULL);
    seen s = {0};
    sx_run_config told = config;
    told.observer = see;
    told.observer_user = &s;
    assert_ok(sx_tpu_estimator_create(&tiny, &e, .config = &told, .batch_axis = 3,
                                      .transpose_input = true));
    assert_ok(sx_estimator_train(e, some_input, NULL, .max_steps = 2));
    assert_int_equal(s.count[SX_EVENT_WARNING], 2);
    assert_non_null(strstr(s.warning, "transpose_input is ignored: "));
    sx_estimator_destroy(e);
    assert_error(sx_tpu_estimator_create(&tiny, &e, .config = &config, .export_to_tpu = true),
                 SX_INVALID_ARGUMENT, "`serve,tpu`");
    assert_error(
        sx_tpu_estimator_create(&tiny, &e, .config = &config, .embedding_config_spec = &config),
        SX_INVALID_ARGUMENT, "embedding_config_spec must be NULL");
    assert_ok(sx_one_device_strategy(&cpu, .device = "cpu"));
    config.eval_distribute = cpu;
    assert_error(sx_tpu_estimator_create(&tiny, &e, .config = &config, .use_tpu = true,
                                         .no_eval_on_tpu = true),
                 SX_INVALID_ARGUMENT, "cannot be combined");
    sx_strategy_release(cpu);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_train_eval_place__follows_the_training),
    scratch_test(test_train_eval_place__without_eval_on_tpu),
    scratch_test(test_train_eval_place__names_a_variable_of_the_evaluation_alone),
    scratch_test(test_train_eval_place__tpu_estimators_other_arguments),
};
SX_TEST_MAIN(tests)
