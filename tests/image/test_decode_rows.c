/* sx_image_decode_rows(): the pixels and errors of sx_image_decode(), whatever part is wanted. */
#include "image/samples.h"

#include "base/checked.h"
#include "image/decode.h"

static const sample_kind kinds[] = {
    {3, 2, 2, false, 0}, {3, 2, 1, false, 0}, {3, 1, 2, false, 0}, {3, 1, 1, false, 0},
    {1, 1, 1, false, 0}, {4, 1, 1, false, 0}, {3, 2, 2, true, 0},  {3, 2, 2, false, 3},
};

/* A sink that wants `window` and keeps it. */
typedef struct kept {
    sx_image_window window;
    int channels, rows;
    uint8_t *pixels; /* exactly as many as it wants, so that a sanitizer sees a read too far */
} kept;

static sx_status keep_begin(void *user, const sx_image *image, sx_image_window *out_wanted)
{
    kept *k = user;
    if (k->window.height == 0) {
        k->window = (sx_image_window){0, 0, image->height, image->width};
    }
    k->channels = image->channels;
    k->pixels = malloc((size_t)k->window.height * (size_t)k->window.width * (size_t)k->channels);
    *out_wanted = k->window;
    return SX_OK;
}

static void keep_row(void *user, const uint8_t *pixels)
{
    kept *k = user;
    const size_t size = (size_t)k->window.width * (size_t)k->channels;
    memcpy(k->pixels + (size_t)k->rows++ * size, pixels, size);
}

static void check_window(const char *what, sx_bytes file, const sx_decode_options *options,
                         const sx_image *whole, sx_image_window window)
{
    kept k = {.window = window};
    sx_image spare = {0};
    assert_ok(
        sx_image_decode_rows(file, options, &(sx_image_sink){keep_begin, keep_row, &k}, &spare));
    assert_int_equal(k.rows, window.height);
    const size_t row = (size_t)window.width * (size_t)whole->channels;
    for (int y = 0; y < window.height; y++) {
        const uint8_t *want =
            (const uint8_t *)whole->pixels +
            (((size_t)window.top + (size_t)y) * (size_t)whole->width + (size_t)window.left) *
                (size_t)whole->channels;
        if (memcmp(want, k.pixels + (size_t)y * row, row) != 0) {
            fail_msg("%s: window %dx%d at %d, %d: row %d differs", what, window.height,
                     window.width, window.top, window.left, y);
        }
    }
    free(k.pixels);
    sx_image_deinit(&spare);
}

static void check_windows(const char *what, sx_bytes file, const sx_decode_options *options)
{
    sx_image whole = {0};
    assert_ok(sx_image_decode(file, options, &whole));
    for (int i = 0; i <= 36; i++) { /* corners on all places of a block */
        const int top = SX_MIN(i, whole.height - 1), left = SX_MIN(36 - i, whole.width - 1);
        const int bottom = whole.height - top, right = whole.width - left;
        check_window(what, file, options, &whole, (sx_image_window){top, left, bottom, right});
        check_window(what, file, options, &whole,
                     (sx_image_window){top, left, (bottom + 1) / 2, (right + 1) / 2});
        check_window(what, file, options, &whole, (sx_image_window){top, left, 1, 1});
        check_window(what, file, options, &whole, (sx_image_window){0, 0, bottom, right});
    }
    sx_image_deinit(&whole);
}

static void test_image_decode_rows__every_kind_and_window(void **state)
{
    (void)state;
    static const int sizes[][2] = {{53, 67}, {64, 48}, {1, 1}, {7, 90}, {90, 7}, {16, 17}};
    char what[64];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            sx_buf jpeg = sample_jpeg_of(&kinds[i], sizes[s][0], sizes[s][1]);
            for (int ratio = 1; ratio <= 8; ratio *= 2) {
                snprintf(what, sizeof(what), "kind %zu, %dx%d, ratio %d", i, sizes[s][0],
                         sizes[s][1], ratio);
                check_windows(what, sample_bytes(&jpeg), &(sx_decode_options){.ratio = ratio});
            }
            check_windows("gray", sample_bytes(&jpeg),
                          &(sx_decode_options){.channels = kinds[i].channels == 4 ? 3 : 1});
            check_windows("accurate", sample_bytes(&jpeg),
                          &(sx_decode_options){.channels = 3, .dct = SX_DCT_ACCURATE});
            sx_buf_deinit(&jpeg);
        }
    }
    for (int channels = 1; channels <= 4; channels++) {
        sx_buf png = sample_png(31, 45, channels);
        check_windows("PNG", sample_bytes(&png), &(sx_decode_options){.channels = 3});
        sx_buf_deinit(&png);
    }
}

/* Truncated anywhere and damaged anywhere: the status of decoding the whole, even where the damage
 * lies outside of the part that is wanted. */
static void test_image_decode_rows__damage(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        sx_buf jpeg = sample_jpeg_of(&kinds[i], 40, 37);
        for (size_t at = 0; at < 2 * jpeg.size; at++) {
            sx_bytes file = sample_bytes(&jpeg);
            uint8_t *byte = (uint8_t *)jpeg.data + at % jpeg.size, before = *byte;
            if (at < jpeg.size) {
                file.size = at;
            } else {
                *byte ^= 0x15;
            }
            sx_image whole = {0}, spare = {0};
            kept all = {.window = {0}}, part = {.window = {at % 8 != 0, at % 8 != 0, 1, 1}};
            sx_status want = sx_image_decode(file, NULL, &whole);
            sx_status got = sx_image_decode_rows(
                file, NULL, &(sx_image_sink){keep_begin, keep_row, &all}, &spare);
            assert_int_equal(sx_status_code(got), sx_status_code(want));
            if (want == SX_OK) {
                assert_int_equal(all.rows, whole.height);
                assert_memory_equal(all.pixels, whole.pixels, sx_image_elems(&whole));
            } else {
                assert_string_equal(sx_status_message(got), sx_status_message(want));
            }
            if (want == SX_OK && whole.height > 1 && whole.width > 1) {
                assert_ok(sx_image_decode_rows(
                    file, NULL, &(sx_image_sink){keep_begin, keep_row, &part}, &spare));
            }
            sx_status_free(want);
            sx_status_free(got);
            free(all.pixels);
            free(part.pixels);
            sx_image_deinit(&whole);
            sx_image_deinit(&spare);
            *byte = before;
        }
        sx_buf_deinit(&jpeg);
    }
}

static sx_status refuse(void *user, const sx_image *image, sx_image_window *out_wanted)
{
    (void)user;
    (void)image;
    (void)out_wanted;
    return sx_error(SX_CANCELLED, "not wanted");
}

static void test_image_decode_rows__the_sinks_error(void **state)
{
    (void)state;
    sx_buf jpeg = sample_jpeg(16, 16, 3), png = sample_png(16, 16, 3);
    sx_image spare = {0};
    const sx_image_sink sink = {refuse, NULL, NULL};
    assert_error(sx_image_decode_rows(sample_bytes(&jpeg), NULL, &sink, &spare), SX_CANCELLED,
                 "not wanted");
    assert_error(sx_image_decode_rows(sample_bytes(&png), NULL, &sink, &spare), SX_CANCELLED,
                 "not wanted");
    sx_image_deinit(&spare);
    sx_buf_deinit(&jpeg);
    sx_buf_deinit(&png);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_image_decode_rows__every_kind_and_window),
    cmocka_unit_test(test_image_decode_rows__damage),
    cmocka_unit_test(test_image_decode_rows__the_sinks_error),
};
SX_TEST_MAIN(tests)
