#include "harness.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"

static void test_base_buffer__builds_text(void **state)
{
    (void)state;
    sx_buf buf;
    sx_buf_init(&buf, 0);
    assert_string_equal(sx_buf_text(&buf), "");
    sx_buf_puts(&buf, "abc");
    sx_buf_putc(&buf, '-');
    sx_buf_printf(&buf, "%d/%s", 42, "x");
    sx_buf_append(&buf, "\0z", 2);
    assert_int_equal(buf.size, 10);
    assert_memory_equal(sx_buf_text(&buf), "abc-42/x\0z", 11);
    assert_ok(sx_buf_status(&buf));
    sx_buf_reset(&buf);
    assert_string_equal(sx_buf_text(&buf), "");
    for (int i = 0; i < 10000; i++) {
        sx_buf_printf(&buf, "%04d", i);
    }
    assert_int_equal(buf.size, 40000);
    assert_memory_equal(sx_buf_text(&buf) + 4 * 1234, "1234", 4);
    sx_buf_deinit(&buf);
}

static void test_base_buffer__puts_sizes_for_people(void **state)
{
    (void)state;
    static const struct {
        double bytes;
        const char *text;
    } rows[] = {{0, "0 bytes"},
                {1, "1 byte"},
                {1023, "1023 bytes"},
                {1536, "1.5 KiB"},
                {3.0 * 1024 * 1024 * 1024, "3.0 GiB"},
                {4096.0 * 1024 * 1024 * 1024 * 1024, "4096.0 TiB"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_buf buf;
        sx_buf_init(&buf, 0);
        sx_buf_put_size(&buf, rows[i].bytes);
        assert_string_equal(sx_buf_text(&buf), rows[i].text);
        sx_buf_deinit(&buf);
    }
}

static void test_base_buffer__stops_at_its_maximum(void **state)
{
    (void)state;
    sx_buf buf;
    sx_buf_init(&buf, 8);
    sx_buf_puts(&buf, "12345678");
    assert_ok(sx_buf_status(&buf));
    sx_buf_putc(&buf, '9');
    sx_buf_putc(&buf, '0');
    assert_string_equal(sx_buf_text(&buf), "12345678");
    assert_null(sx_buf_extend(&buf, 0));
    assert_null(sx_buf_take(&buf, NULL));
    assert_error(sx_buf_status(&buf), SX_RESOURCE_EXHAUSTED, "maximum of 8 bytes");
    sx_buf_reset(&buf);
    sx_buf_puts(&buf, "ok");
    assert_ok(sx_buf_status(&buf));
    assert_null(sx_buf_extend(&buf, SIZE_MAX));
    sx_buf_deinit(&buf);
}

/* Without a maximum of its own a buffer takes 1 GiB: one byte more is refused before memory is
 * asked for. (The allocation fails here, so that no test needs that much.) */
static void test_base_buffer__takes_a_gibibyte_by_default(void **state)
{
    (void)state;
    static const struct {
        size_t max_bytes, size;
        const char *says;
    } rows[] = {
        {0, (size_t)1 << 30, "out of memory"},
        {0, ((size_t)1 << 30) + 1, "maximum of 1073741824 bytes"},
        {(size_t)1 << 40, (size_t)1 << 40, "out of memory"},
        {(size_t)1 << 40, ((size_t)1 << 40) + 1, "maximum of 1099511627776 bytes"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_buf buf;
        sx_buf_init(&buf, rows[i].max_bytes);
        sx_alloc_fail_after(1);
        assert_null(sx_buf_extend(&buf, rows[i].size));
        sx_alloc_fail_after(0);
        assert_error(sx_buf_status(&buf), SX_RESOURCE_EXHAUSTED, rows[i].says);
        sx_buf_deinit(&buf);
    }
}

static void test_base_buffer__keeps_the_first_failure(void **state)
{
    (void)state;
    sx_buf buf;
    sx_buf_init(&buf, 0);
    sx_alloc_fail_after(1);
    sx_buf_puts(&buf, "lost");
    sx_alloc_fail_after(0);
    sx_buf_puts(&buf, "ignored");
    assert_string_equal(sx_buf_text(&buf), "");
    assert_error(sx_buf_status(&buf), SX_RESOURCE_EXHAUSTED, "out of memory");
    sx_buf_deinit(&buf);
}

static void test_base_buffer__hands_its_bytes_over(void **state)
{
    (void)state;
    sx_buf buf;
    sx_buf_init(&buf, 100);
    sx_buf_puts(&buf, "mine");
    size_t size = 0;
    char *text = sx_buf_take(&buf, &size);
    assert_string_equal(text, "mine");
    assert_int_equal(size, 4);
    sx_free(text);
    assert_int_equal(buf.max_bytes, 100);
    text = sx_buf_take(&buf, &size);
    assert_string_equal(text, "");
    assert_int_equal(size, 0);
    sx_free(text);
    memcpy(sx_buf_extend(&buf, 3), "xyz", 3);
    assert_string_equal(sx_buf_text(&buf), "xyz");
    sx_buf_deinit(&buf);
}

/* Where twice as much does not fit, the buffer does not grow by each piece, copying all of it. */
static void test_base_buffer__grows_in_few_steps_near_the_limit(void **state)
{
    (void)state;
    sx_budget budget;
    sx_buf buf;
    int grown = 0;
    sx_budget_init(&budget, "a test", 100000, NULL);
    sx_buf_init(&buf, 0);
    buf.budget = &budget;
    for (size_t capacity = 0; buf.failed == 0; capacity = buf.capacity) {
        sx_buf_append(&buf, "piece", 5);
        grown += buf.capacity != capacity;
    }
    assert_true(buf.size > 99900);
    assert_true(grown < 40);
    sx_buf_deinit(&buf);
    assert_int_equal(sx_budget_used(&budget), 0);
}

static void test_base_buffer__charges_its_budget(void **state)
{
    (void)state;
    sx_budget budget;
    sx_buf buf;
    char piece[300] = "";
    sx_budget_init(&budget, "a test", 1000, NULL);
    sx_buf_init(&buf, 0);
    buf.budget = &budget;
    sx_buf_append(&buf, piece, sizeof(piece));
    assert_ok(sx_buf_status(&buf));
    assert_int_equal(sx_budget_used(&budget), buf.capacity);
    sx_buf_append(&buf, piece, sizeof(piece));
    assert_int_equal(sx_budget_used(&budget), buf.capacity);
    sx_alloc_fail_after(1);
    sx_buf_append(&buf, piece, 100);
    sx_alloc_fail_after(0);
    assert_error(sx_buf_status(&buf), SX_RESOURCE_EXHAUSTED, "out of memory");
    assert_int_equal(sx_budget_used(&budget), buf.capacity);
    sx_buf_reset(&buf);
    sx_buf_append(&buf, piece, sizeof(piece));
    for (int i = 0; i < 3; i++) {
        sx_buf_append(&buf, piece, sizeof(piece)); /* 1,200 bytes */
    }
    assert_int_equal(buf.failed, SX_RESOURCE_EXHAUSTED);
    assert_true(sx_budget_refused(&budget));
    sx_buf_deinit(&buf);
    assert_int_equal(sx_budget_used(&budget), 0);
    sx_buf_append(&buf, piece, sizeof(piece)); /* an emptied buffer keeps its budget */
    const size_t charged = sx_budget_used(&budget);
    assert_true(charged >= sizeof(piece));
    sx_free(sx_buf_take(&buf, NULL));
    assert_int_equal(sx_budget_used(&budget), charged); /* whoever took the bytes releases it */
    sx_buf_deinit(&buf);
    assert_int_equal(sx_budget_used(&budget), charged);
}

static void test_base_buffer__replaces_what_is_not_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        const char *expected;
    } rows[] = {
        {"", 0, ""},
        {"a\xC3\xBC\xE8\x8A\xB1", 6, "a\xC3\xBC\xE8\x8A\xB1"},
        {"\xFF", 1, "\xEF\xBF\xBD"},
        {"caf\xE9.jpg", 8, "caf\xEF\xBF\xBD.jpg"},
        {"\xE8\x8A", 2, "\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"x\xC0\xAFy", 4, "x\xEF\xBF\xBD\xEF\xBF\xBDy"},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_buf buf;
        sx_buf_init(&buf, 0);
        sx_buf_put_utf8(&buf, rows[i].text, rows[i].size);
        assert_string_equal(sx_buf_text(&buf), rows[i].expected);
        sx_buf_deinit(&buf);
    }
}

static void test_base_buffer__hides_control_characters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        const char *keep, *expected;
    } rows[] = {
        {"", 0, "", ""},
        {"plain ~ \xC3\xBC\xE8\x8A\xB1", 13, "", "plain ~ \xC3\xBC\xE8\x8A\xB1"},
        {"\x1b[31m\x7f\x1f", 7, "\n", "?[31m??"},
        {"a\nb\tc", 5, "\n\t", "a\nb\tc"},
        {"a\nb\tc", 5, "\n", "a\nb?c"},
        {"a\nb\tc", 5, "", "a?b?c"},
        {"a\0b", 3, "\n", "a?b"},
        /* U+0080, U+009F; U+00A0; a lead byte at the end */
        {"\xC2\x80\xC2\x9F.\xC2\xA0\xC2", 8, "", "??.\xC2\xA0\xC2"},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_buf buf;
        sx_buf_init(&buf, 0);
        sx_buf_put_visible(&buf, rows[i].text, rows[i].size, rows[i].keep);
        assert_string_equal(sx_buf_text(&buf), rows[i].expected);
        sx_buf_deinit(&buf);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_buffer__hides_control_characters),
    cmocka_unit_test(test_base_buffer__replaces_what_is_not_utf8),
    cmocka_unit_test(test_base_buffer__builds_text),
    cmocka_unit_test(test_base_buffer__puts_sizes_for_people),
    cmocka_unit_test(test_base_buffer__stops_at_its_maximum),
    cmocka_unit_test(test_base_buffer__takes_a_gibibyte_by_default),
    cmocka_unit_test(test_base_buffer__keeps_the_first_failure),
    cmocka_unit_test(test_base_buffer__hands_its_bytes_over),
    cmocka_unit_test(test_base_buffer__charges_its_budget),
    cmocka_unit_test(test_base_buffer__grows_in_few_steps_near_the_limit),
};

SX_TEST_MAIN(tests)
