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

static void test_base_log__is_silent_without_a_sink(void **state)
{
    (void)state;
    sx_log(SX_LOG_ERROR, "nobody hears %d", 1);
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
    cmocka_unit_test(test_base_log__is_silent_without_a_sink),
    cmocka_unit_test(test_base_log__reaches_the_sink_from_its_level_on),
    cmocka_unit_test(test_base_log__clocks_move_on),
};

SX_TEST_MAIN(tests)
