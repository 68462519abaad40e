/* A scratch directory per test: scratch("name") is a path inside it. */
#ifndef SX_TESTS_IO_SCRATCH_H
#define SX_TESTS_IO_SCRATCH_H

#include "harness.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/file.h"
#include "io/path.h"

static char scratch_dir[256];

static inline int scratch_setup(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(scratch_dir, sizeof scratch_dir, "%s/sextant-test-XXXXXX",
             base != NULL ? base : "/tmp");
    return mkdtemp(scratch_dir) == NULL;
}

static inline int scratch_teardown(void **state)
{
    (void)state;
    sx_status status = sx_dir_remove(scratch_dir);
    int failed = status != SX_OK;
    sx_status_free(status);
    return failed;
}

#define scratch_test(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

/* A path in the scratch directory; four may be in use at a time. */
static inline char *scratch(const char *name)
{
    static char paths[4][600];
    static int next;
    char *path = paths[next++ % 4];
    assert_true(scratch_dir[0] != '\0'); /* else the test lacks scratch_test() */
    snprintf(path, sizeof paths[0], "%s/%s", scratch_dir, name);
    return path;
}

static inline void write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The file holds exactly these bytes. */
static inline void assert_file(const char *path, const void *data, size_t size)
{
    char *got = NULL;
    size_t got_size = 0;
    assert_ok(sx_file_read(path, (size_t)1 << 30, &got, &got_size));
    assert_int_equal(got_size, size);
    assert_memory_equal(got, data, size);
    sx_free(got);
}

/* The number of entries of a directory, hidden ones included, without "." and "..". */
static inline int count_entries(const char *dir)
{
    DIR *stream = opendir(dir);
    assert_non_null(stream);
    int count = 0;
    for (struct dirent *e = readdir(stream); e != NULL; e = readdir(stream)) {
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    closedir(stream);
    return count;
}

/* Bytes from hexadecimal text; spaces are ignored. Returns the count. */
static inline size_t from_hex(const char *hex, uint8_t *out)
{
    size_t count = 0;
    for (; *hex != '\0'; hex++) {
        unsigned value;
        if (*hex != ' ') {
            assert_int_equal(sscanf(hex, "%2x", &value), 1);
            out[count++] = (uint8_t)value;
            hex++;
        }
    }
    return count;
}

#endif
