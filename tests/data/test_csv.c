/* CSV files as data sets: declared columns, missing values, what does not fit is named by file,
 * line and column. */
#include "../io/scratch.h"

#include <sextant/data.h>

static sx_status open_csv(const char *spec, const sx_feature_spec *features, int n, bool skip,
                          sx_dataset **out, char **out_text)
{
    const sx_data_options options = {.struct_size = sizeof(options),
                                     .features = features,
                                     .n_features = n,
                                     .skip_corrupt = skip};
    return sx_data_open(spec, &options, out, out_text);
}

static const char people[] = "\xef\xbb\xbf"
                             "age,job,city,hours,rich,note\r\n"
                             "41.5,\"clerk, senior\",7,40,1,x\r\n"
                             "\r\n"
                             " -1e2 ,\"say \"\"hi\"\"\",-3,,false,x\r\n"
                             "0,,0,9223372036854775807,TRUE,\"two\nlines\"";

static const sx_feature_spec declared[] = {
    {.name = "rich", SX_BOOL},
    {.name = "hours", SX_I64, .optional = true, .default_value = -5},
    {.name = "place", SX_I32, .key = "city"},
    {.name = "job", SX_STRING, .optional = true, .default_text = "none"},
    {.name = "age"},
};

static void test_data_csv__gives_the_declared_columns(void **state)
{
    (void)state;
    const char *path = scratch("people.csv");
    write_file(path, people, sizeof(people) - 1);
    sx_dataset *data = NULL;
    sx_iterator *it = NULL;
    const struct sx_batch_data *b;
    char *text = NULL;
    assert_ok(open_csv(path, declared, 5, false, &data, &text));
    assert_non_null(strstr(text, "people.csv: CSV, 3 rows; columns rich bool, hours int64, city "
                                 "int32, job, age float32\n"));
    sx_text_free(text);
    assert_ok(sx_dataset_batch(&data, .size = 3));
    assert_ok(sx_iterator_create(data, &it));
    assert_ok(sx_iterator_next(it, &b));
    static const char *const jobs[] = {"clerk, senior", "say \"hi\"", "none"};
    static const float ages[] = {41.5f, -100, 0};
    static const int64_t hours[] = {40, -5, INT64_MAX};
    static const int32_t places[] = {7, -3, 0};
    static const bool rich[] = {true, false, true};
    assert_int_equal(b->size, 3);
    assert_string_equal(sx_dataset_schema(data)->components[2].name, "place");
    assert_memory_equal(b->components[0].data, rich, sizeof(rich));
    assert_memory_equal(b->components[1].data, hours, sizeof(hours));
    assert_memory_equal(b->components[2].data, places, sizeof(places));
    assert_memory_equal(b->components[4].data, ages, sizeof(ages));
    for (int i = 0; i < 3; i++) {
        const sx_bytes job = ((const sx_bytes *)b->components[3].data)[i];
        assert_int_equal(job.size, strlen(jobs[i]));
        assert_memory_equal(job.data, jobs[i], job.size);
    }
    char name[200];
    sx_dataset_record_name(data, 2, name, sizeof(name));
    assert_non_null(strstr(name, "people.csv: line 5"));
    sx_iterator_destroy(it);
    sx_dataset_release(data);

    assert_ok(open_csv(path, NULL, 0, false, &data, NULL)); /* all columns, as strings */
    assert_int_equal(sx_dataset_schema(data)->count, 6);
    assert_string_equal(sx_dataset_schema(data)->components[0].name, "age");
    sx_dataset_release(data);
}

static void test_data_csv__names_file_line_and_column(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        sx_feature_spec feature;
        const char *message;
    } rows[] = {
        {"1,abc", {.name = "b"}, ": line 3: column \"b\": \"abc\", expected float32"},
        {"1,", {.name = "b"}, ": line 3: column \"b\" is empty, expected float32; declare it .opt"},
        {"1,\" \"", {.name = "b", SX_I32}, "column \"b\" is empty, expected int32"},
        {"1,1e39", {.name = "b"}, "column \"b\": \"1e39\", expected float32"},
        {"1,nan", {.name = "b"}, "column \"b\": \"nan\", expected float32"},
        {"1,0x10", {.name = "b"}, "column \"b\": \"0x10\", expected float32"},
        {"1,1.5", {.name = "b", SX_I32}, "column \"b\": \"1.5\", expected int32"},
        {"1,2147483648", {.name = "b", SX_I32}, "\"2147483648\", expected int32"},
        {"1,9223372036854775808", {.name = "b", SX_I64}, "9223372036854775808\", expected int64"},
        {"1,-1", {.name = "b", SX_U8}, "column \"b\": \"-1\", expected uint8"},
        {"1,2", {.name = "b", SX_BOOL}, "column \"b\": \"2\", expected bool"},
        {"1,--2", {.name = "b", SX_I32}, "column \"b\": \"--2\", expected int32"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char path[700], text[200];
        sx_dataset *data = NULL;
        sx_iterator *it = NULL;
        const struct sx_batch_data *b;
        snprintf(path, sizeof(path), "%s", scratch("x.csv"));
        snprintf(text, sizeof(text), "a,b\n1,1\n%s\n", rows[i].row);
        write_file(path, text, strlen(text));
        assert_ok(open_csv(path, &rows[i].feature, 1, false, &data, NULL));
        assert_ok(sx_iterator_create(data, &it));
        sx_status status = sx_iterator_next(it, &b);
        status = status == SX_OK ? sx_iterator_next(it, &b) : status;
        assert_error(status, SX_INVALID_ARGUMENT, rows[i].message);
        sx_iterator_destroy(it);
        sx_dataset_release(data);
    }
}

static void test_data_csv__refuses_other_columns_and_rows(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        sx_feature_spec feature;
        sx_code code;
        const char *message;
    } rows[] = {
        {"age,job\n1,2\n",
         {.name = "agee"},
         SX_NOT_FOUND,
         "line 1: there is no column \"agee\" (it has \"age\", \"job\"); did you mean \"age\"?"},
        {"a,b,a\n1,2,3\n",
         {.name = "a"},
         SX_INVALID_ARGUMENT,
         "line 1: columns 1 and 3 are both \"a\""},
        {"a,\n1,2\n", {.name = "a"}, SX_INVALID_ARGUMENT, "line 1: column 2 has no name"},
        {"a,b\n1,2\n3\n4,5\n",
         {.name = "a"},
         SX_INVALID_ARGUMENT,
         "line 3: 1 field, expected 2, as in the header (--skip-corrupt skips it)"},
        {"a,b\n1,2\n3,\"4\n5,6\n",
         {.name = "a"},
         SX_INVALID_ARGUMENT,
         "line 3: field 2: a quote is not closed"},
        {"a,b\n\n", {.name = "a"}, SX_INVALID_ARGUMENT, "has no examples"},
        {"a,b\n1,2\n",
         {.name = "a", .dims = {2}},
         SX_INVALID_ARGUMENT,
         "feature \"a\" is float32[2], but a column of a CSV file holds one value"},
    };
    sx_dataset *data = NULL;
    const char *path = scratch("x.csv");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_file(path, rows[i].text, strlen(rows[i].text));
        assert_error(open_csv(path, &rows[i].feature, 1, false, &data, NULL), rows[i].code,
                     rows[i].message);
    }
    char *text = NULL;
    static const char bad[] = "a,b\n1,2\n3\n4,\"5\n6,7\n";
    write_file(path, bad, sizeof(bad) - 1);
    assert_ok(open_csv(path, &(sx_feature_spec){.name = "a"}, 1, true, &data, &text));
    assert_int_equal(sx_dataset_count(data), 2);
    assert_non_null(strstr(text, "2 corrupt rows skipped"));
    sx_text_free(text);
    sx_dataset_release(data);
}

/* Columns are found in each file by name. */
static void test_data_csv__several_files_in_any_order_of_columns(void **state)
{
    (void)state;
    char spec[1500];
    write_file(scratch("one.csv"), "a,b\n1,2\n", 8);
    write_file(scratch("two.csv"), "b,c,a\n3,x,4\n", 12);
    snprintf(spec, sizeof(spec), "%s/one.csv,%s/two.csv", scratch_dir, scratch_dir);
    sx_dataset *data = NULL;
    sx_iterator *it = NULL;
    const struct sx_batch_data *b;
    const sx_feature_spec features[] = {{.name = "a"}, {.name = "b"}};
    assert_ok(open_csv(spec, features, 2, false, &data, NULL));
    assert_ok(sx_dataset_batch(&data, .size = 2));
    assert_ok(sx_iterator_create(data, &it));
    assert_ok(sx_iterator_next(it, &b));
    static const float a[] = {1, 4}, two[] = {2, 3};
    assert_memory_equal(b->components[0].data, a, sizeof(a));
    assert_memory_equal(b->components[1].data, two, sizeof(two));
    sx_iterator_destroy(it);
    sx_dataset_release(data);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_data_csv__gives_the_declared_columns),
    scratch_test(test_data_csv__names_file_line_and_column),
    scratch_test(test_data_csv__refuses_other_columns_and_rows),
    scratch_test(test_data_csv__several_files_in_any_order_of_columns),
};
SX_TEST_MAIN(tests)
