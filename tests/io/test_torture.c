#include "io/scratch.h"
#include "torture.h"

#include "io/archive.h"
#include "io/idx.h"
#include "io/npy.h"
#include "io/tfrecord.h"

static sx_status write_and_read_shards(void *user)
{
    sx_codec codec = *(sx_codec *)user;
    sx_tfrecord_shards *shards = NULL;
    SX_TRY(sx_tfrecord_shards_create(scratch("t"), 2, codec, &shards));
    sx_status status = SX_OK;
    for (int i = 0; i < 4 && status == SX_OK; i++) {
        status = sx_tfrecord_shards_write(shards, i % 2, (sx_bytes){"record", 6});
    }
    if (status == SX_OK) {
        status = sx_tfrecord_shards_finish(shards);
    }
    sx_tfrecord_shards_destroy(shards);
    SX_TRY(status);
    sx_tfrecord_reader *reader = NULL;
    SX_TRY(sx_tfrecord_reader_open(scratch("t-00000-of-00002"), NULL, &reader));
    sx_bytes record;
    bool more = true;
    while (more && status == SX_OK) {
        status = sx_tfrecord_next(reader, &record, &more);
    }
    sx_tfrecord_reader_destroy(reader);
    return status;
}

static sx_status read_by_number(void *user)
{
    (void)user;
    sx_status status = sx_dir_remove(scratch(".sextant"));
    for (int round = 0; round < 2 && status == SX_OK; round++) { /* built, then loaded */
        sx_tfrecord_file *file = NULL;
        sx_bytes record;
        SX_TRY(sx_tfrecord_file_open(scratch("t-00000-of-00002"), NULL, &file));
        char frame[64];
        uint64_t count;
        assert_true(sx_tfrecord_file_run(file, 1, 1, 0, &count) <= sizeof(frame));
        status = sx_tfrecord_file_read(file, 1, 1, frame, &record, &count);
        sx_tfrecord_file_close(file);
    }
    return status;
}

static void test_io_torture__tfrecord(void **state)
{
    (void)state;
    sx_codec codecs[] = {SX_CODEC_GZIP, SX_CODEC_NONE};
    for (int i = 0; i < 2; i++) {
        assert_in_range(sx_torture_some(write_and_read_shards, &codecs[i]), 15, 100);
        assert_int_equal(count_entries(scratch_dir), 2); /* no temporary stays */
    }
    assert_in_range(sx_torture_some(read_by_number, NULL), 15, 100);
}

static sx_status use_files(void *user)
{
    (void)user;
    char *data = NULL;
    size_t size;
    sx_file *file = NULL;
    SX_TRY(sx_dir_create(scratch("d/e")));
    SX_TRY(sx_commit_bytes(scratch("d/e/f"), "abc", 3));
    SX_TRY(sx_file_read(scratch("d/e/f"), 10, &data, &size));
    sx_free(data);
    SX_TRY(sx_file_open(scratch("d/e/f"), &file));
    sx_file_close(file);
    const char *pattern = scratch("d/e/*");
    sx_paths paths = {0};
    SX_TRY(sx_paths_glob(&pattern, 1, &paths));
    sx_paths_deinit(&paths);
    SX_TRY(sx_dir_list(scratch("d"), &paths));
    sx_paths_deinit(&paths);
    return SX_OK;
}

static void test_io_torture__files(void **state)
{
    (void)state;
    assert_in_range(sx_torture_some(use_files, NULL), 10, 100);
    assert_int_equal(count_entries(scratch("d/e")), 1);
}

static sx_status use_arrays(void *user)
{
    (void)user;
    float values[] = {1, 2, 3};
    sx_tensor tensor = {sx_type_of(SX_F32, 3), values}, back = {0};
    SX_TRY(sx_npy_write(scratch("a.npy"), &tensor));
    SX_TRY(sx_npy_read(scratch("a.npy"), 0, &back));
    sx_free(back.data);
    SX_TRY(sx_idx_parse((sx_bytes){"\0\0\x08\x01\0\0\0\1x", 9}, 0, "i", &back));
    sx_free(back.data);
    return SX_OK;
}

static void test_io_torture__arrays(void **state)
{
    (void)state;
    assert_in_range(sx_torture_some(use_arrays, NULL), 8, 100);
}

static sx_status open_archive(void *user)
{
    sx_archive *archive = NULL;
    SX_TRY(sx_archive_open_bytes(*(sx_bytes *)user, "a", NULL, &archive));
    sx_archive_member member;
    bool more;
    sx_status status = sx_archive_next(archive, &member, &more);
    sx_archive_close(archive);
    return status;
}

static void test_io_torture__archive(void **state)
{
    (void)state;
    static char zeros[1024]; /* an empty tar */
    sx_bytes bytes = {zeros, sizeof zeros};
    assert_in_range(sx_torture_some(open_archive, &bytes), 2, 10);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_io_torture__tfrecord),
    scratch_test(test_io_torture__files),
    scratch_test(test_io_torture__arrays),
    scratch_test(test_io_torture__archive),
};
SX_TEST_MAIN(tests)
