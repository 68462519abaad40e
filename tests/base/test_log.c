#include "harness.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

typedef struct seen {
    int lines;
    sx_log_level level;
    char message[64];
} seen;

static void keep(void *user, sx_log_level level, const char *file, int line, const char *message)
{
    seen *s = user;
    assert_non_null(strstr(file, "test_log.c"));
    assert_true(line > 0);
    s->lines++;
    s->level = level;
    snprintf(s->message, sizeof(s->message), "%s", message);
}

/* Before a sink is set. */
static void test_base_log__prints_warnings_to_stderr_by_default(void **state)
{
    (void)state;
    char text[256] = "";
    FILE *file = tmpfile();
    int real = dup(STDERR_FILENO);
    assert_non_null(file);
    assert_true(real >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    sx_log(SX_LOG_INFO, "not this");
    sx_log(SX_LOG_WARN, "disk %d %% full", 90);
    sx_log(SX_LOG_ERROR, "disk full");
    fflush(stderr);
    assert_true(dup2(real, STDERR_FILENO) >= 0);
    close(real);
    rewind(file);
    size_t n = fread(text, 1, sizeof(text) - 1, file);
    text[n] = '\0';
    fclose(file);
    assert_string_equal(text, "sextant: warning: disk 90 % full\nsextant: error: disk full\n");
}

static void test_base_log__reaches_the_sink_from_its_level_on(void **state)
{
    (void)state;
    seen s = {0};
    sx_log_set_sink(keep, &s, SX_LOG_INFO);
    sx_log(SX_LOG_DEBUG, "too low");
    assert_int_equal(s.lines, 0);
    sx_log(SX_LOG_WARN, "disk %d %% full", 90);
    assert_int_equal(s.lines, 1);
    assert_int_equal(s.level, SX_LOG_WARN);
    assert_string_equal(s.message, "disk 90 % full");
    sx_log_set_sink(NULL, NULL, SX_LOG_DEBUG);
    sx_log(SX_LOG_ERROR, "off again");
    assert_int_equal(s.lines, 1);
}

static void test_base_log__clocks_move_on(void **state)
{
    (void)state;
    int64_t start = sx_now_ns();
    usleep(2000);
    assert_true(sx_now_ns() - start >= 2000000);
    assert_true(sx_wall_seconds() > 1.7e9);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_log__prints_warnings_to_stderr_by_default),
    cmocka_unit_test(test_base_log__reaches_the_sink_from_its_level_on),
    cmocka_unit_test(test_base_log__clocks_move_on),
};

SX_TEST_MAIN(tests)
