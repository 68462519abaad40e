/* Data that do not fit a model are refused by field, layer and line, before a record is read. */
#include "run.h"

enum { PICTURES = 6, SIDE = 8 };

static sx_spec draw(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = sx_conv2d(b, in->features, 2, 3, .name = "first");
    sx_value logits = sx_dense(b, sx_flatten(b, x), sx_param_int(p, "num_classes", 3));
    return sx_classifier_spec(b, logits, in->labels);
}
enum { CONV_LINE = 8, DENSE_LINE = 9 }; /* in this file */

static const sx_model_def photos = SX_MODEL_DEF(.name = "photos", .build = draw,
                                                .image = {2 * SIDE, 2 * SIDE, 3}, .num_classes = 3);
static const sx_model_def any_shape = SX_MODEL_DEF(.name = "any", .build = draw);

static _Atomic int reads; /* elements that were computed */

static sx_status count_reads(const sx_map_call *call, void *user)
{
    (void)user;
    reads++;
    for (int i = 0; i < 2; i++) {
        memcpy(call->out[i].data, call->in[i].data, (size_t)sx_type_bytes(&call->in[i].type));
    }
    return SX_OK;
}

/* Batches of "image" of that type and "label", whose reading is counted. */
static sx_dataset *pictures(sx_type image, sx_type label)
{
    static float pixels[PICTURES * SIDE * SIDE * 4];
    static int64_t labels[PICTURES * 5];
    const char *names[] = {"image", "label"};
    const sx_tensor tensors[] = {{image, pixels}, {label, labels}};
    sx_dataset *data = NULL;
    assert_ok(sx_dataset_from_tensors(2, names, tensors, NULL, NULL, &data));
    assert_ok(sx_dataset_map(&data, .name = "count", .fn = count_reads));
    assert_ok(sx_dataset_batch(&data, .size = 2));
    reads = 0;
    return data;
}

static sx_status train_on(const sx_model_def *def, sx_dataset *data)
{
    sx_run_config config = tiny_config(NULL, NULL);
    const sx_trainer_options options = {.config = &config, .def = def, .data = data};
    const sx_fit_request request = {.train = data, .steps = 1};
    sx_trainer *t = NULL;
    sx_status status = sx_trainer_create(&options, &t);
    if (status == SX_OK) {
        status = sx_trainer_fit(t, &request);
        sx_trainer_destroy(t);
    }
    sx_dataset_release(data);
    return status;
}

static const char *at_line(const char *before, int line, const char *after)
{
    static char text[512];
    snprintf(text, sizeof(text), "%s(test_misfit.c:%d)%s", before, line, after);
    return text;
}

static void test_train_misfit__features_name_field_layer_and_shapes(void **state)
{
    (void)state;
    sx_type image = sx_type_of(SX_F32, PICTURES, SIDE, SIDE, 1),
            label = sx_type_of(SX_I64, PICTURES);
    assert_error(train_on(&photos, pictures(image, label)), SX_INVALID_ARGUMENT,
                 at_line("training data: component \"image\" of the data is float32[N,8,8,1], but "
                         "model \"photos\" "
                         "expects float32[N,16,16,3] for its layer \"first\" ",
                         CONV_LINE, "; map the data to this shape"));
    assert_int_equal(reads, 0);
    sx_type flat = sx_type_of(SX_F32, PICTURES, SIDE);
    assert_error(train_on(&photos, pictures(flat, label)), SX_INVALID_ARGUMENT,
                 "is float32[N,8], but model \"photos\" expects float32[N,16,16,3]");
    assert_int_equal(reads, 0);
}

/* A model that takes the data's own shape: its layers are checked as they are drawn. */
static void test_train_misfit__layers_name_themselves_and_what_they_got(void **state)
{
    (void)state;
    sx_type label = sx_type_of(SX_I64, PICTURES);
    assert_error(
        train_on(&any_shape, pictures(sx_type_of(SX_F32, PICTURES, SIDE), label)),
        SX_INVALID_ARGUMENT,
        "model \"any\" on float32[N,8]: test_misfit.c:8: conv2d \"first\": input float32[N,8] "
        "has rank 2, expected [N,H,W,C]");
    assert_int_equal(reads, 0);
    assert_error(train_on(&any_shape, pictures(sx_type_of(SX_F32, PICTURES, 2, 2, 3), label)),
                 SX_INVALID_ARGUMENT,
                 "model \"any\" on float32[N,2,2,3]: test_misfit.c:8: conv2d \"first");
    assert_int_equal(reads, 0);
}

static void test_train_misfit__labels_name_their_layer(void **state)
{
    (void)state;
    sx_type image = sx_type_of(SX_F32, PICTURES, SIDE, SIDE, 1);
    assert_error(train_on(&any_shape, pictures(image, sx_type_of(SX_I64, PICTURES, 5))),
                 SX_INVALID_ARGUMENT, "int32[N,5]");
    assert_int_equal(reads, 0);
    assert_error(train_on(&any_shape, pictures(image, sx_type_of(SX_F32, PICTURES))),
                 SX_INVALID_ARGUMENT, "float32[N]");
    assert_int_equal(reads, 0);
}

static void test_train_misfit__evaluation_data_are_checked_before_training(void **state)
{
    (void)state;
    sx_run_config config = tiny_config(NULL, NULL);
    sx_type image = sx_type_of(SX_F32, PICTURES, SIDE, SIDE, 1),
            label = sx_type_of(SX_I64, PICTURES);
    sx_dataset *train = pictures(image, label);
    sx_dataset *eval = pictures(sx_type_of(SX_F32, PICTURES, SIDE, SIDE, 3), label);
    sx_dataset *floats = pictures(image, sx_type_of(SX_F32, PICTURES));
    const sx_trainer_options options = {.config = &config, .def = &any_shape, .data = train};
    sx_fit_request request = {.train = train, .eval = eval, .steps = 1};
    sx_trainer *t = NULL;
    assert_ok(sx_trainer_create(&options, &t));
    assert_error(
        sx_trainer_fit(t, &request), SX_INVALID_ARGUMENT,
        "evaluation data: component \"image\" of the data is float32[N,8,8,3], but model \"any\" "
        "expects float32[N,8,8,1] for its layer \"first\"");
    request.eval = floats;
    assert_error(
        sx_trainer_fit(t, &request), SX_INVALID_ARGUMENT,
        "evaluation data: component \"label\" of the data is float32[N], but model \"any\" expects "
        "int32[N] for its layer \"classifier\"");
    assert_int_equal(reads, 0);
    sx_trainer_destroy(t);
    sx_dataset_release(train);
    sx_dataset_release(eval);
    sx_dataset_release(floats);
}

static sx_spec draw_fixed(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    return sx_classifier_spec(b, sx_dense(b, sx_flatten(b, in->features), 3), in->labels);
}

/* A model that does not ask for num_classes is not told to set it. */
static void test_train_misfit__a_fixed_number_of_classes(void **state)
{
    (void)state;
    sx_dataset *data = NULL;
    const sx_model_def fixed =
        SX_MODEL_DEF(.name = "fixed", .build = draw_fixed, .image = {28, 28, 1});
    assert_ok(sx_data_open("generated:digits?n=20", NULL, &data, NULL));
    assert_error(train_on(&fixed, data), SX_INVALID_ARGUMENT,
                 "gives float32[N,3]; the model has a fixed number: use sx_param_int(p, "
                 "\"num_classes\", 10) there");
}

static void test_train_misfit__classes_name_the_layer_that_tells_them_apart(void **state)
{
    (void)state;
    sx_dataset *data = NULL;
    assert_ok(sx_data_open("generated:digits?n=20", NULL, &data, NULL));
    assert_error(train_on(&photos, data), SX_INVALID_ARGUMENT,
                 at_line("the data has 10 classes, the model \"photos\" has outputs for 3: its "
                         "layer \"dense\" ",
                         DENSE_LINE, " gives float32[N,3]; set its parameter num_classes to 10"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_train_misfit__features_name_field_layer_and_shapes),
    cmocka_unit_test(test_train_misfit__layers_name_themselves_and_what_they_got),
    cmocka_unit_test(test_train_misfit__labels_name_their_layer),
    cmocka_unit_test(test_train_misfit__evaluation_data_are_checked_before_training),
    cmocka_unit_test(test_train_misfit__a_fixed_number_of_classes),
    cmocka_unit_test(test_train_misfit__classes_name_the_layer_that_tells_them_apart),
};
SX_TEST_MAIN(tests)
