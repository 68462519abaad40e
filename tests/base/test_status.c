#include "harness.h"

#include "base/memory.h"

static sx_status inner(void)
{
    return sx_error(SX_DATA_LOSS, "record %d is corrupt", 7);
}

static sx_status plain(void)
{
    SX_TRY(inner());
    return SX_OK;
}

static sx_status annotated(void)
{
    SX_TRY(inner(), "reading");
    return SX_OK;
}

static sx_status annotated_with_six(void)
{
    SX_TRY(inner(), "%d%d%d%d%d", 1, 2, 3, 4, 5);
    return SX_OK;
}

static sx_status with_goto(int *cleaned)
{
    sx_status status;
    SX_TRY_GOTO(status, inner(), done);
done:
    *cleaned += 1;
    return status;
}

static void test_base_status__ok_is_zero_and_reads_ok(void **state)
{
    (void)state;
    assert_int_equal(sizeof(sx_status), sizeof(void *));
    assert_int_equal(sx_status_code(SX_OK), SX_CODE_OK);
    assert_string_equal(sx_status_message(SX_OK), "OK");
    assert_string_equal(sx_status_trace(SX_OK), "");
    assert_null(sx_status_annotate(SX_OK, "f", 1, "context"));
    sx_status_free(SX_OK);
}

static void test_base_status__carries_code_message_and_place(void **state)
{
    (void)state;
    sx_status status = sx_status_make(SX_NOT_FOUND, "a.c", 12, "no key \"%s\"", "x");
    assert_int_equal(sx_status_code(status), SX_NOT_FOUND);
    assert_string_equal(sx_status_message(status), "no key \"x\"");
    assert_string_equal(sx_status_trace(status), "a.c:12");
    status = sx_status_annotate(status, "b.c", 3, "loading %s", "run1");
    assert_string_equal(sx_status_message(status), "loading run1: no key \"x\"");
    assert_string_equal(sx_status_trace(status), "a.c:12 < b.c:3");
    sx_status_free(status);
}

static void test_base_status__try_returns_and_annotates(void **state)
{
    (void)state;
    assert_error(plain(), SX_DATA_LOSS, "record 7 is corrupt");
    assert_error(annotated(), SX_DATA_LOSS, "reading: record 7 is corrupt");
    assert_error(annotated_with_six(), SX_DATA_LOSS, "12345: record 7");
    int cleaned = 0;
    assert_error(with_goto(&cleaned), SX_DATA_LOSS, "record 7");
    assert_int_equal(cleaned, 1);
}

static void test_base_status__survives_failing_allocations(void **state)
{
    (void)state;
    for (int n = 1; n <= 3; n++) {
        sx_alloc_fail_after(n);
        sx_status status = inner();
        sx_alloc_fail_after(0);
        assert_int_equal(sx_status_code(status), SX_RESOURCE_EXHAUSTED);
        assert_non_null(strstr(sx_status_message(status), "out of memory"));
        status = sx_status_annotate(status, "b.c", 3, "more");
        sx_status_free(status);
    }
    for (int n = 1; n <= 3; n++) {
        sx_status status = inner();
        sx_alloc_fail_after(n);
        status = sx_status_annotate(status, "b.c", 3, "more");
        sx_alloc_fail_after(0);
        assert_error(status, SX_DATA_LOSS, "record 7 is corrupt");
    }
}

static void test_base_status__bounds_a_huge_message(void **state)
{
    (void)state;
    sx_status status = sx_error(SX_INTERNAL, "%0100000d", 1);
    for (int i = 0; i < 2000; i++) {
        status = sx_status_annotate(status, "a/long/file/name.c", i, "again");
    }
    assert_true(strlen(sx_status_message(status)) < 20000);
    assert_true(strlen(sx_status_trace(status)) < 20000);
    sx_status_free(status);
}

static void test_base_status__names_every_code(void **state)
{
    (void)state;
    assert_string_equal(sx_code_name(SX_CODE_OK), "OK");
    assert_string_equal(sx_code_name(SX_UNAUTHENTICATED), "UNAUTHENTICATED");
    assert_string_equal(sx_code_name((sx_code)17), "?");
    for (int code = 0; code <= 16; code++) {
        assert_string_not_equal(sx_code_name((sx_code)code), "?");
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_status__ok_is_zero_and_reads_ok),
    cmocka_unit_test(test_base_status__carries_code_message_and_place),
    cmocka_unit_test(test_base_status__try_returns_and_annotates),
    cmocka_unit_test(test_base_status__survives_failing_allocations),
    cmocka_unit_test(test_base_status__bounds_a_huge_message),
    cmocka_unit_test(test_base_status__names_every_code),
};

SX_TEST_MAIN(tests)
