/* JSON lines as data sets: found in one pass and read where they lie, so that a file may be larger
 * than the memory. */
#include "../io/scratch.h"

#include "base/memory.h"
#include <sextant/data.h>

enum { LARGE = 3 << 20, TINY_BUDGET = 1000 };

/* Lines 1, 4, 5 and 7 are not blank; line 5 is larger than what is looked at at once. */
static size_t make_text(char *text)
{
    static const char before[] = "\xef\xbb\xbf[1]\r\n\n \t\r\n{\"a\": 2}\n[", after[] = "3]\n\n[4]";
    char *end = text;
    memcpy(end, before, sizeof(before) - 1);
    end += sizeof(before) - 1;
    memset(end, ' ', LARGE);
    end += LARGE;
    memcpy(end, after, sizeof(after) - 1);
    return (size_t)(end - text) + sizeof(after) - 1;
}

static sx_status open_lines(const char *spec, int64_t budget, sx_dataset **out)
{
    const sx_data_options options = {.struct_size = sizeof(options), .memory_budget = budget};
    return sx_data_open(spec, &options, out, NULL);
}

/* The lines from `first` on, in batches of 3. */
static void check_lines(sx_dataset *all, int first)
{
    static const char *const begins[] = {"[1]\r", "{\"a\": 2}", "[ ", "[4]"};
    static const size_t sizes[] = {4, 8, LARGE + 3, 3};
    sx_dataset *data = sx_dataset_retain(all);
    sx_iterator *it = NULL;
    assert_ok(sx_dataset_skip(&data, first));
    assert_ok(sx_dataset_batch(&data, .size = 3));
    assert_ok(sx_iterator_create(data, &it));
    for (int at = first; at < 4;) {
        const struct sx_batch_data *b;
        assert_ok(sx_iterator_next(it, &b));
        for (int i = 0; i < b->size; i++, at++) {
            const sx_bytes line = ((const sx_bytes *)b->components[0].data)[i];
            assert_int_equal(line.size, sizes[at]);
            assert_memory_equal(line.data, begins[at], strlen(begins[at]));
        }
    }
    sx_iterator_destroy(it);
    sx_dataset_release(data);
}

static void test_data_lines__are_read_where_they_lie(void **state)
{
    (void)state;
    char *text = sx_alloc(LARGE + 1000, 1), name[300];
    const size_t size = make_text(text);
    const char *path = scratch("x.jsonl");
    sx_dataset *data = NULL;
    write_file(path, text, size);
    assert_ok(open_lines(path, TINY_BUDGET, &data));
    assert_int_equal(sx_dataset_count(data), 4);
    for (int first = 0; first < 4; first++) {
        check_lines(data, first);
    }
    static const char *const names[] = {"x.jsonl: line 1", "x.jsonl: line 4", "x.jsonl: line 5",
                                        "x.jsonl: line 7"};
    for (int i = 0; i < 4; i++) {
        assert_non_null(strstr(sx_dataset_record_name(data, i, name, sizeof(name)), names[i]));
    }
    sx_dataset_release(data);
    sx_free(text);
}

/* A file that has become shorter since is told apart from one that ends. */
static void test_data_lines__notice_what_is_gone(void **state)
{
    (void)state;
    const char *path = scratch("cut.jsonl");
    sx_dataset *data = NULL;
    sx_iterator *it = NULL;
    const struct sx_batch_data *b;
    write_file(path, "[1]\n[2]\n", 8);
    assert_ok(open_lines(path, 0, &data));
    write_file(path, "[1]\n[", 5);
    assert_ok(sx_dataset_batch(&data, .size = 2));
    assert_ok(sx_iterator_create(data, &it));
    assert_error(sx_iterator_next(it, &b), SX_DATA_LOSS, "cut.jsonl");
    sx_iterator_destroy(it);
    sx_dataset_release(data);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_data_lines__are_read_where_they_lie),
    scratch_test(test_data_lines__notice_what_is_gone),
};
SX_TEST_MAIN(tests)
