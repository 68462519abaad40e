/* The shared main of every test program.
 *
 *   static void test_base_map__keeps_order(void **state) { ... }
 *   static const struct CMUnitTest tests[] = { cmocka_unit_test(test_base_map__keeps_order), };
 *   SX_TEST_MAIN(tests)
 *
 * Without an argument the program runs all its tests; with a test's name, that one alone (CTest
 * does so). A test that CMake found in the source but that is not in the array does not compile:
 * the counts differ. The exit code is 0, 1 (failed) or 77 (skipped, see SX_SKIP).
 *
 * A test gives back what it took: it fails when it ends with more or fewer blocks of sx_alloc(),
 * open files or mapped files than it began with. */
#ifndef SX_TESTS_HARNESS_H
#define SX_TESTS_HARNESS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <sextant/status.h>

#include "base/memory.h"

enum { SX_EXIT_SKIPPED = 77 };

static bool harness_skipped;

/* Ends the running test as skipped; the reason appears in `make test`'s report. */
#define SX_SKIP(...)            \
    do {                        \
        printf("SKIP: ");       \
        printf(__VA_ARGS__);    \
        printf("\n");           \
        fflush(stdout);         \
        harness_skipped = true; \
        skip();                 \
    } while (0)

/* Whether a sanitizer was built in: it takes memory of its own, and keeps what is freed. */
static inline bool harness_sanitizes(void)
{
    const char *sanitizer = getenv("SEXTANT_SANITIZE");
    return sanitizer != NULL && sanitizer[0] != '\0';
}

/* Fails, showing the message, unless `expr` is SX_OK. */
#define assert_ok(expr)                                                             \
    do {                                                                            \
        sx_status harness_status_ = (expr);                                         \
        if (harness_status_ != SX_OK) {                                             \
            print_error("%s\n    made at %s\n", sx_status_message(harness_status_), \
                        sx_status_trace(harness_status_));                          \
            sx_status_free(harness_status_);                                        \
            fail_msg("%s is not OK", #expr);                                        \
        }                                                                           \
    } while (0)

/* Fails unless `expr` is an error of code `code` whose message contains `part`. Frees it. */
#define assert_error(expr, code, part) \
    harness_check_error((expr), (code), (part), #expr, __FILE__, __LINE__)

static inline void harness_check_error(sx_status status, sx_code code, const char *part,
                                       const char *expr, const char *file, int line)
{
    bool right = sx_status_code(status) == code && strstr(sx_status_message(status), part) != NULL;
    if (!right) {
        print_error("%s gave %s \"%s\", expected %s with \"%s\"\n", expr,
                    sx_code_name(sx_status_code(status)), sx_status_message(status),
                    sx_code_name(code), part);
    }
    sx_status_free(status);
    if (!right) {
        _fail(file, line);
    }
}

/* Whether a status is what a row expects: "" for OK, or "DATA_LOSS: part of the message". */
static inline bool harness_is(sx_status status, const char *expected)
{
    const char *code = sx_code_name(sx_status_code(status));
    const size_t size = strlen(code);
    if (status == SX_OK) {
        return expected[0] == '\0';
    }
    return strncmp(expected, code, size) == 0 && strncmp(expected + size, ": ", 2) == 0 &&
           strstr(sx_status_message(status), expected + size + 2) != NULL;
}

/* What a test must give back. Libraries, once loaded, stay. */
typedef struct harness_held {
    long blocks;
    char files[64][256]; /* open files by descriptor, "" for none */
    uint64_t ids[64][2]; /* of them; the path of a file may change meanwhile */
    long maps;           /* of files, the system's left out */
} harness_held;

static inline harness_held harness_look(void)
{
    static char line[4096];
    harness_held held = {.blocks = sx_alloc_live()};
    for (int fd = 0; fd < 64; fd++) {
        snprintf(line, sizeof line, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(line, held.files[fd], sizeof held.files[fd] - 1);
        held.files[fd][n > 0 ? n : 0] = '\0';
        struct stat info;
        if (n > 0 && fstat(fd, &info) == 0) {
            held.ids[fd][0] = (uint64_t)info.st_dev;
            held.ids[fd][1] = (uint64_t)info.st_ino;
        }
    }
/* ThreadSanitizer maps programs itself, to name the functions of its suppressions. */
#if defined(__SANITIZE_THREAD__)
    FILE *maps = NULL;
#else
    FILE *maps = fopen("/proc/self/maps", "re");
#endif
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        char *path = strchr(line, '/');
        held.maps += path != NULL && strstr(path, ".so") == NULL && strncmp(path, "/usr/", 5) != 0;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return held;
}

/* Prints what was not given back; true when all was. */
static inline bool harness_gave_back(const harness_held *before)
{
    harness_held after = harness_look();
    bool same = after.blocks == before->blocks && after.maps == before->maps;
    if (after.blocks != before->blocks) {
        print_error("[  LEAK    ] %+ld blocks of sx_alloc()\n", after.blocks - before->blocks);
    }
    if (after.maps != before->maps) {
        print_error("[  LEAK    ] %+ld mapped files\n", after.maps - before->maps);
    }
    for (int fd = 0; fd < 64; fd++) {
        const bool is_path = after.files[fd][0] == '/';
        if (memcmp(after.ids[fd], before->ids[fd], sizeof after.ids[fd]) != 0 ||
            (!is_path && strcmp(after.files[fd], before->files[fd]) != 0)) {
            print_error("[  LEAK    ] descriptor %d was \"%s\", is \"%s\"\n", fd, before->files[fd],
                        after.files[fd]);
            same = false;
        }
    }
    return same;
}

/* cmocka's own takes a NaN as equal to any number. */
static inline void harness_float_equal(double a, double b, double epsilon, const char *file,
                                       int line)
{
    if (a != b && !(fabs(a - b) <= epsilon)) {
        print_error("%.9g != %.9g\n", a, b);
        _fail(file, line);
    }
}
#undef assert_float_equal
#define assert_float_equal(a, b, epsilon) harness_float_equal(a, b, epsilon, __FILE__, __LINE__)

/* The greater, and NaN if one of them is: fmax() takes the other number. */
static inline double harness_greater(double a, double b)
{
    return isnan(a) || a >= b ? a : b;
}

static inline int harness_run(const struct CMUnitTest *tests, size_t count, const char *only)
{
    if (only == NULL) {
        return _cmocka_run_group_tests("tests", tests, count, NULL, NULL) == 0 ? 0 : 1;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(tests[i].name, only) == 0) {
            harness_held before = harness_look();
            bool failed = _cmocka_run_group_tests(only, &tests[i], 1, NULL, NULL) != 0;
            failed = failed || (!harness_skipped && !harness_gave_back(&before));
            return failed ? 1 : harness_skipped ? SX_EXIT_SKIPPED : 0;
        }
    }
    fprintf(stderr, "%s is not in tests[]\n", only);
    return 1;
}

#ifndef SX_TESTS_FOUND
#define SX_TESTS_FOUND (sizeof(tests) / sizeof(tests[0]))
#endif

#define SX_TEST_MAIN(tests)                                                                       \
    _Static_assert(sizeof(tests) / sizeof((tests)[0]) == SX_TESTS_FOUND,                          \
                   "tests[] does not hold every test function of this file");                     \
    int main(int argc, char **argv)                                                               \
    {                                                                                             \
        return harness_run(tests, sizeof(tests) / sizeof((tests)[0]), argc > 1 ? argv[1] : NULL); \
    }

#endif
