/* GIF and BMP: what they decode to, and damaged files. Equality with TensorFlow is tested in
 * tests/interop/test_host_ops.py. */
#include "harness.h"

#include "base/memory.h"
#include "image/decode.h"

/* Two frames of 8 colours, (30k, 30k + 10, 30k + 20): 6x5 pixels of colour (x + y) % 8, and 2x3 of
 * the same from (2, 1) on; colour 3 is transparent. */
static const uint8_t gif[] = {
    0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 0x06, 0x00, 0x05, 0x00, 0x82, 0x00, 0x00, 0x00, 0x0a, 0x14,
    0x1e, 0x28, 0x32, 0x3c, 0x46, 0x50, 0x5a, 0x64, 0x6e, 0x78, 0x82, 0x8c, 0x96, 0xa0, 0xaa, 0xb4,
    0xbe, 0xc8, 0xd2, 0xdc, 0xe6, 0x21, 0xf9, 0x04, 0x01, 0x05, 0x00, 0x03, 0x00, 0x21, 0xfe, 0x03,
    0x61, 0x62, 0x63, 0x00, 0x2c, 0x00, 0x00, 0x00, 0x00, 0x06, 0x00, 0x05, 0x00, 0x00, 0x03, 0x0d,
    0x08, 0x21, 0x43, 0xb5, 0xad, 0x18, 0xe6, 0xcc, 0x89, 0x16, 0xd4, 0xa3, 0x12, 0x00, 0x21, 0xf9,
    0x04, 0x01, 0x05, 0x00, 0x03, 0x00, 0x21, 0xfe, 0x03, 0x61, 0x62, 0x63, 0x00, 0x2c, 0x02, 0x00,
    0x01, 0x00, 0x02, 0x00, 0x03, 0x00, 0x00, 0x03, 0x05, 0x08, 0x11, 0x22, 0x93, 0x00, 0x00, 0x3b};

static void test_image_decode_gif__frames(void **state)
{
    (void)state;
    sx_image image = {0};
    sx_gif_info info;
    assert_ok(sx_gif_probe((sx_bytes){gif, sizeof(gif)}, &info));
    assert_true(info.frames == 2 && info.height == 5 && info.width == 6);
    for (int most = 0; most <= 1; most++) {
        assert_ok(sx_gif_decode((sx_bytes){gif, sizeof(gif)}, NULL, most, &image));
        assert_true(image.height == (most == 1 ? 5 : 10) && image.width == 6 &&
                    image.channels == 3);
        for (int i = 0; i < image.height * 6; i++) {
            const int frame = i / 30, y = i / 6 % 5, x = i % 6;
            const bool inner = frame == 1 && x >= 2 && x < 4 && y >= 1 && y < 4;
            const int below = (x + y) % 8, over = inner ? (x - 2 + y - 1) % 8 : 3;
            const int colour = over != 3 ? over : below;
            for (int c = 0; c < 3; c++) {
                const int want = colour == 3 && over == 3 ? 0 : colour * 30 + c * 10;
                assert_int_equal(((uint8_t *)image.pixels)[i * 3 + c], want);
            }
        }
    }
    const sx_image_limits few = {.max_pixels = 59};
    assert_error(sx_gif_decode((sx_bytes){gif, sizeof(gif)}, &few, 0, &image),
                 SX_RESOURCE_EXHAUSTED, "limit of 59 pixels");
    sx_image_deinit(&image);
}

/* A file of 3x2 pixels, `bits` each, whose bytes count up. */
static size_t make_bmp(uint8_t *out, int bits, bool top_down)
{
    const int row = 3 * bits / 8, stride = (row + 3) / 4 * 4;
    memset(out, 0, 128);
    memcpy(out, "BM", 2);
    out[10] = 54;
    out[14] = 40;
    out[18] = 3;
    memset(out + 22, top_down ? 0xff : 0, 4);
    out[22] = top_down ? 0xfe : 2;
    out[28] = (uint8_t)bits;
    for (int i = 0; i < 2 * stride; i++) {
        out[54 + i] = (uint8_t)(i + 1);
    }
    return (size_t)(54 + stride + row);
}

static void test_image_decode_gif__bmp(void **state)
{
    (void)state;
    static const int order[4] = {2, 1, 0, 3};
    for (int bits = 8; bits <= 32; bits += bits == 8 ? 16 : 8) {
        for (int down = 0; down < 2; down++) {
            uint8_t file[128];
            sx_image image = {0};
            const int channels = bits / 8, stride = (3 * channels + 3) / 4 * 4;
            assert_ok(
                sx_bmp_decode((sx_bytes){file, make_bmp(file, bits, down != 0)}, NULL, &image));
            assert_true(image.height == 2 && image.width == 3 && image.channels == channels);
            for (int i = 0; i < 6 * channels; i++) {
                const int c = i % channels, x = i / channels % 3, y = i / channels / 3;
                const int from = (down != 0 ? y : 1 - y) * stride + x * channels;
                assert_int_equal(((uint8_t *)image.pixels)[i],
                                 from + (channels == 1 ? 0 : order[c]) + 1);
            }
            sx_image_deinit(&image);
        }
    }
}

/* Every byte with each bit flipped, every length: pixels, or an error that says why. */
static void damage(const uint8_t *bytes, size_t size,
                   sx_status (*decode)(sx_bytes encoded, sx_image *image))
{
    uint8_t *copy = sx_alloc(size, 1);
    assert_non_null(copy);
    sx_image image = {0};
    for (size_t i = 0; i < size * 8; i++) {
        memcpy(copy, bytes, size);
        copy[i / 8] ^= (uint8_t)(1 << i % 8);
        sx_status status = decode((sx_bytes){copy, size}, &image);
        assert_true(status == SX_OK || sx_status_code(status) == SX_DATA_LOSS ||
                    sx_status_code(status) == SX_RESOURCE_EXHAUSTED);
        sx_status_free(status);
    }
    sx_free(copy);
    for (size_t n = 0; n < size; n++) {
        copy = sx_alloc(n + 1, 1); /* the sanitizer sees a read beyond it */
        memcpy(copy, bytes, n);
        assert_error(decode((sx_bytes){copy, n}, &image), SX_DATA_LOSS, "");
        sx_free(copy);
    }
    sx_image_deinit(&image);
}

static sx_status decode_gif(sx_bytes encoded, sx_image *image)
{
    const sx_image_limits limits = {.max_pixels = 1 << 20};
    return sx_gif_decode(encoded, &limits, 0, image);
}

static sx_status decode_bmp(sx_bytes encoded, sx_image *image)
{
    const sx_image_limits limits = {.max_pixels = 1 << 20};
    return sx_bmp_decode(encoded, &limits, image);
}

static void test_image_decode_gif__damaged(void **state)
{
    (void)state;
    uint8_t bmp[128];
    damage(gif, sizeof(gif), decode_gif);
    damage(bmp, make_bmp(bmp, 24, false), decode_bmp);
    const size_t size = make_bmp(bmp, 32, false);
    memcpy(bmp + 18, "\xff\xff\xff\x7f\xff\xff\xff\x7f", 8); /* 2^31-1 rows and columns */
    sx_image image = {0};
    assert_error(decode_bmp((sx_bytes){bmp, size}, &image), SX_RESOURCE_EXHAUSTED,
                 "image of 2147483647x2147483647 pixels");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_image_decode_gif__frames),
    cmocka_unit_test(test_image_decode_gif__bmp),
    cmocka_unit_test(test_image_decode_gif__damaged),
};

SX_TEST_MAIN(tests)
