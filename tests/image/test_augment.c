/* Augmentation and its draws. */
#include "image/samples.h"

#include <math.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/threefry.h"
#include "image/augment.h"

/* These numbers are part of every trained model's history: they may never change. The key of
 * "flip_left_right" under seed 7 is (7, fold(FNV-1a)), the counter (epoch, record). */
static void test_image_augment__draws_are_fixed(void **state)
{
    (void)state;
    sx_augment_key key = {.seed = 7, .epoch = 3, .record = 12345};
    sx_u32x2 bits = sx_augment_draw(&key, "flip_left_right");
    assert_int_equal(bits.a, 0xB527E5F3);
    assert_int_equal(bits.b, 0x17D4F597);
}

static void test_image_augment__draws_differ(void **state)
{
    (void)state;
    const sx_augment_key keys[] = {
        {.seed = 7, .epoch = 1, .record = 1},
        {.seed = 8, .epoch = 1, .record = 1},
        {.seed = 7, .epoch = 2, .record = 1},
        {.seed = 7, .epoch = 1, .record = 2},
        {.seed = UINT64_C(9) << 32, .epoch = 1, .record = UINT64_C(3) << 32}};
    uint32_t seen[10];
    for (int i = 0; i < 10; i++) {
        seen[i] = sx_augment_draw(&keys[i / 2], i % 2 == 0 ? "brightness" : "contrast").a;
        for (int j = 0; j < i; j++) {
            assert_int_not_equal(seen[i], seen[j]);
        }
    }
}

static void test_image_augment__ranges(void **state)
{
    (void)state;
    assert_int_equal(sx_augment_below(0, 11), 0);
    assert_int_equal(sx_augment_below(UINT32_MAX, 11), 10);
    assert_int_equal(sx_augment_below(UINT32_MAX, 1), 0);
    assert_true(sx_augment_between(0, -0.5f, 1.5f) == -0.5f);
    assert_true(sx_augment_between(UINT32_MAX, -0.5f, 1.5f) < 1.5f);
    int counts[11] = {0};
    double sum = 0;
    sx_augment_key key = {.seed = 1};
    for (int i = 0; i < 11000; i++) {
        key.record = (uint64_t)i;
        sx_u32x2 bits = sx_augment_draw(&key, "random_crop");
        counts[sx_augment_below(bits.a, 11)]++;
        sum += (double)sx_augment_between(bits.b, 0.2f, 1.8f);
    }
    for (int i = 0; i < 11; i++) {
        assert_in_range(counts[i], 850, 1150); /* 1000 ± 5 sigma */
    }
    assert_true(fabs(sum / 11000 - 1.0) < 0.025);
}

static void test_image_augment__brightness(void **state)
{
    (void)state;
    float pixels[3] = {0.0f, 10.0f, 250.0f};
    sx_adjust_brightness(pixels, 3, 12.5f);
    assert_true(pixels[0] == 12.5f && pixels[1] == 22.5f && pixels[2] == 262.5f);
}

/* Means 2 and 20; 26 pixels fill the groups of eight and leave some over. */
static void test_image_augment__contrast(void **state)
{
    (void)state;
    float pixels[26][2];
    for (int i = 0; i < 26; i++) {
        pixels[i][0] = i % 2 == 0 ? 1.0f : 3.0f;
        pixels[i][1] = i % 2 == 0 ? 10.0f : 30.0f;
    }
    sx_adjust_contrast(&pixels[0][0], 2, 13, 2, 0.5f);
    for (int i = 0; i < 26; i++) {
        assert_true(pixels[i][0] == (i % 2 == 0 ? 1.5f : 2.5f));
        assert_true(pixels[i][1] == (i % 2 == 0 ? 15.0f : 25.0f));
    }
    sx_adjust_contrast(&pixels[0][0], 26, 1, 2, 0.0f);
    assert_true(pixels[0][0] == 2.0f && pixels[25][1] == 20.0f);
}

static void test_image_augment__warp(void **state)
{
    (void)state;
    float pixels[5][4][2], out[5][4][2];
    for (int i = 0; i < 20; i++) {
        pixels[i / 4][i % 4][0] = (float)(i / 4);
        pixels[i / 4][i % 4][1] = (float)(i % 4);
    }
    sx_warp(&pixels[0][0][0], 5, 4, 2, 0, 1, 1, &out[0][0][0]);
    assert_memory_equal(out, pixels, sizeof(out)); /* nothing to do */
    /* half the rows: 1, 1.5, 2, 2.5, 3; twice the columns: -1.5, 0.5, 2.5, 4.5, clamped */
    sx_warp(&pixels[0][0][0], 5, 4, 2, 0, 0.5f, 2, &out[0][0][0]);
    static const float columns[4] = {0, 0.5f, 2.5f, 3};
    for (int i = 0; i < 20; i++) {
        assert_true(out[i / 4][i % 4][0] == 1 + 0.5f * (float)(i / 4));
        assert_true(out[i / 4][i % 4][1] == columns[i % 4]);
    }
    /* 30°: a column's rows move by half its distance from the middle */
    sx_warp(&pixels[0][0][0], 5, 4, 2, 30, 1, 1, &out[0][0][0]);
    assert_true(fabsf(out[2][0][0] - 2.75f) < 1e-4f && fabsf(out[2][3][0] - 1.25f) < 1e-4f);
    assert_true(fabsf(out[2][0][1] - (1.5f - 1.5f * 0.8660254f)) < 1e-4f);
}

/* Without a shear, strips of columns are interpolated in another order, to the bits of each pixel
 * alone. */
static void test_image_augment__zoom(void **state)
{
    (void)state;
    enum { H = 37, W = 131, CHANNELS = 4 };
    static const float zooms[][2] = {{1, 1}, {0.5f, 0.7f}, {1.25f, 0.8f}, {0.83f, 1.9f}};
    const size_t elems = (size_t)H * W * CHANNELS;
    float *src = sx_alloc(elems, sizeof(*src)), *out = sx_alloc(elems, sizeof(*out));
    assert_true(src != NULL && out != NULL);
    for (size_t i = 0; i < elems; i++) {
        src[i] = sx_uniform_f32((uint32_t)i * 2654435761u);
    }
    for (int channels = 1; channels <= CHANNELS; channels++) {
        for (size_t k = 0; k < SX_COUNT(zooms); k++) {
            /* The picture's end is the block's: nothing beyond it is read. */
            const float *picture = src + elems - (size_t)H * W * (size_t)channels;
            sx_warp(picture, H, W, channels, 0, zooms[k][0], zooms[k][1], out);
            for (int i = 0; i < H * W * channels; i++) {
                const int y = i / channels / W, x = i / channels % W, c = i % channels;
                float at[2] = {zooms[k][0] * ((float)y - (H - 1) * 0.5f) + (H - 1) * 0.5f,
                               zooms[k][1] * ((float)x - (W - 1) * 0.5f) + (W - 1) * 0.5f};
                at[0] = fminf(fmaxf(at[0], 0), H - 1);
                at[1] = fminf(fmaxf(at[1], 0), W - 1);
                const int top = (int)at[0], left = (int)at[1];
                const int bottom = SX_MIN(top + 1, H - 1), right = SX_MIN(left + 1, W - 1);
                const float dy = at[0] - (float)top, dx = at[1] - (float)left;
#define AT(row, column) picture[((row)*W + (column)) * channels + c]
                const float above = AT(top, left) + (AT(top, right) - AT(top, left)) * dx;
                const float below = AT(bottom, left) + (AT(bottom, right) - AT(bottom, left)) * dx;
#undef AT
                assert_true(out[i] == above + (below - above) * dy);
            }
        }
    }
    sx_free(src);
    sx_free(out);
}

static void test_image_augment__clip_and_scale(void **state)
{
    (void)state;
    float pixels[] = {-3, 0, 128, 255, 300, NAN};
    sx_clip_pixels(pixels, 6, 0, 255);
    const float want[] = {0, 0, 128, 255, 255, 0};
    assert_memory_equal(pixels, want, sizeof(want));
    const float mul[] = {2, 0.5f}, add[] = {1, -1};
    sx_scale_channels(pixels, 3, 2, mul, add);
    const float scaled[] = {1, -1, 257, 126.5f, 511, -1};
    assert_memory_equal(pixels, scaled, sizeof(scaled));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_image_augment__draws_are_fixed),
    cmocka_unit_test(test_image_augment__draws_differ),
    cmocka_unit_test(test_image_augment__ranges),
    cmocka_unit_test(test_image_augment__brightness),
    cmocka_unit_test(test_image_augment__contrast),
    cmocka_unit_test(test_image_augment__warp),
    cmocka_unit_test(test_image_augment__zoom),
    cmocka_unit_test(test_image_augment__clip_and_scale),
};
SX_TEST_MAIN(tests)
