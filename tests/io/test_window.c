/* Looking at a file piece by piece gives the file's bytes, wherever the looks go. */
#include "io/scratch.h"

#include "base/threefry.h"
#include "io/crc32c.h"
#include "io/window.h"

enum { SIZE = 700001 };

static char *make_bytes(void)
{
    char *bytes = malloc(SIZE);
    assert_non_null(bytes);
    for (size_t i = 0; i < SIZE; i++) {
        bytes[i] = (char)(i * 7 + i / 251);
    }
    return bytes;
}

static void assert_looks(sx_window *w, const char *bytes, uint64_t offset, size_t size)
{
    const void *piece = NULL;
    assert_ok(sx_window_look(w, offset, size, &piece));
    assert_non_null(piece);
    assert_memory_equal(piece, bytes + offset, size);
}

static void test_io_window__shows_the_bytes_of_file_and_memory(void **state)
{
    (void)state;
    char *bytes = make_bytes();
    sx_file *file = NULL;
    write_file(scratch("f"), bytes, SIZE);
    assert_ok(sx_file_open(scratch("f"), &file));
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        sx_window w;
        if (in_memory) {
            sx_window_init_bytes(&w, (sx_bytes){bytes, SIZE});
        } else {
            sx_window_init(&w, file);
        }
        assert_int_equal(w.size, SIZE);
        for (size_t at = 0; at < SIZE;) { /* forward, in pieces of all sizes */
            size_t n = at % 1009 < SIZE - at ? at % 1009 : SIZE - at;
            assert_looks(&w, bytes, at, n);
            at += n + 1;
        }
        for (uint32_t i = 0; i < 2000; i++) { /* anywhere */
            sx_u32x2 r = sx_threefry2x32((sx_u32x2){1, 2}, (sx_u32x2){i, 0});
            size_t at = r.a % SIZE, n = (r.b % 70000) % (SIZE - at + 1);
            assert_looks(&w, bytes, at, n);
        }
        assert_looks(&w, bytes, 0, SIZE);
        assert_looks(&w, bytes, SIZE, 0);
        sx_window_deinit(&w);
    }
    sx_file_close(file);
    free(bytes);
}

static void test_io_window__an_empty_file_has_an_empty_view(void **state)
{
    (void)state;
    sx_file *file = NULL;
    sx_window w;
    write_file(scratch("f"), "", 0);
    assert_ok(sx_file_open(scratch("f"), &file));
    sx_window_init(&w, file);
    assert_looks(&w, "", 0, 0);
    sx_window_deinit(&w);
    sx_window_init_bytes(&w, (sx_bytes){NULL, 0});
    assert_looks(&w, "", 0, 0);
    sx_window_deinit(&w);
    sx_file_close(file);
}

/* A pass over a file makes few calls; hops from header to header read little. */
static void test_io_window__reads_ahead_only_where_it_is_used(void **state)
{
    (void)state;
    char *bytes = make_bytes();
    sx_file *file = NULL;
    sx_window w;
    write_file(scratch("f"), bytes, SIZE);
    assert_ok(sx_file_open(scratch("f"), &file));
    sx_window_init(&w, file);
    int fills = 0;
    uint64_t start = UINT64_MAX;
    for (size_t at = 0; at + 100 <= SIZE; at += 100) {
        assert_looks(&w, bytes, at, 100);
        fills += w.start != start;
        start = w.start;
    }
    assert_in_range(fills, 3, 10);
    for (size_t at = 0; at + 12 <= SIZE; at += 50000) {
        assert_looks(&w, bytes, at, 12);
        assert_true(at == 0 || w.filled <= 4096);
    }
    sx_window_deinit(&w);
    sx_file_close(file);
    free(bytes);
}

static void test_io_window__a_truncated_file_is_an_error(void **state)
{
    (void)state;
    char *bytes = make_bytes();
    sx_file *file = NULL;
    sx_window w;
    const void *piece;
    write_file(scratch("f"), bytes, SIZE);
    assert_ok(sx_file_open(scratch("f"), &file));
    sx_window_init(&w, file);
    assert_looks(&w, bytes, 0, 100);
    assert_int_equal(truncate(scratch("f"), 300000), 0);
    assert_error(sx_window_look(&w, 299999, 2, &piece), SX_DATA_LOSS,
                 "it had 700001 bytes when it was opened");
    assert_looks(&w, bytes, 1000, 100000);
    assert_error(sx_window_look(&w, 600000, 1, &piece), SX_DATA_LOSS,
                 "/f ends at byte 300000, expected at least ");
    sx_window_deinit(&w);
    sx_file_close(file);
    free(bytes);
}

static void test_io_window__sums_a_file(void **state)
{
    (void)state;
    char *bytes = make_bytes();
    uint64_t size = 0;
    uint32_t crc = 0;
    write_file(scratch("f"), bytes, SIZE);
    assert_ok(sx_file_crc32c(scratch("f"), &size, &crc));
    assert_int_equal(size, SIZE);
    assert_int_equal(crc, sx_crc32c(0, bytes, SIZE));
    assert_error(sx_file_crc32c(scratch("none"), &size, &crc), SX_NOT_FOUND, "none");
    free(bytes);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_io_window__shows_the_bytes_of_file_and_memory),
    scratch_test(test_io_window__an_empty_file_has_an_empty_view),
    scratch_test(test_io_window__reads_ahead_only_where_it_is_used),
    scratch_test(test_io_window__a_truncated_file_is_an_error),
    scratch_test(test_io_window__sums_a_file),
};
SX_TEST_MAIN(tests)
