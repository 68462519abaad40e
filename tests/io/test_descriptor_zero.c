/* A process whose standard input is closed, as some supervisors start one: open() then returns
 * descriptor 0, which is as good as any other. Every call that opens a file works, and leaves 0
 * closed. */
#include "io/scratch.h"

#include <fcntl.h>

#include "io/archive.h"
#include "io/commit.h"
#include "io/dir_commit.h"
#include "io/dir_lock.h"
#include "io/fetch.h"
#include "io/npy.h"
#include "io/tfrecord.h"
#include "io/window.h"

static void commit_and_read(void)
{
    char *data = NULL;
    size_t size;
    assert_ok(sx_commit_bytes(scratch("f"), "abc", 3));
    assert_ok(sx_file_read(scratch("f"), 10, &data, &size));
    assert_int_equal(size, 3);
    sx_free(data);
    assert_ok(sx_file_read_stream(scratch("f"), 10, NULL, &data, &size));
    assert_memory_equal(data, "abc", 3);
    sx_free(data);
}

static void read_at(void)
{
    sx_file *file = NULL;
    char data[2];
    uint64_t size;
    uint32_t crc;
    write_file(scratch("f"), "abc", 3);
    assert_ok(sx_file_open(scratch("f"), &file));
    assert_ok(sx_file_read_at(file, 1, data, 2));
    assert_memory_equal(data, "bc", 2);
    sx_file_close(file);
    assert_ok(sx_file_crc32c(scratch("f"), &size, &crc));
    assert_int_equal(crc, 0x364b3fb7);
}

static void sweep(void)
{
    char *temporary = NULL;
    assert_ok(sx_temp_path(scratch("f"), &temporary));
    write_file(temporary, "abc", 3);
    assert_int_equal(count_entries(scratch_dir), 1);
    assert_ok(sx_commit_sweep(scratch_dir));
    assert_int_equal(count_entries(scratch_dir), 0);
    sx_free(temporary);
}

static void lock(void)
{
    int lock, second = SX_NO_LOCK;
    assert_ok(sx_dir_lock(scratch_dir, &lock));
    sx_status status = sx_dir_lock(scratch_dir, &second);
    assert_true(status != SX_OK && second == SX_NO_LOCK);
    sx_status_free(status);
    sx_dir_unlock(lock);
    assert_ok(sx_dir_lock(scratch_dir, &lock)); /* it was freed */
    sx_dir_unlock(lock);
}

static void commit_directory(void)
{
    sx_dir_commit commit;
    char path[700];
    assert_ok(sx_dir_commit_begin(scratch("new"), &commit));
    snprintf(path, sizeof(path), "%s/f", commit.temp_path);
    write_file(path, "abc", 3);
    assert_ok(sx_dir_commit_finish(&commit));
    sx_dir_commit_deinit(&commit);
    assert_file(scratch("new/f"), "abc", 3);
}

static void records(void)
{
    sx_tfrecord_shards *shards = NULL;
    sx_tfrecord_reader *reader = NULL;
    sx_tfrecord_file *file = NULL;
    sx_bytes record;
    bool more;
    assert_ok(sx_tfrecord_shards_create(scratch("t"), 1, SX_CODEC_NONE, &shards));
    assert_ok(sx_tfrecord_shards_write(shards, 0, (sx_bytes){"record", 6}));
    assert_ok(sx_tfrecord_shards_finish(shards));
    sx_tfrecord_shards_destroy(shards);
    assert_ok(sx_tfrecord_reader_open(scratch("t-00000-of-00001"), NULL, &reader));
    assert_ok(sx_tfrecord_next(reader, &record, &more));
    assert_true(more && record.size == 6);
    sx_tfrecord_reader_destroy(reader);
    assert_ok(sx_tfrecord_file_open(scratch("t-00000-of-00001"), NULL, &file));
    sx_tfrecord_file_close(file);
}

static void arrays(void)
{
    float values[] = {1, 2, 3};
    sx_tensor back = {0};
    assert_ok(sx_npy_write(scratch("a.npy"), &(sx_tensor){sx_type_of(SX_F32, 3), values}));
    assert_ok(sx_npy_read(scratch("a.npy"), 0, &back));
    assert_memory_equal(back.data, values, sizeof(values));
    sx_free(back.data);
}

static void archive(void)
{
    static const char zeros[1024]; /* an empty tar */
    sx_archive *archive = NULL;
    sx_archive_member member;
    bool more;
    write_file(scratch("a.tar"), zeros, sizeof(zeros));
    assert_ok(sx_archive_open(scratch("a.tar"), NULL, &archive));
    assert_ok(sx_archive_next(archive, &member, &more));
    assert_false(more);
    sx_archive_close(archive);
}

static void fetch(void)
{
    char url[700];
    write_file(scratch("f"), "abc", 3);
    snprintf(url, sizeof(url), "file://%s", scratch("f"));
    assert_ok(sx_fetch(&(sx_fetch_request){.url = url, .path = scratch("g")}));
    assert_file(scratch("g"), "abc", 3);
}

static void test_io_descriptor_zero__is_as_good_as_any(void **state)
{
    (void)state;
    static void (*const calls[])(void) = {commit_and_read, read_at, sweep,   lock, commit_directory,
                                          records,         arrays,  archive, fetch};
    const int kept = fcntl(0, F_DUPFD_CLOEXEC, 10);
    assert_true(kept >= 10);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        assert_ok(sx_dir_remove(scratch_dir));
        assert_ok(sx_dir_create(scratch_dir));
        close(0);
        calls[i]();
        assert_int_equal(fcntl(0, F_GETFD), -1);
    }
    assert_int_equal(dup2(kept, 0), 0);
    close(kept);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_io_descriptor_zero__is_as_good_as_any),
};
SX_TEST_MAIN(tests)
