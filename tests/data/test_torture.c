/* Every allocation of opening, iterating and writing data fails once: no crash, no leak, a clean
 * status. (Threads allocate in no fixed order, so the iterators here have none.) */
#include "data/photos.h"
#include "torture.h"

#include <sextant/data.h>

#include "data/image_pipeline.h"
#include "data/prepare.h"
#include "io/npy.h"

static sx_status iterate(sx_dataset **data)
{
    sx_preprocess pre;
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *batch;
    SX_TRY(sx_preprocess_recipe("simple", 4, 4, 3, &pre));
    SX_TRY(sx_dataset_shuffle(data, .seed = 1));
    if (sx_dataset_find(*data, "image") >= 0) {
        SX_TRY(sx_dataset_preprocess(data, &pre));
    }
    SX_TRY(sx_dataset_cache(data, 0));
    SX_TRY(sx_dataset_batch(data, .size = 2));
    SX_TRY(sx_iterator_create(*data, &iterator, .workers = -1));
    sx_status status = sx_iterator_next(iterator, &batch);
    sx_iterator_destroy(iterator);
    return status;
}

static sx_status open_and_iterate(void *spec)
{
    sx_dataset *data = NULL;
    char *text = NULL;
    sx_status status = sx_data_open(spec, NULL, &data, &text);
    if (status == SX_OK) {
        status = iterate(&data);
    }
    sx_dataset_release(data);
    sx_text_free(text);
    return status;
}

static sx_status write_records(void *out)
{
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_from_images_args args = {
        .source = in_dir("photos"), .out = out, .split = "a=.5,b=.5", .shards = 2};
    sx_status status = sx_from_images(&args, &text);
    sx_buf_deinit(&text);
    return status;
}

static sx_status show_and_verify(void *pattern)
{
    sx_buf text;
    sx_paths paths = {0};
    sx_verify_result result;
    const char *patterns[] = {pattern};
    sx_buf_init(&text, 0);
    sx_status status = sx_data_show(pattern, NULL, 2, &text);
    if (status == SX_OK) {
        status = sx_paths_glob(patterns, 1, &paths);
    }
    if (status == SX_OK) {
        sx_verify_args args = {
            .paths = (const char *const *)paths.items, .path_count = paths.count, .decode = true};
        status = sx_data_verify(&args, &text, &result);
    }
    if (status == SX_OK) {
        status = sx_buf_status(&text);
    }
    sx_paths_deinit(&paths);
    sx_buf_deinit(&text);
    return status;
}

/* `name` in the test's folder, as the user data of a tortured call. */
static void torture(sx_status (*call)(void *user), const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s", in_dir(name));
    assert_true(sx_torture_some(call, path) > 10);
}

static void test_data_torture__folders(void **state)
{
    (void)state;
    write_photos(2);
    torture(open_and_iterate, "photos");
}

static void test_data_torture__records(void **state)
{
    (void)state;
    write_photos(2);
    torture(write_records, "data");
    assert_ok(write_records((void *)(uintptr_t)in_dir("data")));
    torture(open_and_iterate, "data/a-*");
    torture(show_and_verify, "data/a-*");
}

static void test_data_torture__arrays_and_drawings(void **state)
{
    (void)state;
    uint8_t x[3 * 4 * 4 * 3] = {0};
    assert_ok(sx_npy_write(in_dir("x.npy"), &(sx_tensor){sx_type_of(SX_U8, 3, 4, 4, 3), x}));
    torture(open_and_iterate, "x.npy");
    char digits[] = "generated:flowers?n=4&size=16";
    assert_true(sx_torture_some(open_and_iterate, digits) > 10);
}

static sx_status from_idx(void *user)
{
    const bool png = *(const bool *)user;
    char images[256], labels[256], out[256];
    sx_buf text;
    snprintf(images, sizeof(images), "%s", in_dir("i"));
    snprintf(labels, sizeof(labels), "%s", in_dir("l"));
    snprintf(out, sizeof(out), "%s", in_dir("set"));
    sx_buf_init(&text, 0);
    sx_status status = sx_from_idx(
        &(sx_from_idx_args){
            .images = images, .labels = labels, .out = out, .shards = 2, .png = png},
        &text);
    if (status == SX_OK) {
        status = sx_buf_status(&text);
    }
    sx_buf_deinit(&text);
    return status;
}

static sx_status take(void *user)
{
    sx_dataset *data = NULL;
    char x[256], y[256];
    snprintf(x, sizeof(x), "%s", in_dir("x.npy"));
    snprintf(y, sizeof(y), "%s", in_dir("y.npy"));
    SX_TRY(sx_data_open(user, NULL, &data, NULL));
    sx_status status = sx_data_take(data, 1, 2, x, y);
    sx_dataset_release(data);
    return status;
}

/* A failure leaves no file behind, or the files of a whole set. */
static void test_data_torture__idx_and_take(void **state)
{
    (void)state;
    write_file(in_dir("i"),
               "\0\0\x08\3\0\0\0\3\0\0\0\2\0\0\0\2"
               "abcdefghijkl",
               28);
    write_file(in_dir("l"),
               "\0\0\x08\1\0\0\0\3"
               "\0\1\2",
               11);
    for (int png = 0; png < 2; png++) {
        bool as_png = png != 0;
        assert_true(sx_torture_some(from_idx, &as_png) > 20);
        torture(open_and_iterate, "set-*");
        torture(take, "set-*");
    }
}

static const struct CMUnitTest tests[] = {
    photo_test(test_data_torture__idx_and_take),
    photo_test(test_data_torture__folders),
    photo_test(test_data_torture__records),
    photo_test(test_data_torture__arrays_and_drawings),
};
SX_TEST_MAIN(tests)
