/* Formats by magic and header. */
#include "image/samples.h"

#include "image/format.h"

#define BYTES(text) ((sx_bytes){(text), sizeof(text) - 1})

static void test_image_format__magic(void **state)
{
    (void)state;
    assert_int_equal(sx_image_format_of(BYTES("\xFF\xD8\xFF\xE0")), SX_FORMAT_JPEG);
    assert_int_equal(sx_image_format_of(BYTES("\x89PNG\r\n\x1A\n")), SX_FORMAT_PNG);
    assert_int_equal(sx_image_format_of(BYTES("GIF89a")), SX_FORMAT_GIF);
    assert_int_equal(sx_image_format_of(BYTES("BM....")), SX_FORMAT_BMP);
    assert_int_equal(sx_image_format_of(BYTES("RIFF....WEBPVP8 ")), SX_FORMAT_WEBP);
    assert_int_equal(sx_image_format_of(BYTES("RIFF....WAVEfmt ")), SX_FORMAT_UNKNOWN);
    assert_int_equal(sx_image_format_of(BYTES("\xFF\xD8")), SX_FORMAT_UNKNOWN);
    assert_int_equal(sx_image_format_of((sx_bytes){NULL, 0}), SX_FORMAT_UNKNOWN);
    assert_string_equal(sx_image_format_name(SX_FORMAT_PNG), "PNG");
    assert_string_equal(sx_image_format_name(SX_FORMAT_UNKNOWN), "unknown");
}

static void test_image_format__jpeg_header(void **state)
{
    (void)state;
    sx_buf gray = sample_jpeg(7, 11, 1), colour = sample_progressive(20, 30);
    sx_image_info info;
    assert_ok(sx_image_probe(sample_bytes(&gray), &info));
    assert_int_equal(info.format, SX_FORMAT_JPEG);
    assert_int_equal(info.height, 7);
    assert_int_equal(info.width, 11);
    assert_int_equal(info.channels, 1);
    assert_false(info.progressive);
    assert_ok(sx_image_probe(sample_bytes(&colour), &info));
    assert_int_equal(info.height, 20);
    assert_int_equal(info.width, 30);
    assert_int_equal(info.channels, 3);
    assert_true(info.progressive);
    sx_buf_deinit(&gray);
    sx_buf_deinit(&colour);
}

static void test_image_format__png_header(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 4; channels++) {
        sx_buf png = sample_png(5, 9, channels);
        sx_image_info info;
        assert_ok(sx_image_probe(sample_bytes(&png), &info));
        assert_int_equal(info.format, SX_FORMAT_PNG);
        assert_int_equal(info.height, 5);
        assert_int_equal(info.width, 9);
        assert_int_equal(info.channels, channels);
        sx_buf_deinit(&png);
    }
}

static void test_image_format__gif_and_bmp_sizes(void **state)
{
    (void)state;
    sx_image_info info;
    assert_ok(sx_image_probe(BYTES("GIF89a\x03\x01\x02\x00"), &info));
    assert_int_equal(info.width, 259);
    assert_int_equal(info.height, 2);
    assert_ok(sx_image_probe(BYTES("BM----....----====\x07\0\0\0\xFE\xFF\xFF\xFF"), &info));
    assert_int_equal(info.width, 7);
    assert_int_equal(info.height, 2); /* stored as −2: top-down */
}

static void test_image_format__truncated_headers(void **state)
{
    (void)state;
    sx_buf jpeg = sample_jpeg(8, 8, 3), png = sample_png(8, 8, 3);
    sx_image_info info = {.height = 77};
    size_t frame = sample_find_marker(&jpeg, 0xC0);
    for (size_t size = 3; size < frame + 10; size++) {
        assert_error(sx_image_probe((sx_bytes){jpeg.data, size}, &info), SX_DATA_LOSS,
                     "JPEG header is truncated");
    }
    for (size_t size = 8; size < 29; size++) {
        assert_error(sx_image_probe((sx_bytes){png.data, size}, &info), SX_DATA_LOSS,
                     "PNG header is truncated");
    }
    assert_error(sx_image_probe(BYTES("GIF89a\x01"), &info), SX_DATA_LOSS,
                 "GIF header is truncated");
    assert_error(sx_image_probe(BYTES("BM"), &info), SX_DATA_LOSS, "BMP header is truncated");
    assert_int_equal(info.height, 77); /* untouched on failure */
    sx_buf_deinit(&jpeg);
    sx_buf_deinit(&png);
}

static void test_image_format__senseless_headers(void **state)
{
    (void)state;
    sx_image_info info;
    assert_error(sx_image_probe((sx_bytes){NULL, 0}, &info), SX_INVALID_ARGUMENT, "empty file");
    assert_error(sx_image_probe(BYTES("hello"), &info), SX_INVALID_ARGUMENT, "68 65 6c 6c");
    assert_error(sx_image_probe(BYTES("\xFF\xD8\xFF\xD9...."), &info), SX_INVALID_ARGUMENT,
                 "no frame header");
    sx_buf png = sample_png(8, 8, 3);
    png.data[25] = 5;
    assert_error(sx_image_probe(sample_bytes(&png), &info), SX_INVALID_ARGUMENT, "colour type 5");
    png.data[25] = 2;
    png.data[19] = 0;
    assert_error(sx_image_probe(sample_bytes(&png), &info), SX_INVALID_ARGUMENT, "8x0 pixels");
    sx_buf_deinit(&png);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_image_format__magic),
    cmocka_unit_test(test_image_format__jpeg_header),
    cmocka_unit_test(test_image_format__png_header),
    cmocka_unit_test(test_image_format__gif_and_bmp_sizes),
    cmocka_unit_test(test_image_format__truncated_headers),
    cmocka_unit_test(test_image_format__senseless_headers),
};
SX_TEST_MAIN(tests)
