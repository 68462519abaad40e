#include "harness.h"

#include "io/crc32c.h"

static void test_io_crc32c__check_value(void **state)
{
    (void)state;
    assert_int_equal(sx_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(sx_crc32c_portable(0, "123456789", 9), 0xe3069283);
    assert_int_equal(sx_crc32c_mask(0xe3069283), 0xc78ab0e5);
    assert_int_equal(sx_crc32c_unmask(0xc78ab0e5), 0xe3069283);
    assert_int_equal(sx_crc32c(0, "", 0), 0);
}

static void test_io_crc32c__fast_equals_portable(void **state)
{
    (void)state;
    static uint8_t bytes[5000];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    }
    for (size_t size = 0; size < sizeof bytes; size += 1 + size / 7) {
        for (size_t offset = 0; offset < 9 && offset + size < sizeof bytes; offset++) {
            assert_int_equal(sx_crc32c(7, bytes + offset, size),
                             sx_crc32c_portable(7, bytes + offset, size));
        }
    }
}

static void test_io_crc32c__continues(void **state)
{
    (void)state;
    const char *text = "the quick brown fox";
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        uint32_t crc = sx_crc32c(0, text, cut);
        assert_int_equal(sx_crc32c(crc, text + cut, strlen(text) - cut),
                         sx_crc32c(0, text, strlen(text)));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_io_crc32c__check_value),
    cmocka_unit_test(test_io_crc32c__fast_equals_portable),
    cmocka_unit_test(test_io_crc32c__continues),
};
SX_TEST_MAIN(tests)
