/* Work in a child. */
#include "harness.h"

#include <signal.h>
#include <unistd.h>

#include "base/child.h"

static sx_status answer_much(void *user, sx_buf *answer)
{
    for (int i = 0; i < *(int *)user; i++) {
        sx_buf_printf(answer, "%d,", i);
    }
    return SX_OK;
}

static sx_status go_wrong(void *user, sx_buf *answer)
{
    (void)user;
    sx_buf_puts(answer, "half");
    return sx_error(SX_NOT_FOUND, "no such thing");
}

static sx_status die(void *user, sx_buf *answer)
{
    (void)answer;
    fputs("last words", stderr);
    switch (*(int *)user) {
    case 0:
        _exit(3);
    case 1:
        abort();
    default:
        pause();
    }
    return SX_OK;
}

static void test_base_child__answers(void **state)
{
    (void)state;
    sx_buf answer;
    int n = 50000;
    sx_buf_init(&answer, 0);
    sx_buf_puts(&answer, "before ");
    assert_ok(sx_run_in_child("it", 60, answer_much, &n, &answer));
    assert_memory_equal(answer.data, "before 0,1,2,", 13);
    assert_memory_equal(answer.data + answer.size - 6, "49999,", 6);
    sx_buf_deinit(&answer);
}

static void test_base_child__returns_its_error(void **state)
{
    (void)state;
    sx_buf answer;
    sx_buf_init(&answer, 0);
    assert_error(sx_run_in_child("it", 60, go_wrong, NULL, &answer), SX_NOT_FOUND, "no such thing");
    assert_int_equal(answer.size, 0);
    sx_buf_deinit(&answer);
}

static void test_base_child__reports_how_it_ended(void **state)
{
    (void)state;
    sx_buf answer;
    sx_buf_init(&answer, 0);
    assert_error(sx_run_in_child("it", 60, die, &(int){0}, &answer), SX_UNAVAILABLE,
                 "it exited with code 3; output: last words");
    assert_error(sx_run_in_child("it", 60, die, &(int){1}, &answer), SX_UNAVAILABLE,
                 "it crashed (Aborted); output: last words");
    assert_error(sx_run_in_child("it", 1, die, &(int){2}, &answer), SX_UNAVAILABLE,
                 "it did not finish within 1 s; output: last words");
    sx_buf_deinit(&answer);
}

static void test_base_child__a_long_answer_is_refused(void **state)
{
    (void)state;
    sx_buf answer;
    int n = 5000;
    sx_buf_init(&answer, 100);
    assert_error(sx_run_in_child("it", 60, answer_much, &n, &answer), SX_RESOURCE_EXHAUSTED, "");
    sx_buf_deinit(&answer);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_child__answers),
    cmocka_unit_test(test_base_child__returns_its_error),
    cmocka_unit_test(test_base_child__reports_how_it_ended),
    cmocka_unit_test(test_base_child__a_long_answer_is_refused),
};
SX_TEST_MAIN(tests)
