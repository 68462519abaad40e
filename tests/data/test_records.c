#include "harness.h"

#include <unistd.h>

#include "base/memory.h"
#include "data/records.h"
#include "io/file.h"
#include "io/path.h"
#include "io/tfrecord.h"

static char dir[64];
static sx_scratch scratch; /* of the records read since the last check_record() */

static sx_status read_one(const sx_records *records, int64_t number, sx_bytes *out)
{
    int64_t count;
    return sx_records_read(records, number, 1, &scratch, out, &count);
}

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/sextant-records-XXXXXX");
    sx_scratch_init(&scratch);
    return mkdtemp(dir) == NULL;
}

static int remove_dir(void **state)
{
    (void)state;
    sx_status status = sx_dir_remove(dir);
    sx_scratch_deinit(&scratch);
    sx_status_free(status);
    return 0;
}

/* `count` records "record i" over `shards` files dir/set-0000i-of-... */
static void write_set(const char *set, int count, int shards, sx_codec codec)
{
    char prefix[128], text[32];
    snprintf(prefix, sizeof(prefix), "%s/%s", dir, set);
    sx_tfrecord_shards *files = NULL;
    assert_ok(sx_tfrecord_shards_create(prefix, shards, codec, &files));
    for (int i = 0; i < count; i++) {
        int length = snprintf(text, sizeof(text), "record %d", i);
        assert_ok(
            sx_tfrecord_shards_write(files, i * shards / count, (sx_bytes){text, (size_t)length}));
    }
    assert_ok(sx_tfrecord_shards_finish(files));
    sx_tfrecord_shards_destroy(files);
}

static sx_status open_set(const char *set, const sx_records_options *options, sx_records **out)
{
    char pattern[128];
    snprintf(pattern, sizeof(pattern), "%s/%s-*", dir, set);
    const char *patterns[] = {pattern};
    sx_paths paths = {0};
    assert_ok(sx_paths_glob(patterns, 1, &paths));
    sx_status status = sx_records_open((const char *const *)paths.items, paths.count, options, out);
    sx_paths_deinit(&paths);
    return status;
}

static void check_record(const sx_records *records, int64_t number, int expected)
{
    char text[32];
    sx_bytes record;
    int length = snprintf(text, sizeof(text), "record %d", expected);
    assert_ok(read_one(records, number, &record));
    assert_int_equal(record.size, length);
    assert_memory_equal(record.data, text, (size_t)length);
    sx_scratch_reset(&scratch);
}

static void test_data_records__are_numbered_through(void **state)
{
    (void)state;
    static const sx_codec codecs[] = {SX_CODEC_NONE, SX_CODEC_GZIP, SX_CODEC_ZLIB};
    static const char *const sets[] = {"plain", "gzip", "zlib"};
    for (int c = 0; c < 3; c++) {
        write_set(sets[c], 100, 7, codecs[c]);
        sx_records *records = NULL;
        assert_ok(open_set(sets[c], &(sx_records_options){0}, &records));
        assert_int_equal(sx_records_count(records), 100);
        assert_true((sx_records_memory_bytes(records) > 0) == (c > 0));
        for (int i = 0; i < 100; i++) {
            check_record(records, i, i);
        }
        sx_bytes record;
        assert_error(read_one(records, 100, &record), SX_OUT_OF_RANGE, "100");
        sx_buf name;
        sx_buf_init(&name, 0);
        sx_records_name(records, 15, &name); /* 15 in the first shard */
        assert_non_null(strstr(sx_buf_text(&name), "-00001-of-00007: record 0"));
        sx_buf_deinit(&name);
        sx_records_close(records);
    }
}

static sx_status refuse_seven(sx_bytes record)
{
    const char *text = record.data;
    return text[record.size - 1] == '7' ? sx_error(SX_DATA_LOSS, "seven") : SX_OK;
}

/* All records from any first one, however they lie: in shards, compressed, with bad ones between.
 */
static void test_data_records__are_read_in_runs(void **state)
{
    (void)state;
    static const sx_codec codecs[] = {SX_CODEC_NONE, SX_CODEC_GZIP};
    static const char *const sets[] = {"plain", "gzip"};
    for (int c = 0; c < 2; c++) {
        write_set(sets[c], 100, 7, codecs[c]);
        for (int skip = 0; skip < 2; skip++) {
            sx_records *records = NULL;
            sx_records_options options = {.skip_corrupt = skip == 1,
                                          .check = skip == 1 ? refuse_seven : NULL};
            assert_ok(open_set(sets[c], &options, &records));
            int expected[100], total = 0, reads = 0;
            for (int i = 0; i < 100; i++) {
                expected[total] = i;
                total += skip == 0 || i % 10 != 7;
            }
            assert_int_equal(sx_records_count(records), total);
            for (int64_t first = 0, n = 0; first < total; first += n, reads++) {
                sx_bytes runs[64];
                assert_ok(sx_records_read(records, first, 64, &scratch, runs, &n));
                assert_in_range(n, 1, 64);
                for (int i = 0; i < n; i++) {
                    char text[32];
                    int size = snprintf(text, sizeof(text), "record %d", expected[first + i]);
                    assert_int_equal(runs[i].size, size);
                    assert_memory_equal(runs[i].data, text, (size_t)size);
                }
                sx_scratch_reset(&scratch);
            }
            assert_int_equal(reads, skip == 0 ? 7 : 7 + 9); /* bad ones but the last of a shard */
            sx_records_close(records);
        }
    }
}

static void test_data_records__empty_shards_are_fine(void **state)
{
    (void)state;
    write_set("few", 3, 8, SX_CODEC_NONE);
    sx_records *records = NULL;
    assert_ok(open_set("few", &(sx_records_options){0}, &records));
    assert_int_equal(sx_records_count(records), 3);
    for (int i = 0; i < 3; i++) {
        check_record(records, i, i);
    }
    sx_records_close(records);
}

static void test_data_records__compressed_files_stay_in_their_budget(void **state)
{
    (void)state;
    write_set("big", 100, 1, SX_CODEC_GZIP);
    sx_records *records = NULL;
    assert_error(open_set("big", &(sx_records_options){.memory_budget = 500}, &records),
                 SX_RESOURCE_EXHAUSTED, "decompress");
    assert_error(open_set("big", &(sx_records_options){.compression = "brotli"}, &records),
                 SX_INVALID_ARGUMENT, "brotli");
}

/* Flips one bit of every byte of a file: strict reading notices each, skipping drops at most one
 * record for each and never gives a wrong one. */
static void test_data_records__every_flipped_byte_is_noticed(void **state)
{
    (void)state;
    write_set("flip", 5, 1, SX_CODEC_NONE);
    char path[128], *data = NULL;
    size_t size;
    snprintf(path, sizeof(path), "%s/flip-00000-of-00001", dir);
    assert_ok(sx_file_read(path, 1 << 20, &data, &size));
    for (size_t i = 0; i < size; i++) {
        data[i] ^= 0x10;
        FILE *file = fopen(path, "wb");
        assert_int_equal(fwrite(data, 1, size, file), size);
        fclose(file);
        data[i] ^= 0x10;

        sx_records *records = NULL;
        sx_status status = open_set("flip", &(sx_records_options){0}, &records);
        for (int64_t k = 0; status == SX_OK && k < sx_records_count(records); k++) {
            sx_bytes record;
            status = read_one(records, k, &record);
        }
        assert_error(status, SX_DATA_LOSS, "flip-00000-of-00001: record");
        sx_records_close(records);

        records = NULL;
        assert_ok(open_set("flip", &(sx_records_options){.skip_corrupt = true}, &records));
        sx_records_damage dropped = sx_records_dropped(records);
        assert_int_equal(sx_records_count(records), 4);
        assert_int_equal(dropped.records + dropped.places, 1);
        int expected = 0;
        for (int64_t k = 0; k < 4; k++, expected++) {
            sx_bytes record;
            assert_ok(read_one(records, k, &record));
            expected += ((const char *)record.data)[record.size - 1] != '0' + expected;
            check_record(records, k, expected);
        }
        sx_records_close(records);
    }
    sx_free(data);
}

static void test_data_records__skips_what_the_check_refuses(void **state)
{
    (void)state;
    write_set("seven", 10, 3, SX_CODEC_NONE);
    sx_records *records = NULL;
    sx_records_options options = {.skip_corrupt = true, .check = refuse_seven};
    assert_ok(open_set("seven", &options, &records));
    assert_int_equal(sx_records_count(records), 9);
    assert_int_equal(sx_records_dropped(records).records, 1);
    check_record(records, 6, 6);
    check_record(records, 7, 8);
    sx_records_close(records);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_data_records__are_numbered_through, make_dir, remove_dir),
    cmocka_unit_test_setup_teardown(test_data_records__are_read_in_runs, make_dir, remove_dir),
    cmocka_unit_test_setup_teardown(test_data_records__empty_shards_are_fine, make_dir, remove_dir),
    cmocka_unit_test_setup_teardown(test_data_records__compressed_files_stay_in_their_budget,
                                    make_dir, remove_dir),
    cmocka_unit_test_setup_teardown(test_data_records__every_flipped_byte_is_noticed, make_dir,
                                    remove_dir),
    cmocka_unit_test_setup_teardown(test_data_records__skips_what_the_check_refuses, make_dir,
                                    remove_dir),
};
SX_TEST_MAIN(tests)
