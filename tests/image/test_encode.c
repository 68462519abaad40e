/* Writing JPEG and PNG. What is written is read back in test_decode.c. */
#include "image/samples.h"

#include "image/decode.h"

static void test_image_encode__same_bytes_twice(void **state)
{
    (void)state;
    sx_buf a = sample_jpeg(30, 40, 3), b = sample_jpeg(30, 40, 3);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    sx_buf c = sample_png(30, 40, 3), d = sample_png(30, 40, 3);
    assert_int_equal(c.size, d.size);
    assert_memory_equal(c.data, d.data, c.size);
    sx_buf_deinit(&a);
    sx_buf_deinit(&b);
    sx_buf_deinit(&c);
    sx_buf_deinit(&d);
}

static void test_image_encode__quality_orders_sizes(void **state)
{
    (void)state;
    sx_image image = sample_image(200, 200, 3);
    size_t before = 0;
    const int qualities[] = {1, 50, 90, 100};
    for (size_t i = 0; i < 4; i++) {
        sx_buf out;
        sx_buf_init(&out, 0);
        assert_ok(sx_jpeg_encode(&image, qualities[i], &out)); /* the last is larger than a block */
        assert_true(out.size > before);
        before = out.size;
        sx_buf_deinit(&out);
    }
    sx_image_deinit(&image);
}

static void test_image_encode__appends(void **state)
{
    (void)state;
    sx_image image = sample_image(4, 4, 1), back = {0};
    sx_buf out;
    sx_buf_init(&out, 0);
    sx_buf_puts(&out, "head");
    assert_ok(sx_png_encode(&image, &out));
    assert_memory_equal(out.data, "head\x89PNG", 8);
    assert_ok(sx_image_decode((sx_bytes){out.data + 4, out.size - 4}, NULL, &back));
    assert_memory_equal(image.pixels, back.pixels, 16);
    sx_buf_deinit(&out);
    sx_image_deinit(&image);
    sx_image_deinit(&back);
}

static void test_image_encode__refusals(void **state)
{
    (void)state;
    sx_image image = sample_image(4, 4, 3), two = sample_image(4, 4, 2),
             five = sample_image(4, 4, 5);
    sx_buf out;
    sx_buf_init(&out, 100);
    assert_error(sx_jpeg_encode(&image, 0, &out), SX_INVALID_ARGUMENT, "got 0");
    assert_error(sx_jpeg_encode(&image, 101, &out), SX_INVALID_ARGUMENT, "got 101");
    assert_error(sx_jpeg_encode(&two, 90, &out), SX_INVALID_ARGUMENT, "uint8 with 2");
    assert_error(sx_png_encode(&five, &out), SX_INVALID_ARGUMENT, "uint8 with 5");
    image.dtype = SX_F32;
    assert_error(sx_png_encode(&image, &out), SX_INVALID_ARGUMENT, "float32");
    image.dtype = SX_U8;
    assert_error(sx_jpeg_encode(&image, 90, &out), SX_RESOURCE_EXHAUSTED, ""); /* over 100 bytes */
    sx_image wide = sample_image(1, 65501, 1);
    assert_error(sx_jpeg_encode(&wide, 90, &out), SX_INVALID_ARGUMENT, "1x65501");
    sx_image_deinit(&wide);
    sx_image_deinit(&image);
    sx_image_deinit(&two);
    sx_image_deinit(&five);
    sx_buf_deinit(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_image_encode__same_bytes_twice),
    cmocka_unit_test(test_image_encode__quality_orders_sizes),
    cmocka_unit_test(test_image_encode__appends),
    cmocka_unit_test(test_image_encode__refusals),
};
SX_TEST_MAIN(tests)
