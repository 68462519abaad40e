/* Sorted string tables: TensorFlow's worked example byte for byte, round trips over many blocks,
 * and every flip and cut of a small table detected. */
#include "base/byte_order.h"
#include "harness.h"

#include "base/memory.h"
#include "io/crc32c.h"
#include "checkpoint/sstable.h"
#include "checkpoint/varint.h"

#define B(text) ((sx_bytes){(text), sizeof(text) - 1})

/* The file that TensorFlow 1.0 wrote for a=0.5, b=3, c=3. */
static const char *const worked_example =
    "000006"
    "08011a020801"
    "00010b61"
    "0801120028043506"
    "38271f"
    "00010d62"
    "080112002004280435"
    "efd682c3"
    "00010d63"
    "080112002008280435"
    "efd682c3"
    "00000000"
    "01000000"
    "00"
    "c1e619df"
    "00000000"
    "01000000"
    "00"
    "c0f2a1b0"
    "000102640042"
    "00000000"
    "01000000"
    "00"
    "58b2e9f7"
    "4708540e"
    "000000000000000000000000000000000000000000000000000000000000000000000000"
    "57fb808b247547db";

static sx_bytes example_bytes(uint8_t *out, size_t capacity)
{
    size_t n = strlen(worked_example) / 2;
    assert_true(n <= capacity);
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        assert_int_equal(sscanf(worked_example + 2 * i, "%2x", &byte), 1);
        out[i] = (uint8_t)byte;
    }
    return (sx_bytes){out, n};
}

/* What a scan saw: keys and values joined. */
struct seen {
    size_t entries;
    char text[4096];
};

static sx_status note(void *user, sx_bytes key, sx_bytes value)
{
    struct seen *seen = user;
    size_t used = strlen(seen->text);
    snprintf(seen->text + used, sizeof(seen->text) - used, "%.*s=%zu;", (int)key.size,
             (const char *)key.data, value.size);
    seen->entries++;
    return SX_OK;
}

static sx_status count(void *user, sx_bytes key, sx_bytes value)
{
    (void)key;
    (void)value;
    ++*(size_t *)user;
    return SX_OK;
}

static void test_checkpoint_sstable__worked_example(void **state)
{
    (void)state;
    uint8_t bytes[256];
    sx_bytes golden = example_bytes(bytes, sizeof(bytes));
    assert_int_equal(golden.size, 151);
    struct seen seen = {0};
    assert_ok(sx_sstable_scan(golden, 0, note, &seen));
    assert_string_equal(seen.text, "=6;a=11;b=13;c=13;");

    sx_sstable_writer w;
    sx_sstable_writer_init(&w, 0);
    assert_ok(sx_sstable_add(&w, B(""), B("\x08\x01\x1a\x02\x08\x01")));
    assert_ok(sx_sstable_add(&w, B("a"), B("\x08\x01\x12\x00\x28\x04\x35\x06\x38\x27\x1f")));
    assert_ok(
        sx_sstable_add(&w, B("b"), B("\x08\x01\x12\x00\x20\x04\x28\x04\x35\xef\xd6\x82\xc3")));
    assert_ok(
        sx_sstable_add(&w, B("c"), B("\x08\x01\x12\x00\x20\x08\x28\x04\x35\xef\xd6\x82\xc3")));
    sx_bytes file;
    assert_ok(sx_sstable_finish(&w, &file));
    assert_int_equal(file.size, golden.size);
    assert_memory_equal(file.data, golden.data, golden.size);
    sx_sstable_writer_deinit(&w);
}

static void test_checkpoint_sstable__every_flip_and_cut_is_detected(void **state)
{
    (void)state;
    uint8_t bytes[256];
    sx_bytes golden = example_bytes(bytes, sizeof(bytes));
    for (size_t i = 0; i < golden.size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (uint8_t)(1 << bit);
            size_t n = 0;
            sx_status status = sx_sstable_scan(golden, 1 << 20, count, &n);
            assert_int_not_equal(sx_status_code(status), SX_CODE_OK);
            sx_status_free(status);
            bytes[i] ^= (uint8_t)(1 << bit);
        }
    }
    for (size_t size = 0; size < golden.size; size++) {
        size_t n = 0;
        assert_error(sx_sstable_scan((sx_bytes){bytes, size}, 0, count, &n), SX_DATA_LOSS, "table");
    }
}

static void make_key(char *key, size_t capacity, int i)
{
    snprintf(key, capacity, "layer_%05d/kernel", i);
}

static sx_status check_many(void *user, sx_bytes key, sx_bytes value)
{
    int *i = user;
    char expected[64];
    make_key(expected, sizeof(expected), *i);
    if (key.size != strlen(expected) || memcmp(key.data, expected, key.size) != 0 ||
        value.size != (size_t)(*i % 40) || (value.size > 0 && *(const char *)value.data != 'v')) {
        return sx_error(SX_DATA_LOSS, "entry %d differs", *i);
    }
    ++*i;
    return SX_OK;
}

static void test_checkpoint_sstable__many_blocks(void **state)
{
    (void)state;
    static const char value[40] = "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv";
    sx_sstable_writer w;
    sx_sstable_writer_init(&w, 512);
    for (int i = 0; i < 5000; i++) {
        char key[64];
        make_key(key, sizeof(key), i);
        assert_ok(
            sx_sstable_add(&w, (sx_bytes){key, strlen(key)}, (sx_bytes){value, (size_t)(i % 40)}));
    }
    sx_bytes file;
    assert_ok(sx_sstable_finish(&w, &file));
    int n = 0;
    assert_ok(sx_sstable_scan(file, 0, check_many, &n));
    assert_int_equal(n, 5000);
    sx_sstable_writer_deinit(&w);
}

static void test_checkpoint_sstable__keys_must_ascend(void **state)
{
    (void)state;
    sx_sstable_writer w;
    sx_sstable_writer_init(&w, 0);
    assert_ok(sx_sstable_add(&w, B("b"), B("1")));
    assert_error(sx_sstable_add(&w, B("b"), B("2")), SX_INVALID_ARGUMENT, "\"b\"");
    assert_error(sx_sstable_add(&w, B("a"), B("2")), SX_INVALID_ARGUMENT, "\"a\"");
    sx_sstable_writer_deinit(&w);
}

static void test_checkpoint_sstable__empty_table(void **state)
{
    (void)state;
    sx_sstable_writer w;
    sx_sstable_writer_init(&w, 0);
    sx_bytes file;
    size_t n = 0;
    assert_ok(sx_sstable_finish(&w, &file));
    assert_ok(sx_sstable_scan(file, 0, count, &n));
    assert_int_equal(n, 0);
    sx_sstable_writer_deinit(&w);
}

static size_t put_block(uint8_t *out, const uint8_t *contents, size_t size, uint8_t type)
{
    memcpy(out, contents, size);
    out[size] = type;
    sx_store_le32(out + size + 1, sx_crc32c_mask(sx_crc32c(0, out, size + 1)));
    return size + 5;
}

/* A table of one Snappy block {"k": 60 bytes of 'z'}, made by hand. */
static size_t snappy_table(uint8_t *out, uint8_t type)
{
    /* unpacked: 00 01 3c 'k' 60*'z' | 00000000 01000000 = 72 bytes */
    static const uint8_t packed[] = {72,          4 << 2, 0, 1, 60, 'k', 'z', /* literal of 5 */
                                     2 | 58 << 2, 1,      0,                  /* 59 times z */
                                     7 << 2,      0,      0, 0, 0,  1,   0,   0, 0};
    size_t data = put_block(out, packed, sizeof(packed), type);
    const uint8_t index[] = {0, 1, 2, 'l', 0, sizeof(packed), 0, 0, 0, 0, 1, 0, 0, 0};
    size_t size = data + put_block(out + data, index, sizeof(index), 0);
    static const uint8_t empty[] = {0, 0, 0, 0, 1, 0, 0, 0};
    size_t metaindex = size;
    size += put_block(out + size, empty, sizeof(empty), 0);
    memset(out + size, 0, 48);
    out[size] = (uint8_t)metaindex;
    out[size + 1] = sizeof(empty);
    out[size + 2] = (uint8_t)data;
    out[size + 3] = sizeof(index);
    memcpy(out + size + 40, "\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
    return size + 48;
}

static void test_checkpoint_sstable__snappy_blocks(void **state)
{
    (void)state;
    uint8_t bytes[256];
    size_t size = snappy_table(bytes, 1);
    struct seen seen = {0};
    assert_ok(sx_sstable_scan((sx_bytes){bytes, size}, 72, note, &seen));
    assert_string_equal(seen.text, "k=60;");
    assert_error(sx_sstable_scan((sx_bytes){bytes, size}, 71, note, &seen), SX_RESOURCE_EXHAUSTED,
                 "72");
    size = snappy_table(bytes, 2);
    assert_error(sx_sstable_scan((sx_bytes){bytes, size}, 72, note, &seen), SX_UNIMPLEMENTED,
                 "type 2");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_checkpoint_sstable__worked_example),
    cmocka_unit_test(test_checkpoint_sstable__every_flip_and_cut_is_detected),
    cmocka_unit_test(test_checkpoint_sstable__many_blocks),
    cmocka_unit_test(test_checkpoint_sstable__keys_must_ascend),
    cmocka_unit_test(test_checkpoint_sstable__empty_table),
    cmocka_unit_test(test_checkpoint_sstable__snappy_blocks),
};
SX_TEST_MAIN(tests)
