/* Which features of a record verify looks at, and what each of its errors says. */
#include "data/photos.h"
#include "torture.h"

#include <sextant/data.h>

#include "data/prepare.h"
#include "data/set_writer.h"
#include "io/tfrecord.h"
#include "proto/example.h"

static const char not_an_image[] = "\xFF\xD8\xFF not an image";

/* Two Examples whose features `bad_image` hold what cannot be decoded, and whose `label` is 5;
 * "other image" is a PNG, "other label" is 0. `info` is the schema beside them, NULL for none. */
static void write_set(const char *bad_image, const char *label, const sx_set_info *info)
{
    const sx_bytes bad = {not_an_image, sizeof(not_an_image) - 1};
    uint8_t pixels[12] = {0};
    sx_image small = sx_image_view(pixels, 2, 2, 3);
    sx_example_writer example;
    sx_buf png, record, text;
    sx_buf_init(&png, 0);
    sx_buf_init(&record, 0);
    sx_buf_init(&text, 0);
    assert_ok(sx_png_encode(&small, &png));
    const sx_bytes good = {png.data, png.size};
    sx_example_writer_init(&example);
    sx_example_add_bytes(&example, bad_image, &bad, 1);
    sx_example_add_bytes(&example, "other image", &good, 1);
    sx_example_add_int(&example, label, 5);
    sx_example_add_int(&example, "other label", 0);
    assert_ok(sx_example_finish(&example, &record));
    const sx_bytes bytes = {record.data, record.size};
    assert_ok(sx_dir_remove(photo_dir));
    assert_ok(sx_dir_create(photo_dir));
    if (info != NULL) {
        sx_set_writer *writer = NULL;
        assert_ok(sx_set_writer_open(in_dir("set"), 1, 2, &writer));
        assert_ok(sx_set_writer_write(writer, bytes));
        assert_ok(sx_set_writer_write(writer, bytes));
        assert_ok(sx_set_writer_finish(writer, info, &text));
        sx_set_writer_close(writer);
    } else {
        sx_tfrecord_shards *shards = NULL;
        assert_ok(sx_tfrecord_shards_create(in_dir("set"), 1, SX_CODEC_NONE, &shards));
        assert_ok(sx_tfrecord_shards_write(shards, 0, bytes));
        assert_ok(sx_tfrecord_shards_write(shards, 0, bytes));
        assert_ok(sx_tfrecord_shards_finish(shards));
        sx_tfrecord_shards_destroy(shards);
    }
    sx_example_writer_deinit(&example);
    sx_buf_deinit(&png);
    sx_buf_deinit(&record);
    sx_buf_deinit(&text);
}

static const char *const classes[] = {"a", "b", "c"};

/* The schema: keys and classes; `options` may name others. */
typedef struct verify_row {
    const char *bad_image, *label; /* in the records */
    const char *info_image, *info_label;
    int info_base, class_count;
    const char *image, *said_label; /* in the options */
    int base;
    bool base_set;
    const char *says; /* "" for OK */
} verify_row;

#define IMAGE "image/encoded"
#define LABEL "image/class/label"
#define BAD   "DATA_LOSS: record 0: JPEG"
#define OUT   "OUT_OF_RANGE: record 0: label 5 out of range"

static const verify_row rows[] = {
    /* images: the usual name, the schema's, the option's */
    {IMAGE, LABEL, NULL, NULL, 0, 0, NULL, NULL, 0, false, BAD},
    {"picture", LABEL, NULL, NULL, 0, 0, NULL, NULL, 0, false, ""},
    {"picture", LABEL, NULL, NULL, 0, 0, "picture", NULL, 0, false, BAD},
    {"picture", LABEL, "picture", LABEL, 0, 0, NULL, NULL, 0, false, BAD},
    {"picture", LABEL, "other image", LABEL, 0, 0, NULL, NULL, 0, false, ""},
    {"picture", LABEL, "other image", LABEL, 0, 0, "picture", NULL, 0, false, BAD},
    {IMAGE, LABEL, NULL, NULL, 0, 0, "other image", NULL, 0, false, ""},
    /* labels: likewise, in the range of the schema's classes */
    {"-", LABEL, "-", NULL, 0, 3, "other image", NULL, 0, false, OUT " [0, 3)"},
    {"-", "y", "-", NULL, 0, 3, "other image", NULL, 0, false, ""},
    {"-", "y", "-", "y", 0, 3, "other image", NULL, 0, false, OUT " [0, 3)"},
    {"-", "y", "-", "other label", 0, 3, "other image", NULL, 0, false, ""},
    {"-", "y", "-", "other label", 0, 3, "other image", "y", 0, false, OUT " [0, 3)"},
    {"-", "y", "-", "y", 0, 3, "other image", "other label", 0, false, ""},
    {"-", "y", "-", "y", 2, 3, "other image", NULL, 0, false, OUT " [2, 5)"},
    {"-", "y", "-", "y", 3, 3, "other image", NULL, 0, false, ""},
    {"-", "y", "-", "y", 5, 3, "other image", NULL, 0, false, ""},
    {"-", "y", "-", "y", 6, 3, "other image", NULL, 0, false, OUT " [6, 9)"},
    {"-", "y", "-", "y", 3, 3, "other image", NULL, 0, true, OUT " [0, 3)"},
    {"-", "y", "-", "y", 0, 3, "other image", NULL, 3, false, ""},
    {"-", "y", "-", "y", 3, 3, "other image", NULL, -1, false, OUT " [-1, 2)"},
};

static sx_status verify(const verify_row *row, sx_verify_result *result)
{
    sx_data_options options = {.struct_size = sizeof(options),
                               .image_key = row->image,
                               .label_key = row->said_label,
                               .label_base = row->base,
                               .label_base_set = row->base_set};
    char path[256];
    const char *paths[] = {path};
    sx_buf text;
    snprintf(path, sizeof(path), "%s", in_dir("set-00000-of-00001"));
    sx_verify_args args = {.paths = paths, .path_count = 1, .decode = true, .options = &options};
    sx_buf_init(&text, 0);
    sx_status status = sx_data_verify(&args, &text, result);
    sx_buf_deinit(&text);
    return status;
}

static void test_data_verify__looks_at_the_named_features(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const verify_row *row = &rows[i];
        sx_verify_result result;
        const sx_set_info info = {.label_base = row->info_base,
                                  .classes = classes,
                                  .class_count = row->class_count,
                                  .image_key = row->info_image,
                                  .label_key = row->info_label};
        write_set(row->bad_image, row->label, row->info_image != NULL ? &info : NULL);
        sx_status status = verify(row, &result);
        if (!harness_is(status, row->says)) {
            fail_msg("row %zu: \"%s\", expected \"%s\"", i, sx_status_message(status), row->says);
        }
        if (status == SX_OK) {
            assert_int_equal(result.records, 2);
            assert_int_equal(result.files, 1);
        }
        sx_status_free(status);
    }
}

static sx_status verify_first(void *user)
{
    sx_verify_result result;
    return verify(user, &result);
}

static void test_data_verify__survives_failing_allocations(void **state)
{
    (void)state;
    verify_row row = {.image = "other image"};
    const sx_set_info info = {
        .classes = classes, .class_count = 3, .image_key = "-", .label_key = "other label"};
    write_set("-", "y", &info);
    assert_in_range(sx_torture_some(verify_first, &row), 10, 2000);
}

static const struct CMUnitTest tests[] = {
    photo_test(test_data_verify__looks_at_the_named_features),
    photo_test(test_data_verify__survives_failing_allocations),
};
SX_TEST_MAIN(tests)
