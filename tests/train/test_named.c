/* Runs of a model with named features, labels and example weights: fed by name whatever the order
 * of the components, resumed to the bit, weighted as Σ w·x / Σ w. */
#include "run.h"

#include "../backends/pjrt_plugin.h"

enum { T = 3, ROWS = 61 };

/* A number, a category and up to T numbers with their mask; the label in two parts. */
static sx_spec named_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value age = sx_reshape(b, sx_feature(b, in, "age"), SX_BATCH, 1);
    sx_value city = sx_one_hot(b, sx_feature(b, in, "city"), .depth = 4);
    sx_value mask = sx_cast(b, sx_feature(b, in, "words_mask"), SX_F32);
    sx_value words = sx_mul(b, sx_feature(b, in, "words"), mask);
    sx_value pixels = sx_cast(b, sx_feature(b, in, "pixels"), SX_F32);
    sx_value x = sx_concat(b, 1, age, city, words, sx_mul(b, pixels, sx_constant_f32(b, 1. / 255)));
    x = sx_dropout(b, sx_dense(b, x, 8, .activation = SX_RELU), 0.2);
    sx_spec spec = sx_classifier_spec(b, sx_dense(b, x, CLASSES), sx_label(b, in, "kind"),
                                      .optimizer = sx_adam(.learning_rate = 1e-2));
    if (in->mode != SX_PREDICT) { /* a second label: a regression */
        sx_value y = sx_reshape(b, sx_dense(b, x, 1), SX_BATCH);
        sx_value d = sx_sub(b, y, sx_label(b, in, "price"));
        spec.loss = sx_add(b, spec.loss, sx_mul(b, d, d));
    } else {
        spec.predictions[2] =
            (sx_named_value){.name = "price", sx_reshape(b, sx_dense(b, x, 1), SX_BATCH)};
    }
    return spec;
}

#define INPUTS                                     \
    .inputs = {{.name = "age"},                    \
               {.name = "city", SX_I32},           \
               {.name = "words", .max_length = T}, \
               {.name = "pixels", SX_U8, {2}}},    \
    .labels = {{.name = "kind"}, {.name = "price", SX_F32}}
static const sx_model_def weighted =
    SX_MODEL_DEF(.name = "weighted", .build = named_build, INPUTS, .example_weight = "w");
static const sx_model_def plain = SX_MODEL_DEF(.name = "plain", .build = named_build, INPUTS);

typedef struct table {
    float age[ROWS], words[ROWS][T], price[ROWS], w[ROWS];
    int64_t city[ROWS];
    uint8_t words_mask[ROWS][T], pixels[ROWS][2];
    int32_t kind[ROWS];
} table;

static void fill(table *t)
{
    for (int i = 0; i < ROWS; i++) {
        t->kind[i] = (i * 7 + i / 5) % CLASSES;
        t->age[i] = (float)((i * 31) % 29) / 29.0f - (float)t->kind[i];
        t->city[i] = (i + t->kind[i]) % 4;
        t->price[i] = (float)(i % 5) - 2.0f;
        t->w[i] = (float)(i % 4) * 0.5f;
        for (int k = 0; k < T; k++) {
            t->words[i][k] = (float)((i * 3 + k) % 7);
            t->words_mask[i][k] = k < i % (T + 1);
        }
        t->pixels[i][0] = (uint8_t)(i * 4);
        t->pixels[i][1] = (uint8_t)(255 - i);
    }
}

/* The components in an order of their own, and one that no model asks for; `without` is left out.
 */
static sx_dataset *rows_of(table *t, int64_t rows, const char *without)
{
    const char *names[16];
    sx_tensor tensors[16];
    const struct {
        const char *name;
        sx_tensor tensor;
    } all[] = {{"w", {sx_type_of(SX_F32, rows), t->w}},
               {"unused", {sx_type_of(SX_F32, rows), t->age}},
               {"price", {sx_type_of(SX_F32, rows), t->price}},
               {"kind", {sx_type_of(SX_I32, rows), t->kind}},
               {"words_mask", {sx_type_of(SX_BOOL, rows, T), t->words_mask}},
               {"pixels", {sx_type_of(SX_U8, rows, 2), t->pixels}},
               {"city", {sx_type_of(SX_I64, rows), t->city}},
               {"words", {sx_type_of(SX_F32, rows, T), t->words}},
               {"age", {sx_type_of(SX_F32, rows), t->age}}};
    int n = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (without == NULL || strcmp(all[i].name, without) != 0) {
            names[n] = all[i].name;
            tensors[n++] = all[i].tensor;
        }
    }
    sx_dataset *data = NULL;
    assert_ok(sx_dataset_from_tensors(n, names, tensors, NULL, NULL, &data));
    return data;
}

static sx_trainer *open_named(const sx_run_config *config, const sx_model_def *def)
{
    sx_trainer *t = NULL;
    assert_ok(sx_trainer_create(&(sx_trainer_options){.config = config, .def = def}, &t));
    return t;
}

static sx_status fit_named(sx_trainer *t, sx_dataset *data, int64_t max_steps)
{
    const sx_fit_request request = {.train = data, .max_steps = max_steps};
    return sx_trainer_fit(t, &request);
}

static void test_train_named__resumes_to_the_bit_and_evaluates_from_the_directory(void **state)
{
    (void)state;
    table rows;
    fill(&rows);
    sx_dataset *data = rows_of(&rows, ROWS, NULL);
    sx_run_config config = tiny_config(NULL, NULL);
    sx_trainer *t = open_named(&config, &weighted);
    assert_ok(fit_named(t, data, 20));
    uint64_t expected = hash_variables(t);
    sx_trainer_destroy(t);

    char *dir = scratch("named");
    seen s = {.stop_at = 11};
    config = tiny_config(dir, &s);
    t = open_named(&config, &weighted);
    assert_error(fit_named(t, data, 20), SX_CANCELLED, "stopped at step 11");
    sx_trainer_destroy(t);
    s = (seen){0};
    t = open_named(&config, &weighted);
    assert_ok(fit_named(t, data, 20));
    assert_true(s.resumed);
    assert_string_equal(s.warning, "");
    assert_true(hash_variables(t) == expected);
    sx_eval_result before, after;
    assert_ok(sx_trainer_evaluate(t, data, 0, &before));
    sx_trainer_destroy(t);

    config = tiny_config(dir, NULL); /* without the model */
    config.eval_batch_size = 7;
    assert_ok(sx_trainer_create(&(sx_trainer_options){.config = &config}, &t));
    const sx_model_inputs *in = &sx_trainer_info(t)->inputs;
    assert_true(in->named);
    assert_int_equal(in->n, 8);
    assert_string_equal(in->items[3].name, "words_mask");
    assert_string_equal(in->items[7].program_name, "weights");
    assert_ok(sx_trainer_restore(t, NULL));
    assert_ok(sx_trainer_evaluate(t, data, 0, &after));
    assert_true(before.loss == after.loss && before.metrics[0].value == after.metrics[0].value);
    sx_trainer_destroy(t);
    sx_dataset_release(data);
}

/* ---- An image among the inputs ---- */

static sx_spec photo_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_concat(b, 1, sx_flatten(b, sx_feature(b, in, "photo")),
                           sx_reshape(b, sx_feature(b, in, "age"), SX_BATCH, 1));
    return sx_classifier_spec(b, sx_dense(b, x, CLASSES), sx_label(b, in, "kind"),
                              .optimizer = sx_adam(.learning_rate = 1e-2));
}

#define PHOTO(...) \
    SX_MODEL_DEF(.name = "photo", .build = photo_build, .labels = {{.name = "kind"}}, __VA_ARGS__)
static const sx_model_def photo =
    PHOTO(.image = {4, 4, 1}, .scale = SX_0_1, .augment = SX_FLIP_LEFT_RIGHT,
          .inputs = {{.name = "age"}, {.name = "photo", .image = true}});

static void test_train_named__one_input_is_an_image(void **state)
{
    (void)state;
    static uint8_t pixels[ROWS][6][5][1]; /* resized */
    float age[ROWS];
    int32_t kind[ROWS];
    for (int i = 0; i < ROWS; i++) {
        kind[i] = i % CLASSES;
        age[i] = (float)(i % 7);
        for (int k = 0; k < 30; k++) {
            pixels[i][k / 5][k % 5][0] = (uint8_t)(i * 37 + k * (11 + kind[i]));
        }
    }
    const char *names[] = {"kind", "photo", "age"};
    const sx_tensor tensors[] = {{sx_type_of(SX_I32, ROWS), kind},
                                 {sx_type_of(SX_U8, ROWS, 6, 5, 1), pixels},
                                 {sx_type_of(SX_F32, ROWS), age}};
    sx_dataset *data = NULL, *bare = NULL;
    assert_ok(sx_dataset_from_tensors(3, names, tensors, NULL, NULL, &data));
    sx_run_config config = tiny_config(NULL, NULL);
    sx_trainer *t = open_named(&config, &photo);
    assert_ok(fit_named(t, data, 20));
    uint64_t expected = hash_variables(t);
    sx_trainer_destroy(t);
    config = tiny_config(scratch("photo"), NULL);
    sx_eval_result before, after;
    for (int steps = 11; steps <= 20; steps += 9) { /* the flips follow the position in the data */
        t = open_named(&config, &photo);
        assert_ok(fit_named(t, data, steps));
        assert_true(steps < 20 || hash_variables(t) == expected);
        assert_ok(sx_trainer_evaluate(t, data, 0, &before));
        sx_trainer_destroy(t);
    }
    assert_ok(sx_trainer_create(&(sx_trainer_options){.config = &config}, &t));
    assert_ok(sx_trainer_restore(t, NULL));
    assert_ok(sx_trainer_evaluate(t, data, 0, &after));
    assert_true(before.loss == after.loss);
    assert_ok(sx_dataset_from_tensors(1, names, tensors, NULL, NULL, &bare));
    assert_error(sx_trainer_evaluate(t, bare, 0, &after), SX_INVALID_ARGUMENT,
                 "the data has no component \"photo\", a feature of model \"photo\"");
    sx_trainer_destroy(t);
    sx_dataset_release(bare);
    sx_dataset_release(data);
}

static void test_train_named__images_are_declared_with_their_size(void **state)
{
    (void)state;
    static const struct {
        sx_model_def def;
        const char *message;
    } rows[] = {
        {PHOTO(.inputs = {{.name = "photo", .image = true}}),
         "input \"photo\" is an image, but the model does not set .image = {height"},
        {PHOTO(.image = {4, 4, 1},
               .inputs = {{.name = "photo", .image = true}, {.name = "other", .image = true}}),
         "input \"other\" is an image, but another input is one, too"},
        {PHOTO(.image = {4, 4, 1}, .inputs = {{.name = "photo", SX_F32, .image = true}}),
         "input \"photo\" is an image: its dtype, dimensions, max_length and optional are not set"},
        {PHOTO(.image = {4, 4, 1}, .inputs = {{.name = "photo"}}),
         "the input that is the image has .image = true"},
    };
    sx_run_config config = tiny_config(NULL, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_trainer *t = NULL;
        assert_error(
            sx_trainer_create(&(sx_trainer_options){.config = &config, .def = &rows[i].def}, &t),
            SX_INVALID_ARGUMENT, rows[i].message);
    }
}

typedef struct mean {
    const table *rows;
    double right, weight;
} mean;

static sx_status add_prediction(void *user, const sx_prediction *p)
{
    mean *m = user;
    double w = m->rows->w[p->number];
    m->right += p->classid == m->rows->kind[p->number] ? w : 0;
    m->weight += w;
    assert_true(p->n_values == 3 && strcmp(p->values[2].name, "price") == 0);
    return SX_OK;
}

/* Against the predictions, which need neither labels nor weights; weights of 1 are none. */
static void test_train_named__evaluation_is_weighted(void **state)
{
    (void)state;
    table rows;
    fill(&rows);
    sx_dataset *data = rows_of(&rows, ROWS, NULL), *bare = rows_of(&rows, ROWS, "kind");
    sx_run_config config = tiny_config(NULL, NULL);
    sx_trainer *t = open_named(&config, &weighted), *u = open_named(&config, &plain);
    sx_eval_result result, ones, none;
    mean m = {.rows = &rows};
    assert_ok(fit_named(t, data, 5));
    assert_ok(sx_trainer_evaluate(t, data, 0, &result));
    assert_ok(sx_trainer_predict(t, bare, 0, add_prediction, &m));
    assert_string_equal(result.metrics[0].name, "accuracy");
    assert_true(fabs(result.metrics[0].value - m.right / m.weight) < 1e-12);
    assert_error(sx_trainer_evaluate(t, bare, 0, &result), SX_INVALID_ARGUMENT,
                 "the data has no component \"kind\", a label of model \"weighted\" (it has "
                 "\"w\", \"unused\", \"price\", ");
    sx_trainer_destroy(t);

    for (int i = 0; i < ROWS; i++) {
        rows.w[i] = 1;
    }
    t = open_named(&config, &weighted);
    assert_ok(fit_named(t, data, 5));
    assert_ok(fit_named(u, data, 5));
    assert_ok(sx_trainer_evaluate(t, data, 0, &ones));
    assert_ok(sx_trainer_evaluate(u, data, 0, &none));
    assert_true(ones.loss == none.loss && ones.metrics[0].value == none.metrics[0].value);
    sx_trainer_destroy(t);
    sx_trainer_destroy(u);
    sx_dataset_release(data);
    sx_dataset_release(bare);
}

static sx_spec linear_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_reshape(b, in->features, SX_BATCH, 1);
    sx_value y = sx_reshape(b, sx_dense(b, x, 1, .no_bias = true), SX_BATCH);
    sx_spec spec = {.predictions = {{"y", y}}, .optimizer = sx_sgd(.learning_rate = 0.125)};
    if (in->mode != SX_PREDICT) {
        sx_value d = sx_sub(b, y, in->labels);
        spec.loss = sx_mul(b, d, d);
    }
    return spec;
}

static const sx_model_def line =
    SX_MODEL_DEF(.name = "line", .build = linear_build, .inputs = {{.name = "x"}},
                 .labels = {{.name = "y", SX_F32}}, .example_weight = "w");

/* Trains y = k x from k = 0 in one batch a step; returns k. */
static double train_line(const float *x, const float *y, const float *w, int64_t n, int64_t batch,
                         int64_t steps, double *out_loss)
{
    const char *names[] = {"x", "y", "w"};
    const sx_tensor tensors[] = {{sx_type_of(SX_F32, n), (void *)(uintptr_t)x},
                                 {sx_type_of(SX_F32, n), (void *)(uintptr_t)y},
                                 {sx_type_of(SX_F32, n), (void *)(uintptr_t)w}};
    sx_dataset *data = NULL;
    float k = 0;
    seen s = {0};
    sx_run_config config = tiny_config(NULL, &s);
    config.train_batch_size = batch;
    config.no_shuffle = true;
    assert_ok(sx_dataset_from_tensors(3, names, tensors, NULL, NULL, &data));
    sx_trainer *t = open_named(&config, &line);
    sx_session *session = sx_trainer_session(t);
    sx_eval_result result;
    assert_ok(fit_named(t, data, 1)); /* the variable is there */
    int at = sx_session_find_variable(session, "dense/kernel");
    assert_true(at >= 0);
    assert_ok(sx_session_write_variable(session, at, &k));
    assert_ok(fit_named(t, data, 1 + steps));
    assert_ok(sx_session_read_variable(session, at, &k));
    assert_ok(sx_trainer_evaluate(t, data, 0, &result));
    if (out_loss != NULL) {
        *out_loss = result.loss;
    }
    sx_trainer_destroy(t);
    sx_dataset_release(data);
    return (double)k;
}

/* loss = Σ w (k x - y)² / Σ w; at k = 0: dk = -2 Σ w x y / Σ w. */
static void test_train_named__the_loss_is_divided_by_the_sum_of_weights(void **state)
{
    (void)state;
    const float x[] = {1, 2, -1}, y[] = {2, 1, 3}, w[] = {1, 0.5f, 2.5f}, zero[] = {0, 0, 0};
    double loss;
    double k = train_line(x, y, w, 3, 3, 1, &loss);
    double expected = 0.125 * 2 * (1 * 1 * 2 + .5 * 2 * 1 + 2.5 * -1 * 3) / 4;
    assert_true(fabs(k - expected) < 1e-6);
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        double d = k * (double)x[i] - (double)y[i];
        sum += (double)w[i] * d * d;
    }
    assert_true(fabs(loss - sum / 4) < 1e-6);

    assert_true(train_line(x, y, zero, 3, 3, 3, &loss) == 0); /* no NaN, no change */
    assert_true(loss == 0);

    const float twice_x[] = {1, 1, 2}, twice_y[] = {2, 2, 1}, ones[] = {1, 1, 1};
    const float half_w[] = {2, 1};
    assert_true(fabs(train_line(twice_x, twice_y, ones, 3, 3, 4, NULL) -
                     train_line(twice_x + 1, twice_y + 1, half_w, 2, 2, 4, NULL)) < 1e-6);
}

static void test_train_named__replicas_share_the_sum_of_weights_on_pjrt(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    table rows;
    fill(&rows);
    for (int i = 0; i < ROWS; i++) { /* the first replica's are heavy, some batches weigh nothing */
        rows.w[i] = i % BATCH < 4 ? 3.0f : i >= 2 * BATCH && i < 3 * BATCH ? 0.0f : 0.25f;
    }
    sx_dataset *data = rows_of(&rows, 56, NULL);
    double losses[2];
    for (int replicas = 1; replicas <= 2; replicas++) {
        seen s = {0};
        sx_run_config config = tiny_config(NULL, &s);
        config.no_shuffle = true;
        if (replicas == 2) {
            config.device = "pjrt";
            config.pjrt_plugin = pjrt_plugin();
            config.virtual_devices = 2;
            config.replicas = 2;
        }
        sx_trainer *t = open_named(&config, &weighted);
        assert_ok(fit_named(t, data, 14));
        losses[replicas - 1] = s.last_loss;
        sx_trainer_destroy(t);
    }
    assert_true(fabs(losses[0] - losses[1]) < 1e-4);
    sx_dataset_release(data);
}

/* Batches of 4, two a step, are batches of 8. */
static void test_train_named__pulled_batches_are_joined_input_by_input(void **state)
{
    (void)state;
    table rows;
    fill(&rows);
    uint64_t hashes[2];
    for (int pulls = 1; pulls <= 2; pulls++) {
        sx_run_config config = tiny_config(NULL, NULL);
        sx_dataset *data = rows_of(&rows, 56, NULL);
        assert_ok(sx_dataset_batch(&data, .size = BATCH / pulls));
        assert_ok(sx_dataset_repeat(&data, 0));
        sx_trainer *t = NULL;
        const sx_trainer_options options = {.config = &config, .def = &weighted, .data = data};
        assert_ok(sx_trainer_create(&options, &t));
        const sx_fit_request request = {.train = data, .pulls = pulls, .max_steps = 9};
        assert_ok(sx_trainer_fit(t, &request));
        hashes[pulls - 1] = hash_variables(t);
        sx_trainer_destroy(t);
        sx_dataset_release(data);
    }
    assert_true(hashes[0] == hashes[1]);
}

static void test_train_named__data_that_do_not_fit_are_named(void **state)
{
    (void)state;
    table rows;
    fill(&rows);
    sx_run_config config = tiny_config(NULL, NULL);
    sx_trainer *t = open_named(&config, &weighted);
    sx_dataset *data = rows_of(&rows, ROWS, "city");
    assert_error(fit_named(t, data, 1), SX_INVALID_ARGUMENT,
                 "the data has no component \"city\", a feature of model \"weighted\"");
    sx_dataset_release(data);
    data = rows_of(&rows, ROWS, "w");
    assert_error(fit_named(t, data, 1), SX_INVALID_ARGUMENT,
                 "the data has no component \"w\", a weight of model");
    sx_dataset_release(data);
    data = rows_of(&rows, ROWS, NULL);
    rows.city[5] = (int64_t)1 << 32;
    assert_error(fit_named(t, data, 20), SX_INVALID_ARGUMENT,
                 "row 5: \"city\" is 4294967296, which is not an int32");
    rows.city[5] = 0;
    rows.w[9] = -1;
    assert_error(fit_named(t, data, 20), SX_INVALID_ARGUMENT,
                 "row 9: the weight \"w\" is -1, expected a finite number");
    rows.w[9] = NAN;
    assert_error(fit_named(t, data, 20), SX_INVALID_ARGUMENT, "the weight \"w\" is nan");
    sx_dataset_release(data);
    sx_trainer_destroy(t);
}

static const struct CMUnitTest tests[] = {
    in_memory_test(test_train_named__resumes_to_the_bit_and_evaluates_from_the_directory),
    in_memory_test(test_train_named__one_input_is_an_image),
    cmocka_unit_test(test_train_named__images_are_declared_with_their_size),
    cmocka_unit_test(test_train_named__evaluation_is_weighted),
    cmocka_unit_test(test_train_named__the_loss_is_divided_by_the_sum_of_weights),
    cmocka_unit_test(test_train_named__replicas_share_the_sum_of_weights_on_pjrt),
    cmocka_unit_test(test_train_named__pulled_batches_are_joined_input_by_input),
    cmocka_unit_test(test_train_named__data_that_do_not_fit_are_named),
};
SX_TEST_MAIN(tests)
