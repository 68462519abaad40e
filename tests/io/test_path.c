#include "io/scratch.h"

static void check_join(const char *dir, const char *name, const char *want)
{
    char *got = NULL;
    assert_ok(sx_path_join(dir, name, &got));
    assert_string_equal(got, want);
    sx_free(got);
}

static void test_io_path__joins(void **state)
{
    (void)state;
    check_join("a", "b", "a/b");
    check_join("a/", "b", "a/b");
    check_join("", "b", "b");
    check_join("a", "/b", "/b");
    check_join("/", "b", "/b");
}

static void test_io_path__splits(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"a/b", "a", "b"}, {"b", ".", "b"}, {"/b", "/", "b"}, {"a/b/c", "a/b", "c"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *dir = NULL;
        assert_ok(sx_path_dirname(rows[i][0], &dir));
        assert_string_equal(dir, rows[i][1]);
        assert_string_equal(sx_path_basename(rows[i][0]), rows[i][2]);
        sx_free(dir);
    }
}

static void test_io_path__tells_safe_names(void **state)
{
    (void)state;
    static const char *const safe[] = {"a", "a/b.jpg", "a b/c", "...", "..a", "a../b", "\xc3\xa9"};
    static const char *const unsafe[] = {"",     "/a",   "a/",     "a//b", ".",    "..",
                                         "../a", "a/..", "a/../b", "./a",  "a\\b", "a\nb"};
    for (size_t i = 0; i < sizeof safe / sizeof safe[0]; i++) {
        assert_true(sx_path_is_safe(safe[i], strlen(safe[i])));
    }
    for (size_t i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++) {
        assert_false(sx_path_is_safe(unsafe[i], strlen(unsafe[i])));
    }
    assert_false(sx_path_is_safe("a\0b", 3));
}

static void test_io_path__makes_and_removes_trees(void **state)
{
    (void)state;
    assert_ok(sx_dir_create(scratch("a/b/c")));
    assert_ok(sx_dir_create(scratch("a/b/c/")));
    assert_true(sx_path_is_dir(scratch("a/b/c")));
    write_file(scratch("a/b/f"), "x", 1);
    write_file(scratch("kept"), "x", 1);
    assert_int_equal(symlink(scratch("kept"), scratch("a/link")), 0);
    assert_error(sx_dir_create(scratch("kept/d")), SX_ALREADY_EXISTS, "kept");
    assert_error(sx_dir_create(scratch("kept")), SX_ALREADY_EXISTS, "kept");
    assert_ok(sx_dir_remove(scratch("a")));
    assert_false(sx_path_exists(scratch("a")));
    assert_true(sx_path_exists(scratch("kept")));
    assert_ok(sx_dir_remove(scratch("a")));
    assert_ok(sx_dir_remove(scratch("kept")));
    assert_int_equal(count_entries(scratch_dir), 0);
}

static void test_io_path__globs_sorted(void **state)
{
    (void)state;
    static const char *const names[] = {"t-2", "t-10", "t-1", "u", ".t-0", "w[1]"};
    for (size_t i = 0; i < 6; i++) {
        write_file(scratch(names[i]), "", 0);
    }
    sx_paths paths = {0};
    const char *patterns[] = {scratch("u"), scratch("t-*"), scratch("w[1]")};
    assert_ok(sx_paths_glob(patterns, 3, &paths));
    static const char *const want[] = {"u", "t-1", "t-10", "t-2", "w[1]"};
    assert_int_equal(paths.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(sx_path_basename(paths.items[i]), want[i]);
    }
    sx_paths_deinit(&paths);
    patterns[1] = scratch("none-*");
    assert_error(sx_paths_glob(patterns, 3, &paths), SX_NOT_FOUND, "none-*");
    assert_int_equal(paths.count, 0);
}

static void test_io_path__lists_a_directory(void **state)
{
    (void)state;
    sx_paths names = {0};
    write_file(scratch("b"), "", 0);
    write_file(scratch("a"), "", 0);
    write_file(scratch(".hidden"), "", 0);
    assert_ok(sx_dir_list(scratch_dir, &names));
    assert_int_equal(names.count, 2);
    assert_string_equal(names.items[0], "a");
    sx_paths_deinit(&names);
    assert_error(sx_dir_list(scratch("none"), &names), SX_NOT_FOUND, "none");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_io_path__joins),
    cmocka_unit_test(test_io_path__splits),
    cmocka_unit_test(test_io_path__tells_safe_names),
    scratch_test(test_io_path__makes_and_removes_trees),
    scratch_test(test_io_path__globs_sorted),
    scratch_test(test_io_path__lists_a_directory),
};
SX_TEST_MAIN(tests)
