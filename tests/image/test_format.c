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
    assert_error(sx_image_probe((sx_bytes){NULL, 0}, &info), SX_DATA_LOSS, "empty file");
    assert_error(sx_image_probe(BYTES("hello"), &info), SX_DATA_LOSS, "68 65 6c 6c");
    assert_error(sx_image_probe(BYTES("\xFF\xD8\xFF\xD9...."), &info), SX_DATA_LOSS,
                 "no frame header");
    sx_buf png = sample_png(8, 8, 3);
    png.data[25] = 5;
    assert_error(sx_image_probe(sample_bytes(&png), &info), SX_DATA_LOSS, "color type 5");
    png.data[25] = 2;
    png.data[19] = 0;
    assert_error(sx_image_probe(sample_bytes(&png), &info), SX_DATA_LOSS, "8x0 pixels");
    sx_buf_deinit(&png);
}

static void put_chunk(sx_buf *png, const char *type, uint32_t length)
{
    const char head[4] = {(char)(length >> 24), (char)(length >> 16), (char)(length >> 8),
                          (char)length};
    sx_buf_append(png, head, 4);
    sx_buf_puts(png, type);
    for (uint32_t i = 0; i < length + 4; i++) { /* the data and its checksum, which nobody reads */
        sx_buf_putc(png, '\0');
    }
}

/* Palette images are RGBA where a tRNS chunk comes before the pixels, else RGB. */
static void test_image_format__png_transparency(void **state)
{
    (void)state;
    static const struct {
        const char *chunks[4];
        int channels;
        size_t cut; /* bytes left away at the end */
    } rows[] = {
        {{"PLTE", "IDAT"}, 3, 0},
        {{"PLTE", "tRNS", "IDAT"}, 4, 0},
        {{"tRNS"}, 4, 0},
        {{"PLTE", "gAMA", "tRNS"}, 4, 0},
        {{"PLTE", "IDAT", "tRNS"}, 3, 0},  /* too late */
        {{"PLTE", "tRNS"}, 3, 9},          /* the file ends before its name is whole */
        {{"PLTE", "tRNS"}, 4, 8},          /* or behind it */
        {{"PLTE", "tRNS"}, 3, 16 + 1 + 4}, /* or inside the chunk before */
        {{"PLTE"}, 3, 4},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_buf png;
        sx_image_info info;
        sx_buf_init(&png, 0);
        sx_buf_append(&png, "\x89PNG\r\n\x1A\n\0\0\0\x0dIHDR", 16);
        sx_buf_append(&png, "\0\0\0\7\0\0\0\5\x08\3\0\0\0\0\0\0\0", 17);
        for (int k = 0; k < 4 && rows[i].chunks[k] != NULL; k++) {
            put_chunk(&png, rows[i].chunks[k], 4);
        }
        assert_ok(sx_image_probe((sx_bytes){png.data, png.size - rows[i].cut}, &info));
        assert_int_equal(info.width, 7);
        assert_int_equal(info.height, 5);
        if (info.channels != rows[i].channels) {
            fail_msg("row %zu: %d", i, info.channels);
        }
        sx_buf_deinit(&png);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_image_format__magic),
    cmocka_unit_test(test_image_format__jpeg_header),
    cmocka_unit_test(test_image_format__png_header),
    cmocka_unit_test(test_image_format__gif_and_bmp_sizes),
    cmocka_unit_test(test_image_format__truncated_headers),
    cmocka_unit_test(test_image_format__senseless_headers),
    cmocka_unit_test(test_image_format__png_transparency),
};
SX_TEST_MAIN(tests)
