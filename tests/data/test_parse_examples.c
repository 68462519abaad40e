/* Records parsed by declared features: kinds, lengths, defaults, masks; what does not fit is named
 * with its record. */
#include "../io/scratch.h"

#include "io/npy.h"
#include "io/tfrecord.h"
#include "proto/example.h"
#include <sextant/data.h>

/* Writes the examples that `put(writer, i)` fills for i < n. */
static void write_records(const char *path, int n, void (*put)(sx_example_writer *, int))
{
    sx_tfrecord_shards *files = NULL;
    assert_ok(sx_tfrecord_shards_create(path, 1, SX_CODEC_NONE, &files));
    for (int i = 0; i < n; i++) {
        sx_example_writer w;
        sx_buf bytes;
        sx_example_writer_init(&w);
        sx_buf_init(&bytes, 1 << 16);
        put(&w, i);
        assert_ok(sx_example_finish(&w, &bytes));
        assert_ok(sx_tfrecord_shards_write(files, 0, (sx_bytes){bytes.data, bytes.size}));
        sx_example_writer_deinit(&w);
        sx_buf_deinit(&bytes);
    }
    assert_ok(sx_tfrecord_shards_finish(files));
    sx_tfrecord_shards_destroy(files);
}

static const float ages[] = {1.5f, -2};
static const int64_t words[] = {7, 8, 9, 10, 11};
static const uint8_t pixels[] = {1, 2, 3, 255};

static void put_usual(sx_example_writer *w, int i)
{
    const sx_bytes raw = {pixels, 4};
    const int64_t levels[] = {250, 251, 252, 253};
    sx_example_add_floats(w, "age", &ages[i % 2], 1);
    sx_example_add_int(w, "place", i - 1);
    sx_example_add_ints(w, "words", words, (size_t)i);
    sx_example_add_int(w, "yes", i % 2);
    if (i % 2 == 0) {
        sx_example_add_bytes(w, "pixels", &raw, 1);
        sx_example_add_int(w, "big", (int64_t)1 << 40);
    } else {
        sx_example_add_ints(w, "pixels", levels, 4);
    }
}

static const sx_feature_spec usual[] = {
    {.name = "words", SX_I32, .max_length = 4, .padding_value = -1, .truncate = true},
    {.name = "age"},
    {.name = "city", SX_I32, .key = "place"},
    {.name = "yes", SX_BOOL},
    {.name = "pixels", SX_U8, {2, 2}},
    {.name = "big", SX_I64, .optional = true, .default_value = -5},
};

static sx_status open_named(const char *spec, const sx_feature_spec *features, int n,
                            sx_dataset **out)
{
    char *text = NULL;
    const sx_data_options options = {
        .struct_size = sizeof(options), .features = features, .n_features = n};
    sx_status status = sx_data_open(spec, &options, out, &text);
    sx_text_free(text);
    return status;
}

static void test_data_parse_examples__gives_the_declared_components(void **state)
{
    (void)state;
    const char *path = scratch("usual");
    write_records(path, 6, put_usual);
    sx_dataset *data = NULL;
    sx_iterator *it = NULL;
    char spec[600];
    snprintf(spec, sizeof(spec), "%s*", path);
    assert_ok(open_named(spec, usual, 6, &data));
    static const char *const names[] = {"words", "words_mask", "age", "city",
                                        "yes",   "pixels",     "big"};
    assert_int_equal(sx_dataset_schema(data)->count, 7);
    for (int i = 0; i < 7; i++) {
        assert_string_equal(sx_dataset_schema(data)->components[i].name, names[i]);
    }
    assert_ok(sx_dataset_batch(&data, .size = 6));
    assert_ok(sx_iterator_create(data, &it));
    const struct sx_batch_data *b;
    assert_ok(sx_iterator_next(it, &b));
    static const int32_t padded[6][4] = {{-1, -1, -1, -1}, {7, -1, -1, -1}, {7, 8, -1, -1},
                                         {7, 8, 9, -1},    {7, 8, 9, 10},   {7, 8, 9, 10}};
    assert_memory_equal(b->components[0].data, padded, sizeof(padded));
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < 4; k++) {
            assert_int_equal(((const bool *)b->components[1].data)[i * 4 + k], k < i);
        }
        assert_true(((const float *)b->components[2].data)[i] == ages[i % 2]);
        assert_int_equal(((const int32_t *)b->components[3].data)[i], i - 1);
        assert_int_equal(((const bool *)b->components[4].data)[i], i % 2);
        assert_int_equal(((const uint8_t *)b->components[5].data)[i * 4 + 3],
                         i % 2 == 0 ? 255 : 253);
        assert_true(((const int64_t *)b->components[6].data)[i] ==
                    (i % 2 == 0 ? (int64_t)1 << 40 : -5));
    }
    sx_iterator_destroy(it);
    sx_dataset_release(data);
}

static void put_texts(sx_example_writer *w, int i)
{
    const sx_bytes tags[] = {{"a", 1}, {"", 0}, {"c\0d", 3}};
    if (i > 0) {
        sx_example_add_bytes(w, "tags", tags, (size_t)i);
        sx_example_add_bytes(w, "job", &tags[2], 1);
    } else {
        sx_example_add_int(w, "other", 1);
    }
}

static void test_data_parse_examples__gives_strings(void **state)
{
    (void)state;
    static const sx_feature_spec specs[] = {
        {.name = "tags", SX_STRING, .max_length = 2, .truncate = true},
        {.name = "job", SX_STRING, .optional = true, .default_text = "none"},
    };
    const char *path = scratch("texts");
    write_records(path, 4, put_texts);
    sx_dataset *data = NULL;
    sx_iterator *it = NULL;
    const struct sx_batch_data *b;
    char spec[600];
    snprintf(spec, sizeof(spec), "%s*", path);
    assert_ok(open_named(spec, specs, 2, &data));
    assert_ok(sx_dataset_batch(&data, .size = 4));
    assert_ok(sx_iterator_create(data, &it));
    assert_ok(sx_iterator_next(it, &b));
    static const char *const tags[4][2] = {{"", ""}, {"a", ""}, {"a", ""}, {"a", ""}};
    for (int i = 0; i < 4; i++) {
        const sx_bytes *job = &((const sx_bytes *)b->components[2].data)[i];
        for (int k = 0; k < 2; k++) {
            const sx_bytes *tag = &((const sx_bytes *)b->components[0].data)[2 * i + k];
            assert_int_equal(tag->size, strlen(tags[i][k]));
            assert_memory_equal(tag->data, tags[i][k], tag->size);
            assert_int_equal(((const bool *)b->components[1].data)[2 * i + k], k < i);
        }
        assert_int_equal(job->size, i == 0 ? 4 : 3);
        assert_memory_equal(job->data, i == 0 ? "none" : "c\0d", job->size);
    }
    sx_iterator_destroy(it);
    sx_dataset_release(data);
}

static void test_data_parse_examples__names_the_record_and_the_feature(void **state)
{
    (void)state;
    static const struct {
        sx_feature_spec feature;
        const char *message;
    } rows[] = {
        {{.name = "height"},
         "record 0: record has no feature 'height'; its features: age, big, pixels"},
        {{.name = "big", SX_I64}, "record 1: record has no feature 'big'"},
        {{.name = "big", SX_I32, .optional = true},
         "record 0: feature \"big\": value 0 is 1099511627776, which is out of the range of int32"},
        {{.name = "city", SX_U8, .key = "place"}, "record 0: feature \"place\": value 0 is -1"},
        {{.name = "city", SX_BOOL, .key = "place"}, "record 0: feature \"place\": value 0 is -1"},
        {{.name = "age", SX_I32}, "feature \"age\" has float values, expected int64 for int32"},
        {{.name = "yes"}, "feature \"yes\" has int64 values, expected float for float32"},
        {{.name = "words", SX_I32}, "record 0: feature \"words\" has no values"},
        {{.name = "age", .dims = {2}}, "feature \"age\" has 1 values, expected 2"},
        {{.name = "words", SX_I32, .max_length = 3},
         "record 4: feature \"words\" has 4 values, expected at "
         "most 3; raise max_length, or set truncate"},
        {{.name = "words", SX_I32, {2}, .max_length = 3},
         "record 1: feature \"words\" has 1 values, expected a multiple of 2"},
        {{.name = "pixels", SX_U8, {5}}, "record 0: feature \"pixels\" has 4 values, expected 5"},
    };
    const char *path = scratch("usual");
    write_records(path, 6, put_usual);
    char spec[600];
    snprintf(spec, sizeof(spec), "%s*", path);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_dataset *data = NULL;
        sx_iterator *it = NULL;
        const struct sx_batch_data *b;
        assert_ok(open_named(spec, &rows[i].feature, 1, &data));
        assert_ok(sx_iterator_create(data, &it));
        sx_status status = SX_OK;
        for (int k = 0; k < 6 && status == SX_OK; k++) {
            status = sx_iterator_next(it, &b);
        }
        if (status == SX_OK || strstr(sx_status_message(status), rows[i].message) == NULL) {
            fail_msg("%s: %s", rows[i].message,
                     status != SX_OK ? sx_status_message(status) : "no error");
        }
        sx_status_free(status);
        sx_iterator_destroy(it);
        sx_dataset_release(data);
    }
}

static void test_data_parse_examples__refuses_bad_declarations_and_other_data(void **state)
{
    (void)state;
    sx_dataset *data = NULL;
    const sx_feature_spec twice[] = {{.name = "a"}, {.name = "a"}},
                          number = {.name = "a", SX_STRING, .default_value = 1},
                          text = {.name = "a", .default_text = "x"};
    const char *path = scratch("usual");
    write_records(path, 2, put_usual);
    char spec[600];
    snprintf(spec, sizeof(spec), "%s*", path);
    assert_error(open_named(spec, twice, 2, &data), SX_INVALID_ARGUMENT,
                 "feature \"a\": the name is used twice");
    assert_error(open_named(spec, &number, 1, &data), SX_INVALID_ARGUMENT,
                 "feature \"a\": default_value and padding_value are for numbers");
    assert_error(open_named(spec, &text, 1, &data), SX_INVALID_ARGUMENT,
                 "default_text is for strings");
    assert_error(
        open_named("generated:digits?n=3", usual, 6, &data), SX_INVALID_ARGUMENT,
        "the model's features (\"words\", …) are read from TFRecords, CSV, .npy files or an .npz");
}

static void write_npy(const char *name, sx_type type, const void *values)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s.npy", scratch("arrays"), name);
    assert_ok(sx_npy_write(path, &(sx_tensor){type, (void *)(uintptr_t)values}));
}

static void test_data_parse_examples__arrays_are_found_by_their_files_names(void **state)
{
    (void)state;
    static const int64_t city[] = {3, 1};
    static const uint8_t mask[] = {1, 0, 1, 1};
    static const float many[] = {1, 2, 3, 4};
    const sx_feature_spec features[] = {{.name = "city", SX_I32},
                                        {.name = "many", .max_length = 2}};
    sx_dataset *data = NULL;
    assert_ok(sx_dir_create(scratch("arrays")));
    write_npy("many", sx_type_of(SX_F32, 2, 2), many);
    write_npy("city", sx_type_of(SX_I64, 2), city);
    char spec[600];
    snprintf(spec, sizeof(spec), "%s/*.npy", scratch("arrays"));
    assert_error(open_named(spec, features, 2, &data), SX_NOT_FOUND,
                 "there is no array many_mask.npy for the feature \"many_mask\"");
    write_npy("many_mask", sx_type_of(SX_BOOL, 2, 2), mask);
    assert_ok(open_named(spec, features, 2, &data));
    assert_int_equal(sx_dataset_schema(data)->count, 3);
    assert_int_equal(sx_dataset_count(data), 2);
    sx_dataset_release(data);
    assert_ok(open_named(scratch("arrays"), features, 2, &data));
    sx_dataset_release(data);

    char npz[600], shell[1600];
    snprintf(npz, sizeof(npz), "%s", scratch("all.npz"));
    snprintf(shell, sizeof(shell),
             "cd %s && python3 -c 'import sys, zipfile; z = zipfile.ZipFile(sys.argv[1], \"w\"); "
             "[z.write(n) for n in sys.argv[2:]]' %s city.npy many.npy many_mask.npy",
             scratch("arrays"), npz);
    assert_int_equal(system(shell), 0);
    assert_ok(open_named(npz, features, 2, &data));
    sx_iterator *it = NULL;
    const struct sx_batch_data *b;
    assert_ok(sx_iterator_create(data, &it));
    assert_ok(sx_iterator_next(it, &b));
    assert_memory_equal(b->components[0].data, city, sizeof(city[0]));
    assert_memory_equal(b->components[1].data, many, 2 * sizeof(many[0]));
    assert_memory_equal(b->components[2].data, mask, 2);
    sx_iterator_destroy(it);
    sx_dataset_release(data);
    snprintf(shell, sizeof(shell), "%s,%s/city.npy", npz, scratch("arrays"));
    assert_error(open_named(shell, features, 2, &data), SX_INVALID_ARGUMENT,
                 "city.npy: the archive has two arrays of this name");

    const sx_feature_spec wide[] = {{.name = "city", SX_I32, {2}}};
    assert_error(open_named(spec, wide, 1, &data), SX_INVALID_ARGUMENT,
                 "city.npy is int64[2]; expected rows of int32[2]");
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_data_parse_examples__gives_the_declared_components),
    scratch_test(test_data_parse_examples__gives_strings),
    scratch_test(test_data_parse_examples__names_the_record_and_the_feature),
    scratch_test(test_data_parse_examples__refuses_bad_declarations_and_other_data),
    scratch_test(test_data_parse_examples__arrays_are_found_by_their_files_names),
};
SX_TEST_MAIN(tests)
