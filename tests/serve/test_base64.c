#include "harness.h"

#include "base/checked.h"
#include "serve/base64.h"

static void test_serve_base64__round_trips(void **state)
{
    (void)state;
    unsigned char bytes[100], back[SX_BASE64_DECODED_MAX(200)];
    char text[200];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(i * 151 + 250);
    }
    for (size_t size = 0; size <= sizeof(bytes); size++) {
        sx_base64_encode(bytes, size, text);
        size_t length = SX_BASE64_ENCODED(size);
        assert_int_equal(sx_base64_decode(text, length, back), size);
        assert_memory_equal(back, bytes, size);
        while (length > 0 && text[length - 1] == '=') {
            length--;
        }
        assert_int_equal(sx_base64_decode(text, length, back), size); /* without padding */
    }
}

/* RFC 4648 section 10, white space, and what is refused. */
static void test_serve_base64__vectors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bytes; /* NULL = refused */
    } rows[] = {
        {"", ""},           {"Zg==", "f"},        {"Zm8=", "fo"},
        {"Zm9v", "foo"},    {"Zm9vYg==", "foob"}, {"Zm9v\r\nYmFy", "foobar"},
        {" Zg = =", "f"},   {"Zg", "f"},          {"Z", NULL},
        {"Zg=", NULL},      {"Zg===", NULL},      {"=", NULL},
        {"Zg==Zg==", NULL}, {"Zm9v=", NULL},      {"Zm-_", NULL},
        {"Zm9\x80", NULL},  {"Zm9vY", NULL},      {"====", NULL},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        unsigned char bytes[32] = {0};
        const ptrdiff_t size = sx_base64_decode(rows[i].text, strlen(rows[i].text), bytes);
        assert_int_equal(size, rows[i].bytes ? (ptrdiff_t)strlen(rows[i].bytes) : -1);
        if (rows[i].bytes) {
            assert_memory_equal(bytes, rows[i].bytes, (size_t)size);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_base64__round_trips),
    cmocka_unit_test(test_serve_base64__vectors),
};
SX_TEST_MAIN(tests)
