/* Estimator and Model. */
#include "run.h"

#include <sextant/infer.h>
#include <sextant/log.h>

static sx_status train_input(void *user, const sx_input_context *context, sx_dataset **out)
{
    (void)user, (void)context;
    *out = tiny_data(0, EXAMPLES);
    return SX_OK;
}

static sx_status eval_input(void *user, const sx_input_context *context, sx_dataset **out)
{
    (void)user, (void)context;
    *out = tiny_data(100, 41);
    return SX_OK;
}

static sx_status no_input(void *user, const sx_input_context *context, sx_dataset **out)
{
    (void)user, (void)context, (void)out;
    return sx_error(SX_NOT_FOUND, "nothing there");
}

static sx_status count_row(void *user, const sx_prediction *row)
{
    int64_t *count = user;
    assert_int_equal(row->number, *count);
    ++*count;
    return SX_OK;
}

static void test_train_faces__estimator(void **state)
{
    (void)state;
    static const sx_model_def fn =
        SX_MODEL_DEF(.build = tiny_build); /* shapes come from the data */
    sx_run_config config = tiny_config(scratch("run"), NULL);
    sx_estimator *e = NULL;
    sx_eval_result result, again;
    int64_t rows = 0;
    assert_ok(sx_estimator_create(&fn, &config, NULL, &e));
    assert_error(sx_estimator_evaluate(e, eval_input, NULL, &result), SX_NOT_FOUND,
                 "is not a run directory");
    assert_error(sx_estimator_train(e, no_input, NULL, .steps = 1), SX_NOT_FOUND, "nothing there");
    assert_ok(sx_estimator_train(e, train_input, NULL, .steps = 4));
    assert_ok(sx_estimator_train(e, train_input, NULL, .steps = 4));
    assert_ok(sx_estimator_evaluate(e, eval_input, NULL, &result));
    assert_int_equal(result.step, 8);
    assert_int_equal(result.examples, 41);
    assert_ok(sx_estimator_predict(e, eval_input, NULL, count_row, &rows));
    assert_int_equal(rows, 41);
    assert_ok(sx_estimator_evaluate(e, eval_input, NULL, &again, .checkpoint = "4"));
    assert_int_equal(again.step, 4);
    assert_true(again.loss != result.loss);
    assert_ok(sx_estimator_train(e, train_input, NULL, .max_steps = 9)); /* from 8, not 4 */
    assert_ok(sx_estimator_evaluate(e, eval_input, NULL, &result));
    assert_int_equal(result.step, 9);
    sx_estimator_destroy(e);

    /* another process: the directory is all it needs */
    assert_ok(sx_estimator_create(NULL, &config, NULL, &e));
    assert_ok(sx_estimator_evaluate(e, eval_input, NULL, &again));
    assert_true(again.loss == result.loss);
    sx_estimator_destroy(e);
}

static void test_train_faces__train_and_evaluate(void **state)
{
    (void)state;
    seen s = {0};
    sx_run_config config = tiny_config(scratch("run"), &s);
    sx_estimator *e = NULL;
    sx_eval_result result, again;
    assert_ok(sx_estimator_create(&tiny, &config, NULL, &e));
    const sx_train_spec *train = sx_train_spec_of(.input = train_input, .max_steps = 12);
    const sx_eval_spec *eval = sx_eval_spec_of(.input = eval_input, .every_steps = 5);
    assert_ok(sx_train_and_evaluate(e, train, eval, &result));
    assert_int_equal(result.step, 12);
    assert_int_equal(s.count[SX_EVENT_EVAL], 3);
    assert_ok(sx_train_and_evaluate(e, train, eval, &again)); /* finished already */
    assert_true(again.loss == result.loss);
    assert_ok(sx_estimator_evaluate(e, eval_input, NULL, &again, .checkpoint = "best"));
    assert_true(again.loss <= result.loss);
    sx_estimator_destroy(e);
}

static void test_train_faces__estimator_exports(void **state)
{
    (void)state;
    sx_run_config config = tiny_config(scratch("run"), NULL);
    sx_estimator *e = NULL;
    char *dir = NULL;
    assert_ok(sx_estimator_create(&tiny, &config, NULL, &e));
    assert_ok(sx_estimator_train(e, train_input, NULL, .steps = 2));
    assert_ok(sx_estimator_export_saved_model(e, scratch("models"), &dir));
    assert_string_equal(dir, scratch("models/1"));
    sx_text_free(dir);
    assert_ok(sx_estimator_export_saved_model(e, scratch("models"), NULL, .version = "0007"));
    assert_true(sx_path_exists(scratch("models/0007/saved_model.pb")));
    assert_true(sx_path_exists(scratch("models/1/variables/variables.index")));
    sx_estimator_destroy(e);
}

static sx_status serve_as_x(void *user, sx_serving_input *input)
{
    input->features = "x";
    input->recipe = user;
    return SX_OK;
}

static sx_status serve_not(void *user, sx_serving_input *input)
{
    (void)user, (void)input;
    return sx_error(SX_UNAVAILABLE, "no serving today");
}

static void check_input_name(const char *dir, const char *signature, const char *name)
{
    sx_servable *s = NULL;
    const sx_signature_info *info;
    assert_ok(sx_servable_load(dir, NULL, &s));
    assert_ok(sx_servable_find(s, signature, &info));
    assert_int_equal(info->n_inputs, 1);
    assert_string_equal(info->inputs[0].name, name);
    sx_servable_release(s);
}

/* Signatures are what the serving input function says. */
static void test_train_faces__serving_input_function(void **state)
{
    (void)state;
    sx_run_config config = tiny_config(scratch("run"), NULL);
    sx_estimator *e = NULL;
    char recipe[] = "simple";
    assert_ok(sx_estimator_create(&tiny, &config, NULL, &e));
    assert_ok(sx_estimator_train(e, train_input, NULL, .steps = 1));
    assert_ok(sx_estimator_export_saved_model(e, scratch("models"), NULL,
                                              .serving_input_fn = serve_as_x));
    check_input_name(scratch("models/1"), NULL, "x");
    assert_error(sx_estimator_export_saved_model(e, scratch("models"), NULL,
                                                 .serving_input_fn = serve_as_x,
                                                 .serving_user = recipe),
                 SX_INVALID_ARGUMENT, "recipe \"simple\" is for models on images");
    assert_error(
        sx_estimator_export_saved_model(e, scratch("models"), NULL, .serving_input_fn = serve_not),
        SX_UNAVAILABLE, "no serving today");
    sx_estimator_destroy(e);
}

static void test_train_faces__model(void **state)
{
    (void)state;
    sx_model *m = NULL;
    sx_eval_result result, again;
    int rows = 0;
    int64_t predicted = 0;
    sx_dataset *train = tiny_data(0, EXAMPLES), *eval = tiny_data(100, 41);
    assert_ok(sx_model_create(&tiny, (const char *const[]){"hidden=12", NULL}, &m));
    assert_error(sx_model_evaluate(m, eval, &result), SX_FAILED_PRECONDITION, "neither fitted");
    assert_ok(sx_model_compile(m, .optimizer = sx_sgd(.learning_rate = 0.1), .seed = 3,
                               .device = "host"));
    assert_ok(sx_model_fit(m, train, .epochs = 2, .batch_size = 8, .validation_data = eval));
    assert_ok(sx_model_fit(m, train, .batch_size = 8, .validation_data = eval));
    assert_error(sx_model_compile(m, .seed = 4), SX_FAILED_PRECONDITION, "before fit");
    const sx_history_row *row = sx_model_history(m, &rows);
    assert_int_equal(rows, 3);
    assert_int_equal(row[2].epoch, 3);
    assert_int_equal(row[2].n_metrics, 4);
    assert_string_equal(row[2].metrics[0].name, "loss");
    assert_string_equal(row[2].metrics[2].name, "val_loss");
    assert_string_equal(row[2].metrics[3].name, "val_accuracy");
    assert_ok(sx_model_evaluate(m, eval, &result));
    assert_true(result.loss == row[2].metrics[2].value);
    assert_ok(sx_model_predict(m, eval, count_row, &predicted));
    assert_int_equal(predicted, 41);

    assert_ok(sx_model_save(m, scratch("saved")));
    assert_error(sx_model_save(m, scratch("saved")), SX_ALREADY_EXISTS, "already contains a run");
    sx_model_destroy(m);
    assert_ok(sx_model_load(scratch("saved"), &m));
    assert_ok(sx_model_evaluate(m, eval, &again)); /* on the default device now */
    assert_float_equal(again.loss, result.loss, 1e-5);
    assert_ok(sx_model_fit(m, train, .batch_size = 8));
    assert_ok(sx_model_evaluate(m, eval, &again));
    assert_int_equal(again.step, result.step + STEPS_PER_EPOCH);
    sx_model_destroy(m);
    sx_dataset_release(train);
    sx_dataset_release(eval);
}

/* A run without its graph for evaluation predicts, but cannot be saved as another one. */
static void test_train_faces__lost_graph(void **state)
{
    (void)state;
    sx_model *m = NULL;
    int64_t predicted = 0;
    sx_dataset *train = tiny_data(0, EXAMPLES);
    assert_ok(sx_model_create(&tiny, NULL, &m));
    assert_ok(sx_model_fit(m, train, .batch_size = 8));
    assert_ok(sx_model_save(m, scratch("saved")));
    sx_model_destroy(m);
    assert_int_equal(unlink(scratch("saved/graphs/eval.graph")), 0);
    assert_int_equal(unlink(scratch("saved/.backup/eval.graph")), 0);
    assert_ok(sx_model_load(scratch("saved"), &m));
    assert_ok(sx_model_predict(m, train, count_row, &predicted));
    assert_int_equal(predicted, EXAMPLES);
    assert_error(sx_model_save(m, scratch("copy")), SX_NOT_FOUND, "eval.graph");
    assert_false(sx_path_exists(scratch("copy/sextant.json")));
    sx_model_destroy(m);
    sx_dataset_release(train);
}

/* Neither face takes the weights of an older checkpoint unless it is told to. */
static void test_train_faces__damaged_checkpoints_are_not_replaced(void **state)
{
    (void)state;
    sx_model *m = NULL;
    sx_estimator *e = NULL;
    sx_eval_result result;
    int64_t rows = 0;
    sx_dataset *train = tiny_data(0, EXAMPLES);
    sx_run_config config = tiny_config(scratch("run"), NULL);
    config.save_checkpoints_steps = 2;
    assert_ok(sx_estimator_create(&tiny, &config, NULL, &e));
    assert_ok(sx_estimator_train(e, train_input, NULL, .max_steps = 4));
    write_file(scratch("run/model.ckpt-4.data-00000-of-00001"), "rotten", 6);
    static const char steps[] = "steps with a whole checkpoint: 0, 2; choose one of them";
    assert_error(sx_estimator_evaluate(e, train_input, NULL, &result), SX_DATA_LOSS, steps);
    assert_error(sx_estimator_predict(e, train_input, NULL, count_row, &rows), SX_DATA_LOSS, steps);
    assert_error(sx_estimator_export_saved_model(e, scratch("models"), NULL), SX_DATA_LOSS, steps);
    assert_int_equal(rows, 0);
    assert_false(sx_path_exists(scratch("models/1")));
    assert_ok(sx_estimator_evaluate(e, train_input, NULL, &result, .checkpoint = "2"));
    assert_int_equal(result.step, 2);
    sx_estimator_destroy(e);
    assert_error(sx_model_load(scratch("run"), &m), SX_DATA_LOSS, steps);
    assert_null(m);
    assert_ok(sx_model_load_checkpoint(scratch("run"), "2", &m));
    assert_ok(sx_model_evaluate(m, train, &result));
    assert_int_equal(result.step, 2);
    sx_model_destroy(m);
    sx_dataset_release(train);
}

/* What a model saved goes on as if it had never been away. */
static void test_train_faces__loading_is_exact(void **state)
{
    (void)state;
    sx_model *a = NULL, *b = NULL;
    sx_eval_result x, y;
    sx_dataset *train = tiny_data(0, EXAMPLES);
    assert_ok(sx_model_create(&tiny, NULL, &a));
    assert_ok(sx_model_compile(a, .seed = 7));
    assert_ok(sx_model_fit(a, train, .batch_size = 8));
    assert_ok(sx_model_save(a, scratch("saved")));
    assert_ok(sx_model_load(scratch("saved"), &b));
    assert_ok(sx_model_fit(a, train, .batch_size = 8));
    assert_ok(sx_model_fit(b, train, .batch_size = 8));
    assert_ok(sx_model_evaluate(a, train, &x));
    assert_ok(sx_model_evaluate(b, train, &y));
    assert_true(x.loss == y.loss);
    sx_model_destroy(a);
    sx_model_destroy(b);
    sx_dataset_release(train);
}

static void test_train_faces__refuse_what_makes_no_sense(void **state)
{
    (void)state;
    sx_model *m = NULL;
    sx_dataset *batched = tiny_data(0, EXAMPLES);
    assert_error(sx_model_create(&tiny, (const char *const[]){"hidden", NULL}, &m),
                 SX_INVALID_ARGUMENT, "expected name=value");
    assert_ok(sx_dataset_batch(&batched, .size = 8));
    assert_ok(sx_model_create(&tiny, NULL, &m));
    assert_error(sx_model_fit(m, batched), SX_INVALID_ARGUMENT, "must not be batched");
    assert_error(sx_model_fit(m, batched, .epochs = -1), SX_INVALID_ARGUMENT, "negative");
    sx_train_args args = {.struct_size = 3};
    sx_estimator *e = NULL;
    assert_ok(sx_estimator_create(&tiny, sx_run_config_of(.device = "host"), NULL, &e));
    assert_error(sx_estimator_train_at(e, train_input, NULL, &args), SX_INVALID_ARGUMENT,
                 "sx_train_args has struct_size 3");
    sx_estimator_destroy(e);
    sx_model_destroy(m);
    sx_dataset_release(batched);
}

/* ---- Where warnings go ---- */

static int real_stderr;
static FILE *caught;

static void catch_stderr(void)
{
    fflush(stderr);
    caught = tmpfile();
    real_stderr = dup(STDERR_FILENO);
    assert_true(caught != NULL && real_stderr >= 0);
    assert_true(dup2(fileno(caught), STDERR_FILENO) >= 0);
}

/* What was printed since. */
static const char *caught_text(void)
{
    static char text[4096];
    fflush(stderr);
    assert_true(dup2(real_stderr, STDERR_FILENO) >= 0);
    close(real_stderr);
    rewind(caught);
    text[fread(text, 1, sizeof(text) - 1, caught)] = '\0';
    fclose(caught);
    return text;
}

static void train_on_eight_shards(sx_observer_fn *observer, void *user)
{
    sx_run_config config = tiny_config(NULL, NULL);
    sx_estimator *e = NULL;
    config.tpu_config.num_shards = 8;
    config.observer = observer;
    config.observer_user = user;
    assert_ok(sx_estimator_create(&tiny, &config, NULL, &e));
    assert_ok(sx_estimator_train(e, train_input, NULL, .steps = 1));
    sx_estimator_destroy(e);
}

static void keep_line(void *user, sx_log_level level, const char *file, int line,
                      const char *message)
{
    (void)file, (void)line;
    assert_int_equal(level, SX_LOG_WARN);
    snprintf(user, 1024, "%s", message);
}

static void test_train_faces__warnings_reach_stderr_the_log_or_the_observer(void **state)
{
    (void)state;
    static const char warning[] =
        "tpu_config.num_shards is ignored: the number of replicas is determined by the device";
    char expected[200], logged[1024] = "";
    seen s = {0};
    snprintf(expected, sizeof(expected), "sextant: warning: %s\n", warning);
    catch_stderr();
    train_on_eight_shards(NULL, NULL);
    assert_string_equal(caught_text(), expected);

    catch_stderr();
    train_on_eight_shards(see, &s);
    assert_string_equal(caught_text(), "");
    assert_string_equal(s.warning, warning);

    catch_stderr();
    sx_log_set_sink(keep_line, logged, SX_LOG_WARN);
    train_on_eight_shards(NULL, NULL);
    sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
    assert_string_equal(caught_text(), "");
    assert_string_equal(logged, warning);
}

/* The Model observes its own events; what its user does not observe is logged all the same. */
static void test_train_faces__a_models_warnings_are_logged(void **state)
{
    (void)state;
    sx_dataset *data = tiny_data(0, EXAMPLES);
    for (int observed = 0; observed <= 1; observed++) {
        sx_model *m = NULL;
        seen s = {0};
        char logged[1024] = "";
        for (int epochs = 1; epochs <= 2; epochs++) {
            assert_ok(sx_model_create(&tiny, NULL, &m));
            assert_ok(sx_model_compile(m, .device = "host", .observer = observed ? see : NULL,
                                       .observer_user = &s));
            sx_log_set_sink(keep_line, logged, SX_LOG_WARN);
            assert_ok(sx_model_fit(m, data, .epochs = epochs, .backup_dir = scratch("backup")));
            sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
            sx_model_destroy(m);
            assert_true(epochs > 1 || unlink(scratch("backup/graphs/eval.graph")) == 0);
        }
        assert_non_null(strstr(observed ? s.warning : logged, "eval.graph has been restored"));
        assert_string_equal(observed ? logged : s.warning, "");
        assert_ok(sx_run_delete(scratch("backup")));
    }
    sx_dataset_release(data);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_train_faces__warnings_reach_stderr_the_log_or_the_observer),
    scratch_test(test_train_faces__a_models_warnings_are_logged),
    scratch_test(test_train_faces__estimator),
    scratch_test(test_train_faces__train_and_evaluate),
    scratch_test(test_train_faces__estimator_exports),
    scratch_test(test_train_faces__serving_input_function),
    scratch_test(test_train_faces__model),
    scratch_test(test_train_faces__lost_graph),
    scratch_test(test_train_faces__damaged_checkpoints_are_not_replaced),
    scratch_test(test_train_faces__loading_is_exact),
    scratch_test(test_train_faces__refuse_what_makes_no_sense),
};
SX_TEST_MAIN(tests)
