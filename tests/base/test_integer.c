/* Integers of every width, from their bytes. */
#include "harness.h"

#include "base/integer.h"

static void test_base_integer__every_width(void **state)
{
    (void)state;
    static const struct {
        sx_dtype dtype;
        uint8_t bytes[16]; /* two elements */
        int64_t one, other;
    } rows[] = {
        {SX_I8, {0x80, 0x7f}, -128, 127},
        {SX_U8, {0x80, 0xff}, 128, 255},
        {SX_BOOL, {0, 1}, 0, 1},
        {SX_I16, {0xff, 0xff, 1, 0x80}, -1, INT16_MIN + 1},
        {SX_U16, {0xff, 0xff, 1, 0x80}, UINT16_MAX, 0x8001},
        {SX_F16, {0, 0x3c, 0, 0xbc}, 0x3c00, 0xbc00},
        {SX_I32, {0xff, 0xff, 0xff, 0xff, 2}, -1, 2},
        {SX_U32, {0xff, 0xff, 0xff, 0xff, 2}, UINT32_MAX, 2},
        {SX_I64, {0, 0, 0, 0, 0, 0, 0, 0x80, 3}, INT64_MIN, 3},
        {SX_U64, {0, 0, 0, 0, 0, 0, 0, 0x80, 3}, INT64_MIN, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _Alignas(8) uint8_t bytes[16];
        memcpy(bytes, rows[i].bytes, sizeof bytes);
        const sx_tensor tensor = {.type = sx_type_of(rows[i].dtype, 2), .data = bytes};
        assert_int_equal(sx_integer_at(&tensor, 0), rows[i].one);
        assert_int_equal(sx_integer_at(&tensor, 1), rows[i].other);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_integer__every_width),
};
SX_TEST_MAIN(tests)
