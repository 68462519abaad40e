/* The numbered directories of a model: which there are, and where the next one goes. */
#include "io/scratch.h"

#include "base/checked.h"
#include "savedmodel/versions.h"

static void make_dirs(const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char path[300];
        snprintf(path, sizeof(path), "m/%s", names[i]);
        assert_ok(sx_dir_create(scratch(path)));
    }
}

static void test_savedmodel_versions__numbers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t number;
    } rows[] = {{"1", 1},
                {"0042", 42},
                {"0", 0},
                {"9223372036854775807", INT64_MAX},
                {"9223372036854775808", -1},
                {"00009223372036854775807", INT64_MAX},
                {"000009223372036854775807", -1}, /* 24 characters */
                {"", -1},
                {"-3", -1},
                {"+3", -1},
                {" 3", -1},
                {"1a", -1},
                {"x", -1}};
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        assert_int_equal(sx_version_number(rows[i].name), rows[i].number);
    }
}

static void test_savedmodel_versions__lists_the_highest_first(void **state)
{
    (void)state;
    static const char *const names[] = {"1", "0042", "42", "7", "x", "1a", "99999999999999999999"};
    sx_arena arena;
    sx_version *found = NULL;
    size_t n = 9;
    sx_arena_init(&arena, 0);
    assert_error(sx_versions_list(scratch("m"), NULL, &arena, &found, &n), SX_NOT_FOUND, "m");
    assert_ok(sx_dir_create(scratch("m")));
    assert_ok(sx_versions_list(scratch("m"), NULL, &arena, &found, &n));
    assert_int_equal(n, 0);
    make_dirs(names, SX_COUNT(names));
    write_file(scratch("m/50"), "", 0); /* a file is no version */
    assert_ok(sx_versions_list(scratch("m"), NULL, &arena, &found, &n));
    assert_int_equal(n, 3);
    assert_int_equal(found[0].number, 42);
    assert_string_equal(found[0].name, "0042");
    assert_int_equal(found[1].number, 7);
    assert_int_equal(found[2].number, 1);
    write_file(scratch("m/7/saved_model.pb"), "", 0);
    assert_ok(sx_versions_list(scratch("m"), "saved_model.pb", &arena, &found, &n));
    assert_int_equal(n, 1);
    assert_int_equal(found[0].number, 7);
    assert_error(sx_versions_list(scratch("m/50"), NULL, &arena, &found, &n), SX_NOT_FOUND, "50");
    sx_arena_deinit(&arena);
}

static void assert_directory(const char *wanted, const char *expected)
{
    sx_arena arena;
    const char *dir = NULL;
    sx_arena_init(&arena, 0);
    assert_ok(sx_version_directory(scratch("m"), wanted, &arena, &dir));
    assert_string_equal(sx_path_basename(dir), expected);
    sx_arena_deinit(&arena);
}

static void assert_no_directory(const char *wanted, sx_code code, const char *what)
{
    sx_arena arena;
    const char *dir = NULL;
    sx_arena_init(&arena, 0);
    assert_error(sx_version_directory(scratch("m"), wanted, &arena, &dir), code, what);
    assert_null(dir);
    sx_arena_deinit(&arena);
}

static void test_savedmodel_versions__the_next_one(void **state)
{
    (void)state;
    static const char *const names[] = {"2", "0003", "0009", "x12"};
    static const char *const highest[] = {"9223372036854775807"};
    assert_directory(NULL, "1");
    assert_directory("0001", "0001");
    assert_directory("0", "0");
    make_dirs(names, SX_COUNT(names));
    assert_directory(NULL, "10");
    assert_no_directory("3", SX_ALREADY_EXISTS, "0003");
    assert_no_directory("v1", SX_INVALID_ARGUMENT, "v1");
    assert_no_directory("", SX_INVALID_ARGUMENT, "\"\"");
    assert_no_directory("9223372036854775808", SX_INVALID_ARGUMENT, "below 2^63");
    make_dirs(highest, 1);
    assert_no_directory(NULL, SX_OUT_OF_RANGE, "highest");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_savedmodel_versions__numbers),
    scratch_test(test_savedmodel_versions__lists_the_highest_first),
    scratch_test(test_savedmodel_versions__the_next_one),
};
SX_TEST_MAIN(tests)
