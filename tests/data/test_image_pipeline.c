#include "data/photos.h"

#include <sextant/data.h>

#include "data/image_pipeline.h"

static sx_preprocess augmenting(int height, int width)
{
    sx_preprocess pre;
    assert_ok(sx_preprocess_recipe("tpu-flowers", height, width, 3, &pre));
    return pre;
}

static void read_pixels(sx_dataset *data, int workers, int64_t first, int64_t count, float *out,
                        size_t row)
{
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *one;
    assert_ok(sx_iterator_create(data, &iterator, .workers = workers));
    assert_ok(sx_iterator_seek(iterator, first));
    for (int64_t i = 0; i < count; i++) {
        assert_ok(sx_iterator_next(iterator, &one));
        memcpy(out + (size_t)i * row, one->components[0].data, row * sizeof(float));
    }
    sx_iterator_destroy(iterator);
}

static void test_data_image_pipeline__encoded_images_become_floats(void **state)
{
    (void)state;
    sx_preprocess pre;
    sx_dataset *data = NULL;
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *batch;
    write_photos(3);
    assert_ok(sx_preprocess_recipe("simple", 4, 5, 3, &pre));
    pre.scale = SX_0_1;
    assert_ok(sx_data_open(in_dir("photos"), NULL, &data, NULL));
    assert_ok(sx_dataset_preprocess(&data, &pre, .num_classes = 3, .label_dtype = SX_I32));
    assert_ok(sx_dataset_batch(&data, .size = 9));
    assert_ok(sx_iterator_create(data, &iterator));
    assert_ok(sx_iterator_next(iterator, &batch));
    const sx_tensor *x = &batch->components[0];
    assert_int_equal(x->type.dtype, SX_F32);
    assert_int_equal(x->type.rank, 4);
    assert_int_equal(x->type.dims[1], 4);
    assert_int_equal(x->type.dims[2], 5);
    assert_int_equal(batch->components[1].type.dtype, SX_I32);
    for (int i = 0; i < 9; i++) {
        float expected = (float)(10 * (i % 3) + i / 3) * (1.0f / 255.0f);
        assert_true(((const float *)x->data)[60 * i + 7] == expected);
        assert_int_equal(((const int32_t *)batch->components[1].data)[i], i / 3);
    }
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
}

/* The same augmented pixels for any number of workers and after a restart; others in each epoch. */
static void test_data_image_pipeline__augmentation_depends_on_epoch_and_record_only(void **state)
{
    (void)state;
    enum { N = 9, ROW = 6 * 6 * 3 };
    static float a[3 * N * ROW], b[3 * N * ROW];
    sx_dataset *data = NULL;
    sx_preprocess pre = augmenting(6, 6);
    write_photos(3);
    assert_ok(sx_data_open(in_dir("photos"), NULL, &data, NULL));
    assert_ok(sx_dataset_shuffle(&data, .seed = 4));
    assert_ok(sx_dataset_preprocess(&data, &pre, .training = true, .seed = 9));
    assert_ok(sx_dataset_repeat(&data, 3));
    read_pixels(data, 1, 0, 3 * N, a, ROW);
    read_pixels(data, 4, 0, 3 * N, b, ROW);
    assert_memory_equal(a, b, sizeof(a));
    read_pixels(data, 2, 13, 3 * N - 13, b, ROW);
    assert_memory_equal(a + 13 * ROW, b, (3 * N - 13) * ROW * sizeof(float));
    sx_dataset_release(data);

    /* without shuffle, the same record in two epochs */
    assert_ok(sx_data_open(in_dir("photos"), NULL, &data, NULL));
    assert_ok(sx_dataset_preprocess(&data, &pre, .training = true, .seed = 9));
    assert_ok(sx_dataset_repeat(&data, 2));
    read_pixels(data, 2, 0, 2 * N, a, ROW);
    assert_memory_not_equal(a, a + N * ROW, N * ROW * sizeof(float));
    sx_dataset_release(data);
}

static void test_data_image_pipeline__raw_pixels(void **state)
{
    (void)state;
    static uint8_t pixels[4][28][28];
    uint8_t labels[4] = {3, 1, 9, 0};
    memset(pixels[2], 255, sizeof(pixels[2]));
    const char *names[] = {"image", "label"};
    sx_tensor tensors[] = {{sx_type_of(SX_U8, 4, 28, 28), pixels}, {sx_type_of(SX_U8, 4), labels}};
    sx_dataset *data = NULL;
    sx_preprocess pre;
    assert_ok(sx_preprocess_recipe("simple", 28, 28, 1, &pre));
    pre.scale = SX_MINUS1_1;
    assert_ok(sx_dataset_from_tensors(2, names, tensors, NULL, NULL, &data));
    assert_ok(sx_dataset_preprocess(&data, &pre, .num_classes = 10));
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *one;
    assert_ok(sx_iterator_create(data, &iterator));
    for (int i = 0; i < 4; i++) {
        assert_ok(sx_iterator_next(iterator, &one));
        assert_true(((const float *)one->components[0].data)[100] == (i == 2 ? 1.0f : -1.0f));
        assert_int_equal(*(const int64_t *)one->components[1].data, labels[i]);
    }
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
}

static sx_status first_error(const char *name, const sx_preprocess *pre, int num_classes)
{
    sx_dataset *data = NULL;
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *batch;
    assert_ok(sx_data_open(in_dir(name), NULL, &data, NULL));
    assert_ok(sx_dataset_preprocess(&data, pre, .num_classes = num_classes));
    assert_ok(sx_dataset_batch(&data, .size = 100));
    assert_ok(sx_iterator_create(data, &iterator));
    sx_status status = sx_iterator_next(iterator, &batch);
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
    return status;
}

static void test_data_image_pipeline__errors_name_the_file(void **state)
{
    (void)state;
    sx_preprocess pre;
    write_photos(3);
    assert_ok(sx_preprocess_recipe("simple", 4, 4, 3, &pre));
    assert_error(first_error("photos", &pre, 2), SX_INVALID_ARGUMENT,
                 "photos/cats/0.png: label 2 out of range");
    write_file(in_dir("photos/bees/1.png"), "no picture at all", 17);
    assert_error(first_error("photos", &pre, 3), SX_DATA_LOSS, "photos/bees/1.png: ");
    assert_int_equal(unlink(in_dir("photos/bees/1.png")), 0);
    assert_ok(first_error("photos", &pre, 3));
}

static void test_data_image_pipeline__refuses_other_components(void **state)
{
    (void)state;
    float x[4] = {0};
    const char *names[] = {"features"}, *image[] = {"image"};
    sx_tensor tensors[] = {{sx_type_of(SX_F32, 4), x}};
    sx_dataset *data = NULL;
    sx_preprocess pre;
    assert_ok(sx_preprocess_recipe("simple", 4, 4, 3, &pre));
    assert_ok(sx_dataset_from_tensors(1, names, tensors, NULL, NULL, &data));
    assert_error(sx_dataset_preprocess(&data, &pre), SX_INVALID_ARGUMENT, "no component");
    sx_dataset_release(data);
    assert_ok(sx_dataset_from_tensors(1, image, tensors, NULL, NULL, &data));
    assert_error(sx_dataset_preprocess(&data, &pre), SX_INVALID_ARGUMENT, "float32[]");
    assert_error(sx_image_pipeline(&data, .scale = SX_0_1), SX_INVALID_ARGUMENT,
                 "image pipeline: recipe \"simple\": preprocessing: invalid size [0,0,0]");
    assert_error(sx_image_pipeline(&data, .image = {4, 4, 3}, .augment = 6), SX_INVALID_ARGUMENT,
                 "augment is 0x6, expected flags");
    assert_error(sx_image_pipeline(&data, .image = {4, 4, 3}, .random_zoom = 1),
                 SX_INVALID_ARGUMENT, "zoom must be at least 0 and below 1; got 1");
    assert_error(sx_image_pipeline(&data, .image = {4, 4, 3}, .recipe = "none"), SX_NOT_FOUND,
                 "\"simple\"");
    sx_dataset_release(data);
}

static sx_dataset *open_photos(void)
{
    sx_dataset *data = NULL;
    assert_ok(sx_data_open(in_dir("photos"), NULL, &data, NULL));
    return data;
}

/* The public fields do what the struct inside does; evaluation leaves the random ones out. */
static void test_data_image_pipeline__public_fields(void **state)
{
    (void)state;
    enum { ROW = 6 * 5 * 3, PHOTOS = 9 };
    static float got[PHOTOS * ROW], want[PHOTOS * ROW];
    write_photos(3);
    for (int training = 0; training < 2; training++) {
        sx_preprocess pre = {.height = 6,
                             .width = 5,
                             .channels = 3,
                             .extra_height = 3,
                             .extra_width = 3,
                             .crop = SX_CROP_RANDOM,
                             .flip_left_right = true,
                             .shear_degrees = 20,
                             .zoom = .2f,
                             .brightness_max_delta = .25f,
                             .contrast_lower = .5f,
                             .contrast_upper = 1.5f,
                             .scale = SX_MEAN_STD,
                             .mean = {.1f, .2f, .3f},
                             .std = {.4f, .5f, .6f}};
        sx_dataset *data = open_photos();
        assert_ok(sx_dataset_preprocess(&data, &pre, .training = training, .seed = 5));
        read_pixels(data, 1, 0, PHOTOS, want, ROW);
        sx_dataset_release(data);
        data = open_photos();
        assert_ok(sx_image_pipeline(&data, .image = {6, 5, 3}, .training = training, .seed = 5,
                                    .scale = SX_MEAN_STD, .mean = {.1f, .2f, .3f},
                                    .std = {.4f, .5f, .6f}, .augment = SX_FLIP_LEFT_RIGHT,
                                    .random_crop = 3, .random_shear = 20, .random_zoom = .2f,
                                    .random_brightness = .25f, .random_contrast = {.5f, 1.5f}));
        read_pixels(data, 1, 0, PHOTOS, got, ROW);
        sx_dataset_release(data);
        assert_memory_equal(got, want, sizeof(got));
    }
    sx_dataset *data = open_photos();
    assert_ok(sx_image_pipeline(&data, .image = {6, 5, 3}, .scale = SX_MEAN_STD,
                                .mean = {.1f, .2f, .3f}, .std = {.4f, .5f, .6f}));
    read_pixels(data, 1, 0, PHOTOS, got, ROW);
    sx_dataset_release(data);
    assert_memory_not_equal(got, want, sizeof(got));
}

static const struct CMUnitTest tests[] = {
    photo_test(test_data_image_pipeline__encoded_images_become_floats),
    photo_test(test_data_image_pipeline__augmentation_depends_on_epoch_and_record_only),
    photo_test(test_data_image_pipeline__raw_pixels),
    photo_test(test_data_image_pipeline__errors_name_the_file),
    photo_test(test_data_image_pipeline__refuses_other_components),
    photo_test(test_data_image_pipeline__public_fields),
};
SX_TEST_MAIN(tests)
