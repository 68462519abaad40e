/* Tensor bundles: round trips, a string tensor written by TensorFlow, every flipped bit and cut
 * found, and a crash at every system call of the commit. */
#include "io/scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/checked.h"
#include "io/crc32c.h"
#include "io/failpoint.h"
#include "proto/tensor_bundle.pb-c.h"
#include "proto/types.pb-c.h"
#include "checkpoint/bundle.h"
#include "checkpoint/object_graph.h"
#include "checkpoint/slice_key.h"
#include "checkpoint/sstable.h"

static const float kernel[6] = {1, -2, 3.5f, 0, 1e30f, -1e-30f};

/* Writes {b: f32[2,3], a: i64 scalar, s: string[2]} plus b's second key; `step` is the value of a.
 */
static sx_status write_small(const char *prefix, int64_t step)
{
    sx_bytes strings[2] = {{"ab", 2}, {"c", 1}};
    sx_bundle_writer *w = NULL;
    SX_TRY(sx_bundle_writer_create(prefix, &w));
    sx_status status =
        sx_bundle_add(w, "b", &(sx_tensor){sx_type_of(SX_F32, 2, 3), (void *)(uintptr_t)kernel});
    status = status != SX_OK ? status
                             : sx_bundle_add(w, "a", &(sx_tensor){sx_scalar_type(SX_I64), &step});
    status = status != SX_OK
                 ? status
                 : sx_bundle_add(w, "s", &(sx_tensor){sx_type_of(SX_STRING, 2), strings});
    status = status != SX_OK ? status : sx_bundle_alias(w, "second/b", "b");
    status = status != SX_OK ? status : sx_bundle_writer_finish(w);
    sx_bundle_writer_destroy(w);
    return status;
}

static void check_small(const char *prefix, int64_t step)
{
    sx_bundle *b = NULL;
    assert_ok(sx_bundle_open(prefix, &b));
    assert_int_equal(sx_bundle_count(b), 4);
    assert_string_equal(sx_bundle_at(b, 0)->key, "a");
    assert_string_equal(sx_bundle_at(b, 3)->key, "second/b");
    assert_int_equal(sx_bundle_at(b, 3)->offset, sx_bundle_find(b, "b")->offset);
    float got[6];
    int64_t got_step;
    sx_type matrix = sx_type_of(SX_F32, 2, 3), scalar = sx_scalar_type(SX_I64);
    assert_ok(sx_bundle_read(b, "second/b", &matrix, got));
    assert_memory_equal(got, kernel, sizeof(kernel));
    assert_ok(sx_bundle_read(b, "a", &scalar, &got_step));
    assert_int_equal(got_step, step);
    sx_arena arena;
    sx_arena_init(&arena, 0);
    sx_tensor strings;
    assert_ok(sx_bundle_read_strings(b, "s", &arena, &strings));
    const sx_bytes *views = strings.data;
    assert_int_equal(views[0].size, 2);
    assert_memory_equal(views[0].data, "ab", 2);
    assert_memory_equal(views[1].data, "c", 1);
    assert_ok(sx_bundle_verify(b));
    sx_arena_deinit(&arena);
    sx_bundle_close(b);
}

static void test_checkpoint_bundle__round_trip(void **state)
{
    (void)state;
    assert_ok(write_small(scratch("m"), 7));
    assert_int_equal(count_entries(scratch_dir), 2);
    check_small(scratch("m"), 7);
    assert_ok(write_small(scratch("m"), 8)); /* over itself */
    check_small(scratch("m"), 8);
}

static void test_checkpoint_bundle__string_layout(void **state)
{
    (void)state;
    sx_bytes strings[2] = {{"ab", 2}, {"c", 1}};
    sx_bundle_writer *w = NULL;
    assert_ok(sx_bundle_writer_create(scratch("m"), &w));
    assert_ok(sx_bundle_add(w, "s", &(sx_tensor){sx_type_of(SX_STRING, 2), strings}));
    assert_ok(sx_bundle_writer_finish(w));
    sx_bundle_writer_destroy(w);
    assert_file(scratch("m.data-00000-of-00001"), "\x02\x01\x03\x71\x7c\x67\x61\x62\x63", 9);
    sx_bundle *b = NULL;
    assert_ok(sx_bundle_open(scratch("m"), &b));
    assert_int_equal(sx_bundle_find(b, "s")->crc, 0x5fd830d5);
    sx_bundle_close(b);
}

static void test_checkpoint_bundle__says_what_differs(void **state)
{
    (void)state;
    assert_ok(write_small(scratch("m"), 7));
    sx_bundle *b = NULL;
    float out[6];
    sx_type other = sx_type_of(SX_F32, 3, 2), strings = sx_type_of(SX_STRING, 2);
    assert_ok(sx_bundle_open(scratch("m"), &b));
    assert_error(sx_bundle_read(b, "b", &other, out), SX_FAILED_PRECONDITION,
                 "\"b\" is float32[2,3], expected float32[3,2]");
    assert_error(sx_bundle_read(b, "s", &strings, out), SX_FAILED_PRECONDITION, "string[2]");
    assert_error(sx_bundle_read(b, "zz", &other, out), SX_NOT_FOUND, "\"zz\"");
    sx_bundle_close(b);
    assert_error(sx_bundle_open(scratch("none"), &b), SX_NOT_FOUND, "none");
    assert_int_equal(unlink(scratch("m.data-00000-of-00001")), 0);
    assert_error(sx_bundle_open(scratch("m"), &b), SX_NOT_FOUND, ".data-00000-of-00001");
}

static void test_checkpoint_bundle__refuses_to_write(void **state)
{
    (void)state;
    float x = 1;
    sx_bundle_writer *w = NULL;
    assert_ok(sx_bundle_writer_create(scratch("m"), &w));
    assert_error(sx_bundle_add(w, "", &(sx_tensor){sx_scalar_type(SX_F32), &x}),
                 SX_INVALID_ARGUMENT, "stored");
    assert_error(sx_bundle_add(w, "x", &(sx_tensor){sx_type_of(SX_F32, SX_BATCH), &x}),
                 SX_INVALID_ARGUMENT, "float32[N]");
    assert_error(sx_bundle_alias(w, "y", "x"), SX_NOT_FOUND, "\"x\"");
    assert_ok(sx_bundle_add(w, "x", &(sx_tensor){sx_scalar_type(SX_F32), &x}));
    assert_ok(sx_bundle_add(w, "x", &(sx_tensor){sx_scalar_type(SX_F32), &x}));
    assert_error(sx_bundle_writer_finish(w), SX_ALREADY_EXISTS, "\"x\"");
    sx_bundle_writer_destroy(w);
    assert_int_equal(count_entries(scratch_dir), 0);
}

/* Whether anything at all is wrong with the bundle. */
static bool is_broken(const char *prefix)
{
    sx_bundle *b = NULL;
    sx_status status = sx_bundle_open(prefix, &b);
    if (status == SX_OK) {
        status = sx_bundle_verify(b);
        sx_bundle_close(b);
    }
    bool broken = status != SX_OK;
    sx_status_free(status);
    return broken;
}

/* Flips every bit of a file, then cuts it at every length; each must be noticed. */
static void damage(const char *prefix, const char *path)
{
    char *bytes = NULL;
    size_t size = 0;
    assert_ok(sx_file_read(path, 1 << 20, &bytes, &size));
    int file = open(path, O_WRONLY | O_CLOEXEC); /* in place: writing it anew each time is slow */
    assert_true(file >= 0);
    for (size_t i = 0; i < size * 8; i++) {
        char flipped = (char)(bytes[i / 8] ^ 1 << (i % 8));
        assert_int_equal(pwrite(file, &flipped, 1, (off_t)(i / 8)), 1);
        if (!is_broken(prefix)) {
            fail_msg("%s: bit %zu of byte %zu flipped and not noticed", path, i % 8, i / 8);
        }
        assert_int_equal(pwrite(file, &bytes[i / 8], 1, (off_t)(i / 8)), 1);
    }
    for (size_t cut = size; cut-- > 0;) {
        assert_int_equal(ftruncate(file, (off_t)cut), 0);
        assert_true(is_broken(prefix));
    }
    assert_int_equal(pwrite(file, bytes, size, 0), (int)size);
    close(file);
    assert_false(is_broken(prefix));
    sx_free(bytes);
}

static void test_checkpoint_bundle__every_flip_and_cut_is_detected(void **state)
{
    (void)state;
    assert_ok(write_small(scratch("m"), 7));
    damage(scratch("m"), scratch("m.index"));
    damage(scratch("m"), scratch("m.data-00000-of-00001"));
}

static void test_checkpoint_bundle__crash_anywhere_leaves_old_or_new(void **state)
{
    (void)state;
    sx_failpoint_arm(0, SX_FAIL_KILL);
    assert_ok(write_small(scratch("probe"), 0));
    long calls = sx_failpoint_count();
    assert_true(calls >= 8); /* two files: write, fsync, rename each, and directories */
    assert_ok(write_small(scratch("model.ckpt-1"), 1));
    for (long n = 1; n <= calls; n++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            sx_failpoint_arm(n, SX_FAIL_KILL);
            sx_status_free(write_small(scratch("model.ckpt-2"), 2));
            _exit(0);
        }
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
        check_small(scratch("model.ckpt-1"), 1);
        if (sx_path_exists(scratch("model.ckpt-2.index"))) {
            check_small(scratch("model.ckpt-2"), 2);
            assert_int_equal(unlink(scratch("model.ckpt-2.index")), 0);
        }
    }
}

static void test_checkpoint_bundle__failed_calls_leave_nothing(void **state)
{
    (void)state;
    sx_failpoint_arm(0, SX_FAIL_EIO);
    assert_ok(write_small(scratch("m"), 0));
    long calls = sx_failpoint_count();
    assert_int_equal(count_entries(scratch_dir), 2);
    for (long n = 1; n <= calls; n++) {
        assert_ok(write_small(scratch("m"), 1));
        sx_failpoint_arm(n, SX_FAIL_ENOSPC);
        sx_status status = write_small(scratch("m"), 1);
        sx_failpoint_arm(0, SX_FAIL_ENOSPC);
        sx_status_free(status);
        assert_int_equal(count_entries(scratch_dir), 2);
        check_small(scratch("m"), 1);
    }
}

static void test_checkpoint_bundle__slice_keys(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int rank;
        int64_t start[2], length[2];
        const char *hex;
    } rows[] = {
        /* the first as TensorFlow writes it, the others by its rule; test_bundle.py reads pieces
         * that TensorFlow wrote */
        {"w", 2, {0, 0}, {2, -1}, "00 7700 01 0102 80 82 80 7f"},
        {"w", 1, {64}, {-65}, "00 7700 01 0101 c040 3fbf"},
        {"w", 1, {8191}, {8192}, "00 7700 01 0101 dfff e02000"},
    };
    (void)rows[0].start[1];
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        uint8_t expected[64];
        size_t size = from_hex(rows[i].hex, expected);
        sx_buf key;
        sx_buf_init(&key, 0);
        sx_slice_key(&key, rows[i].name, rows[i].rank, rows[i].start, rows[i].length);
        assert_int_equal(key.size, size);
        assert_memory_equal(key.data, expected, size);
        sx_buf_deinit(&key);
    }
}

/* ---- Partitioned tensors ---- */

typedef struct piece {
    int64_t start[2], length[2];
    bool stored;
} piece;

enum { MAX_PIECES = 4, ROWS = 4, COLUMNS = 3 };

/* A bundle of one tensor "w", float32[4,3], whose element (i, j) is 10 i + j, in these slices. */
static void write_pieces(const char *prefix, const piece *pieces, size_t n)
{
    Tensorflow__BundleHeaderProto header = TENSORFLOW__BUNDLE_HEADER_PROTO__INIT;
    Tensorflow__TensorSliceProto slices[MAX_PIECES], *list[MAX_PIECES];
    Tensorflow__TensorSliceProto__Extent extents[MAX_PIECES][2], *extent_lists[MAX_PIECES][2];
    Tensorflow__BundleEntryProto entries[MAX_PIECES + 1];
    Tensorflow__TensorShapeProto shapes[MAX_PIECES + 1];
    Tensorflow__TensorShapeProto__Dim dims[MAX_PIECES + 1][2], *dim_lists[MAX_PIECES + 1][2];
    sx_buf keys[MAX_PIECES], data;
    sx_sstable_writer table;
    uint8_t packed[512];
    sx_buf_init(&data, 0);
    for (size_t i = 0; i <= n; i++) { /* the last is the tensor itself */
        tensorflow__bundle_entry_proto__init(&entries[i]);
        tensorflow__tensor_shape_proto__init(&shapes[i]);
        entries[i].dtype = TENSORFLOW__DATA_TYPE__DT_FLOAT;
        entries[i].shape = &shapes[i];
        shapes[i].n_dim = 2;
        shapes[i].dim = dim_lists[i];
        for (int d = 0; d < 2; d++) {
            tensorflow__tensor_shape_proto__dim__init(&dims[i][d]);
            dims[i][d].size = i < n ? pieces[i].length[d] : d == 0 ? ROWS : COLUMNS;
            dim_lists[i][d] = &dims[i][d];
        }
    }
    entries[n].slices = list;
    for (size_t i = 0; i < n; i++) {
        tensorflow__tensor_slice_proto__init(&slices[i]);
        slices[i].n_extent = 2;
        slices[i].extent = extent_lists[i];
        for (int d = 0; d < 2; d++) {
            tensorflow__tensor_slice_proto__extent__init(&extents[i][d]);
            extents[i][d].start = pieces[i].start[d];
            extents[i][d].has_length_case =
                TENSORFLOW__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH;
            extents[i][d].length = pieces[i].length[d];
            extent_lists[i][d] = &extents[i][d];
        }
        list[entries[n].n_slices++] = &slices[i];
        sx_buf_init(&keys[i], 0);
        sx_slice_key(&keys[i], "w", 2, pieces[i].start, pieces[i].length);
        entries[i].offset = (int64_t)data.size;
        for (int64_t r = 0; r < pieces[i].length[0]; r++) {
            for (int64_t c = 0; c < pieces[i].length[1]; c++) {
                float x = (float)(10 * (pieces[i].start[0] + r) + pieces[i].start[1] + c);
                sx_buf_append(&data, &x, sizeof(x));
            }
        }
        entries[i].size = (int64_t)data.size - entries[i].offset;
        entries[i].crc32c = sx_crc32c_mask(
            sx_crc32c(0, sx_buf_text(&data) + entries[i].offset, (size_t)entries[i].size));
    }
    sx_sstable_writer_init(&table, 0);
    header.num_shards = 1;
    assert_ok(
        sx_sstable_add(&table, (sx_bytes){"", 0},
                       (sx_bytes){packed, tensorflow__bundle_header_proto__pack(&header, packed)}));
    for (size_t i = 0; i < n; i++) { /* the rows have them in order of their keys */
        sx_bytes key = {sx_buf_text(&keys[i]), keys[i].size};
        if (pieces[i].stored) {
            assert_ok(sx_sstable_add(
                &table, key,
                (sx_bytes){packed, tensorflow__bundle_entry_proto__pack(&entries[i], packed)}));
        }
        sx_buf_deinit(&keys[i]);
    }
    assert_ok(sx_sstable_add(
        &table, (sx_bytes){"w", 1},
        (sx_bytes){packed, tensorflow__bundle_entry_proto__pack(&entries[n], packed)}));
    sx_bytes index;
    char path[800];
    assert_ok(sx_sstable_finish(&table, &index));
    snprintf(path, sizeof(path), "%s.index", prefix);
    write_file(path, (const char *)index.data, index.size);
    snprintf(path, sizeof(path), "%s.data-00000-of-00001", prefix);
    write_file(path, sx_buf_text(&data), data.size);
    sx_sstable_writer_deinit(&table);
    sx_buf_deinit(&data);
}

static void test_checkpoint_bundle__slices_make_up_a_tensor_or_say_why_not(void **state)
{
    (void)state;
    static const struct {
        const char *says; /* NULL: it is whole */
        size_t n;
        piece pieces[MAX_PIECES];
    } rows[] = {
        {NULL, 2, {{{0, 0}, {2, 3}, true}, {{2, 0}, {2, 3}, true}}},
        {NULL, 3, {{{0, 1}, {1, 2}, true}, {{0, 0}, {4, 1}, true}, {{1, 1}, {3, 2}, true}}},
        {"tensor \"w\": slice [2:4,0:3] is missing from the checkpoint",
         2,
         {{{0, 0}, {2, 3}, true}, {{2, 0}, {2, 3}, false}}},
        {"slice [0:2,0:3] is missing", 2, {{{0, 0}, {2, 3}, false}, {{2, 0}, {2, 3}, true}}},
        {"its slices hold 9 of 12 elements", 2, {{{0, 0}, {2, 3}, true}, {{3, 0}, {1, 3}, true}}},
        {"its slices hold 6 of 12 elements", 1, {{{0, 0}, {2, 3}, true}}},
        /* as many elements as there should be, but row 1 twice and row 3 never */
        {"slices [0:2,0:3] and [1:3,0:3] overlap",
         2,
         {{{0, 0}, {2, 3}, true}, {{1, 0}, {2, 3}, true}}},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_bundle *b = NULL;
        float out[ROWS * COLUMNS];
        const sx_type type = sx_type_of(SX_F32, ROWS, COLUMNS);
        write_pieces(scratch("m"), rows[i].pieces, rows[i].n);
        assert_ok(sx_bundle_open(scratch("m"), &b));
        assert_int_equal(sx_bundle_count(b), 1);
        if (rows[i].says != NULL) {
            assert_error(sx_bundle_read(b, "w", &type, out), SX_DATA_LOSS, rows[i].says);
            assert_error(sx_bundle_verify(b), SX_DATA_LOSS, rows[i].says);
        } else {
            assert_ok(sx_bundle_read(b, "w", &type, out));
            assert_ok(sx_bundle_verify(b));
            for (int k = 0; k < ROWS * COLUMNS; k++) {
                assert_true(out[k] == (float)(10 * (k / COLUMNS) + k % COLUMNS));
            }
        }
        sx_bundle_close(b);
    }
}

static void test_checkpoint_bundle__object_graph_names_the_same_bytes(void **state)
{
    (void)state;
    static const char *const names[] = {"conv.1/kernel", "conv.1/kernel/Momentum", "step"};
    float x = 1;
    sx_bundle_writer *w = NULL;
    assert_ok(sx_bundle_writer_create(scratch("m"), &w));
    for (size_t i = 0; i < SX_COUNT(names); i++) {
        assert_ok(sx_bundle_add(w, names[i], &(sx_tensor){sx_scalar_type(SX_F32), &x}));
    }
    assert_ok(sx_object_graph_add(w, names, SX_COUNT(names), 5));
    assert_ok(sx_bundle_writer_finish(w));
    sx_bundle_writer_destroy(w);
    sx_bundle *b = NULL;
    assert_ok(sx_bundle_open(scratch("m"), &b));
    assert_int_equal(sx_bundle_count(b), 3 + 3 + 2);
    const sx_bundle_entry *second =
        sx_bundle_find(b, "conv..1/kernel/Momentum/.ATTRIBUTES/VARIABLE_VALUE");
    assert_non_null(second);
    assert_int_equal(second->offset, sx_bundle_find(b, "conv.1/kernel/Momentum")->offset);
    int64_t counter;
    sx_type scalar = sx_scalar_type(SX_I64);
    assert_ok(sx_bundle_read(b, "save_counter/.ATTRIBUTES/VARIABLE_VALUE", &scalar, &counter));
    assert_int_equal(counter, 5);
    sx_bundle_close(b);
}

static void test_checkpoint_bundle__object_graph_refuses_names(void **state)
{
    (void)state;
    const char *const names[] = {"a//b"};
    sx_bundle_writer *w = NULL;
    assert_ok(sx_bundle_writer_create(scratch("m"), &w));
    assert_error(sx_object_graph_add(w, names, 1, 0), SX_INVALID_ARGUMENT, "a//b");
    sx_bundle_writer_destroy(w);
}

/* What an index takes in memory, its file while it is read, is charged and given back. */
static void test_checkpoint_bundle__charges_its_index(void **state)
{
    (void)state;
    enum { TENSORS = 2000 };
    const float value = 1;
    sx_bundle_writer *w = NULL;
    sx_bundle *b = NULL;
    sx_budget memory;
    char key[32];
    assert_ok(sx_bundle_writer_create(scratch("m"), &w));
    for (int i = 0; i < TENSORS; i++) {
        snprintf(key, sizeof(key), "variable_%d", i);
        assert_ok(
            sx_bundle_add(w, key, &(sx_tensor){sx_scalar_type(SX_F32), (void *)(uintptr_t)&value}));
    }
    assert_ok(sx_bundle_writer_finish(w));
    sx_bundle_writer_destroy(w);
    sx_budget_init(&memory, "the model", 0, NULL);
    assert_ok(sx_bundle_open_within(scratch("m"), &memory, &b));
    const size_t used = sx_budget_used(&memory);
    assert_true(used >= TENSORS * sizeof(sx_bundle_entry));
    sx_bundle_close(b);
    assert_int_equal(sx_budget_used(&memory), 0);
    const size_t limits[] = {5000, used / 4, used - 1};
    for (size_t i = 0; i < SX_COUNT(limits); i++) {
        sx_budget_init(&memory, "the model", limits[i], NULL);
        assert_error(sx_bundle_open_within(scratch("m"), &memory, &b), SX_RESOURCE_EXHAUSTED,
                     "exceed the memory limit of the model");
        assert_int_equal(sx_budget_used(&memory), 0);
    }
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_checkpoint_bundle__round_trip),
    scratch_test(test_checkpoint_bundle__string_layout),
    scratch_test(test_checkpoint_bundle__says_what_differs),
    scratch_test(test_checkpoint_bundle__refuses_to_write),
    scratch_test(test_checkpoint_bundle__every_flip_and_cut_is_detected),
    scratch_test(test_checkpoint_bundle__crash_anywhere_leaves_old_or_new),
    scratch_test(test_checkpoint_bundle__failed_calls_leave_nothing),
    scratch_test(test_checkpoint_bundle__slice_keys),
    scratch_test(test_checkpoint_bundle__slices_make_up_a_tensor_or_say_why_not),
    scratch_test(test_checkpoint_bundle__object_graph_names_the_same_bytes),
    scratch_test(test_checkpoint_bundle__object_graph_refuses_names),
    scratch_test(test_checkpoint_bundle__charges_its_index),
};
SX_TEST_MAIN(tests)
