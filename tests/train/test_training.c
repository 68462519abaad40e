/* The public training session (sextant/runtime.h): the bits of Model and Estimator in a loop of the
 * caller's, and what it says of misuse. */
#include "run.h"

#include <sextant/infer.h>
#include <sextant/runtime.h>

#include "../backends/pjrt_plugin.h"

enum { STEPS = 2 * STEPS_PER_EPOCH };

/* The pipeline that fit makes. */
static sx_iterator *tiny_batches(sx_training *t)
{
    sx_dataset *data = tiny_data(0, EXAMPLES);
    sx_iterator *batches = NULL;
    assert_ok(sx_training_preprocess(t, SX_TRAIN, &data));
    assert_ok(sx_dataset_shuffle(&data, .seed = 7));
    assert_ok(sx_dataset_batch(&data, .size = BATCH));
    assert_ok(sx_dataset_repeat(&data, 0));
    assert_ok(sx_iterator_create(data, &batches, .workers = -1));
    sx_dataset_release(data);
    return batches;
}

static sx_training *open_training(const sx_run_config *config)
{
    sx_training *t = NULL;
    sx_dataset *data = tiny_data(0, EXAMPLES);
    assert_ok(sx_training_open(&tiny, &t, .config = config, .data = data));
    sx_dataset_release(data);
    return t;
}

/* hash_variables() through the public functions. */
static uint64_t hash_training(sx_training *t)
{
    uint64_t hash = 0;
    for (int i = 0; i < sx_training_variable_count(t); i++) {
        sx_variable_info v;
        assert_ok(sx_training_variable_at(t, i, &v));
        size_t bytes = (size_t)sx_type_bytes(&v.type);
        char *data = sx_alloc(bytes + 1, 1);
        assert_ok(sx_training_read_variable(t, v.name, data, bytes));
        hash = hash * 1099511628211u ^ sx_hash64(v.name, strlen(v.name));
        hash = hash * 1099511628211u ^ sx_hash64(data, bytes);
        sx_free(data);
    }
    return hash;
}

static uint64_t hash_of_fit(const sx_run_config *config)
{
    sx_trainer *t = open_tiny(config);
    assert_ok(fit_tiny(t, STEPS, false));
    uint64_t hash = hash_variables(t);
    sx_trainer_destroy(t);
    return hash;
}

/* Trains `at_once` steps a call. */
static uint64_t hash_of_loop(const sx_run_config *config, int64_t at_once)
{
    sx_training *t = open_training(config);
    sx_iterator *batches = tiny_batches(t);
    sx_training_step step;
    assert_ok(sx_training_begin(t, batches));
    while (sx_training_global_step(t) < STEPS) {
        int64_t before = sx_training_global_step(t);
        assert_ok(sx_training_run(t, at_once, &step));
        assert_true(step.step > before && step.step <= before + at_once);
        assert_int_equal(step.ends_epoch, step.step % STEPS_PER_EPOCH == 0);
        assert_int_equal(step.epoch, (step.step - 1) / STEPS_PER_EPOCH + 1);
        assert_int_equal(step.examples, step.ends_epoch ? EXAMPLES % BATCH : BATCH);
        assert_string_equal(step.metrics[0].name, "loss");
        assert_true(step.metrics[0].value > 0 && step.means[0] > 0);
    }
    uint64_t hash = hash_training(t);
    sx_training_free(t);
    sx_iterator_destroy(batches);
    return hash;
}

static void test_train_training__has_the_bits_of_fit(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        sx_run_config config = tiny_config(NULL, NULL);
        config.device = "cpu";
        config.threads = threads;
        uint64_t expected = hash_of_fit(&config);
        assert_true(hash_of_loop(&config, 1) == expected);
        assert_true(hash_of_loop(&config, 5) == expected);
    }
}

/* Virtual devices, or a fixed number of shards: the number of threads changes no bit. */
static void test_train_training__strict_mode_has_one_result(void **state)
{
    (void)state;
    sx_run_config config = tiny_config(NULL, NULL);
    config.device = "cpu";
    config.virtual_devices = 4;
    uint64_t expected = hash_of_fit(&config);
    for (int threads = 1; threads <= 2; threads++) {
        config.threads = threads;
        assert_true(hash_of_loop(&config, 1) == expected);
        sx_run_config shards = tiny_config(NULL, NULL);
        shards.device = "cpu";
        shards.threads = threads;
        shards.shards = 4;
        assert_true(hash_of_loop(&shards, 3) == expected);
    }
    sx_strategy *strategy = NULL;
    assert_ok(sx_mirrored_strategy(&strategy, .device = "cpu", .virtual_devices = 4));
    config = tiny_config(NULL, NULL);
    config.device = NULL;
    config.train_distribute = strategy;
    assert_true(hash_of_loop(&config, 1) == expected);
    sx_strategy_release(strategy);
}

/* A device that runs steps in launches. */
static void test_train_training__launches_have_the_bits_of_fit(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    sx_run_config config = tiny_config(NULL, NULL);
    config.device = "pjrt";
    config.pjrt_plugin = pjrt_plugin();
    config.virtual_devices = 2;
    config.replicas = 2;
    config.iterations_per_loop = 3;
    uint64_t expected = hash_of_fit(&config);
    assert_true(hash_of_loop(&config, 5) == expected);
    assert_true(hash_of_loop(&config, 1) == expected);
}

/* Batches of the caller's, copied from an iterator, under the names of the data or the model's. */
static void test_train_training__batches_of_the_caller(void **state)
{
    (void)state;
    static const char *const names[][2] = {{"features", "label"}, {"image", "labels"}};
    sx_run_config config = tiny_config(NULL, NULL);
    uint64_t expected = hash_of_fit(&config);
    sx_training *t = open_training(&config);
    sx_iterator *batches = tiny_batches(t);
    sx_training_step step;
    assert_ok(sx_training_begin(t, NULL));
    for (int i = 0; i < STEPS; i++) {
        const struct sx_batch_data *batch;
        assert_ok(sx_iterator_next(batches, &batch));
        assert_ok(sx_training_run_batch(t, 2, names[i % 2], batch->components, &step));
        assert_int_equal(step.step, i + 1);
        assert_int_equal(step.examples, batch->size);
        assert_false(step.ends_epoch);
    }
    assert_true(hash_training(t) == expected);
    assert_error(sx_training_run(t, 1, NULL), SX_FAILED_PRECONDITION, "has no iterator");

    /* Then the iterator goes on, a batch of the caller's between two of its own. */
    assert_ok(sx_training_begin(t, batches));
    assert_ok(sx_training_run(t, 1, &step));
    float x[2][FEATURES] = {{.5f}};
    int64_t y[] = {1, 2};
    const sx_tensor two[] = {{sx_type_of(SX_F32, 2, FEATURES), x}, {sx_type_of(SX_I64, 2), y}};
    assert_ok(sx_training_run_batch(t, 2, names[0], two, NULL));
    assert_ok(sx_training_run(t, 1, &step));
    assert_int_equal(step.step, STEPS + 3);
    assert_int_equal(step.examples, BATCH);
    sx_training_free(t);
    sx_iterator_destroy(batches);
}

/* Model and Estimator continue a loop's run, and it theirs. */
static void test_train_training__continues_and_is_continued(void **state)
{
    (void)state;
    sx_run_config config = tiny_config(NULL, NULL);
    uint64_t expected = hash_of_fit(&config);
    config.model_dir = scratch("loop");
    sx_training *t = open_training(&config);
    sx_iterator *batches = tiny_batches(t);
    assert_ok(sx_training_begin(t, batches));
    assert_ok(sx_training_run(t, 5, NULL));
    assert_ok(sx_training_save(t));
    assert_ok(sx_training_run(t, 1, NULL)); /* not saved */
    sx_training_free(t);
    sx_iterator_destroy(batches);
    assert_true(hash_of_fit(&config) == expected);

    config.model_dir = scratch("fit");
    sx_trainer *trainer = open_tiny(&config);
    assert_ok(fit_tiny(trainer, 9, false));
    sx_trainer_destroy(trainer);
    t = open_training(&config);
    batches = tiny_batches(t);
    assert_ok(sx_training_begin(t, batches));
    assert_int_equal(sx_training_global_step(t), 9);
    while (sx_training_global_step(t) < STEPS) {
        assert_ok(sx_training_run(t, STEPS, NULL));
    }
    assert_true(hash_training(t) == expected);
    assert_ok(sx_training_save(t));
    sx_training_free(t);
    sx_iterator_destroy(batches);

    /* Without its source, from what the run stores. */
    config = tiny_config(scratch("fit"), NULL);
    assert_ok(sx_training_open(NULL, &t, .config = &config));
    assert_ok(sx_training_restore(t, NULL));
    assert_true(hash_training(t) == expected);
    sx_training_free(t);
}

static sx_status count_row(void *user, const sx_prediction *row)
{
    int64_t *count = user;
    assert_int_equal(row->number, *count);
    ++*count;
    return SX_OK;
}

static void test_train_training__evaluates_and_predicts_as_model_does(void **state)
{
    (void)state;
    sx_run_config config = tiny_config(scratch("run"), NULL);
    sx_trainer *trainer = open_tiny(&config);
    sx_dataset *data = tiny_data(100, 41);
    sx_eval_result expected, result, older;
    int64_t rows = 0;
    assert_ok(fit_tiny(trainer, 5, false));
    assert_ok(fit_tiny(trainer, 9, false));
    assert_ok(sx_trainer_evaluate(trainer, data, 0, &expected));
    sx_trainer_destroy(trainer);

    sx_training *t = open_training(&config);
    assert_error(sx_training_evaluate(t, data, &result), SX_FAILED_PRECONDITION,
                 "no checkpoint is loaded");
    assert_error(sx_training_restore(t, "6"), SX_NOT_FOUND, "no checkpoint for step 6");
    assert_ok(sx_training_restore(t, "5"));
    assert_ok(sx_training_evaluate(t, data, &older));
    assert_int_equal(older.step, 5);
    assert_ok(sx_training_restore(t, "latest"));
    assert_ok(sx_training_evaluate(t, data, &result));
    assert_true(result.loss == expected.loss && result.loss != older.loss);
    assert_int_equal(result.examples, 41);
    assert_ok(sx_training_predict(t, data, count_row, &rows));
    assert_int_equal(rows, 41);

    /* Training starts from the newest, whatever was restored. */
    sx_iterator *batches = tiny_batches(t);
    assert_ok(sx_training_restore(t, "5"));
    assert_ok(sx_training_begin(t, batches));
    assert_int_equal(sx_training_global_step(t), 9);
    assert_error(sx_training_restore(t, "5"), SX_FAILED_PRECONDITION, "the training has begun");
    sx_training_free(t);
    sx_iterator_destroy(batches);
    sx_dataset_release(data);
}

static void test_train_training__variables(void **state)
{
    (void)state;
    sx_run_config config = tiny_config(scratch("run"), NULL);
    sx_training *t = open_training(&config);
    sx_iterator *batches = tiny_batches(t);
    sx_variable_info v;
    float bias[CLASSES] = {1, 2, 3}, again[CLASSES] = {0};
    const sx_graph *graph = NULL;
    char *text = NULL;
    assert_ok(sx_training_begin(t, batches));
    assert_ok(sx_training_run(t, 1, NULL));
    assert_ok(sx_training_save(t));
    assert_ok(sx_training_write_variable(t, "dense_1/bias", bias, sizeof(bias)));
    assert_ok(sx_training_save(t)); /* the same step, another value */
    sx_training_free(t);
    t = open_training(&config);
    assert_ok(sx_training_restore(t, NULL));
    assert_ok(sx_training_read_variable(t, "dense_1/bias", again, sizeof(again)));
    assert_memory_equal(again, bias, sizeof(bias));

    assert_error(sx_training_read_variable(t, "dense_1/bia", again, sizeof(again)), SX_NOT_FOUND,
                 "model \"tiny\" has no variable \"dense_1/bia\"");
    assert_error(sx_training_read_variable(t, "dense_1/bias", again, 4), SX_INVALID_ARGUMENT,
                 "variable \"dense_1/bias\" is float32[3], 12 bytes; got 4");
    assert_error(sx_training_write_variable(t, "dense_1/bias", bias, 13), SX_INVALID_ARGUMENT,
                 "12 bytes; got 13");
    assert_error(sx_training_variable_at(t, -1, &v), SX_OUT_OF_RANGE, "variable -1 of");
    assert_error(sx_training_variable_at(t, sx_training_variable_count(t), &v), SX_OUT_OF_RANGE,
                 "variable");
    assert_ok(sx_training_graph(t, SX_PREDICT, &graph));
    assert_ok(sx_graph_print(graph, &text));
    assert_non_null(strstr(text, "probabilities"));
    sx_text_free(text);
    sx_training_free(t);
    sx_iterator_destroy(batches);
}

/* ---- Misuse ---- */

static sx_status keep_probabilities(void *user, const sx_prediction *row)
{
    float(*kept)[CLASSES] = user;
    assert_int_equal(row->n_classes, CLASSES);
    memcpy(kept[row->number], row->probabilities, sizeof(*kept));
    return SX_OK;
}

/* A loop of the caller's exports the model as it is, and predicts one batch; the export predicts
 * the same. */
static void test_train_training__exports_and_predicts_a_batch(void **state)
{
    (void)state;
    enum { ROWS = 5 };
    sx_run_config config = tiny_config(NULL, NULL);
    sx_training *t = open_training(&config);
    sx_iterator *batches = tiny_batches(t);
    float x[ROWS][FEATURES], kept[ROWS][CLASSES];
    char *dir = NULL;
    const char *names[] = {"features"};
    for (int i = 0; i < ROWS * FEATURES; i++) {
        x[i / FEATURES][i % FEATURES] = (float)(i % 7) / 7;
    }
    const sx_tensor batch = {sx_type_of(SX_F32, ROWS, FEATURES), x};
    assert_error(sx_training_export(t, scratch("models"), NULL, &dir), SX_FAILED_PRECONDITION,
                 "no checkpoint is loaded");
    assert_ok(sx_training_begin(t, batches));
    assert_ok(sx_training_run(t, 4, NULL));
    assert_ok(sx_training_predict_batch(t, 1, names, &batch, keep_probabilities, kept));
    assert_ok(sx_training_export(t, scratch("models"), NULL, &dir));
    assert_ok(sx_training_run(t, 1, NULL)); /* it goes on */

    sx_servable *servable = NULL;
    sx_outputs *outputs = NULL;
    assert_ok(sx_servable_load(
        dir, &(sx_servable_options){.struct_size = sizeof(sx_servable_options), .threads = 1},
        &servable));
    assert_ok(sx_servable_run(servable, "serving_default", &batch, &outputs));
    const sx_tensor *p = sx_outputs_find(outputs, "probabilities");
    assert_non_null(p);
    for (int i = 0; i < ROWS * CLASSES; i++) {
        assert_true(fabs((double)((const float *)p->data)[i] -
                         (double)kept[i / CLASSES][i % CLASSES]) < 1e-5);
    }
    sx_outputs_free(outputs);
    sx_servable_release(servable);

    const char *wrong[] = {"featured"};
    assert_error(sx_training_predict_batch(t, 1, wrong,
                                           &(sx_tensor){sx_type_of(SX_F32, ROWS, 2), x},
                                           keep_probabilities, kept),
                 SX_INVALID_ARGUMENT, "");
    sx_text_free(dir);
    sx_training_free(t);
    sx_iterator_destroy(batches);
}

static void test_train_training__closed(void **state)
{
    (void)state;
    sx_run_config config = tiny_config(scratch("run"), NULL);
    sx_training *t = open_training(&config);
    sx_iterator *batches = tiny_batches(t);
    sx_dataset *data = tiny_data(0, 8);
    sx_eval_result result;
    sx_variable_info v;
    const sx_graph *graph;
    float x[CLASSES];
    int64_t rows = 0;
    assert_ok(sx_training_begin(t, batches));
    assert_ok(sx_training_run(t, 1, NULL));
    sx_training_close(t);
    sx_training_close(t); /* again: nothing */
    const char *closed = "the training session is closed";
    assert_error(sx_training_begin(t, batches), SX_FAILED_PRECONDITION, closed);
    assert_error(sx_training_preprocess(t, SX_TRAIN, &data), SX_FAILED_PRECONDITION, closed);
    assert_error(sx_training_run(t, 1, NULL), SX_FAILED_PRECONDITION, closed);
    assert_error(sx_training_run_batch(t, 1, (const char *[]){"x"}, &(sx_tensor){0}, NULL),
                 SX_FAILED_PRECONDITION, closed);
    assert_error(sx_training_save(t), SX_FAILED_PRECONDITION, closed);
    assert_error(sx_training_restore(t, NULL), SX_FAILED_PRECONDITION, closed);
    assert_error(sx_training_evaluate(t, data, &result), SX_FAILED_PRECONDITION, closed);
    assert_error(sx_training_predict(t, data, count_row, &rows), SX_FAILED_PRECONDITION, closed);
    assert_error(
        sx_training_predict_batch(t, 1, (const char *[]){"x"}, &(sx_tensor){0}, count_row, &rows),
        SX_FAILED_PRECONDITION, closed);
    assert_error(sx_training_export(t, "models", NULL, NULL), SX_FAILED_PRECONDITION, closed);
    assert_error(sx_training_variable_at(t, 0, &v), SX_FAILED_PRECONDITION, closed);
    assert_error(sx_training_read_variable(t, "dense_1/bias", x, sizeof(x)), SX_FAILED_PRECONDITION,
                 closed);
    assert_error(sx_training_write_variable(t, "dense_1/bias", x, sizeof(x)),
                 SX_FAILED_PRECONDITION, closed);
    assert_error(sx_training_graph(t, SX_TRAIN, &graph), SX_FAILED_PRECONDITION, closed);
    assert_int_equal(sx_training_global_step(t), 0);
    assert_int_equal(sx_training_variable_count(t), 0);
    sx_training_free(t);
    sx_training_free(NULL);
    sx_iterator_destroy(batches);
    sx_dataset_release(data);
}

static void test_train_training__wrong_batches(void **state)
{
    (void)state;
    sx_run_config config = tiny_config(NULL, NULL);
    sx_training *t = open_training(&config);
    float x[2][FEATURES] = {{0}};
    int64_t y[] = {0, 7}, three[] = {0, 1, 2};
    double z[2] = {0};
    const sx_type features = sx_type_of(SX_F32, 2, FEATURES), labels = sx_type_of(SX_I64, 2);
    const struct {
        const char *names[3];
        sx_tensor tensors[3];
        int count;
        const char *message;
    } rows[] = {
        {{"featurs", "label"},
         {{features, x}, {labels, y}},
         2,
         "model \"tiny\" has no input \"featurs\""},
        {{"features", "label", "weights"},
         {{features, x}, {labels, y}, {labels, y}},
         3,
         "model \"tiny\" has no input \"weights\""},
        {{"features", NULL}, {{features, x}, {labels, y}}, 2, "no input \"(null)\""},
        {{"features"}, {{features, x}}, 1, "the batch lacks \"labels\", a label of model \"tiny\""},
        {{"features", "label"},
         {{sx_type_of(SX_F32, 2, 5), x}, {labels, y}},
         2,
         "\"features\" of the data is float32[N,5], but model \"tiny\" expects float32[N,6]"},
        {{"features", "label"},
         {{features, x}, {sx_type_of(SX_F64, 2), z}},
         2,
         "\"label\" of the data is float64[N], but model \"tiny\" expects int32[N]"},
        {{"features", "label"},
         {{features, x}, {sx_type_of(SX_I64, 3), three}},
         2,
         "\"label\" has 3 rows, \"features\" has 2"},
        {{"features", "label"}, {{sx_scalar_type(SX_F32), x}, {labels, y}}, 2, "\"features\""},
        {{"features", "label"},
         {{features, x}, {labels, y}},
         2,
         "label 7 is outside the classes [0, 3)"},
    };
    uint64_t before = hash_training(t);
    assert_error(sx_training_run_batch(t, 2, rows[8].names, rows[8].tensors, NULL),
                 SX_FAILED_PRECONDITION, "the training has not begun");
    assert_ok(sx_training_begin(t, NULL));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_error(sx_training_run_batch(t, rows[i].count, rows[i].names, rows[i].tensors, NULL),
                     SX_INVALID_ARGUMENT, rows[i].message);
    }
    assert_true(hash_training(t) == before);
    y[1] = 2;
    assert_ok(sx_training_run_batch(t, 2, rows[8].names, rows[8].tensors, NULL));
    assert_false(hash_training(t) == before);
    sx_training_free(t);
}

static void test_train_training__wrong_iterators(void **state)
{
    (void)state;
    sx_run_config config = tiny_config(NULL, NULL);
    sx_training *t = open_training(&config);
    sx_dataset *data = tiny_data(0, 12);
    sx_iterator *batches = NULL;
    assert_error(sx_training_run(t, 1, NULL), SX_FAILED_PRECONDITION,
                 "call sx_training_begin() first");
    assert_error(sx_training_save(t), SX_FAILED_PRECONDITION, "sx_training_begin() first");
    assert_ok(sx_iterator_create(data, &batches));
    assert_error(sx_training_begin(t, batches), SX_INVALID_ARGUMENT, "not batched");
    sx_iterator_destroy(batches);
    assert_ok(sx_dataset_batch(&data, .size = BATCH));
    assert_error(sx_training_preprocess(t, SX_TRAIN, &data), SX_INVALID_ARGUMENT, "is batched");
    assert_ok(sx_iterator_create(data, &batches));
    assert_ok(sx_training_begin(t, batches));
    assert_error(sx_training_run(t, 0, NULL), SX_INVALID_ARGUMENT, "steps is 0");
    assert_ok(sx_training_run(t, 9, NULL)); /* two batches: 8 and 4 */
    assert_int_equal(sx_training_global_step(t), 2);
    assert_error(sx_training_run(t, 1, NULL), SX_OUT_OF_RANGE, "the data ended at step 2");
    assert_error(sx_training_save(t), SX_FAILED_PRECONDITION, "has no model_dir");
    sx_training_free(t);
    sx_iterator_destroy(batches);
    sx_dataset_release(data);
}

static sx_spec wide_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_dense(b, in->features, 9, .activation = SX_RELU);
    return sx_classifier_spec(b, sx_dense(b, x, CLASSES), in->labels);
}

static void test_train_training__another_models_run(void **state)
{
    (void)state;
    static const sx_model_def wide =
        SX_MODEL_DEF(.name = "wide", .build = wide_build, .features = FEATURES);
    sx_run_config config = tiny_config(scratch("run"), NULL);
    sx_training *t = open_training(&config), *other = NULL;
    sx_iterator *batches = tiny_batches(t);
    assert_ok(sx_training_begin(t, batches));
    assert_error(sx_training_open(&wide, &other, .config = &config), SX_FAILED_PRECONDITION,
                 "float32[6,8]");
    other = open_training(&config);
    assert_error(sx_training_begin(other, batches), SX_FAILED_PRECONDITION, scratch("run"));
    sx_training_free(other);
    sx_training_free(t);
    sx_iterator_destroy(batches);
    config.model_dir = scratch("nothing");
    assert_error(sx_training_open(NULL, &t, .config = &config), SX_NOT_FOUND, "nothing");
    assert_error(sx_training_open(NULL, &t), SX_INVALID_ARGUMENT, "neither a model nor");
}

static sx_spec broken_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_div(b, in->features, sx_sub(b, in->features, in->features)); /* x / 0 */
    return sx_classifier_spec(b, sx_dense(b, x, CLASSES), in->labels);
}

static void test_train_training__a_step_that_is_not_finite_changes_nothing(void **state)
{
    (void)state;
    static const sx_model_def broken =
        SX_MODEL_DEF(.name = "broken", .build = broken_build, .features = FEATURES);
    sx_run_config config = tiny_config(scratch("run"), NULL);
    sx_training *t = NULL;
    assert_ok(sx_training_open(&broken, &t, .config = &config));
    sx_iterator *batches = tiny_batches(t);
    assert_ok(sx_training_begin(t, batches));
    uint64_t before = hash_training(t);
    assert_error(sx_training_run(t, 3, NULL), SX_ABORTED, "step 1: div");
    assert_true(hash_training(t) == before);
    assert_int_equal(sx_training_global_step(t), 0);
    sx_training_free(t);
    sx_iterator_destroy(batches);
}

static void test_train_training__stops_where_it_is_told(void **state)
{
    (void)state;
    seen s = {.stop_at = 3};
    sx_run_config config = tiny_config(NULL, &s);
    sx_training *t = open_training(&config);
    sx_iterator *batches = tiny_batches(t);
    sx_training_step step = {0};
    assert_ok(sx_training_begin(t, batches));
    assert_error(sx_training_run(t, 6, &step), SX_CANCELLED, "stopped at step 3");
    assert_int_equal(step.step, 3);
    assert_error(sx_training_run(t, 1, NULL), SX_CANCELLED, "stopped at step 3");
    assert_int_equal(s.count[SX_EVENT_BEGIN], 1);
    sx_training_free(t);
    sx_iterator_destroy(batches);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_train_training__has_the_bits_of_fit),
    scratch_test(test_train_training__strict_mode_has_one_result),
    scratch_test(test_train_training__launches_have_the_bits_of_fit),
    scratch_test(test_train_training__batches_of_the_caller),
    in_memory_test(test_train_training__continues_and_is_continued),
    in_memory_test(test_train_training__evaluates_and_predicts_as_model_does),
    scratch_test(test_train_training__exports_and_predicts_a_batch),
    in_memory_test(test_train_training__variables),
    in_memory_test(test_train_training__closed),
    scratch_test(test_train_training__wrong_batches),
    scratch_test(test_train_training__wrong_iterators),
    in_memory_test(test_train_training__another_models_run),
    in_memory_test(test_train_training__a_step_that_is_not_finite_changes_nothing),
    scratch_test(test_train_training__stops_where_it_is_told),
};
SX_TEST_MAIN(tests)
