#include "harness.h"

#include "base/checked.h"
#include "base/digest.h"
#include "base/hex.h"

/* The examples of FIPS 180-2. */
static void test_base_digest__is_sha_256(void **state)
{
    (void)state;
    static const struct {
        const char *text, *digest;
    } rows[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_digest digest;
        char text[2 * sizeof(digest.bytes) + 1] = "";
        assert_ok(sx_digest_of(rows[i].text, strlen(rows[i].text), &digest));
        sx_hex_put(text, digest.bytes, sizeof(digest.bytes));
        assert_string_equal(text, rows[i].digest);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_digest__is_sha_256),
};
SX_TEST_MAIN(tests)
