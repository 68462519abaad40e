/* Indexes whose checksums are right and that lie: each field of header and entry outside what it
 * may be, at its limits, and what is legal. And strings that contradict their entry. */
#include "io/scratch.h"
#include "proto/pack_text.h"

#include "base/checked.h"
#include "io/crc32c.h"
#include "proto/tensor_bundle.pb-c.h"
#include "checkpoint/bundle.h"
#include "checkpoint/slice_key.h"
#include "checkpoint/sstable.h"

static void put(sx_sstable_writer *table, sx_bytes key, const ProtobufCMessageDescriptor *type,
                const char *text)
{
    sx_buf packed;
    sx_buf_init(&packed, 0);
    pack_text(type, text, &packed);
    assert_ok(sx_sstable_add(table, key, (sx_bytes){packed.data, packed.size}));
    sx_buf_deinit(&packed);
}

/* An index of a header (none if NULL) and of entry "w" (likewise). */
static sx_status open_index(const char *header, const char *entry, sx_bundle **out)
{
    sx_sstable_writer table;
    sx_bytes index;
    sx_sstable_writer_init(&table, 0);
    if (header != NULL) {
        put(&table, (sx_bytes){"", 0}, &tensorflow__bundle_header_proto__descriptor, header);
    }
    if (entry != NULL) {
        put(&table, (sx_bytes){"w", 1}, &tensorflow__bundle_entry_proto__descriptor, entry);
    }
    assert_ok(sx_sstable_finish(&table, &index));
    sx_status status = sx_bundle_open_index(index, out);
    sx_sstable_writer_deinit(&table);
    return status;
}

typedef struct row {
    const char *header, *entry;
    const char *expected; /* "" where it opens; or the error, "DATA_LOSS: part of it" */
} row;

static void check_rows(const row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sx_bundle *b = NULL;
        sx_status status = open_index(rows[i].header, rows[i].entry, &b);
        if (!harness_is(status, rows[i].expected)) {
            fail_msg("row %zu, %s, %s: %s: %s", i, rows[i].header, rows[i].entry,
                     sx_code_name(sx_status_code(status)), sx_status_message(status));
        }
        sx_status_free(status);
        sx_bundle_close(b);
    }
}

#define ONE   "num_shards: 1 "
#define SHAPE "shape { dim { size: 2 } dim { size: 3 } } "

static void test_checkpoint_bundle_index__headers(void **state)
{
    (void)state;
    static const row rows[] = {
        {ONE, NULL, ""},
        {"num_shards: 1024", NULL, ""},
        {"num_shards: 1025", NULL, "DATA_LOSS: 1025 shards, expected 1 to 1024"},
        {"", NULL, "DATA_LOSS: 0 shards"},
        {"num_shards: -1", NULL, "DATA_LOSS: -1 shards"},
        {ONE "endianness: LITTLE", NULL, ""},
        {ONE "endianness: BIG", NULL, "UNIMPLEMENTED: big-endian"},
        {ONE "version { producer: 1 }", NULL, ""},
        {ONE "version { producer: 0 min_consumer: 1 }", NULL, ""},
        {ONE "version { producer: 9 min_consumer: 2 }", NULL, "UNIMPLEMENTED: excludes readers"},
        {ONE "version { producer: -1 }", NULL, "UNIMPLEMENTED: excludes readers"},
        {ONE "version { producer: 1 bad_consumers: [0, 2] }", NULL, ""},
        {ONE "version { producer: 1 bad_consumers: [2, 1] }", NULL, "UNIMPLEMENTED: excludes"},
        {NULL, NULL, "DATA_LOSS: no header"},
        {NULL, "dtype: DT_FLOAT " SHAPE "size: 24", "DATA_LOSS: no header; the first key is \"w\""},
    };
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_checkpoint_bundle_index__entries(void **state)
{
    (void)state;
#define W    "dtype: DT_FLOAT " SHAPE
#define D1   "dim { size: 1 } "
#define EXT  "slices { extent { start: 0 length: 2 } extent { "
#define FULL "slices { extent { } extent { } } "
    static const row rows[] = {
        {ONE, W "size: 24", ""},
        {ONE, W "size: 23", "DATA_LOSS: entry \"w\": 23 bytes stored for float32[2,3]"},
        {ONE, W "size: 25", "DATA_LOSS: 25 bytes stored for float32[2,3]"},
        {ONE, W "size: -1", "DATA_LOSS: shard 0 of 1, offset 0, size -1"},
        {ONE, W "size: 24 offset: -1", "DATA_LOSS: offset -1"},
        {ONE, W "size: 24 shard_id: 1", "DATA_LOSS: shard 1 of 1"},
        {ONE, W "size: 24 shard_id: -1", "DATA_LOSS: shard -1 of 1"},
        {"num_shards: 2", W "size: 24 shard_id: 1", ""},
        {"num_shards: 2", W "size: 24 shard_id: 2", "DATA_LOSS: shard 2 of 2"},
        {ONE, "dtype: DT_FLOAT shape { dim { size: -1 } }", "DATA_LOSS: dimension 0 is -1"},
        {ONE, "dtype: DT_FLOAT shape { dim { size: 2 } dim { size: -2 } }",
         "DATA_LOSS: dimension 1 is -2"},
        {ONE, "dtype: DT_FLOAT shape { dim { size: 4611686018427387904 } } size: 0",
         "DATA_LOSS: 0 bytes stored"},
        {ONE, "dtype: DT_FLOAT size: 4", ""},
        {ONE, "dtype: DT_STRING " SHAPE "size: 1", ""},
        /* what we have no type for is listed, and refused when it is read */
        {ONE, "dtype: DT_RESOURCE size: 7", ""},
        {ONE, "dtype: DT_FLOAT shape { unknown_rank: true } size: 7", ""},
        {ONE, "dtype: DT_FLOAT shape { " D1 D1 D1 D1 D1 D1 D1 D1 "} size: 4", ""},
        {ONE, "dtype: DT_FLOAT shape { " D1 D1 D1 D1 D1 D1 D1 D1 "} size: 7", "DATA_LOSS: 7 bytes"},
        {ONE, "dtype: DT_FLOAT shape { " D1 D1 D1 D1 D1 D1 D1 D1 D1 "} size: 7", ""},
        /* partitioned tensors */
        {ONE, W FULL, ""},
        {ONE, W EXT "start: 1 length: 2 } }", ""},
        {ONE, W EXT "start: 1 length: 3 } }", "DATA_LOSS: a slice is outside dimension 1"},
        {ONE, W EXT "start: -1 length: 2 } }", "DATA_LOSS: a slice is outside dimension 1"},
        {ONE, W EXT "start: 1 length: -1 } }", "DATA_LOSS: a slice is outside dimension 1"},
        {ONE, W EXT "start: 1 length: 9223372036854775807 } }", "DATA_LOSS: outside dimension 1"},
        {ONE, W EXT "start: 3 length: 0 } }", ""},
        {ONE, W "slices { extent { } }", "DATA_LOSS: a slice has rank 1, its tensor 2"},
        {ONE, W "slices { extent { } extent { } extent { } }", "DATA_LOSS: a slice has rank 3"},
        {ONE, "dtype: DT_FLOAT slices { }", "DATA_LOSS: 1 slices of a tensor of rank 0"},
        {ONE, "dtype: DT_RESOURCE slices { }", ""},
        {ONE, "dtype: DT_FLOAT shape { dim { size: 4611686018427387904 } } slices { extent { } }",
         "DATA_LOSS: fewer than 2^63 bytes"},
    };
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_checkpoint_bundle_index__bounds_slices(void **state)
{
    (void)state;
    for (int extra = 0; extra < 2; extra++) {
        sx_buf text;
        sx_bundle *b = NULL;
        sx_buf_init(&text, 0);
        sx_buf_puts(&text, "dtype: DT_FLOAT shape { dim { size: 2 } } ");
        for (int i = 0; i < 4096 + extra; i++) {
            sx_buf_puts(&text, "slices { extent { } } ");
        }
        sx_status status = open_index(ONE, sx_buf_text(&text), &b);
        if (extra == 0) {
            assert_ok(status);
        } else {
            assert_error(status, SX_DATA_LOSS, "4097 slices of a tensor of rank 1");
        }
        sx_bundle_close(b);
        sx_buf_deinit(&text);
    }
}

static void test_checkpoint_bundle_index__says_what_an_entry_is(void **state)
{
    (void)state;
    sx_bundle *b = NULL;
    float out[6];
    const sx_type type = sx_type_of(SX_F32, 2, 3);
    assert_ok(
        open_index("num_shards: 3", W "size: 24 shard_id: 2 offset: 77 crc32c: 0x12345678", &b));
    assert_int_equal(sx_bundle_count(b), 1);
    const sx_bundle_entry *e = sx_bundle_at(b, 0);
    assert_string_equal(e->key, "w");
    assert_true(sx_type_equal(&e->type, &type));
    assert_int_equal(e->shard, 2);
    assert_int_equal(e->offset, 77);
    assert_int_equal(e->size, 24);
    assert_int_equal(e->crc, 0x12345678);
    assert_int_equal(e->n_slices, 0);
    sx_bundle_close(b);
    assert_ok(open_index(ONE, W EXT "} } slices { extent { start: 1 length: 1 } extent { } }", &b));
    e = sx_bundle_at(b, 0);
    assert_int_equal(e->n_slices, 2);
    assert_int_equal(e->slices[0].start[0], 0);
    assert_int_equal(e->slices[0].length[0], 2);
    assert_int_equal(e->slices[0].length[1], -1); /* all of it */
    assert_int_equal(e->slices[1].start[0], 1);
    assert_int_equal(e->slices[1].length[0], 1);
    sx_bundle_close(b);
    assert_ok(open_index(ONE, "dtype: DT_RESOURCE size: 7", &b));
    assert_int_equal(sx_bundle_at(b, 0)->type.dtype, SX_DTYPE_NONE);
    assert_error(sx_bundle_read(b, "w", &type, out), SX_UNIMPLEMENTED,
                 "\"w\" is resource or has more than 8 dimensions");
    sx_bundle_close(b);
}

/* ---- Strings ---- */

/* Lengths as varints, CRC of the lengths as fixed 32 bits, then the bytes. */
static void test_checkpoint_bundle_index__strings(void **state)
{
    (void)state;
    static const struct {
        const char *lengths; /* varints, as stored */
        size_t lengths_size;
        uint32_t fixed[2]; /* what they mean */
        bool lie;          /* about the lengths' checksum */
        const char *bytes;
        const char *says; /* NULL: they are read */
    } rows[] = {
        {"\2\1", 2, {2, 1}, false, "abc", NULL},
        {"\0\0", 2, {0, 0}, false, "", NULL},
        {"\2\1", 2, {2, 1}, true, "abc", "wrong checksum of the string lengths"},
        {"\2\1", 2, {2, 1}, false, "abcd", "extra bytes after the strings"},
        {"\2\1", 2, {2, 1}, false, "ab", "string 1 is truncated"},
        {"\7\1", 2, {7, 1}, false, "ab", "string 0 is truncated"},
        {"\2\x7f", 2, {2, 127}, false, "ab", "invalid length of string 1"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11, {0, 0}, false, "", "invalid length of"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t fixed[8], sum[4];
        sx_buf data;
        char entry[200];
        sx_sstable_writer table;
        sx_bytes index;
        for (int k = 0; k < 8; k++) {
            fixed[k] = (uint8_t)(rows[i].fixed[k / 4] >> (8 * (k % 4)));
        }
        const uint32_t crc = sx_crc32c(0, fixed, 8), masked = sx_crc32c_mask(crc) ^ rows[i].lie;
        for (int k = 0; k < 4; k++) {
            sum[k] = (uint8_t)(masked >> (8 * k));
        }
        sx_buf_init(&data, 0);
        sx_buf_append(&data, rows[i].lengths, rows[i].lengths_size);
        sx_buf_append(&data, sum, 4);
        sx_buf_puts(&data, rows[i].bytes);
        const uint32_t all = sx_crc32c_mask(
            sx_crc32c(crc, data.data + rows[i].lengths_size, data.size - rows[i].lengths_size));
        snprintf(entry, sizeof(entry),
                 "dtype: DT_STRING shape { dim { size: 2 } } size: %zu crc32c: %u", data.size, all);
        sx_sstable_writer_init(&table, 0);
        put(&table, (sx_bytes){"", 0}, &tensorflow__bundle_header_proto__descriptor, ONE);
        put(&table, (sx_bytes){"w", 1}, &tensorflow__bundle_entry_proto__descriptor, entry);
        assert_ok(sx_sstable_finish(&table, &index));
        write_file(scratch("m.index"), index.data, index.size);
        write_file(scratch("m.data-00000-of-00001"), data.data, data.size);
        sx_sstable_writer_deinit(&table);

        sx_bundle *b = NULL;
        sx_arena arena;
        sx_tensor strings;
        sx_arena_init(&arena, 0);
        assert_ok(sx_bundle_open(scratch("m"), &b));
        if (rows[i].says == NULL) {
            assert_ok(sx_bundle_read_strings(b, "w", &arena, &strings));
            assert_ok(sx_bundle_verify(b));
            const sx_bytes *views = strings.data;
            assert_int_equal(views[0].size, rows[i].fixed[0]);
            assert_int_equal(views[1].size, rows[i].fixed[1]);
            assert_memory_equal(views[1].data, rows[i].bytes + views[0].size, views[1].size);
        } else {
            assert_error(sx_bundle_read_strings(b, "w", &arena, &strings), SX_DATA_LOSS,
                         rows[i].says);
            assert_error(sx_bundle_verify(b), SX_DATA_LOSS, rows[i].says);
        }
        sx_bundle_close(b);
        sx_arena_deinit(&arena);
        sx_buf_deinit(&data);
    }
}

/* ---- Keys of slices ---- */

static int compare_keys(const sx_buf *a, const sx_buf *b)
{
    const size_t size = SX_MIN(a->size, b->size);
    const int order = memcmp(a->data, b->data, size);
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

/* OrderedCode: k bytes hold 7k - 1 bits and a sign, and the keys sort as the numbers do. */
static void test_checkpoint_bundle_index__slice_keys_are_ordered(void **state)
{
    (void)state;
    int64_t numbers[64] = {INT64_MIN};
    int n = 1;
    for (int bits = 62; bits >= 6; bits -= bits == 62 ? 1 : 7) { /* 62, 61, 54 ... 5 */
        numbers[n++] = -((int64_t)1 << bits) - 1;
        numbers[n++] = -((int64_t)1 << bits);
    }
    const int negative = n;
    numbers[n++] = -1;
    numbers[n++] = 0;
    for (int i = negative - 1; i >= 0; i--) {
        numbers[n++] = ~numbers[i];
    }
    sx_buf last, key;
    sx_buf_init(&last, 0);
    sx_buf_init(&key, 0);
    for (int i = 0; i < n; i++) {
        const int64_t zero = 0;
        uint64_t magnitude = (uint64_t)(numbers[i] < 0 ? ~numbers[i] : numbers[i]);
        size_t bytes = 1;
        while (bytes < 10 && magnitude >= (uint64_t)1 << (7 * bytes - 1)) {
            bytes++;
        }
        sx_buf_reset(&key);
        sx_slice_key(&key, "w", 1, &numbers[i], &zero);
        assert_int_equal(key.size, 1 + 3 + 2 + bytes + 1);
        if (i > 0 && compare_keys(&last, &key) >= 0) {
            fail_msg("%lld does not sort behind %lld", (long long)numbers[i],
                     (long long)numbers[i - 1]);
        }
        sx_buf_reset(&last);
        sx_buf_append(&last, key.data, key.size);
    }
    const int64_t least = INT64_MIN, most = INT64_MAX;
    uint8_t expected[64];
    sx_buf_reset(&key);
    sx_slice_key(&key,
                 "a\xff"
                 "b",
                 1, &least, &most);
    size_t size =
        from_hex("00 61ff0062 0001 0101 003f8000000000000000 ffc07fffffffffffffff", expected);
    assert_int_equal(key.size, size);
    assert_memory_equal(key.data, expected, size);
    sx_buf_deinit(&last);
    sx_buf_deinit(&key);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_checkpoint_bundle_index__headers),
    cmocka_unit_test(test_checkpoint_bundle_index__entries),
    cmocka_unit_test(test_checkpoint_bundle_index__bounds_slices),
    cmocka_unit_test(test_checkpoint_bundle_index__says_what_an_entry_is),
    scratch_test(test_checkpoint_bundle_index__strings),
    cmocka_unit_test(test_checkpoint_bundle_index__slice_keys_are_ordered),
};
SX_TEST_MAIN(tests)
