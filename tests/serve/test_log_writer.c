/* Logs that are written by a thread of their own: order, numbered files, files that are moved away,
 * disks that are full or slow. */
#include "harness.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "io/file.h"
#include "io/path.h"
#include "serve/log_writer.h"

static void put(sx_log_file *file, const char *text)
{
    sx_buf bytes;
    sx_buf_init(&bytes, 0);
    sx_buf_puts(&bytes, text);
    sx_log_file_put(file, &bytes);
    assert_int_equal(bytes.size, 0);
    sx_buf_deinit(&bytes);
}

static void wait_written(sx_log_file *file, uint64_t count)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    for (int i = 0; i < 20000 && sx_log_file_stats(file).written < count; i++) {
        nanosleep(&nap, NULL);
    }
    assert_int_equal(sx_log_file_stats(file).written, count);
}

static void assert_file(const char *path, const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    assert_ok(sx_file_read(path, 1 << 20, &text, &size));
    assert_string_equal(text, expected);
    sx_free(text);
}

static void test_serve_log_writer__writes_in_order(void **state)
{
    (void)state;
    char folder[] = "/tmp/sextant-log-XXXXXX", path[64], moved[64], below[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/a/access.log", folder);
    snprintf(below, sizeof(below), "%s/a", folder);
    snprintf(moved, sizeof(moved), "%s/a/access.log.1", folder);
    sx_log_writer *writer = NULL;
    sx_log_file *file = NULL;
    assert_ok(sx_log_writer_create(0, &writer));
    assert_ok(sx_log_writer_add(writer, &(sx_log_file_config){.path = path}, &file));
    put(file, "one\n");
    put(file, "two\n");
    wait_written(file, 2);
    assert_file(path, "one\ntwo\n");
    assert_int_equal(rename(path, moved), 0);
    put(file, "three\n");
    wait_written(file, 3);
    assert_file(path, "three\n");
    assert_file(moved, "one\ntwo\n");
    put(file, "four\n"); /* is written before the end */
    sx_log_writer_destroy(writer);
    assert_file(path, "three\nfour\n");
    assert_ok(sx_dir_remove(folder));
    assert_false(sx_path_exists(below));
}

static void test_serve_log_writer__begins_new_files(void **state)
{
    (void)state;
    char folder[] = "/tmp/sextant-log-XXXXXX", prefix[64];
    assert_non_null(mkdtemp(folder));
    snprintf(prefix, sizeof(prefix), "%s/log", folder);
    sx_log_writer *writer = NULL;
    sx_log_file *file = NULL;
    sx_paths names;
    assert_ok(sx_log_writer_create(0, &writer));
    const sx_log_file_config config = {.path = prefix, .suffix = ".x", .max_bytes = 8};
    assert_ok(sx_log_writer_add(writer, &config, &file));
    for (int i = 0; i < 5; i++) {
        put(file, "12345");
    }
    sx_log_writer_destroy(writer);
    assert_ok(sx_dir_list(folder, &names));
    assert_int_equal(names.count, 3); /* two puts reach the size */
    for (size_t i = 0; i < names.count; i++) {
        char path[128];
        struct stat info;
        snprintf(path, sizeof(path), "%s/%s", folder, names.items[i]);
        assert_int_equal(strncmp(names.items[i], "log-20", 6), 0);
        assert_string_equal(names.items[i] + strlen(names.items[i]) - 2, ".x");
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_size, i < 2 ? 10 : 5);
    }
    sx_paths_deinit(&names);
    assert_ok(sx_dir_remove(folder));
}

static void test_serve_log_writer__counts_what_is_lost(void **state)
{
    (void)state;
    sx_log_writer *writer = NULL;
    sx_log_file *file = NULL;
    assert_ok(sx_log_writer_create(2000, &writer));
    assert_error(sx_log_writer_add(writer, &(sx_log_file_config){.path = "/proc/none/x"}, &file),
                 SX_NOT_FOUND, "/proc/none");
    assert_ok(sx_log_writer_add(writer, &(sx_log_file_config){.path = "/dev/full"}, &file));
    sx_buf large;
    sx_buf_init(&large, 0);
    assert_non_null(sx_buf_extend(&large, 4000)); /* more than may wait */
    sx_log_file_put(file, &large);
    assert_int_equal(sx_log_file_stats(file).dropped, 1);
    put(file, "x");
    const struct timespec nap = {.tv_nsec = 1000000};
    for (int i = 0; i < 20000 && sx_log_file_stats(file).failed < 1; i++) {
        nanosleep(&nap, NULL);
    }
    assert_int_equal(sx_log_file_stats(file).failed, 1);
    assert_int_equal(sx_log_file_stats(file).written, 0);
    sx_log_writer_destroy(writer);
    sx_log_writer_destroy(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_log_writer__writes_in_order),
    cmocka_unit_test(test_serve_log_writer__begins_new_files),
    cmocka_unit_test(test_serve_log_writer__counts_what_is_lost),
};
SX_TEST_MAIN(tests)
