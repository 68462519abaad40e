/* The three resize rules. Equality with TensorFlow is tested in tests/interop/test_image.py. */
#include "image/samples.h"

#include <math.h>

#include "base/memory.h"
#include "image/resize.h"

/* The definition of resize.h, written down once more without tables. */
static float position(sx_resize_rule rule, int i, int src, int full)
{
    float scale = (float)src / (float)full;
    switch (rule) {
    case SX_RESIZE_BILINEAR:
        return ((float)i + 0.5f) * scale - 0.5f;
    case SX_RESIZE_BILINEAR_TF1:
        return (float)i * scale;
    case SX_RESIZE_NEAREST:
        return floorf(((float)i + 0.5f) * scale);
    }
    return 0;
}

static int clamp(float at, int size)
{
    return at < 0 ? 0 : (int)at < size ? (int)at : size - 1;
}

static float pixel(const sx_image *image, int y, int x, int c)
{
    size_t at =
        ((size_t)y * (size_t)image->width + (size_t)x) * (size_t)image->channels + (size_t)c;
    return image->dtype == SX_U8 ? ((const uint8_t *)image->pixels)[at]
                                 : ((const float *)image->pixels)[at];
}

static float expected(const sx_image *image, const sx_resize_args *a, int y, int x, int c)
{
    float py = position(a->rule, y, image->height, a->height);
    float px = position(a->rule, x, image->width, a->width);
    int top = clamp(floorf(py), image->height), bottom = clamp(ceilf(py), image->height);
    int left = clamp(floorf(px), image->width), right = clamp(ceilf(px), image->width);
    float fx = px - floorf(px), fy = py - floorf(py);
    float tl = pixel(image, top, left, c), tr = pixel(image, top, right, c);
    float bl = pixel(image, bottom, left, c), br = pixel(image, bottom, right, c);
    float upper = tl + (tr - tl) * fx, lower = bl + (br - bl) * fx;
    return upper + (lower - upper) * fy;
}

static void check(const sx_image *image, const sx_resize_args *a)
{
    sx_resizer resizer = {0};
    size_t elems = (size_t)a->window_height * (size_t)a->window_width * (size_t)image->channels;
    float *out =
        malloc(elems * sizeof(float)); /* exact, so that a sanitizer sees a store too far */
    assert_ok(sx_resize(&resizer, image, a, out));
    size_t at = 0;
    for (int y = 0; y < a->window_height; y++) {
        for (int x = 0; x < a->window_width; x++) {
            int from = a->flip ? a->window_width - 1 - x : x;
            for (int c = 0; c < image->channels; c++, at++) {
                float want = expected(image, a, a->top + y, a->left + from, c);
                if (a->affine != NULL) {
                    want = want * a->affine->mul[c] + a->affine->add[c];
                }
                if (out[at] != want) {
                    fail_msg("%s %dx%d to %dx%d flip %d at (%d, %d, %d): %.9g, expected %.9g",
                             sx_resize_rule_name(a->rule), image->height, image->width, a->height,
                             a->width, a->flip, y, x, c, (double)out[at], (double)want);
                }
            }
        }
    }
    free(out);
    sx_resizer_deinit(&resizer);
}

/* All rules, sizes, windows, mirrors, channels; uint8 in a buffer of exactly its size. */
static void test_image_resize__equals_its_definition(void **state)
{
    (void)state;
    static const sx_affine affine = {.mul = {0.5f, 2.0f, 0.25f, 1.0f},
                                     .add = {-1.0f, 3.0f, 0.125f, 0}};
    static const int sizes[][2] = {{1, 1}, {7, 9}, {20, 31}, {45, 40}, {3, 64}};
    for (int channels = 1; channels <= 4; channels++) {
        sx_image made = sample_image(20, 31, channels);
        uint8_t *exact = malloc(sx_image_elems(&made));
        memcpy(exact, made.pixels, sx_image_elems(&made));
        sx_image image = sx_image_view(exact, 20, 31, channels);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) * 3 * 4; i++) {
            const int *size = sizes[i % 5];
            bool inner = i / 30 != 0;
            sx_resize_args a = {
                .rule = (sx_resize_rule)(i / 5 % 3), .height = size[0], .width = size[1]};
            a.top = inner ? size[0] / 3 : 0;
            a.left = inner ? size[1] / 4 : 0;
            a.window_height = inner ? (size[0] - a.top + 1) / 2 : size[0];
            a.window_width = inner ? (size[1] - a.left + 1) / 2 : size[1];
            a.flip = i / 15 % 2 != 0;
            a.affine = inner ? &affine : NULL;
            check(&image, &a);
        }
        free(exact);
        sx_image_deinit(&made);
    }
}

/* Rows of which sixteen results are made of few or of many bytes. */
static void test_image_resize__wide_sources(void **state)
{
    (void)state;
    static const int widths[] = {19, 31, 45, 90, 199, 260};
    for (int channels = 1; channels <= 4; channels++) {
        sx_image made = sample_image(5, 200, channels);
        uint8_t *exact = malloc(sx_image_elems(&made));
        memcpy(exact, made.pixels, sx_image_elems(&made));
        sx_image image = sx_image_view(exact, 5, 200, channels);
        for (size_t i = 0; i < 2 * sizeof(widths) / sizeof(widths[0]); i++) {
            const int width = widths[i / 2];
            check(&image, &(sx_resize_args){.rule = SX_RESIZE_BILINEAR,
                                            .height = 4,
                                            .width = width,
                                            .window_height = 4,
                                            .window_width = width,
                                            .flip = i % 2 != 0});
        }
        free(exact);
        sx_image_deinit(&made);
    }
}

static void test_image_resize__float_source(void **state)
{
    (void)state;
    sx_image image = {0};
    assert_ok(sx_image_reserve(&image, SX_F32, 6, 5, 3));
    sx_image_set(&image, SX_F32, 6, 5, 3);
    for (size_t i = 0; i < sx_image_elems(&image); i++) {
        ((float *)image.pixels)[i] = (float)(i * i % 37) * 0.37f - 4.0f;
    }
    for (int rule = 0; rule < 3; rule++) {
        for (int flip = 0; flip < 2; flip++) {
            sx_resize_args a = {
                .rule = (sx_resize_rule)rule, .height = 11, .width = 4, .flip = flip != 0};
            a.window_height = 11;
            a.window_width = 4;
            check(&image, &a);
            a.height = a.window_height = 6;
            a.width = a.window_width = 5;
            check(&image, &a);
        }
    }
    sx_image_deinit(&image);
}

/* By hand: two pixels 0 and 100 stretched to four. */
static void test_image_resize__known_values(void **state)
{
    (void)state;
    const uint8_t pixels[2] = {0, 100};
    static const float want[3][4] = {{0, 25, 75, 100}, {0, 50, 100, 100}, {0, 0, 100, 100}};
    sx_image image = sx_image_view(pixels, 1, 2, 1);
    sx_resizer resizer = {0};
    for (int rule = 0; rule < 3; rule++) {
        float out[4];
        assert_ok(sx_resize(&resizer, &image,
                            &(sx_resize_args){.rule = (sx_resize_rule)rule, .width = 4}, out));
        assert_memory_equal(out, want[rule], sizeof(out));
    }
    sx_resizer_deinit(&resizer);
}

static void test_image_resize__steady_state_allocates_nothing(void **state)
{
    (void)state;
    sx_image image = sample_image(30, 40, 3);
    static float out[50 * 60 * 3];
    sx_resizer resizer = {0};
    assert_ok(sx_resize(&resizer, &image, &(sx_resize_args){.height = 50, .width = 60}, out));
    long before = sx_alloc_count();
    assert_ok(sx_resize(&resizer, &image, &(sx_resize_args){.height = 20, .width = 60}, out));
    assert_ok(sx_resize(&resizer, &image, &(sx_resize_args){.height = 50, .width = 60}, out));
    assert_int_equal(sx_alloc_count(), before);
    sx_resizer_deinit(&resizer);
    sx_alloc_fail_after(1);
    assert_error(sx_resize(&resizer, &image, &(sx_resize_args){.height = 50, .width = 60}, out),
                 SX_RESOURCE_EXHAUSTED, "out of memory");
    sx_alloc_fail_after(0);
    sx_image_deinit(&image);
}

static void test_image_resize__refusals(void **state)
{
    (void)state;
    sx_image image = sample_image(4, 4, 3), five = sample_image(4, 4, 5);
    sx_resizer resizer = {0};
    float out[1];
    assert_error(sx_resize(&resizer, &image, &(sx_resize_args){.height = -1}, out),
                 SX_INVALID_ARGUMENT, "to -1x4");
    assert_error(
        sx_resize(&resizer, &image, &(sx_resize_args){.width = SX_RESIZE_MAX_SIDE + 1}, out),
        SX_INVALID_ARGUMENT, "65537");
    assert_error(sx_resize(&resizer, &image, &(sx_resize_args){.top = 2, .window_height = 3}, out),
                 SX_INVALID_ARGUMENT, "window 3x4 at (2, 0)");
    assert_error(sx_resize(&resizer, &image, &(sx_resize_args){.left = -1}, out),
                 SX_INVALID_ARGUMENT, "window");
    assert_error(sx_resize(&resizer, &five, &(sx_resize_args){.height = 2}, out),
                 SX_INVALID_ARGUMENT, "got 5");
    assert_error(
        sx_resize(&resizer, &(sx_image){.dtype = SX_U8}, &(sx_resize_args){.height = 2}, out),
        SX_INVALID_ARGUMENT, "got 0");
    sx_image_deinit(&image);
    sx_image_deinit(&five);
}

static void test_image_resize__names(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        sx_resize_rule rule = SX_RESIZE_NEAREST;
        assert_true(sx_resize_rule_parse(sx_resize_rule_name((sx_resize_rule)i), &rule));
        assert_int_equal(rule, i);
    }
    sx_resize_rule untouched = SX_RESIZE_NEAREST;
    assert_false(sx_resize_rule_parse("bicubic", &untouched));
    assert_int_equal(untouched, SX_RESIZE_NEAREST);
    assert_null(sx_resize_rule_name((sx_resize_rule)3));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_image_resize__equals_its_definition),
    cmocka_unit_test(test_image_resize__wide_sources),
    cmocka_unit_test(test_image_resize__float_source),
    cmocka_unit_test(test_image_resize__known_values),
    cmocka_unit_test(test_image_resize__steady_state_allocates_nothing),
    cmocka_unit_test(test_image_resize__refusals),
    cmocka_unit_test(test_image_resize__names),
};
SX_TEST_MAIN(tests)
