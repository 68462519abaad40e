/* The labels of a data set in the classes of another. */
#include "harness.h"

#include "base/checked.h"
#include "base/memory.h"
#include "data/element.h"
#include "data/relabel.h"

enum { N = 30 };

static void open_digits(sx_dataset **out)
{
    const sx_data_options options = {.struct_size = sizeof(options)};
    char *text = NULL;
    assert_ok(sx_data_open("generated:digits?n=30", &options, out, &text));
    sx_text_free(text);
}

static void read_labels(sx_dataset *data, int64_t labels[N])
{
    sx_element_reader reader;
    const sx_tensor *tensors;
    const int label = sx_dataset_find(data, "label");
    assert_ok(sx_element_reader_init(&reader, data));
    for (int i = 0; i < N; i++) {
        assert_ok(sx_element_read(&reader, i, &tensors));
        labels[i] = *(const int64_t *)tensors[label].data;
    }
    sx_element_reader_deinit(&reader);
}

static void test_data_relabel__maps_by_name(void **state)
{
    (void)state;
    static const char *const classes[] = {"none", "9", "8", "7", "6", "5", "4", "3", "2", "1", "0"};
    int64_t before[N], after[N];
    int n = 0;
    sx_dataset *data = NULL;
    open_digits(&data);
    read_labels(data, before);
    assert_ok(sx_dataset_relabel(&data, classes, (int)SX_COUNT(classes)));
    read_labels(data, after);
    for (int i = 0; i < N; i++) {
        assert_int_equal(after[i], 10 - before[i]);
    }
    assert_ok(sx_dataset_batch(&data, .size = 4)); /* which names what the map names */
    const char *const *names = sx_dataset_class_names(data, &n);
    assert_int_equal(n, SX_COUNT(classes));
    assert_string_equal(names[10], "0");
    sx_dataset_release(data);
}

static void test_data_relabel__leaves_what_it_cannot_map(void **state)
{
    (void)state;
    static const char *const same[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "more"};
    static const char *const fewer[] = {"9", "8", "7"};
    sx_dataset *data = NULL, *before;
    int n = 0;
    open_digits(&data);
    before = data;
    assert_ok(sx_dataset_relabel(&data, same, (int)SX_COUNT(same)));
    assert_ptr_equal(data, before);
    assert_ok(sx_dataset_relabel(&data, fewer, (int)SX_COUNT(fewer)));
    assert_ok(sx_dataset_relabel(&data, NULL, 0));
    assert_ptr_equal(data, before);
    (void)sx_dataset_class_names(data, &n);
    assert_int_equal(n, 10);
    sx_dataset_release(data);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_data_relabel__maps_by_name),
    cmocka_unit_test(test_data_relabel__leaves_what_it_cannot_map),
};
SX_TEST_MAIN(tests)
