/* Kinds of files by their first bytes: each signature whole, short by one byte, and moved by one.
 */
#include "harness.h"

#include "data/sniff.h"
#include "io/crc32c.h"

static const struct {
    size_t at, size;
    const char *bytes;
    sx_file_kind kind;
} signatures[] = {
    {0, 4, "PK\003\004", SX_FILE_ARCHIVE},
    {0, 4, "PK\005\006", SX_FILE_ARCHIVE},
    {257, 5, "ustar", SX_FILE_ARCHIVE},
    {0, 6,
     "\xfd"
     "7zXZ\0",
     SX_FILE_ARCHIVE},
    {0, 4, "\x28\xb5\x2f\xfd", SX_FILE_ARCHIVE},
    {0, 3, "BZh", SX_FILE_ARCHIVE},
    {0, 6, "\x93NUMPY", SX_FILE_NPY},
    {0, 8, "\0\0\x08\x03\0\0\0\x01", SX_FILE_IDX},
    {0, 8, "\0\0\x0e\x01\0\0\0\x01", SX_FILE_IDX},
    {0, 3, "\xff\xd8\xff", SX_FILE_IMAGE},
    {0, 8, "\x89PNG\r\n\x1a\n", SX_FILE_IMAGE},
};

/* `size` bytes of `with` at `at`, in a block of just this size that holds no other signature. */
static sx_file_kind kind_with(size_t at, const char *with, size_t size, size_t total)
{
    uint8_t *head = malloc(total);
    assert_non_null(head);
    memset(head, 0x55, total);
    memcpy(head + at, with, size);
    sx_file_kind kind = sx_sniff_bytes((sx_bytes){head, total});
    free(head);
    return kind;
}

static void test_data_sniff__signatures(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(signatures) / sizeof(signatures[0]); i++) {
        size_t at = signatures[i].at, size = signatures[i].size;
        const char *bytes = signatures[i].bytes;
        assert_int_equal(kind_with(at, bytes, size, at + size), signatures[i].kind);
        assert_int_equal(kind_with(at, bytes, size, 512), signatures[i].kind);
        assert_int_equal(kind_with(at, bytes, size - 1, at + size - 1), SX_FILE_UNKNOWN);
        if (signatures[i].kind != SX_FILE_IDX) { /* whose last bytes are a size */
            assert_int_equal(kind_with(at, bytes, size - 1, 512), SX_FILE_UNKNOWN);
        }
        assert_int_equal(kind_with(at + 1, bytes, size, 512), SX_FILE_UNKNOWN);
    }
    assert_int_equal(sx_sniff_bytes((sx_bytes){"", 0}), SX_FILE_EMPTY);
    assert_int_equal(kind_with(0, "x", 1, 1), SX_FILE_UNKNOWN);
}

static void test_data_sniff__text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        sx_file_kind kind;
    } rows[] = {
        {"a,b\n1,2\n", SX_FILE_CSV},
        {"a, b\n", SX_FILE_UNKNOWN},
        {"\"x y\",\tz\r\n1", SX_FILE_CSV},
        {"\xef\xbb\xbf\xc3\xa4,b\n\n", SX_FILE_CSV},
        {"a b\n1,2\n", SX_FILE_UNKNOWN},
        {"{\"a\": 1, \"b\": 2}", SX_FILE_JSON_LINES},
        {"<a,b>\n", SX_FILE_UNKNOWN},
        {"[1,2]\n", SX_FILE_JSON_LINES},
        {"a,b\n\x01\n", SX_FILE_UNKNOWN},
        {"a;b\n", SX_FILE_UNKNOWN},
        {"[\x01]\n", SX_FILE_UNKNOWN},
        {"\xef\xbb\xbf", SX_FILE_UNKNOWN},
        {"\r\n {\"a\": 1}", SX_FILE_JSON_LINES},
        {"\xef\xbb\xbf[1,2]\n[3,4]\n", SX_FILE_JSON_LINES},
        {"\n\n", SX_FILE_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const sx_bytes head = {rows[i].text, strlen(rows[i].text)};
        assert_int_equal(sx_sniff_bytes(head), rows[i].kind);
    }
}

/* The length of the first record and its masked checksum, 12 bytes. */
static void test_data_sniff__records(void **state)
{
    (void)state;
    char head[12] = {5};
    uint32_t crc = sx_crc32c_mask(sx_crc32c(0, head, 8));
    for (int i = 0; i < 4; i++) {
        head[8 + i] = (char)(crc >> 8 * i);
    }
    assert_int_equal(kind_with(0, head, 12, 12), SX_FILE_TFRECORD);
    assert_int_equal(kind_with(0, head, 12, 512), SX_FILE_TFRECORD);
    assert_int_equal(kind_with(0, head, 11, 11), SX_FILE_UNKNOWN);
    for (int i = 0; i < 12; i++) {
        head[i] ^= 0x10;
        assert_int_equal(kind_with(0, head, 12, 512), SX_FILE_UNKNOWN);
        head[i] ^= 0x10;
    }
}

/* Which types and ranks an IDX file has: bytes 2 and 3 after two zeros. */
static void test_data_sniff__idx_types_and_ranks(void **state)
{
    (void)state;
    for (int type = 0; type < 256; type++) {
        char head[8] = {0, 0, (char)type, 1, 0, 0, 0, 1};
        bool right = type == 8 || type == 9 || (type >= 11 && type <= 14);
        assert_int_equal(kind_with(0, head, 8, 8), right ? SX_FILE_IDX : SX_FILE_UNKNOWN);
    }
    for (int rank = 0; rank < 256; rank++) {
        char head[8] = {0, 0, 8, (char)rank, 0, 0, 0, 1};
        bool right = rank >= 1 && rank <= SX_MAX_RANK;
        assert_int_equal(kind_with(0, head, 8, 8), right ? SX_FILE_IDX : SX_FILE_UNKNOWN);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_data_sniff__signatures),
    cmocka_unit_test(test_data_sniff__text),
    cmocka_unit_test(test_data_sniff__records),
    cmocka_unit_test(test_data_sniff__idx_types_and_ranks),
};
SX_TEST_MAIN(tests)
