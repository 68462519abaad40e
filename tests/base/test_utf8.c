/* UTF-8: against the definition (encode every code point; everything else is malformed), and the
 * boundaries of table 3-7 by name. */
#include "harness.h"

#include <string.h>

#include "base/checked.h"
#include "base/utf8.h"

static void test_base_utf8__every_code_point(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        char text[4];
        const size_t size = (size_t)(sx_utf8_put(text, code) - text);
        const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
        const size_t expected = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        assert_int_equal(size, expected);
        assert_int_equal(sx_utf8_sequence(text, size), surrogate ? 0 : size);
        assert_int_equal(sx_utf8_sequence(text, size - 1 ? size - 1 : 1), size == 1);
    }
}

/* Of all two-byte texts those are well-formed that are two ASCII bytes or one sequence of two. */
static void test_base_utf8__every_pair_of_bytes(void **state)
{
    (void)state;
    int valid = 0;
    for (int i = 0; i < 65536; i++) {
        const uint8_t text[2] = {(uint8_t)(i >> 8), (uint8_t)i};
        valid += sx_utf8_valid(text, 2);
    }
    assert_int_equal(valid, 128 * 128 + (0x800 - 0x80));
}

static void test_base_utf8__malformed(void **state)
{
    (void)state;
    static const char *const malformed[] = {
        "\x80",             /* a continuation alone */
        "\xC0\x80",         /* overlong NUL */
        "\xC1\xBF",         /* overlong */
        "\xE0\x9F\xBF",     /* overlong */
        "\xED\xA0\x80",     /* a surrogate */
        "\xF0\x8F\xBF\xBF", /* overlong */
        "\xF4\x90\x80\x80", /* above U+10FFFF */
        "\xF5\x80\x80\x80", /* no lead */
        "\xFF",             /* never */
        "\xE2\x82",         /* cut off */
        "\xE2\x28\xA1",     /* no continuation */
        "\xF0\x9F\x98x",    /* no continuation */
    };
    for (size_t i = 0; i < SX_COUNT(malformed); i++) {
        assert_int_equal(sx_utf8_sequence(malformed[i], strlen(malformed[i])), 0);
        assert_false(sx_utf8_valid(malformed[i], strlen(malformed[i])));
    }
}

/* The quick way over eight ASCII bytes stops where the slow one does. */
static void test_base_utf8__prefix(void **state)
{
    (void)state;
    for (size_t at = 0; at < 32; at++) {
        char text[40];
        memset(text, 'a', sizeof(text));
        text[at] = '\xFF';
        assert_int_equal(sx_utf8_prefix(text, sizeof(text)), at);
        memcpy(text + at, "\xE2\x82\xAC", 3);
        assert_int_equal(sx_utf8_prefix(text, sizeof(text)), sizeof(text));
        assert_int_equal(sx_utf8_prefix(text, at + 2), at);
    }
    assert_int_equal(sx_utf8_prefix(NULL, 0), 0);
}

/* As many replacements as Unicode recommends: the longest part that could begin a sequence. */
static void test_base_utf8__decode(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        uint32_t code;
    } rows[] = {
        {"a", 1, 'a'},
        {"\xc3\xa9x", 2, 0xE9},
        {"\xf0\x9f\x98\x80", 4, 0x1F600},
        {"\xf4\x8f\xbf\xbf", 4, 0x10FFFF},
        {"\xe2\x82", 2, SX_UTF8_MALFORMED},
        {"\xf0\x9f\x98x", 3, SX_UTF8_MALFORMED},
        {"\xe2(\xa1", 1, SX_UTF8_MALFORMED},
        {"\xed\xa0\x80", 1, SX_UTF8_MALFORMED}, /* a surrogate */
        {"\xc0\x80", 1, SX_UTF8_MALFORMED},
        {"\x80", 1, SX_UTF8_MALFORMED},
        {"\xf4\x90\x80\x80", 1, SX_UTF8_MALFORMED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t code = 1;
        assert_int_equal(sx_utf8_decode(rows[i].text, strlen(rows[i].text), &code), rows[i].size);
        assert_int_equal(code, rows[i].code);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_utf8__every_code_point),
    cmocka_unit_test(test_base_utf8__every_pair_of_bytes),
    cmocka_unit_test(test_base_utf8__malformed),
    cmocka_unit_test(test_base_utf8__prefix),
    cmocka_unit_test(test_base_utf8__decode),
};
SX_TEST_MAIN(tests)
