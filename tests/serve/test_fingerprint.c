/* A fingerprint changes with every file that is added, removed, renamed, written or grown below a
 * directory, and with nothing else. */
#include "io/scratch.h"

#include <fcntl.h>

#include "serve/fingerprint.h"

/* That the fingerprint is another one than before, and stays it. */
static void assert_changed(uint64_t *before, bool changed)
{
    const uint64_t now = sx_dir_fingerprint(scratch("m"), NULL);
    assert_int_equal(now, sx_dir_fingerprint(scratch("m"), NULL));
    assert_int_not_equal(now, 0);
    assert_int_equal(now != *before, changed);
    *before = now;
}

static void make_older(const char *path, long seconds, long ns)
{
    const struct timespec times[2] = {{seconds, ns}, {seconds, ns}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void test_serve_fingerprint__sees_every_change(void **state)
{
    (void)state;
    uint64_t last = 0;
    assert_int_equal(sx_dir_fingerprint(scratch("none"), NULL), 0);
    assert_ok(sx_dir_create(scratch("m")));
    assert_changed(&last, true);
    write_file(scratch("m/a"), "1", 1);
    assert_changed(&last, true);
    make_older(scratch("m/a"), 1000, 5);
    assert_changed(&last, true);
    make_older(scratch("m/a"), 1000, 6);
    assert_changed(&last, true);
    make_older(scratch("m/a"), 1001, 6);
    assert_changed(&last, true);
    write_file(scratch("m/a"), "12", 2);
    make_older(scratch("m/a"), 1001, 6); /* the size alone */
    assert_changed(&last, true);
    assert_int_equal(rename(scratch("m/a"), scratch("m/b")), 0);
    assert_changed(&last, true);
    write_file(scratch("outside"), "1", 1);
    assert_changed(&last, false);
    write_file(scratch("m/c"), "12", 2);
    make_older(scratch("m/c"), 1001, 6);
    assert_changed(&last, true);
    assert_int_equal(unlink(scratch("m/c")), 0);
    assert_changed(&last, true);
    /* Another file of the same name, size and time. */
    write_file(scratch("outside"), "34", 2);
    make_older(scratch("outside"), 1001, 6);
    assert_int_equal(rename(scratch("outside"), scratch("m/b")), 0);
    assert_changed(&last, true);
}

/* Eight folders deep, not deeper. */
static void test_serve_fingerprint__looks_into_folders(void **state)
{
    (void)state;
    char path[600];
    uint64_t last = 0;
    snprintf(path, sizeof(path), "%s/m", scratch_dir);
    for (int depth = 0; depth <= 10; depth++) {
        size_t size = strlen(path);
        assert_ok(sx_dir_create(path));
        snprintf(path + size, sizeof(path) - size, "/f");
        write_file(path, "1", 1);
        make_older(path, 1000, 5);
        path[size] = '\0';
        const struct timespec old[2] = {{1000, 0}, {1000, 0}};
        char folder[600];
        snprintf(folder, sizeof(folder), "%s", path);
        for (size_t k = size; k > strlen(scratch_dir); k--) { /* times of folders change too */
            if (folder[k] == '/' || folder[k] == '\0') {
                folder[k] = '\0';
                assert_int_equal(utimensat(AT_FDCWD, folder, old, 0), 0);
            }
        }
        last = sx_dir_fingerprint(scratch("m"), NULL);
        snprintf(path + size, sizeof(path) - size, "/f");
        make_older(path, 2000, 5);
        assert_changed(&last, depth <= 8);
        snprintf(path + size, sizeof(path) - size, "/d");
    }
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_serve_fingerprint__sees_every_change),
    scratch_test(test_serve_fingerprint__looks_into_folders),
};
SX_TEST_MAIN(tests)
