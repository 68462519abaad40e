/* Images that travel as bytes: the program takes uint8, and every bit of a run stays what it is
 * with floats. */
#include "run.h"

#include "../backends/pjrt_plugin.h"
#include "data/image_pipeline.h"
#include "train/state.h"

enum { SIDE = 6, SIDE_WIDE = SIDE + 2, IMAGES = 45, STEPS = 14 };

static sx_spec seeing_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    const bool named = in->n_features > 0 && strcmp(in->feature_map[0].name, "photo") == 0;
    sx_value x = sx_conv2d(b, in->features, 4, 3, .activation = SX_RELU);
    sx_value logits = sx_dense(b, sx_flatten(b, x), CLASSES);
    return sx_classifier_spec(b, logits, named ? sx_label(b, in, "kind") : in->labels,
                              .optimizer = sx_sgd(.learning_rate = .05, .momentum = .9));
}

/* Crops and flips, which only copy, before the scale. */
#define SEEING                                                                     \
    .build = seeing_build, .image = {SIDE, SIDE, 3}, .scale = SX_MEAN_STD,         \
    .mean = {.485f, .456f, .406f}, .std = {.229f, .224f, .225f}, .random_crop = 2, \
    .augment = SX_FLIP_LEFT_RIGHT
static const sx_model_def seeing = SX_MODEL_DEF(.name = "seeing", SEEING);
static const sx_model_def naming =
    SX_MODEL_DEF(.name = "naming", SEEING, .inputs = {{.name = "photo", .image = true}},
                 .labels = {{.name = "kind"}});
static const sx_model_def brighter =
    SX_MODEL_DEF(.name = "brighter", SEEING, .random_brightness = .1f);

static sx_dataset *pixels(const sx_model_def *def)
{
    static uint8_t x[IMAGES][SIDE_WIDE][SIDE_WIDE][3];
    static int64_t y[IMAGES];
    for (int64_t i = 0; i < IMAGES; i++) {
        y[i] = (i * 7 + i / 5) % CLASSES;
        for (int k = 0; k < SIDE_WIDE * SIDE_WIDE * 3; k++) {
            (&x[i][0][0][0])[k] = (uint8_t)((i * 31 + k * 17 + y[i] * 60) % 256);
        }
    }
    const bool named = def == &naming;
    const char *names[] = {named ? "photo" : "image", named ? "kind" : "label"};
    const sx_tensor tensors[] = {{sx_type_of(SX_U8, IMAGES, SIDE_WIDE, SIDE_WIDE, 3), x},
                                 {sx_type_of(SX_I64, IMAGES), y}};
    sx_dataset *data = NULL;
    assert_ok(sx_dataset_from_tensors(2, names, tensors, NULL, NULL, &data));
    return data;
}

static sx_run_config config_on(const char *device, const char *dir, seen *s)
{
    sx_run_config config = tiny_config(dir, s);
    config.device = device;
    if (strcmp(device, "pjrt") == 0) {
        config.pjrt_plugin = pjrt_plugin();
        config.virtual_devices = 2;
        config.iterations_per_loop = 3;
    }
    return config;
}

static sx_trainer *open_seeing(const sx_model_def *def, const sx_run_config *config)
{
    sx_trainer *t = NULL;
    sx_dataset *data = pixels(def);
    const sx_trainer_options options = {.config = config, .def = def, .data = data};
    assert_ok(sx_trainer_create(&options, &t));
    sx_dataset_release(data);
    return t;
}

/* The data, or what the pipeline makes of them with floats. */
static sx_dataset *data_for(const sx_trainer *t, const sx_model_def *def, bool training,
                            bool floats)
{
    const sx_run_info *info = sx_trainer_info(t);
    sx_dataset *data = pixels(def);
    if (floats && def == &naming) {
        assert_ok(sx_dataset_preprocess_component(&data, "photo", &info->preprocess, false,
                                                  training, info->seed));
    } else if (floats) {
        assert_ok(sx_dataset_preprocess(&data, &info->preprocess, .training = training,
                                        .seed = info->seed, .label_dtype = SX_I32));
    }
    return data;
}

static sx_dtype fed_dtype(const sx_trainer *t, sx_mode mode)
{
    return sx_program_input_type(t->programs[mode], 0)->dtype;
}

typedef struct outcome {
    uint64_t hash;
    double loss, accuracy;
    float probabilities[IMAGES];
} outcome;

static sx_status keep_probability(void *user, const sx_prediction *row)
{
    ((outcome *)user)->probabilities[row->number] = row->probability;
    return SX_OK;
}

static outcome train(const sx_model_def *def, const char *device, int replicas, bool floats,
                     sx_dtype fed)
{
    sx_run_config config = config_on(device, NULL, NULL);
    config.replicas = replicas;
    sx_trainer *t = open_seeing(def, &config);
    sx_dataset *data = data_for(t, def, true, floats), *eval = data_for(t, def, false, floats);
    sx_eval_result result;
    assert_ok(sx_trainer_fit(t, &(sx_fit_request){.train = data, .max_steps = STEPS}));
    assert_ok(sx_trainer_evaluate(t, eval, 0, &result));
    assert_int_equal(fed_dtype(t, SX_TRAIN), fed);
    assert_int_equal(fed_dtype(t, SX_EVAL), floats || strcmp(device, "pjrt") != 0 ? SX_F32 : SX_U8);
    outcome out = {hash_variables(t), result.loss, result.metrics[0].value, {0}};
    assert_ok(sx_trainer_predict(t, eval, 0, keep_probability, &out));
    assert_int_equal(fed_dtype(t, SX_PREDICT), fed_dtype(t, SX_EVAL));
    sx_dataset_release(data);
    sx_dataset_release(eval);
    sx_trainer_destroy(t);
    return out;
}

static void check_same(const sx_model_def *def, const char *device, int replicas, sx_dtype fed)
{
    const outcome floats = train(def, device, replicas, true, SX_F32),
                  bytes = train(def, device, replicas, false, fed);
    assert_true(floats.hash == bytes.hash);
    assert_true(floats.loss == bytes.loss);
    assert_true(floats.accuracy == bytes.accuracy);
    assert_memory_equal(floats.probabilities, bytes.probabilities, sizeof(bytes.probabilities));
}

static void test_train_byte_images__change_no_bit_on_pjrt(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_same(&seeing, "pjrt", 1, SX_U8);
    check_same(&seeing, "pjrt", 2, SX_U8);
    check_same(&naming, "pjrt", 1, SX_U8);
}

/* A change of brightness leaves fractions, in training alone. */
static void test_train_byte_images__fractions_travel_as_floats_on_pjrt(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_same(&brighter, "pjrt", 1, SX_F32);
}

static void test_train_byte_images__nothing_travels_on_the_cpu(void **state)
{
    (void)state;
    check_same(&seeing, "cpu", 1, SX_F32);
}

/* A quarter of the bytes, and what does not depend on the images. */
static void test_train_byte_images__are_a_quarter(void **state)
{
    (void)state;
    enum { IMAGE = SIDE * SIDE * 3 };
    long bytes[2];
    for (int floats = 0; floats < 2; floats++) {
        sx_run_config config = tiny_config(NULL, NULL);
        config.device = "pjrt";
        config.pjrt_plugin = ref_plugin();
        config.iterations_per_loop = 1;
        sx_trainer *t = open_seeing(&seeing, &config);
        sx_dataset *data = data_for(t, &seeing, true, floats);
        assert_ok(sx_trainer_fit(t, &(sx_fit_request){.train = data, .max_steps = 1}));
        const ref_counts *counts = ref_plugin_counts();
        const long before = counts->put_bytes;
        assert_ok(sx_trainer_fit(t, &(sx_fit_request){.train = data, .max_steps = 5}));
        bytes[floats] = counts->put_bytes - before;
        sx_dataset_release(data);
        sx_trainer_destroy(t);
    }
    assert_int_equal(bytes[1] - bytes[0], 4 * BATCH * IMAGE * 3);
}

/* Fits on either data in turn: the program is exchanged, the variables stay. */
static void test_train_byte_images__follow_the_data_on_pjrt(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    uint64_t hashes[2];
    for (int mixed = 0; mixed < 2; mixed++) {
        const sx_run_config config = config_on("pjrt", NULL, NULL);
        sx_trainer *t = open_seeing(&seeing, &config);
        for (int part = 0; part < 3; part++) {
            const bool floats = mixed && part == 1;
            sx_dataset *data = data_for(t, &seeing, true, floats);
            assert_ok(sx_trainer_fit(t, &(sx_fit_request){.train = data, .steps = 6}));
            assert_int_equal(fed_dtype(t, SX_TRAIN), floats ? SX_F32 : SX_U8);
            sx_dataset_release(data);
        }
        hashes[mixed] = hash_variables(t);
        sx_trainer_destroy(t);
    }
    assert_true(hashes[0] == hashes[1]);
}

/* The place in the data does not depend on how they travel. */
static void test_train_byte_images__a_run_with_floats_goes_on_on_pjrt(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    char *dir = scratch("seeing");
    seen s = {0};
    for (int part = 0; part < 2; part++) {
        const sx_run_config config = config_on(part == 0 ? "cpu" : "pjrt", dir, &s);
        sx_trainer *t = open_seeing(&seeing, &config);
        sx_dataset *data = pixels(&seeing);
        assert_ok(sx_trainer_fit(t, &(sx_fit_request){.train = data, .max_steps = 8 * (part + 1)}));
        assert_int_equal(fed_dtype(t, SX_TRAIN), part == 0 ? SX_F32 : SX_U8);
        assert_int_equal(sx_trainer_step(t), 8 * (part + 1));
        sx_dataset_release(data);
        sx_trainer_destroy(t);
    }
    assert_true(s.resumed);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_train_byte_images__change_no_bit_on_pjrt),
    cmocka_unit_test(test_train_byte_images__fractions_travel_as_floats_on_pjrt),
    cmocka_unit_test(test_train_byte_images__nothing_travels_on_the_cpu),
    cmocka_unit_test(test_train_byte_images__are_a_quarter),
    cmocka_unit_test(test_train_byte_images__follow_the_data_on_pjrt),
    in_memory_test(test_train_byte_images__a_run_with_floats_goes_on_on_pjrt),
};
SX_TEST_MAIN(tests)
