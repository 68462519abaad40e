/* Regular expressions by RE2: whole matches, rewrites, invalid expressions. A build without RE2
 * refuses them by name. What RE2 itself gives is compared in tests/interop/test_host_ops.py. */
#include "harness.h"

#include "base/checked.h"
#include "base/regex.h"

static sx_bytes bytes(const char *text)
{
    return (sx_bytes){text, strlen(text)};
}

/* Creates it; false if this build has no RE2, and says so. */
static bool create(const char *pattern, sx_regex **out)
{
    sx_status status = sx_regex_create(bytes(pattern), out);
    if (sx_status_code(status) == SX_UNIMPLEMENTED) {
        assert_non_null(strstr(sx_status_message(status), "libre2-dev"));
        sx_status_free(status);
        return false;
    }
    assert_ok(status);
    return true;
}

static void test_base_regex__replaces(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text, *rewrite;
        bool all;
        const char *expected;
    } rows[] = {
        {"[aeiou]", "banana", "<\\0>", true, "b<a>n<a>n<a>"},
        {"[aeiou]", "banana", "_", false, "b_nana"},
        {"(b)(a)", "banana", "\\2\\1", true, "abnana"},
        {"x*", "aé", "-", true, "-a-é-"},
        {"a", "banana", "\\1", true, "banana"}, /* there is no group 1 */
        {"$", "", "end", true, "end"},
        {"a", "banana", "\\\\", false, "b\\nana"},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_regex *regex;
        sx_buf out;
        if (!create(rows[i].pattern, &regex)) {
            return;
        }
        sx_buf_init(&out, 0);
        sx_regex_replace(regex, bytes(rows[i].text), bytes(rows[i].rewrite), rows[i].all, &out);
        assert_string_equal(sx_buf_text(&out), rows[i].expected);
        sx_buf_deinit(&out);
        sx_regex_destroy(regex);
    }
}

static void test_base_regex__output_is_bounded(void **state)
{
    (void)state;
    sx_regex *regex;
    sx_buf out;
    if (!create("", &regex)) {
        return;
    }
    sx_buf_init(&out, 100);
    sx_regex_replace(regex, bytes("aaaaaaaaaa"), bytes("0123456789012345"), true, &out);
    sx_status status = sx_buf_status(&out);
    assert_int_equal(sx_status_code(status), SX_RESOURCE_EXHAUSTED);
    sx_status_free(status);
    sx_buf_deinit(&out);
    sx_regex_destroy(regex);
}

static void test_base_regex__matches_the_whole_text(void **state)
{
    (void)state;
    sx_regex *regex;
    if (!create("a+|b", &regex)) {
        return;
    }
    assert_true(sx_regex_matches_all(regex, bytes("aaa")));
    assert_true(sx_regex_matches_all(regex, bytes("b")));
    assert_false(sx_regex_matches_all(regex, bytes("ab")));
    assert_false(sx_regex_matches_all(regex, (sx_bytes){NULL, 0}));
    sx_regex_destroy(regex);
}

static void test_base_regex__invalid_expressions_are_refused(void **state)
{
    (void)state;
    sx_regex *regex = NULL;
    if (!create("a", &regex)) {
        return;
    }
    sx_regex_destroy(regex);
    sx_status status = sx_regex_create(bytes("(a"), &regex);
    assert_int_equal(sx_status_code(status), SX_INVALID_ARGUMENT);
    assert_non_null(strstr(sx_status_message(status), "invalid regular expression: missing )"));
    sx_status_free(status);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_regex__replaces),
    cmocka_unit_test(test_base_regex__output_is_bounded),
    cmocka_unit_test(test_base_regex__matches_the_whole_text),
    cmocka_unit_test(test_base_regex__invalid_expressions_are_refused),
};
SX_TEST_MAIN(tests)
