/* Snappy's raw format against hand-made streams: the format's own examples, and every way to lie.
 */
#include "harness.h"

#include "base/checked.h"
#include "checkpoint/snappy.h"

#define PACKED(...) \
    ((sx_bytes){(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})})

static void check(sx_bytes packed, const char *expected, size_t size)
{
    uint8_t out[512];
    size_t length;
    assert_ok(sx_snappy_length(packed, &length));
    assert_int_equal(length, size);
    assert_ok(sx_snappy_unpack(packed, out, length));
    assert_memory_equal(out, expected, size);
}

static void test_checkpoint_snappy__elements(void **state)
{
    (void)state;
    check(PACKED(0), "", 0);
    check(PACKED(3, 2 << 2, 'a', 'b', 'c'), "abc", 3);
    /* literal of 2, copies with 1, 2 and 4 bytes of offset; the first overlaps what it writes */
    check(PACKED(8, 1 << 2, 'a', 'b', 1 | (6 - 4) << 2, 2), "abababab", 8);
    check(PACKED(5, 1 << 2, 'a', 'b', 2 | (3 - 1) << 2, 1, 0), "abbbb", 5);
    check(PACKED(5, 1 << 2, 'a', 'b', 3 | (3 - 1) << 2, 2, 0, 0, 0), "ababa", 5);
}

static void test_checkpoint_snappy__long_literal(void **state)
{
    (void)state;
    uint8_t packed[400] = {0xac, 0x02, 61 << 2, 299 & 0xff,
                           299 >> 8}; /* 300 bytes, length in two */
    char expected[300];
    memset(expected, 'x', sizeof(expected));
    memset(packed + 5, 'x', 300);
    check((sx_bytes){packed, 305}, expected, 300);
    packed[2] = 63 << 2; /* length in four bytes, of which two are 'x' */
    uint8_t out[300];
    assert_error(sx_snappy_unpack((sx_bytes){packed, 305}, out, 300), SX_DATA_LOSS,
                 "invalid element");
}

static void test_checkpoint_snappy__refuses(void **state)
{
    (void)state;
    static const struct {
        uint8_t packed[8];
        size_t size;
    } bad[] = {
        {{3, 2 << 2, 'a', 'b'}, 4},                /* literal cut short */
        {{2, 2 << 2, 'a', 'b', 'c'}, 5},           /* more out than promised */
        {{4, 2 << 2, 'a', 'b', 'c'}, 5},           /* less out than promised */
        {{8, 1 << 2, 'a', 'b', 1 | 2 << 2, 3}, 6}, /* copy from before the start */
        {{8, 1 << 2, 'a', 'b', 1 | 2 << 2, 0}, 6}, /* copy of offset 0 */
        {{8, 1 << 2, 'a', 'b', 1 | 2 << 2}, 5},    /* copy without its offset */
        {{5, 1 << 2, 'a', 'b', 1 | 2 << 2, 2}, 6}, /* copy past the end */
        {{3, 60 << 2}, 2},                         /* literal length missing */
    };
    uint8_t out[16];
    for (size_t i = 0; i < SX_COUNT(bad); i++) {
        sx_bytes packed = {bad[i].packed, bad[i].size};
        assert_error(sx_snappy_unpack(packed, out, bad[i].packed[0]), SX_DATA_LOSS, "snappy");
    }
    size_t length;
    assert_error(sx_snappy_length(PACKED(0x80), &length), SX_DATA_LOSS, "truncated");
    assert_error(sx_snappy_length(PACKED(0xff, 0xff, 0xff, 0xff, 0x1f), &length), SX_DATA_LOSS,
                 "32");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_checkpoint_snappy__elements),
    cmocka_unit_test(test_checkpoint_snappy__long_literal),
    cmocka_unit_test(test_checkpoint_snappy__refuses),
};
SX_TEST_MAIN(tests)
