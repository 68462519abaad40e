#include "data/photos.h"

#include "data/element.h"
#include "data/prepare.h"

/* Every element by its number, in any order, is what an iterator gives. */
static void check_elements(const char *spec)
{
    sx_dataset *data = NULL;
    sx_iterator *iterator = NULL;
    sx_element_reader reader;
    const struct sx_batch_data *one;
    const sx_tensor *tensors;
    assert_ok(sx_data_open(spec, NULL, &data, NULL));
    assert_ok(sx_element_reader_init(&reader, data));
    int64_t n = sx_dataset_count(data);
    assert_true(n > 3);
    assert_ok(sx_element_read(&reader, n - 1, &tensors)); /* not only in order */
    assert_ok(sx_iterator_create(data, &iterator, .workers = -1));
    for (int64_t i = 0; i < n; i++) {
        assert_ok(sx_iterator_next(iterator, &one));
        assert_ok(sx_element_read(&reader, one->ids[0], &tensors));
        if (tensors[0].type.dtype == SX_STRING) {
            const sx_bytes *a = one->components[0].data, *b = tensors[0].data;
            assert_int_equal(a->size, b->size);
            assert_memory_equal(a->data, b->data, a->size);
        } else {
            assert_memory_equal(one->components[0].data, tensors[0].data,
                                (size_t)sx_type_bytes(&tensors[0].type));
        }
        assert_int_equal(*(const int64_t *)one->components[1].data,
                         *(const int64_t *)tensors[1].data);
    }
    sx_iterator_destroy(iterator);
    sx_element_reader_deinit(&reader);
    sx_dataset_release(data);
}

/* The file of record 1, "" without. */
static void check_file(const char *spec, const char *expected)
{
    sx_dataset *data = NULL;
    sx_buf file;
    sx_buf_init(&file, 0);
    assert_ok(sx_data_open(spec, NULL, &data, NULL));
    assert_int_equal(sx_record_file(data, 1, &file), expected[0] != '\0');
    const char *text = sx_buf_text(&file);
    size_t size = strlen(text), wanted = strlen(expected);
    assert_true(size >= wanted);
    assert_string_equal(text + size - wanted, expected);
    sx_buf_deinit(&file);
    sx_dataset_release(data);
}

static void test_data_element__reads_records_by_number(void **state)
{
    (void)state;
    sx_buf text;
    sx_buf_init(&text, 0);
    write_photos(3);
    sx_from_images_args args = {
        .source = in_dir("photos"), .out = in_dir("set"), .shards = 2, .label_base = 1};
    assert_ok(sx_from_images(&args, &text));
    check_elements(in_dir("photos"));
    check_elements(in_dir("set-*"));
    check_elements("generated:digits?n=5");
    check_file(in_dir("photos"), "/photos/ants/1.png");
    check_file(in_dir("set-*"), ".png");
    check_file("generated:digits?n=5", "");
    sx_buf_deinit(&text);
}

static void test_data_element__names_a_record_that_fails(void **state)
{
    (void)state;
    sx_dataset *data = NULL;
    sx_element_reader reader;
    const sx_tensor *tensors;
    write_photos(2);
    assert_ok(sx_data_open(in_dir("photos"), NULL, &data, NULL));
    assert_ok(sx_element_reader_init(&reader, data));
    assert_int_equal(remove(in_dir("photos/ants/1.png")), 0);
    assert_error(sx_element_read(&reader, 1, &tensors), SX_NOT_FOUND, "photos/ants/1.png");
    assert_ok(sx_element_read(&reader, 0, &tensors));
    sx_element_reader_deinit(&reader);
    sx_dataset_release(data);
}

static const struct CMUnitTest tests[] = {
    photo_test(test_data_element__reads_records_by_number),
    photo_test(test_data_element__names_a_record_that_fails),
};
SX_TEST_MAIN(tests)
