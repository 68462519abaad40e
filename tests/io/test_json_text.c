#include "harness.h"

#include <float.h>
#include <string.h>

#include "base/memory.h"
#include "io/json_text.h"

/* Takes `json`. */
static void assert_text(json_t *json, size_t flags, const char *expected)
{
    char *text = NULL;
    assert_ok(sx_json_text(json, flags, &text));
    assert_string_equal(text, expected);
    sx_free(text);
    json_decref(json);
}

static void test_io_json_text__numbers_are_short(void **state)
{
    (void)state;
    assert_text(json_real(0.9861), 0, "0.9861");
    assert_text(json_real(1e-10), 0, "1e-10");
    assert_text(json_real(-3), 0, "-3.0");
    assert_text(json_integer(INT64_MIN), 0, "-9223372036854775808");
}

static void test_io_json_text__doubles_read_back(void **state)
{
    (void)state;
    const double values[] = {0.1, 1.0 / 3, DBL_MIN, DBL_MAX, 5e-324, -0.0, 1e15, 1e16, 1e17, 1e22};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        json_t *json = json_real(values[i]);
        char *text = NULL;
        assert_ok(sx_json_text(json, 0, &text));
        json_decref(json);
        json = json_loads(text, JSON_DECODE_ANY, NULL);
        assert_true(json_is_real(json));
        double back = json_real_value(json);
        assert_memory_equal(&back, &values[i], sizeof(back));
        json_decref(json);
        sx_free(text);
    }
}

/* Whatever the flags, the layout is jansson's. */
static void test_io_json_text__layout_is_janssons(void **state)
{
    (void)state;
    static const size_t flags[] = {0,
                                   JSON_COMPACT,
                                   JSON_INDENT(1),
                                   JSON_INDENT(2),
                                   JSON_ENSURE_ASCII,
                                   JSON_INDENT(3) | JSON_COMPACT | JSON_ENSURE_ASCII};
    static const char source[] =
        "{\"z\": [1, [], {}, [2]], \"a\": {\"ü\\\"\\u0001\": null, \"b\": [true, false]},"
        " \"empty\": \"\", \"x\": \"\\\\ / \\n €\", \"real\": 0.5}";
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        json_t *json = json_loads(source, 0, NULL);
        assert_non_null(json);
        char *expected = json_dumps(json, flags[i] | JSON_PRESERVE_ORDER);
        assert_text(json, flags[i], expected);
        free(expected);
    }
}

static void test_io_json_text__what_cannot_be_written(void **state)
{
    (void)state;
    char *text = NULL;
    assert_error(sx_json_text(NULL, 0, &text), SX_RESOURCE_EXHAUSTED, "out of memory");
    json_t *json = json_pack("[o]", json_string_nocheck("\xff"));
    assert_error(sx_json_text(json, 0, &text), SX_INVALID_ARGUMENT, "UTF-8");
    json_decref(json);
    assert_null(text);
}

/* White space may change, nothing else. */
static void test_io_json_text__seals_notice_changes(void **state)
{
    (void)state;
    char *text = NULL;
    json_t *json = json_pack("{s:[i,f], s:s}", "b", 7, 0.1, "a", "x");
    assert_error(sx_json_check_seal(json), SX_DATA_LOSS, "its checksum is missing");
    assert_ok(sx_json_seal(json));
    assert_ok(sx_json_seal(json)); /* replaces it */
    assert_ok(sx_json_text(json, JSON_INDENT(3), &text));
    json_decref(json);
    size_t size = strlen(text);
    int same = 0;
    for (size_t i = 0; i <= size; i++) {
        char kept = text[i];
        text[i] = (char)(i < size ? kept ^ 1 : kept);
        json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        sx_status status = json != NULL ? sx_json_check_seal(json) : sx_error(SX_DATA_LOSS, "no");
        same += status == SX_OK;
        assert_true(status != SX_OK || i == size || kept == ' ' || kept == '\n');
        sx_status_free(status);
        json_decref(json);
        text[i] = kept;
    }
    assert_true(same >= 1);
    sx_free(text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_io_json_text__seals_notice_changes),
    cmocka_unit_test(test_io_json_text__numbers_are_short),
    cmocka_unit_test(test_io_json_text__doubles_read_back),
    cmocka_unit_test(test_io_json_text__layout_is_janssons),
    cmocka_unit_test(test_io_json_text__what_cannot_be_written),
};
SX_TEST_MAIN(tests)
