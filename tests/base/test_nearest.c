#include "harness.h"

#include "base/nearest.h"

static void test_base_nearest__counts_edits(void **state)
{
    (void)state;
    assert_int_equal(sx_edit_distance("", ""), 0);
    assert_int_equal(sx_edit_distance("", "abc"), 3);
    assert_int_equal(sx_edit_distance("abc", ""), 3);
    assert_int_equal(sx_edit_distance("kitten", "sitting"), 3);
    assert_int_equal(sx_edit_distance("train", "trian"), 1);
    assert_int_equal(sx_edit_distance("serve", "serve"), 0);
    assert_int_equal(sx_edit_distance("ab", "ba"), 1);
}

static void test_base_nearest__names_the_near_ones_nearest_first(void **state)
{
    (void)state;
    static const char *const names[] = {"evaluate", "train", "serve", "strain", "drain", "brain"};
    sx_buf text;
    sx_buf_init(&text, 0);
    assert_int_equal(sx_nearest_names("trian", names, 6, &text), 2);
    assert_string_equal(sx_buf_text(&text), "\"train\" or \"strain\"");
    sx_buf_reset(&text);
    assert_int_equal(sx_nearest_names("train", names, 6, &text), 3);
    assert_string_equal(sx_buf_text(&text), "\"train\", \"strain\" or \"drain\"");
    sx_buf_reset(&text);
    assert_int_equal(sx_nearest_names("eva", names, 6, &text), 1); /* the beginning of a name */
    assert_string_equal(sx_buf_text(&text), "\"evaluate\"");
    sx_buf_reset(&text);
    assert_int_equal(sx_nearest_names("ev", names, 6, &text), 0);
    assert_int_equal(sx_nearest_names("xyzzy", names, 6, &text), 0);
    assert_string_equal(sx_buf_text(&text), "");
    sx_buf_deinit(&text);
}

static void test_base_nearest__lists_all_names_and_the_near_ones(void **state)
{
    (void)state;
    static const char *const names[] = {"age", "product"};
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_nearest_list("prodcut", names, 2, &text);
    assert_string_equal(sx_buf_text(&text),
                        "(it has \"age\", \"product\"); did you mean \"product\"?");
    sx_buf_reset(&text);
    sx_nearest_list("xyzzy", names, 1, &text);
    assert_string_equal(sx_buf_text(&text), "(it has \"age\")");
    sx_buf_reset(&text);
    sx_nearest_list("age", names, 0, &text);
    assert_string_equal(sx_buf_text(&text), "(it has none)");
    sx_buf_deinit(&text);
}

static void test_base_nearest__long_names_are_cut(void **state)
{
    (void)state;
    char a[1000], b[1000];
    memset(a, 'a', sizeof(a));
    memset(b, 'b', sizeof(b));
    a[999] = b[999] = '\0';
    assert_int_equal(sx_edit_distance(a, b), 127);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_nearest__counts_edits),
    cmocka_unit_test(test_base_nearest__names_the_near_ones_nearest_first),
    cmocka_unit_test(test_base_nearest__lists_all_names_and_the_near_ones),
    cmocka_unit_test(test_base_nearest__long_names_are_cut),
};
SX_TEST_MAIN(tests)
