#include "io/scratch.h"

#include <fcntl.h>

#include "io/crc32c.h"
#include "io/tfrecord.h"

static const sx_codec codecs[] = {SX_CODEC_NONE, SX_CODEC_GZIP, SX_CODEC_ZLIB};

static sx_bytes bytes_of(const char *text)
{
    return (sx_bytes){text, strlen(text)};
}

static void write_records(sx_codec codec, const char *const *records, size_t count, sx_buf *out)
{
    sx_tfrecord_writer *writer = NULL;
    assert_ok(sx_tfrecord_writer_create(codec, sx_write_to_buf, out, &writer));
    for (size_t i = 0; i < count; i++) {
        assert_ok(sx_tfrecord_write(writer, bytes_of(records[i])));
    }
    assert_ok(sx_tfrecord_writer_finish(writer));
    sx_tfrecord_writer_destroy(writer);
}

static void test_io_tfrecord__bytes_are_the_reference(void **state)
{
    (void)state;
    static const char *const records[] = {"hello", ""};
    uint8_t want[64];
    size_t size = from_hex("0500000000000000 eab2043e 68656c6c6f bb1f1c19"
                           "0000000000000000 29039807 d8ea82a2",
                           want);
    sx_buf out;
    sx_buf_init(&out, 0);
    write_records(SX_CODEC_NONE, records, 2, &out);
    assert_int_equal(out.size, size);
    assert_memory_equal(out.data, want, size);
    sx_buf_deinit(&out);
}

/* Reads all of `bytes`; the records joined by '|' go to `text` (of 256 bytes). */
static sx_status read_all(sx_bytes bytes, const sx_tfrecord_options *options, char *text,
                          sx_tfrecord_damage *damage)
{
    sx_tfrecord_reader *reader = NULL;
    SX_TRY(sx_tfrecord_reader_over(bytes, "f", options, &reader));
    sx_status status = SX_OK;
    bool more = true;
    size_t size = 0;
    while (more && status == SX_OK) {
        sx_bytes record = {0};
        status = sx_tfrecord_next(reader, &record, &more);
        if (status == SX_OK && more) {
            assert_true(size + record.size + 2 < 256);
            memcpy(text + size, record.data, record.size);
            size += record.size;
            text[size++] = '|';
        }
    }
    text[size] = '\0';
    if (damage != NULL) {
        *damage = sx_tfrecord_reader_damage(reader);
    }
    sx_tfrecord_reader_destroy(reader);
    return status;
}

static const char *const three[] = {"alpha", "", "gamma ray"};
static const char three_text[] = "alpha||gamma ray|";

static void test_io_tfrecord__round_trip_in_every_compression(void **state)
{
    (void)state;
    for (size_t c = 0; c < 3; c++) {
        sx_buf out;
        sx_buf_init(&out, 0);
        write_records(codecs[c], three, 3, &out);
        char text[256];
        assert_ok(read_all((sx_bytes){out.data, out.size}, NULL, text, NULL));
        assert_string_equal(text, three_text);
        sx_tfrecord_options told = {.codec = codecs[c]};
        assert_ok(read_all((sx_bytes){out.data, out.size}, &told, text, NULL));
        assert_string_equal(text, three_text);
        sx_buf_reset(&out);
        write_records(codecs[c], three, 0, &out);
        assert_ok(read_all((sx_bytes){out.data, out.size}, NULL, text, NULL));
        assert_string_equal(text, "");
        sx_buf_deinit(&out);
    }
}

/* R35: every byte flipped in every bit, every length cut: strict reading always says so, and what
 * it handed out before was right. */
static void test_io_tfrecord__all_damage_is_detected(void **state)
{
    (void)state;
    for (size_t c = 0; c < 3; c++) {
        sx_buf out;
        sx_buf_init(&out, 0);
        write_records(codecs[c], three, 3, &out);
        sx_tfrecord_options told = {.codec = codecs[c]};
        sx_bytes bytes = {out.data, out.size};
        char text[256];
        for (size_t bit = 0; bit < 8 * out.size; bit++) {
            out.data[bit / 8] ^= (char)(1 << bit % 8);
            sx_status status = read_all(bytes, &told, text, NULL);
            assert_true(strncmp(text, three_text, strlen(text)) == 0);
            /* Compressed streams have bits that mean nothing: the gzip header's time and system,
             * the padding behind the last symbol. The records are then the same. */
            bool harmless = codecs[c] != SX_CODEC_NONE && strcmp(text, three_text) == 0;
            assert_true(status != SX_OK || harmless);
            sx_status_free(status);
            out.data[bit / 8] ^= (char)(1 << bit % 8);
        }
        for (size_t size = 1; size < out.size; size++) {
            bool boundary = codecs[c] == SX_CODEC_NONE && (size == 21 || size == 37);
            sx_status status = read_all((sx_bytes){out.data, size}, &told, text, NULL);
            assert_int_equal(sx_status_code(status), boundary ? SX_CODE_OK : SX_DATA_LOSS);
            assert_true(strncmp(text, three_text, strlen(text)) == 0);
            sx_status_free(status);
        }
        sx_buf_deinit(&out);
    }
}

static void test_io_tfrecord__errors_say_where(void **state)
{
    (void)state;
    sx_buf out;
    char text[256];
    sx_buf_init(&out, 0);
    write_records(SX_CODEC_NONE, three, 3, &out);
    sx_bytes bytes = {out.data, out.size};
    out.data[37 + 12 + 2] ^= 1;
    assert_error(read_all(bytes, NULL, text, NULL), SX_DATA_LOSS,
                 "f: record 2 at offset 37: the record's data does not match its checksum");
    out.data[37 + 3] ^= 1;
    assert_error(read_all(bytes, NULL, text, NULL), SX_DATA_LOSS,
                 "f: record 2 at offset 37: the record's length does not match its checksum");
    bytes.size = 30;
    assert_error(read_all(bytes, NULL, text, NULL), SX_DATA_LOSS,
                 "f: record 1 at offset 21: the file ends inside the record's header");
    bytes.size = 20;
    assert_error(read_all(bytes, NULL, text, NULL), SX_DATA_LOSS,
                 "f: record 0 at offset 0: the file ends inside the record's data");
    bytes.size = 21;
    sx_tfrecord_options small = {.max_record_bytes = 4};
    assert_error(read_all(bytes, &small, text, NULL), SX_RESOURCE_EXHAUSTED, "limit of 4");
    sx_buf_deinit(&out);
}

/* A record as long as the limit is read, one byte more is refused, however it is compressed. */
static void test_io_tfrecord__the_limit_itself_is_allowed(void **state)
{
    (void)state;
    static const char *const nine[] = {"gamma ray"};
    for (size_t c = 0; c < 3; c++) {
        char text[256];
        sx_buf out;
        sx_buf_init(&out, 0);
        write_records(codecs[c], nine, 1, &out);
        sx_bytes bytes = {out.data, out.size};
        sx_tfrecord_options limit = {.max_record_bytes = 9};
        assert_ok(read_all(bytes, &limit, text, NULL));
        assert_string_equal(text, "gamma ray|");
        limit.max_record_bytes = 8;
        assert_error(read_all(bytes, &limit, text, NULL), SX_RESOURCE_EXHAUSTED,
                     "record 0 at offset 0 has 9 bytes, more than the limit of 8");
        sx_buf_deinit(&out);
    }
}

/* A header that verifies may claim anything: memory follows the bytes that come. */
static void test_io_tfrecord__huge_lengths_allocate_nothing(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 15, INT64_MAX, 1u << 29, 1u << 31};
    for (size_t c = 0; c < 3; c++) {
        for (size_t i = 0; i < 5; i++) {
            uint8_t header[SX_TFRECORD_HEADER], footer[SX_TFRECORD_FOOTER];
            sx_tfrecord_frame((sx_bytes){"", 0}, header, footer);
            for (int b = 0; b < 8; b++) {
                header[b] = (uint8_t)(lengths[i] >> (8 * b));
            }
            uint32_t crc = sx_crc32c_mask(sx_crc32c(0, header, 8));
            memcpy(header + 8, &crc, 4);
            sx_buf out;
            sx_buf_init(&out, 0);
            if (codecs[c] == SX_CODEC_NONE) {
                sx_buf_append(&out, header, sizeof header);
                sx_buf_append(&out, "some data", 9);
            } else {
                sx_deflate *stream = NULL;
                assert_ok(sx_deflate_create(codecs[c], -1, sx_write_to_buf, &out, &stream));
                assert_ok(sx_deflate_write(stream, header, sizeof header));
                assert_ok(sx_deflate_write(stream, "some data", 9));
                assert_ok(sx_deflate_finish(stream));
                sx_deflate_destroy(stream);
            }
            char text[256];
            sx_status status = read_all((sx_bytes){out.data, out.size}, NULL, text, NULL);
            assert_true(sx_status_code(status) == SX_DATA_LOSS ||
                        sx_status_code(status) == SX_RESOURCE_EXHAUSTED);
            sx_status_free(status);
            sx_buf_deinit(&out);
        }
    }
}

static void test_io_tfrecord__skips_and_counts(void **state)
{
    (void)state;
    static const char *const names[] = {"zero", "one", "two", "three"};
    sx_tfrecord_options skip = {.skip_corrupt = true};
    sx_tfrecord_damage damage;
    char text[256];
    sx_buf out;
    sx_buf_init(&out, 0);
    write_records(SX_CODEC_NONE, names, 4, &out);
    sx_bytes bytes = {out.data, out.size};
    assert_ok(read_all(bytes, &skip, text, &damage));
    assert_int_equal(damage.places, 0);
    out.data[20 + 12] ^= 1; /* record 1's data */
    assert_ok(read_all(bytes, &skip, text, &damage));
    assert_string_equal(text, "zero|two|three|");
    assert_int_equal(damage.places, 1);
    assert_int_equal(damage.bytes, 19);
    out.data[20] ^= 1; /* its length too: found again at record 2 */
    assert_ok(read_all(bytes, &skip, text, &damage));
    assert_string_equal(text, "zero|two|three|");
    assert_int_equal(damage.places, 1);
    assert_int_equal(damage.bytes, 19);
    bytes.size -= 1; /* and the tail is cut */
    assert_ok(read_all(bytes, &skip, text, &damage));
    assert_string_equal(text, "zero|two|");
    assert_int_equal(damage.places, 2);
    out.data[0] ^= 1;
    assert_ok(read_all(bytes, &skip, text, &damage));
    assert_string_equal(text, "two|");
    sx_buf_deinit(&out);
}

static void test_io_tfrecord__skips_in_compressed_files(void **state)
{
    (void)state;
    sx_buf plain, out;
    sx_buf_init(&plain, 0);
    sx_buf_init(&out, 0);
    write_records(SX_CODEC_NONE, three, 3, &plain);
    sx_tfrecord_options skip = {.skip_corrupt = true};
    sx_tfrecord_damage damage;
    char text[256];
    for (int where = 0; where < 2; where++) { /* the first record's data, then its length */
        plain.data[where == 0 ? 12 : 0] ^= 1;
        sx_deflate *stream = NULL;
        sx_buf_reset(&out);
        assert_ok(sx_deflate_create(SX_CODEC_GZIP, 1, sx_write_to_buf, &out, &stream));
        assert_ok(sx_deflate_write(stream, plain.data, plain.size));
        assert_ok(sx_deflate_finish(stream));
        sx_deflate_destroy(stream);
        assert_ok(read_all((sx_bytes){out.data, out.size}, &skip, text, &damage));
        assert_string_equal(text, where == 0 ? "|gamma ray|" : "");
        assert_int_equal(damage.places, 1);
    }
    sx_buf_deinit(&out);
    sx_buf_deinit(&plain);
}

static void test_io_tfrecord__a_failed_stream_stays_failed(void **state)
{
    (void)state;
    sx_buf out;
    sx_buf_init(&out, 0);
    write_records(SX_CODEC_GZIP, three, 3, &out);
    sx_tfrecord_reader *reader = NULL;
    assert_ok(sx_tfrecord_reader_over((sx_bytes){out.data, out.size - 9}, "f", NULL, &reader));
    sx_bytes record;
    bool more = true;
    sx_status status = SX_OK;
    while (more && status == SX_OK) {
        status = sx_tfrecord_next(reader, &record, &more);
    }
    assert_error(status, SX_DATA_LOSS, "record");
    assert_error(sx_tfrecord_next(reader, &record, &more), SX_FAILED_PRECONDITION,
                 "an earlier read failed");
    sx_tfrecord_reader_destroy(reader);
    sx_buf_deinit(&out);
}

/* ---- Shards and files by number ---- */

static void write_shards(const char *prefix, int count, sx_codec codec, int records)
{
    sx_tfrecord_shards *shards = NULL;
    assert_ok(sx_tfrecord_shards_create(prefix, count, codec, &shards));
    for (int i = 0; i < records; i++) {
        char text[32];
        snprintf(text, sizeof text, "record %d", i);
        assert_ok(sx_tfrecord_shards_write(shards, i % count, bytes_of(text)));
    }
    assert_false(sx_path_exists(scratch("data/train-00000-of-00002")));
    assert_ok(sx_tfrecord_shards_finish(shards));
    sx_tfrecord_shards_destroy(shards);
}

static void test_io_tfrecord__shards_appear_together(void **state)
{
    (void)state;
    write_shards(scratch("data/train"), 2, SX_CODEC_NONE, 5);
    assert_int_equal(count_entries(scratch("data")), 2);
    sx_tfrecord_reader *reader = NULL;
    assert_ok(sx_tfrecord_reader_open(scratch("data/train-00001-of-00002"), NULL, &reader));
    sx_bytes record;
    bool more;
    assert_ok(sx_tfrecord_next(reader, &record, &more));
    assert_int_equal(record.size, 8);
    assert_memory_equal(record.data, "record 1", 8);
    sx_tfrecord_reader_destroy(reader);
    sx_tfrecord_shards *shards = NULL;
    assert_ok(sx_tfrecord_shards_create(scratch("data/val"), 3, SX_CODEC_GZIP, &shards));
    assert_error(sx_tfrecord_shards_write(shards, 3, bytes_of("x")), SX_INVALID_ARGUMENT, "3 of 3");
    sx_tfrecord_shards_destroy(shards);
    assert_int_equal(count_entries(scratch("data")), 2);
    assert_error(sx_tfrecord_shards_create(scratch("x"), 0, SX_CODEC_NONE, &shards),
                 SX_INVALID_ARGUMENT, "0 shards");
}

/* Reads a record into static memory. */
static sx_status read_record(const sx_tfrecord_file *file, uint64_t number, sx_bytes *out)
{
    static char frame[256];
    uint64_t count = 1;
    assert_true(sx_tfrecord_file_run(file, number, 1, 0, &count) <= sizeof(frame));
    return sx_tfrecord_file_read(file, number, 1, frame, out, &count);
}

static void check_numbers(const sx_tfrecord_file *file, uint64_t count)
{
    assert_int_equal(sx_tfrecord_file_count(file), count);
    for (uint64_t i = count; i-- > 0;) {
        char text[32];
        snprintf(text, sizeof text, "record %d", (int)i);
        sx_bytes record = {0};
        assert_ok(read_record(file, i, &record));
        assert_int_equal(record.size, strlen(text));
        assert_memory_equal(record.data, text, record.size);
    }
    sx_bytes record;
    assert_error(read_record(file, count, &record), SX_OUT_OF_RANGE, "records");
}

/* Records that lie one after the other are read at once, as far as the file, the count and the
 * bytes allow; a bad one in the middle ends the run before it and is named when its turn comes. */
static void test_io_tfrecord__runs_of_records(void **state)
{
    (void)state;
    enum { COUNT = 20, FRAME = 8 + 16 }; /* "record n" */
    static char frames[COUNT * (FRAME + 1)];
    sx_bytes records[COUNT];
    sx_tfrecord_file *file = NULL;
    uint64_t count;
    char text[32];
    write_shards(scratch("d/t"), 1, SX_CODEC_NONE, COUNT);
    char *path = scratch("d/t-00000-of-00001");
    assert_ok(sx_tfrecord_file_open(path, NULL, &file));
    assert_int_equal(sx_tfrecord_file_run(file, 2, 100, 3 * FRAME, &count), 3 * FRAME);
    assert_int_equal(count, 3);
    assert_int_equal(sx_tfrecord_file_run(file, 2, 100, 3 * FRAME - 1, &count), 2 * FRAME);
    assert_int_equal(sx_tfrecord_file_run(file, 2, 100, 1, &count), FRAME);
    assert_int_equal(sx_tfrecord_file_run(file, COUNT, 1, SIZE_MAX, &count), 0);
    assert_int_equal(count, 0);
    assert_int_equal(sx_tfrecord_file_run(file, 2, 100, SIZE_MAX, &count),
                     8 * FRAME + 10 * (FRAME + 1));
    assert_int_equal(count, 18);
    assert_ok(sx_tfrecord_file_read(file, 2, 18, frames, records, &count));
    assert_int_equal(count, 18);
    for (int i = 0; i < 18; i++) {
        assert_int_equal(records[i].size, snprintf(text, sizeof text, "record %d", i + 2));
        assert_memory_equal(records[i].data, text, records[i].size);
    }

    FILE *stream = fopen(path, "r+b");
    assert_non_null(stream);
    fseek(stream, 5 * FRAME + 12, SEEK_SET); /* the data of record 5 */
    fputc('R', stream);
    assert_int_equal(fclose(stream), 0);
    assert_ok(sx_tfrecord_file_read(file, 2, 18, frames, records, &count));
    assert_int_equal(count, 3);
    assert_error(sx_tfrecord_file_read(file, 5, 18, frames, records, &count), SX_DATA_LOSS,
                 "record 5 at offset 120");
    assert_ok(sx_tfrecord_file_read(file, 6, 4, frames, records, &count));
    assert_int_equal(count, 4);
    assert_int_equal(truncate(path, 8 * FRAME - 1), 0); /* ends inside record 7 */
    assert_ok(sx_tfrecord_file_read(file, 6, 4, frames, records, &count));
    assert_int_equal(count, 1);
    assert_memory_equal(records[0].data, "record 6", 8);
    assert_error(sx_tfrecord_file_read(file, 7, 4, frames, records, &count), SX_DATA_LOSS,
                 "record 7");
    sx_tfrecord_file_close(file);
}

static void test_io_tfrecord__by_number_with_a_saved_index(void **state)
{
    (void)state;
    write_shards(scratch("d/t"), 1, SX_CODEC_NONE, 1000);
    for (int round = 0; round < 3; round++) {
        sx_tfrecord_file *file = NULL;
        assert_ok(sx_tfrecord_file_open(scratch("d/t-00000-of-00001"), NULL, &file));
        check_numbers(file, 1000);
        sx_tfrecord_file_close(file);
        assert_true(sx_path_exists(scratch("d/.sextant/t-00000-of-00001.index")));
        if (round == 1) { /* another file of that name: the index must not be believed */
            write_shards(scratch("d/t"), 1, SX_CODEC_NONE, 1000);
        }
    }
    sx_tfrecord_file_close(NULL);
}

/* A file with a fitting index is opened without a look at its records. */
static void test_io_tfrecord__a_saved_index_is_enough(void **state)
{
    (void)state;
    write_shards(scratch("d/t"), 1, SX_CODEC_NONE, 10);
    const char *path = scratch("d/t-00000-of-00001");
    sx_tfrecord_file *file = NULL;
    struct stat info;
    for (int round = 0; round < 3; round++) {
        if (round == 2) {
            assert_ok(sx_dir_remove(scratch("d/.sextant")));
        }
        sx_status status = sx_tfrecord_file_open(path, NULL, &file);
        if (round < 2) {
            assert_ok(status);
            assert_int_equal(sx_tfrecord_file_count(file), 10);
            sx_tfrecord_file_close(file);
        } else {
            assert_error(status, SX_DATA_LOSS, "record 0");
        }
        if (round == 0) { /* the first length, at the same size and time */
            FILE *stream = fopen(path, "r+b");
            assert_non_null(stream);
            assert_int_equal(stat(path, &info), 0);
            fputc(0x77, stream);
            fclose(stream);
            assert_int_equal(
                utimensat(AT_FDCWD, path, (struct timespec[]){info.st_atim, info.st_mtim}, 0), 0);
        }
    }
}

static void test_io_tfrecord__a_damaged_index_is_rebuilt(void **state)
{
    (void)state;
    write_shards(scratch("d/t"), 1, SX_CODEC_NONE, 3);
    char *path = scratch("d/t-00000-of-00001"),
         *index = scratch("d/.sextant/t-00000-of-00001.index");
    sx_tfrecord_file *file = NULL;
    assert_ok(sx_tfrecord_file_open(path, NULL, &file));
    sx_tfrecord_file_close(file);
    char *good = NULL;
    size_t size = 0;
    assert_ok(sx_file_read(index, 1 << 20, &good, &size));
    assert_int_equal(size, 48 + 3 * 16 + 4);
    for (size_t i = 0; i < size; i++) {
        good[i] ^= 4;
        write_file(index, good, size);
        good[i] ^= 4;
        assert_ok(sx_tfrecord_file_open(path, NULL, &file));
        check_numbers(file, 3);
        sx_tfrecord_file_close(file);
        assert_file(index, good, size);
    }
    for (size_t cut = 0; cut < size; cut++) {
        write_file(index, good, cut);
        assert_ok(sx_tfrecord_file_open(path, NULL, &file));
        check_numbers(file, 3);
        sx_tfrecord_file_close(file);
    }
    sx_free(good);
}

static void test_io_tfrecord__by_number_finds_damage(void **state)
{
    (void)state;
    sx_buf out;
    sx_buf_init(&out, 0);
    write_records(SX_CODEC_NONE, three, 3, &out);
    sx_tfrecord_file *file = NULL;
    sx_bytes record;
    out.data[37 + 12] ^= 1;
    write_file(scratch("f"), out.data, out.size);
    assert_ok(sx_tfrecord_file_open(scratch("f"), NULL, &file));
    assert_ok(read_record(file, 0, &record));
    assert_error(read_record(file, 2, &record), SX_DATA_LOSS, "f: record 2 at offset 37");
    sx_tfrecord_file_close(file);
    out.data[37 + 12] ^= 1;
    out.data[21] ^= 1;
    write_file(scratch("f"), out.data, out.size);
    assert_error(sx_tfrecord_file_open(scratch("f"), NULL, &file), SX_DATA_LOSS,
                 "f: record 1 at offset 21");
    sx_tfrecord_options skip = {.skip_corrupt = true};
    for (int round = 0; round < 2; round++) { /* built, then loaded */
        assert_ok(sx_tfrecord_file_open(scratch("f"), &skip, &file));
        assert_int_equal(sx_tfrecord_file_count(file), 2);
        assert_int_equal(sx_tfrecord_file_damage(file).places, 1);
        assert_int_equal(sx_tfrecord_file_damage(file).bytes, 16);
        assert_ok(read_record(file, 1, &record));
        assert_memory_equal(record.data, "gamma ray", 9);
        sx_tfrecord_file_close(file);
    }
    assert_error(sx_tfrecord_file_open(scratch("f"), NULL, &file), SX_DATA_LOSS, "record 1");
    sx_buf_deinit(&out);
}

/* Another process truncates the file while it is read: an error, whatever reads it, no signal. */
static void test_io_tfrecord__a_truncated_file_is_an_error(void **state)
{
    (void)state;
    for (size_t c = 0; c < 3; c++) {
        const char *path = scratch("d/t-00000-of-00001");
        write_shards(scratch("d/t"), 1, codecs[c], 200000);
        struct stat info;
        sx_tfrecord_reader *reader = NULL;
        sx_tfrecord_file *file = NULL;
        sx_bytes record;
        bool more = true;
        assert_int_equal(stat(path, &info), 0);
        assert_ok(sx_tfrecord_reader_open(path, NULL, &reader));
        assert_ok(sx_tfrecord_next(reader, &record, &more));
        if (codecs[c] == SX_CODEC_NONE) {
            assert_ok(sx_tfrecord_file_open(path, NULL, &file));
        }
        assert_int_equal(truncate(path, info.st_size / 2), 0);
        sx_status status = SX_OK;
        while (status == SX_OK && more) {
            status = sx_tfrecord_next(reader, &record, &more);
        }
        assert_error(status, SX_DATA_LOSS, "was it truncated?");
        sx_tfrecord_reader_destroy(reader);
        if (file != NULL) {
            assert_ok(read_record(file, 10, &record));
            assert_error(read_record(file, 199999, &record), SX_DATA_LOSS,
                         "t-00000-of-00001: record 199999: ");
            sx_tfrecord_file_close(file);
        }
    }
}

static void test_io_tfrecord__compressed_files_have_no_numbers(void **state)
{
    (void)state;
    write_shards(scratch("d/t"), 1, SX_CODEC_GZIP, 3);
    sx_tfrecord_file *file = NULL;
    assert_error(sx_tfrecord_file_open(scratch("d/t-00000-of-00001"), NULL, &file),
                 SX_FAILED_PRECONDITION, "GZIP");
    assert_error(sx_tfrecord_file_open(scratch("none"), NULL, &file), SX_NOT_FOUND, "none");
}

static void test_io_tfrecord__a_read_only_directory_uses_the_cache(void **state)
{
    (void)state;
    if (geteuid() == 0) {
        /* root writes everywhere; a file in the place of the directory stops even root */
        assert_ok(sx_dir_create(scratch("d")));
        write_file(scratch("d/.sextant"), "", 0);
    }
    write_shards(scratch("d/t"), 1, SX_CODEC_NONE, 3);
    assert_int_equal(chmod(scratch("d"), 0555), 0);
    assert_int_equal(setenv("XDG_CACHE_HOME", scratch("cache"), 1), 0);
    sx_tfrecord_file *file = NULL;
    assert_ok(sx_tfrecord_file_open(scratch("d/t-00000-of-00001"), NULL, &file));
    check_numbers(file, 3);
    sx_tfrecord_file_close(file);
    assert_int_equal(count_entries(scratch("cache/sextant")), 1);
    assert_int_equal(chmod(scratch("d"), 0755), 0);
}

/* What could be skipped is damage, not a record beyond the limit: that one is an error, also where
 * damage is skipped, unless the records can be told apart without reading it. */
static void test_io_tfrecord__a_limit_is_no_damage_in_compressed_files(void **state)
{
    (void)state;
    for (size_t c = 1; c < 3; c++) {
        char text[256];
        sx_buf out;
        sx_buf_init(&out, 0);
        write_records(codecs[c], three, 3, &out);
        sx_tfrecord_options limit = {.max_record_bytes = 8, .skip_corrupt = true};
        assert_error(read_all((sx_bytes){out.data, out.size}, &limit, text, NULL),
                     SX_RESOURCE_EXHAUSTED, "record 2 at offset 37");
        assert_string_equal(text, "alpha||");
        sx_buf_deinit(&out);
    }
}

/* The index file, byte for byte: magic, size and time of the data, records, damage; offset and
 * length of each; CRC-32C of all that. A file with anything else is built anew. */
static void test_io_tfrecord__index_layout(void **state)
{
    (void)state;
    sx_buf out;
    sx_buf_init(&out, 0);
    write_records(SX_CODEC_NONE, three, 3, &out);
    write_file(scratch("f"), out.data, out.size);
    sx_tfrecord_file *file = NULL;
    assert_ok(sx_tfrecord_file_open(scratch("f"), NULL, &file));
    sx_tfrecord_file_close(file);
    char *index = NULL;
    size_t size = 0;
    struct stat info;
    uint64_t words[11];
    uint32_t crc;
    assert_ok(sx_file_read(scratch(".sextant/f.index"), 1 << 20, &index, &size));
    assert_int_equal(stat(scratch("f"), &info), 0);
    assert_int_equal(size, 48 + 3 * 16 + 4);
    assert_memory_equal(index, "SXTFIDX1", 8);
    memcpy(words, index + 8, sizeof words);
    memcpy(&crc, index + size - 4, 4);
    const uint64_t expected[] = {
        out.size, (uint64_t)info.st_mtim.tv_sec * 1000000000 + (uint64_t)info.st_mtim.tv_nsec,
        3,        0,
        0,        0,
        5,        21,
        0,        37,
        9};
    assert_memory_equal(words, expected, sizeof expected);
    assert_int_equal(crc, sx_crc32c(0, index, size - 4));
    /* Each word changed, the checksum right: what contradicts the file is not believed. */
    for (size_t i = 0; i < 11; i++) {
        uint64_t changed[11];
        memcpy(changed, words, sizeof words);
        changed[i] += i < 3 ? 1 : (uint64_t)1 << 40;
        memcpy(index + 8, changed, sizeof changed);
        crc = sx_crc32c(0, index, size - 4);
        memcpy(index + size - 4, &crc, 4);
        write_file(scratch(".sextant/f.index"), index, size);
        assert_ok(sx_tfrecord_file_open(scratch("f"), NULL, &file));
        char frame[64];
        sx_bytes record;
        uint64_t count;
        assert_int_equal(sx_tfrecord_file_count(file), 3);
        assert_int_equal(sx_tfrecord_file_run(file, 2, 1, SIZE_MAX, &count), 12 + 9 + 4);
        assert_int_equal(sx_tfrecord_file_run(file, 3, 1, SIZE_MAX, &count), 0);
        assert_ok(sx_tfrecord_file_read(file, 2, 1, frame, &record, &count));
        assert_int_equal(record.size, 9);
        assert_memory_equal(record.data, "gamma ray", 9);
        sx_tfrecord_file_close(file);
    }
    sx_free(index);
    sx_buf_deinit(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_io_tfrecord__bytes_are_the_reference),
    cmocka_unit_test(test_io_tfrecord__round_trip_in_every_compression),
    cmocka_unit_test(test_io_tfrecord__all_damage_is_detected),
    cmocka_unit_test(test_io_tfrecord__errors_say_where),
    cmocka_unit_test(test_io_tfrecord__the_limit_itself_is_allowed),
    cmocka_unit_test(test_io_tfrecord__huge_lengths_allocate_nothing),
    cmocka_unit_test(test_io_tfrecord__skips_and_counts),
    cmocka_unit_test(test_io_tfrecord__skips_in_compressed_files),
    cmocka_unit_test(test_io_tfrecord__a_failed_stream_stays_failed),
    scratch_test(test_io_tfrecord__shards_appear_together),
    scratch_test(test_io_tfrecord__runs_of_records),
    scratch_test(test_io_tfrecord__by_number_with_a_saved_index),
    scratch_test(test_io_tfrecord__a_saved_index_is_enough),
    scratch_test(test_io_tfrecord__a_damaged_index_is_rebuilt),
    scratch_test(test_io_tfrecord__by_number_finds_damage),
    scratch_test(test_io_tfrecord__a_truncated_file_is_an_error),
    scratch_test(test_io_tfrecord__compressed_files_have_no_numbers),
    scratch_test(test_io_tfrecord__a_read_only_directory_uses_the_cache),
    cmocka_unit_test(test_io_tfrecord__a_limit_is_no_damage_in_compressed_files),
    scratch_test(test_io_tfrecord__index_layout),
};
SX_TEST_MAIN(tests)
