/* Decoding: clean files, damaged ones, hostile ones. Equality with TensorFlow is tested in
 * tests/interop/test_image.py. */
#include "image/samples.h"
#include "peak.h"

#include <malloc.h>
#include <math.h>
#include <sys/resource.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "image/decode.h"

#define BYTES(text) ((sx_bytes){(text), sizeof(text) - 1})

static double mean_distance(const sx_image *a, const sx_image *b)
{
    const uint8_t *p = a->pixels, *q = b->pixels;
    double sum = 0;
    for (size_t i = 0; i < sx_image_elems(a); i++) {
        sum += abs(p[i] - q[i]);
    }
    return sum / (double)sx_image_elems(a);
}

static void test_image_decode__jpeg_is_close(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 3; channels += 2) {
        sx_image want = sample_image(33, 47, channels), got = {0};
        sx_buf jpeg = sample_jpeg(33, 47, channels);
        assert_ok(sx_image_decode(sample_bytes(&jpeg), NULL, &got));
        assert_int_equal(got.height, 33);
        assert_int_equal(got.width, 47);
        assert_int_equal(got.channels, channels);
        assert_int_equal(got.dtype, SX_U8);
        assert_int_equal(got.warnings, 0);
        assert_true(mean_distance(&want, &got) < (channels == 1 ? 4 : 12));
        sx_buf_deinit(&jpeg);
        sx_image_deinit(&want);
        sx_image_deinit(&got);
    }
}

static void test_image_decode__png_is_exact(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 4; channels++) {
        sx_image want = sample_image(21, 13, channels), got = {0};
        sx_buf png = sample_png(21, 13, channels);
        assert_ok(sx_image_decode(sample_bytes(&png), NULL, &got));
        assert_int_equal(got.channels, channels);
        assert_memory_equal(want.pixels, got.pixels, sx_image_elems(&want));
        sx_buf_deinit(&png);
        sx_image_deinit(&want);
        sx_image_deinit(&got);
    }
}

static void test_image_decode__channels(void **state)
{
    (void)state;
    sx_buf jpeg = sample_jpeg(16, 16, 1), png = sample_png(16, 16, 1);
    const sx_bytes files[] = {sample_bytes(&jpeg), sample_bytes(&png)};
    for (size_t f = 0; f < 2; f++) {
        sx_image gray = {0}, rgb = {0};
        assert_ok(sx_image_decode(files[f], &(sx_decode_options){.channels = 1}, &gray));
        assert_ok(sx_image_decode(files[f], &(sx_decode_options){.channels = 3}, &rgb));
        const uint8_t *g = gray.pixels, *c = rgb.pixels;
        for (size_t i = 0; i < sx_image_elems(&rgb); i++) {
            assert_int_equal(c[i], g[i / 3]);
        }
        assert_error(sx_image_decode(files[f], &(sx_decode_options){.channels = 5}, &rgb),
                     SX_INVALID_ARGUMENT, "not 5");
        sx_image_deinit(&gray);
        sx_image_deinit(&rgb);
    }
    sx_image none = {0};
    assert_error(sx_image_decode(files[0], &(sx_decode_options){.channels = 4}, &none),
                 SX_INVALID_ARGUMENT, "1 or 3 channels");
    sx_buf_deinit(&jpeg);
    sx_buf_deinit(&png);
}

/* A PNG of 1 to 4 channels in each number of channels: gray is repeated, colours become gray by
 * their weights, alpha is kept, dropped, or 255 where the file has none. */
static void test_image_decode__png_in_any_number_of_channels(void **state)
{
    (void)state;
    for (int from = 1; from <= 4; from++) {
        sx_image file = sample_image(9, 11, from);
        sx_buf png = sample_png(9, 11, from);
        for (int to = 1; to <= 4; to++) {
            sx_image got = {0};
            assert_ok(
                sx_image_decode(sample_bytes(&png), &(sx_decode_options){.channels = to}, &got));
            assert_true(got.height == 9 && got.width == 11 && got.channels == to);
            for (int i = 0; i < 9 * 11; i++) {
                const uint8_t *x = (uint8_t *)file.pixels + i * from;
                const uint8_t *y = (uint8_t *)got.pixels + i * to;
                const double gray = from < 3 ? x[0] : 0.299 * x[0] + 0.587 * x[1] + 0.114 * x[2];
                for (int c = 0; c < to; c++) {
                    const bool alpha = to % 2 == 0 && c == to - 1;
                    const double want = alpha     ? (from % 2 == 0 ? x[from - 1] : 255)
                                        : to >= 3 ? (from < 3 ? x[0] : x[c])
                                                  : gray;
                    if (fabs(y[c] - want) > (to < 3 && from >= 3 && !alpha ? 1.01 : 0)) {
                        fail_msg("%d channels to %d: pixel %d, channel %d is %d, expected %g", from,
                                 to, i, c, y[c], want);
                    }
                }
            }
            sx_image_deinit(&got);
        }
        sx_buf_deinit(&png);
        sx_image_deinit(&file);
    }
}

static void test_image_decode__no_image(void **state)
{
    (void)state;
    sx_image image = {0};
    assert_error(sx_image_decode((sx_bytes){NULL, 0}, NULL, &image), SX_DATA_LOSS, "empty file");
    assert_error(sx_image_decode(BYTES("%PDF-1.7"), NULL, &image), SX_DATA_LOSS, "25 50 44 46");
    assert_error(sx_image_decode(BYTES("\xFF\xD8\xFF garbage that never ends well"), NULL, &image),
                 SX_DATA_LOSS, "JPEG");
    assert_error(sx_image_decode(BYTES("GIF89a\x01\0\x01\0"), NULL, &image), SX_UNIMPLEMENTED,
                 "GIF images are not supported; convert");
    assert_error(sx_image_decode(BYTES("BM----....----====\x07\0\0\0\x01\0\0\0"), NULL, &image),
                 SX_UNIMPLEMENTED, "BMP");
    assert_error(sx_image_decode(BYTES("RIFF....WEBPVP8 "), NULL, &image), SX_UNIMPLEMENTED,
                 "WebP");
    assert_null(image.pixels);
}

/* Every prefix is refused as truncated, and leaves the shape that was there. */
static void check_truncations(const sx_buf *file)
{
    sx_image image = {0};
    assert_ok(sx_image_decode(sample_bytes(file), NULL, &image));
    const int height = image.height;
    for (size_t size = 8; size < file->size; size++) {
        /* a copy of its own, so that a sanitizer sees a read past the end */
        uint8_t *copy = malloc(size);
        memcpy(copy, file->data, size);
        sx_status status = sx_image_decode((sx_bytes){copy, size}, NULL, &image);
        if (sx_status_code(status) != SX_DATA_LOSS) {
            fail_msg("%zu of %zu bytes: %s", size, file->size, sx_status_message(status));
        }
        sx_status_free(status);
        assert_int_equal(image.height, height);
        free(copy);
    }
    sx_image_deinit(&image);
}

static void test_image_decode__every_truncation(void **state)
{
    (void)state;
    sx_buf files[] = {sample_jpeg(24, 24, 3), sample_progressive(24, 24), sample_png(12, 12, 3)};
    for (size_t i = 0; i < 3; i++) {
        check_truncations(&files[i]);
        sx_buf_deinit(&files[i]);
    }
}

/* Any flipped bit gives pixels or one of the documented errors. */
static void check_flips(const sx_buf *file)
{
    sx_image image = {0};
    const sx_decode_options options = {.limits = &sx_image_limits_untrusted};
    for (size_t bit = 0; bit < file->size * 8; bit++) {
        uint8_t *copy = malloc(file->size);
        memcpy(copy, file->data, file->size);
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        sx_status status = sx_image_decode((sx_bytes){copy, file->size}, &options, &image);
        sx_code code = sx_status_code(status);
        bool known = code == SX_CODE_OK || code == SX_INVALID_ARGUMENT || code == SX_DATA_LOSS ||
                     code == SX_RESOURCE_EXHAUSTED || code == SX_UNIMPLEMENTED;
        if (!known) {
            fail_msg("bit %zu: %s", bit, sx_status_message(status));
        }
        sx_status_free(status);
        free(copy);
    }
    sx_image_deinit(&image);
}

static void test_image_decode__every_flip(void **state)
{
    (void)state;
    sx_buf files[] = {sample_jpeg(16, 16, 3), sample_png(8, 8, 3)};
    for (size_t i = 0; i < 2; i++) {
        check_flips(&files[i]);
        sx_buf_deinit(&files[i]);
    }
}

static void test_image_decode__damage_is_counted(void **state)
{
    (void)state;
    sx_buf jpeg = sample_jpeg(64, 64, 3);
    size_t scan = sample_find_marker(&jpeg, 0xDA);
    /* half of the scan goes, its end marker stays: the rest of the image is gray */
    size_t kept = scan + (jpeg.size - scan) / 2;
    memcpy(jpeg.data + kept, "\xFF\xD9", 2);
    jpeg.size = kept + 2;
    sx_image image = {0};
    assert_ok(sx_image_decode(sample_bytes(&jpeg), NULL, &image));
    assert_true(image.warnings > 0);
    sx_buf_deinit(&jpeg);
    sx_image_deinit(&image);
}

static void test_image_decode__huge_header(void **state)
{
    (void)state;
    sx_buf jpeg = sample_jpeg(8, 8, 3), png = sample_png(8, 8, 3);
    size_t frame = sample_find_marker(&jpeg, 0xC0);
    memcpy(jpeg.data + frame + 5, "\xFF\xDC\xFF\xDC", 4);
    memcpy(png.data + 16, "\x7F\xFF\xFF\xFF\x7F\xFF\xFF\xFF", 8);
    sx_image image = {0};
    long before = sx_alloc_count();
    assert_error(sx_jpeg_decode(sample_bytes(&jpeg),
                                &(sx_decode_options){.limits = &sx_image_limits_default}, &image),
                 SX_RESOURCE_EXHAUSTED, "65500x65500");
    assert_error(sx_image_decode(sample_bytes(&jpeg), NULL, &image), SX_RESOURCE_EXHAUSTED,
                 "65500x65500");
    assert_error(sx_image_decode(sample_bytes(&png), NULL, &image), SX_RESOURCE_EXHAUSTED,
                 "2147483647x2147483647");
    /* only the messages of the three errors */
    assert_in_range(sx_alloc_count() - before, 0, 12);
    assert_null(image.pixels);
    sx_buf_deinit(&jpeg);
    sx_buf_deinit(&png);
}

static void test_image_decode__limits(void **state)
{
    (void)state;
    sx_buf baseline = sample_jpeg(100, 100, 3), progressive = sample_progressive(100, 100);
    sx_image image = {0};
    const sx_image_limits few_pixels = {.max_pixels = 9999};
    const sx_image_limits exact = {.max_pixels = 10000, .max_bytes = 30000};
    assert_error(sx_image_decode(sample_bytes(&baseline),
                                 &(sx_decode_options){.limits = &few_pixels}, &image),
                 SX_RESOURCE_EXHAUSTED, "limit of 9999 pixels");
    assert_ok(
        sx_image_decode(sample_bytes(&baseline), &(sx_decode_options){.limits = &exact}, &image));
    /* the progressive one holds its coefficients as well */
    assert_error(
        sx_image_decode(sample_bytes(&progressive), &(sx_decode_options){.limits = &exact}, &image),
        SX_RESOURCE_EXHAUSTED, "limit is 30000");
    sx_buf_deinit(&baseline);
    sx_buf_deinit(&progressive);
    sx_image_deinit(&image);
}

/* A progressive file whose last scan is repeated 2,000 times: each would cost a pass. */
static void test_image_decode__two_thousand_scans(void **state)
{
    (void)state;
    sx_buf jpeg = sample_progressive(256, 256), bomb;
    sx_buf_init(&bomb, 0);
    size_t last = jpeg.size - 2;
    while (!((uint8_t)jpeg.data[last] == 0xFF && (uint8_t)jpeg.data[last + 1] == 0xDA)) {
        last--;
    }
    sx_buf_append(&bomb, jpeg.data, last);
    for (int i = 0; i < 2000; i++) {
        sx_buf_append(&bomb, jpeg.data + last, jpeg.size - 2 - last);
    }
    sx_buf_append(&bomb, "\xFF\xD9", 2);
    assert_ok(sx_buf_status(&bomb));
    sx_image image = {0};
    int64_t start = sx_now_ns();
    assert_error(sx_image_decode(sample_bytes(&bomb),
                                 &(sx_decode_options){.limits = &sx_image_limits_untrusted},
                                 &image),
                 SX_RESOURCE_EXHAUSTED, "limit of 100 scans");
    assert_true(sx_now_ns() - start <
                10 * INT64_C(1000000000)); /* no hang, even under a sanitizer */
    sx_buf_deinit(&jpeg);
    sx_buf_deinit(&bomb);
    sx_image_deinit(&image);
}

static void test_image_decode__steady_state_allocates_nothing(void **state)
{
    (void)state;
    sx_buf jpeg = sample_jpeg(50, 60, 3), png = sample_png(40, 30, 3);
    sx_image image = {0};
    assert_ok(sx_image_decode(sample_bytes(&jpeg), NULL, &image));
    long before = sx_alloc_count();
    for (int i = 0; i < 3; i++) {
        assert_ok(sx_image_decode(sample_bytes(&png), NULL, &image));
        assert_ok(sx_image_decode(sample_bytes(&jpeg), NULL, &image));
    }
    assert_int_equal(sx_alloc_count(), before);
    sx_buf_deinit(&jpeg);
    sx_buf_deinit(&png);
    sx_image_deinit(&image);
}

static void test_image_decode__out_of_memory(void **state)
{
    (void)state;
    sx_buf jpeg = sample_jpeg(50, 60, 3), png = sample_png(40, 30, 3);
    const sx_bytes files[] = {sample_bytes(&jpeg), sample_bytes(&png)};
    for (size_t i = 0; i < 2; i++) {
        sx_image image = {0};
        sx_alloc_fail_after(1);
        assert_error(sx_image_decode(files[i], NULL, &image), SX_RESOURCE_EXHAUSTED, "");
        sx_alloc_fail_after(0);
        assert_null(image.pixels);
        assert_ok(sx_image_decode(files[i], NULL, &image));
        sx_image_deinit(&image);
    }
    sx_buf_deinit(&jpeg);
    sx_buf_deinit(&png);
}

/* libjpeg and libpng allocate through malloc: an address space that is too small for an image gives
 * "out of memory", which is no fault of the image. */
static void test_image_decode__out_of_memory_in_libraries(void **state)
{
    (void)state;
    if (harness_sanitizes()) {
        SX_SKIP("a sanitizer ends the program when malloc fails");
    }
    mallopt(M_MMAP_THRESHOLD, 64 * 1024); /* large blocks are not kept when they are freed */
    sx_buf jpeg = sample_progressive(1200, 1200), png = sample_png(2, 1000000, 3);
    const sx_bytes files[] = {sample_bytes(&jpeg), sample_bytes(&png)};
    for (size_t i = 0; i < 2; i++) {
        struct rlimit before, tight;
        sx_image image = {0};
        int refused = 0;
        const char *const says = i == 0 ? "reading a JPEG" : "reading a PNG";
        assert_ok(sx_image_decode(files[i], NULL, &image)); /* its pixels are kept */
        assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
        for (rlim_t spare = 0; spare < 12 << 20; spare += 1 << 20) {
            FILE *file = fopen("/proc/self/statm", "r");
            long pages = 0;
            assert_int_equal(fscanf(file, "%ld", &pages), 1);
            fclose(file);
            tight = before;
            tight.rlim_cur = (rlim_t)pages * 4096 + spare;
            assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
            sx_status status = sx_image_decode(files[i], NULL, &image);
            assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
            refused += strstr(sx_status_message(status), says) != NULL;
            if (status != SX_OK && !sx_status_is_no_memory(status)) {
                fail_msg("with %zu bytes: %s", (size_t)spare, sx_status_message(status));
            }
            sx_status_free(status);
        }
        assert_true(refused > 0);
        sx_image_deinit(&image);
    }
    sx_buf_deinit(&jpeg);
    sx_buf_deinit(&png);
}

static void append_chunk(sx_buf *out, const char *type, const uint8_t *data, size_t size)
{
    uint8_t number[4] = {(uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8),
                         (uint8_t)size};
    uLong crc = crc32(crc32(0, (const Bytef *)type, 4), data, (uInt)size);
    sx_buf_append(out, number, 4);
    sx_buf_append(out, type, 4);
    sx_buf_append(out, data, size);
    for (int i = 0; i < 4; i++) {
        sx_buf_putc(out, (char)(crc >> (24 - 8 * i)));
    }
}

/* A hundred texts that unpack to 7 MB each are not unpacked. */
static void test_image_decode__png_text_bombs(void **state)
{
    (void)state;
    const size_t text_bytes = 7 << 20;
    uint8_t *text = calloc(text_bytes, 1), *packed = malloc(1 << 16);
    uLongf packed_bytes = (1 << 16) - 3;
    memcpy(packed, "k\0\0", 3);
    assert_int_equal(compress(packed + 3, &packed_bytes, text, text_bytes), Z_OK);
    free(text);
    sx_buf png = sample_png(8, 8, 3), bomb;
    sx_buf_init(&bomb, 0);
    sx_buf_append(&bomb, png.data, 33); /* magic and IHDR */
    for (int i = 0; i < 100; i++) {
        append_chunk(&bomb, "zTXt", packed, packed_bytes + 3);
    }
    sx_buf_append(&bomb, png.data + 33, png.size - 33);
    const int64_t before = sx_peak_bytes();
    sx_image image = {0};
    assert_ok(sx_image_decode(sample_bytes(&bomb), NULL, &image));
    assert_true(sx_peak_bytes() - before < (100 << 20));
    free(packed);
    sx_buf_deinit(&png);
    sx_buf_deinit(&bomb);
    sx_image_deinit(&image);
}

/* Tables of one image must not serve the next: this file without Huffman tables decodes by the
 * standard's, whatever came before it. */
static void test_image_decode__images_are_independent(void **state)
{
    (void)state;
    sx_buf plain = sample_jpeg(32, 32, 3), other = sample_progressive(32, 32), stripped;
    sx_buf_init(&stripped, 0);
    for (size_t at = 0; at < plain.size;) {
        bool table =
            at > 0 && (uint8_t)plain.data[at] == 0xFF && (uint8_t)plain.data[at + 1] == 0xC4;
        size_t skip =
            table ? 2 + ((size_t)(uint8_t)plain.data[at + 2] << 8 | (uint8_t)plain.data[at + 3])
                  : 0;
        if (skip == 0) {
            sx_buf_append(&stripped, plain.data + at++, 1);
        }
        at += skip;
    }
    assert_true(stripped.size < plain.size);
    sx_image first = {0}, second = {0};
    assert_ok(sx_image_decode(sample_bytes(&stripped), NULL, &first));
    assert_ok(sx_image_decode(sample_bytes(&other), NULL, &second));
    assert_ok(sx_image_decode(sample_bytes(&stripped), NULL, &second));
    assert_memory_equal(first.pixels, second.pixels, sx_image_elems(&first));
    sx_buf_deinit(&plain);
    sx_buf_deinit(&other);
    sx_buf_deinit(&stripped);
    sx_image_deinit(&first);
    sx_image_deinit(&second);
}

static void test_image_decode__shape_checks(void **state)
{
    (void)state;
    sx_image image = {0};
    assert_error(sx_image_reserve(&image, SX_U8, 0, 4, 3), SX_INVALID_ARGUMENT, "0x4x3");
    assert_error(sx_image_reserve(&image, SX_F32, 4, -1, 3), SX_INVALID_ARGUMENT,
                 "every dimension must be positive");
    assert_ok(sx_image_reserve(&image, SX_F32, 4, 5, 3));
    void *pixels = image.pixels;
    assert_ok(sx_image_reserve(&image, SX_U8, 4, 5, 3));
    assert_ptr_equal(image.pixels, pixels);
    sx_image_deinit(&image);
    const uint8_t borrowed[12] = {0};
    sx_image view = sx_image_view(borrowed, 2, 2, 3);
    assert_int_equal(sx_image_elems(&view), 12);
    sx_image_deinit(&view); /* frees nothing */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_image_decode__jpeg_is_close),
    cmocka_unit_test(test_image_decode__png_is_exact),
    cmocka_unit_test(test_image_decode__channels),
    cmocka_unit_test(test_image_decode__png_in_any_number_of_channels),
    cmocka_unit_test(test_image_decode__no_image),
    cmocka_unit_test(test_image_decode__every_truncation),
    cmocka_unit_test(test_image_decode__every_flip),
    cmocka_unit_test(test_image_decode__damage_is_counted),
    cmocka_unit_test(test_image_decode__huge_header),
    cmocka_unit_test(test_image_decode__limits),
    cmocka_unit_test(test_image_decode__two_thousand_scans),
    cmocka_unit_test(test_image_decode__steady_state_allocates_nothing),
    cmocka_unit_test(test_image_decode__out_of_memory),
    cmocka_unit_test(test_image_decode__out_of_memory_in_libraries),
    cmocka_unit_test(test_image_decode__png_text_bombs),
    cmocka_unit_test(test_image_decode__images_are_independent),
    cmocka_unit_test(test_image_decode__shape_checks),
};
SX_TEST_MAIN(tests)
