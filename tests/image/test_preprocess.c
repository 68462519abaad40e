/* The one preprocessing function. Its evaluation form is compared with TensorFlow's operators in
 * tests/interop/test_image.py. */
#include "image/samples.h"

#include <math.h>

#include "base/memory.h"
#include "image/decode.h"
#include "image/preprocess.h"

enum { SIDE = 32, ELEMS = SIDE * SIDE * 3 };

static sx_preprocess flowers(void)
{
    sx_preprocess pre;
    assert_ok(sx_preprocess_recipe("tpu-flowers", SIDE, SIDE, 3, &pre));
    return pre;
}

static void test_image_preprocess__recipes(void **state)
{
    (void)state;
    sx_preprocess pre = flowers();
    assert_int_equal(pre.resize, SX_RESIZE_BILINEAR_TF1);
    assert_int_equal(pre.extra_height, 10);
    assert_int_equal(pre.crop, SX_CROP_RANDOM);
    assert_true(pre.flip_left_right);
    assert_true(pre.brightness_max_delta == 63.0f / 255.0f);
    assert_int_equal(pre.scale, SX_MINUS1_1);
    assert_ok(sx_preprocess_recipe("simple", 28, 28, 1, &pre));
    assert_int_equal(pre.height, 28);
    assert_error(sx_preprocess_recipe("tpu", 28, 28, 1, &pre), SX_NOT_FOUND, "\"simple\"");
    assert_error(sx_preprocess_recipe("simple", 28, 0, 1, &pre), SX_INVALID_ARGUMENT, "[28,0,1]");
}

/* Evaluation: decode, resize to 42 x 42, the middle 32 x 32, x / 127.5 − 1. */
static void test_image_preprocess__evaluation_is_the_centre(void **state)
{
    (void)state;
    sx_preprocess pre = flowers();
    sx_buf jpeg = sample_jpeg(50, 70, 3);
    sx_image image = {0};
    sx_resizer resizer = {0};
    static float full[42 * 42 * 3], got[ELEMS];
    assert_ok(sx_image_decode(sample_bytes(&jpeg), NULL, &image));
    assert_ok(sx_resize(
        &resizer, &image,
        &(sx_resize_args){.rule = SX_RESIZE_BILINEAR_TF1, .height = 42, .width = 42}, full));
    sx_preprocess_scratch scratch = {0};
    assert_ok(sx_preprocess_encoded(&pre, sample_bytes(&jpeg), NULL, &scratch, got));
    for (int i = 0; i < ELEMS; i++) {
        int y = i / 96 + 5, x = i / 3 % 32 + 5;
        float want = full[(y * 42 + x) * 3 + i % 3] * (float)(1 / 127.5) + -1.0f;
        assert_true(got[i] == want);
        assert_true(got[i] >= -1.0f && got[i] <= 1.0f);
    }
    sx_preprocess_scratch_deinit(&scratch);
    sx_resizer_deinit(&resizer);
    sx_image_deinit(&image);
    sx_buf_deinit(&jpeg);
}

/* The mirror image, in place. */
static void flip_left_right(float *pixels, int height, int width, int channels)
{
    const size_t n = (size_t)channels, stride = (size_t)width * n;
    for (int y = 0; y < height; y++, pixels += stride) {
        for (float *left = pixels, *right = pixels + stride - n; left < right;
             left += n, right -= n) {
            for (size_t c = 0; c < n; c++) {
                float spare = left[c];
                left[c] = right[c];
                right[c] = spare;
            }
        }
    }
}

/* Training equals the eight steps one after the other, to the bit. */
static void test_image_preprocess__training_is_its_steps(void **state)
{
    (void)state;
    sx_preprocess pre = flowers();
    pre.clip = true;
    sx_image image = sample_image(40, 45, 3);
    sx_preprocess_scratch scratch = {0};
    sx_resizer resizer = {0};
    static float full[42 * 42 * 3], want[ELEMS], got[ELEMS];
    assert_ok(sx_resize(
        &resizer, &image,
        &(sx_resize_args){.rule = SX_RESIZE_BILINEAR_TF1, .height = 42, .width = 42}, full));
    for (uint64_t record = 0; record < 40; record++) {
        sx_augment_key key = {.seed = 99, .epoch = 2, .record = record};
        sx_u32x2 corner = sx_augment_draw(&key, "random_crop");
        int top = sx_augment_below(corner.a, 11), left = sx_augment_below(corner.b, 11);
        for (int i = 0; i < ELEMS; i++) {
            want[i] = full[((i / 96 + top) * 42 + i / 3 % 32 + left) * 3 + i % 3];
        }
        if (sx_augment_draw(&key, "flip_left_right").a >> 31 != 0) {
            flip_left_right(want, SIDE, SIDE, 3);
        }
        const float limit = 63.0f / 255.0f;
        float delta = sx_augment_between(sx_augment_draw(&key, "brightness").a, -limit, limit);
        sx_adjust_brightness(want, ELEMS, 255.0f * delta);
        float factor = sx_augment_between(sx_augment_draw(&key, "contrast").a, 0.2f, 1.8f);
        sx_adjust_contrast(want, SIDE, SIDE, 3, factor);
        sx_clip_pixels(want, ELEMS, 0, 255);
        sx_affine affine;
        sx_preprocess_affine(&pre, &affine);
        sx_scale_channels(want, SIDE * SIDE, 3, affine.mul, affine.add);
        assert_ok(sx_preprocess_pixels(&pre, &image, &key, &scratch, got));
        assert_memory_equal(got, want, sizeof(want));
    }
    sx_preprocess_scratch_deinit(&scratch);
    sx_resizer_deinit(&resizer);
    sx_image_deinit(&image);
}

/* Of an encoded image, too, whose rows are resized as they are decoded. */
static void test_image_preprocess__encoded_equals_decoded(void **state)
{
    (void)state;
    static const int sizes[][2] = {{200, 150}, {42, 42}, {32, 32}, {31, 77}, {1, 9}};
    sx_preprocess_scratch scratch = {0};
    static float want[ELEMS], got[ELEMS];
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]) * 3; s++) {
        const int height = sizes[s / 3][0], width = sizes[s / 3][1];
        sx_buf file = s % 3 == 0   ? sample_jpeg(height, width, 3)
                      : s % 3 == 1 ? sample_progressive(height, width)
                                   : sample_png(height, width, 4);
        sx_image image = {0};
        assert_ok(
            sx_image_decode(sample_bytes(&file), &(sx_decode_options){.channels = 3}, &image));
        for (int i = 0; i < 24; i++) {
            sx_preprocess pre = flowers();
            pre.resize = (sx_resize_rule)(i % 3);
            pre.zoom = i % 4 == 3 ? 0.3f : 0;
            const sx_augment_key key = {.seed = 4, .record = (uint64_t)i};
            const sx_augment_key *random = i < 18 ? &key : NULL;
            assert_ok(sx_preprocess_pixels(&pre, &image, random, &scratch, want));
            assert_ok(sx_preprocess_encoded(&pre, sample_bytes(&file), random, &scratch, got));
            assert_memory_equal(got, want, sizeof(want));
        }
        sx_image_deinit(&image);
        sx_buf_deinit(&file);
    }
    sx_preprocess_scratch_deinit(&scratch);
}

/* Where nothing but copies comes before the scale, bytes say as much as floats. */
static void test_image_preprocess__bytes_are_scaled_later(void **state)
{
    (void)state;
    sx_preprocess_scratch floats = {0}, bytes = {.bytes = true};
    static float want[ELEMS], later[ELEMS];
    static uint8_t got[ELEMS];
    sx_image image = sample_image(SIDE + 10, SIDE + 10, 3);
    sx_buf png = sample_png(77, 50, 3);
    const sx_type type = sx_type_of(SX_U8, SIDE + 10, SIDE + 10, 3);
    for (int i = 0; i < 24; i++) {
        sx_preprocess pre = flowers();
        pre.brightness_max_delta = pre.contrast_lower = pre.contrast_upper = 0;
        pre.resize = (sx_resize_rule)(i % 3);
        const sx_augment_key key = {.seed = 4, .record = (uint64_t)i};
        const sx_augment_key *random = i < 18 ? &key : NULL;
        assert_true(sx_preprocess_is_whole(&pre, true, &type));
        for (int encoded = 0; encoded < 2; encoded++) {
            if (encoded && !sx_preprocess_is_whole(&pre, true, NULL)) {
                assert_true(pre.resize != SX_RESIZE_NEAREST);
                continue;
            }
            sx_affine scale;
            sx_preprocess_affine(&pre, &scale);
            if (encoded) {
                assert_ok(sx_preprocess_encoded(&pre, sample_bytes(&png), random, &floats, want));
                assert_ok(sx_preprocess_encoded(&pre, sample_bytes(&png), random, &bytes, got));
            } else {
                assert_ok(sx_preprocess_pixels(&pre, &image, random, &floats, want));
                assert_ok(sx_preprocess_pixels(&pre, &image, random, &bytes, got));
            }
            for (int k = 0; k < ELEMS; k++) {
                later[k] = got[k];
            }
            sx_scale_channels(later, SIDE * SIDE, 3, scale.mul, scale.add);
            assert_memory_equal(later, want, sizeof(want));
        }
    }
    sx_preprocess_scratch_deinit(&bytes);
    sx_preprocess_scratch_deinit(&floats);
    sx_buf_deinit(&png);
    sx_image_deinit(&image);
}

static void test_image_preprocess__what_is_not_whole(void **state)
{
    (void)state;
    const sx_type same = sx_type_of(SX_U8, SIDE, SIDE, 3), other = sx_type_of(SX_U8, SIDE, 9, 3);
    sx_preprocess plain, pre;
    assert_ok(sx_preprocess_recipe("simple", SIDE, SIDE, 3, &plain));
    assert_true(sx_preprocess_is_whole(&plain, true, &same));
    assert_false(sx_preprocess_is_whole(&plain, true, &other));
    assert_false(sx_preprocess_is_whole(&plain, true, NULL));
    static const char *const augmented[] = {"shear=20", "zoom=0.2", "brightness=0.25",
                                            "contrast=0.2:1.8"};
    for (int i = 0; i < 4; i++) {
        pre = plain;
        assert_ok(sx_preprocess_set_augment(&pre, augmented[i]));
        assert_false(sx_preprocess_is_whole(&pre, true, &same));
        assert_true(sx_preprocess_is_whole(&pre, false, &same));
    }
}

/* The largest ratio that leaves as many pixels as are needed, in training alone. */
static void test_image_preprocess__scaled_decode(void **state)
{
    (void)state;
    static const struct {
        int height, width, ratio;
    } rows[] = {{83, 84, 2},   {84, 83, 2},   {83, 83, 2},   {82, 200, 1},  {168, 400, 4},
                {165, 165, 4}, {164, 165, 2}, {329, 329, 8}, {900, 900, 8}, {20, 20, 1}};
    sx_preprocess pre = flowers(); /* 32 and 10 more */
    pre.scaled_decode = true;
    const sx_augment_key key = {.seed = 4, .record = 2};
    sx_preprocess_scratch scratch = {0};
    static float want[ELEMS], got[ELEMS];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int training = 0; training < 2; training++) {
            sx_buf jpeg = sample_jpeg(rows[i].height, rows[i].width, 3);
            const sx_decode_options options = {.channels = 3,
                                               .ratio = training ? rows[i].ratio : 1};
            const sx_augment_key *random = training ? &key : NULL;
            sx_image image = {0};
            assert_ok(sx_image_decode(sample_bytes(&jpeg), &options, &image));
            assert_ok(sx_preprocess_pixels(&pre, &image, random, &scratch, want));
            assert_ok(sx_preprocess_encoded(&pre, sample_bytes(&jpeg), random, &scratch, got));
            assert_memory_equal(got, want, sizeof(want));
            sx_image_deinit(&image);
            sx_buf_deinit(&jpeg);
        }
    }
    sx_buf png = sample_png(300, 300, 3);
    assert_ok(sx_preprocess_encoded(&pre, sample_bytes(&png), &key, &scratch, got));
    sx_buf_deinit(&png);
    sx_preprocess_scratch_deinit(&scratch);
}

static void test_image_preprocess__shear_and_zoom(void **state)
{
    (void)state;
    sx_preprocess pre = {.height = SIDE, .width = SIDE, .channels = 3, .scale = SX_0_1};
    sx_preprocess plain = pre;
    pre.shear_degrees = 20;
    pre.zoom = 0.2f;
    pre.flip_left_right = plain.flip_left_right = true;
    plain.scale = SX_SCALE_NONE;
    sx_image image = sample_image(40, 45, 3);
    sx_preprocess_scratch scratch = {0};
    static float resized[ELEMS], want[ELEMS], got[ELEMS];
    for (uint64_t record = 0; record < 10; record++) {
        const sx_augment_key key = {.seed = 5, .epoch = 1, .record = record};
        assert_ok(sx_preprocess_pixels(&plain, &image, &key, &scratch, resized));
        float shear = sx_augment_between(sx_augment_draw(&key, "shear").a, -20, 20);
        sx_u32x2 zoom = sx_augment_draw(&key, "zoom");
        sx_warp(resized, SIDE, SIDE, 3, shear, sx_augment_between(zoom.a, 1 - 0.2f, 1 + 0.2f),
                sx_augment_between(zoom.b, 1 - 0.2f, 1 + 0.2f), want);
        sx_affine affine;
        sx_preprocess_affine(&pre, &affine);
        sx_scale_channels(want, SIDE * SIDE, 3, affine.mul, affine.add);
        assert_ok(sx_preprocess_pixels(&pre, &image, &key, &scratch, got));
        assert_memory_equal(got, want, sizeof(want));
    }
    assert_ok(sx_preprocess_pixels(&pre, &image, NULL, &scratch, got));
    plain.scale = SX_0_1;
    assert_ok(sx_preprocess_pixels(&plain, &image, NULL, &scratch, want));
    assert_memory_equal(got, want, sizeof(want)); /* nothing of it in evaluation */
    sx_preprocess_scratch_deinit(&scratch);
    sx_image_deinit(&image);
}

static void test_image_preprocess__record_decides_alone(void **state)
{
    (void)state;
    sx_preprocess pre = flowers();
    sx_image image = sample_image(40, 45, 3);
    sx_preprocess_scratch used = {0}, fresh = {0};
    static float a[ELEMS], b[ELEMS];
    const sx_augment_key key = {.seed = 1, .epoch = 5, .record = 17};
    const sx_augment_key other = {.seed = 1, .epoch = 6, .record = 17};
    assert_ok(sx_preprocess_pixels(&pre, &image, &other, &used, a));
    assert_ok(sx_preprocess_pixels(&pre, &image, &key, &used, a));
    long before = sx_alloc_count();
    assert_ok(sx_preprocess_pixels(&pre, &image, &key, &used, a));
    assert_int_equal(sx_alloc_count(), before);
    assert_ok(sx_preprocess_pixels(&pre, &image, &key, &fresh, b));
    assert_memory_equal(a, b, sizeof(a));
    assert_ok(sx_preprocess_pixels(&pre, &image, &other, &fresh, b));
    assert_memory_not_equal(a, b, sizeof(a));
    sx_preprocess_scratch_deinit(&used);
    sx_preprocess_scratch_deinit(&fresh);
    sx_image_deinit(&image);
}

static void test_image_preprocess__ranges(void **state)
{
    (void)state;
    const uint8_t pixels[2] = {0, 255};
    static const float want[][2] = {{0, 255}, {0, 1}, {-1, 1}};
    sx_image image = sx_image_view(pixels, 1, 2, 1);
    sx_preprocess_scratch scratch = {0};
    for (int scale = 0; scale < 3; scale++) {
        sx_preprocess pre = {.height = 1, .width = 2, .channels = 1, .scale = (sx_scale)scale};
        float out[2];
        assert_ok(sx_preprocess_pixels(&pre, &image, NULL, &scratch, out));
        assert_memory_equal(out, want[scale], sizeof(out));
    }
    sx_preprocess pre = {.height = 1, .width = 2, .channels = 1, .scale = SX_MEAN_STD};
    pre.mean[0] = 0.5f;
    pre.std[0] = 0.25f;
    float out[2];
    assert_ok(sx_preprocess_pixels(&pre, &image, NULL, &scratch, out));
    assert_true(fabsf(out[0] + 2) < 1e-6f && fabsf(out[1] - 2) < 1e-6f);
    sx_preprocess_scratch_deinit(&scratch);
}

static void test_image_preprocess__gray_to_rgb(void **state)
{
    (void)state;
    sx_image gray = sample_image(8, 8, 1), two = sample_image(8, 8, 2);
    sx_preprocess pre = {.height = 5, .width = 6, .channels = 3};
    sx_preprocess_scratch scratch = {0};
    float out[5 * 6 * 3];
    assert_ok(sx_preprocess_pixels(&pre, &gray, NULL, &scratch, out));
    for (int i = 0; i < 90; i++) {
        assert_true(out[i] == out[i / 3 * 3]);
    }
    assert_error(sx_preprocess_pixels(&pre, &two, NULL, &scratch, out), SX_INVALID_ARGUMENT,
                 "have 2");
    sx_preprocess_scratch_deinit(&scratch);
    sx_image_deinit(&gray);
    sx_image_deinit(&two);
}

static void test_image_preprocess__bad_bytes(void **state)
{
    (void)state;
    sx_preprocess pre = flowers();
    sx_preprocess_scratch scratch = {0};
    static float out[ELEMS];
    assert_error(sx_preprocess_encoded(&pre, (sx_bytes){"hello", 5}, NULL, &scratch, out),
                 SX_DATA_LOSS, "not an image");
    sx_buf jpeg = sample_jpeg(50, 70, 3);
    scratch.limits = &(sx_image_limits){.max_pixels = 100};
    assert_error(sx_preprocess_encoded(&pre, sample_bytes(&jpeg), NULL, &scratch, out),
                 SX_RESOURCE_EXHAUSTED, "50x70");
    sx_buf_deinit(&jpeg);
    sx_preprocess_scratch_deinit(&scratch);
}

static void test_image_preprocess__json_round_trip(void **state)
{
    (void)state;
    sx_preprocess pre = flowers(), back = {0};
    pre.scale = SX_MEAN_STD;
    for (int c = 0; c < 3; c++) {
        pre.mean[c] = 0.1f * (float)c;
        pre.std[c] = 0.3f;
    }
    pre.label_base = 1;
    json_t *json = NULL;
    assert_ok(sx_preprocess_to_json(&pre, &json));
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    assert_non_null(
        strstr(text, "{\"height\":32,\"width\":32,\"channels\":3,\"resize\":\"bilinear-tf1\""));
    json = json_loads(text, 0, NULL);
    assert_ok(sx_preprocess_from_json(json, &back));
    assert_memory_equal(&back.mean, &pre.mean, sizeof(pre.mean));
    assert_true(back.brightness_max_delta == pre.brightness_max_delta && back.flip_left_right &&
                back.crop == SX_CROP_RANDOM && back.scale == SX_MEAN_STD && back.label_base == 1 &&
                back.resize == SX_RESIZE_BILINEAR_TF1 && back.contrast_upper == pre.contrast_upper);
    json_decref(json);
    free(text);
}

static void test_image_preprocess__json_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"[]", "JSON object"},
        {"{\"height\":8,\"width\":8,\"channels\":3,\"hue\":1}", "unknown field \"hue\""},
        {"{\"height\":8.5,\"width\":8,\"channels\":3}", "\"height\" must be an integer"},
        {"{\"height\":99999999999,\"width\":8,\"channels\":3}", "integer"},
        {"{\"height\":8,\"width\":8,\"channels\":2}", "channels 1 or 3"},
        {"{\"height\":8,\"width\":8,\"channels\":3,\"resize\":\"cubic\"}",
         "bilinear, bilinear-tf1, nearest"},
        {"{\"height\":8,\"width\":8,\"channels\":3,\"flip_left_right\":1}", "true or false"},
        {"{\"height\":8,\"width\":8,\"channels\":3,\"extra_width\":4}", "requires crop"},
        {"{\"height\":8,\"width\":8,\"channels\":3,\"extra_width\":-4}", "extra size"},
        {"{\"height\":8,\"width\":8,\"channels\":3,\"mean\":[1,2]}", "three numbers"},
        {"{\"height\":8,\"width\":8,\"channels\":3,\"mean\":[1,2,3,4]}", "three numbers"},
        {"{\"height\":8,\"width\":8,\"channels\":3,\"mean\":[1,\"2\",3]}", "three numbers"},
        {"{\"height\":8,\"width\":8,\"channels\":3,\"scale\":\"mean/std\"}",
         "std must be positive"},
        {"{\"height\":8,\"width\":8,\"channels\":3,\"contrast_lower\":2,\"contrast_upper\":1}",
         "contrast"},
        {"{\"height\":8,\"width\":8,\"channels\":3,\"brightness_max_delta\":\"x\"}", "a number"},
        {"{\"height\":8,\"width\":8,\"channels\":3,\"brightness_max_delta\":1.5}",
         "must be 0 to 1"},
        {"{\"height\":8,\"width\":8,\"channels\":3,\"zoom\":1}", "zoom must be"},
        {"{\"height\":8,\"width\":8,\"channels\":3,\"shear_degrees\":-1}", "got -1"},
        {"{\"height\":8,\"width\":8,\"channels\":3,\"label_base\":2}",
         "label_base must be 0 or 1; got 2"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *json = json_loads(cases[i].json, 0, NULL);
        assert_non_null(json);
        sx_preprocess pre = {.height = 77};
        assert_error(sx_preprocess_from_json(json, &pre), SX_INVALID_ARGUMENT, cases[i].message);
        assert_int_equal(pre.height, 77);
        json_decref(json);
    }
}

static const char *augment_text(const sx_preprocess *pre)
{
    static char text[256];
    sx_buf buf;
    sx_buf_init(&buf, sizeof(text));
    sx_preprocess_put_augment(pre, &buf);
    snprintf(text, sizeof(text), "%s", sx_buf_text(&buf));
    sx_buf_deinit(&buf);
    return text;
}

/* A list sets every augmentation, takes back those that it leaves out, and is printed as read. */
static void test_image_preprocess__augment_lists(void **state)
{
    (void)state;
    static const char all[] =
        "flip_left_right,crop=10,shear=20,zoom=0.2,brightness=0.25,contrast=0.2:1.8";
    sx_preprocess pre, flowers_pre = flowers();
    assert_ok(sx_preprocess_recipe("simple", 28, 28, 3, &pre));
    assert_string_equal(augment_text(&pre), "none");
    assert_ok(sx_preprocess_set_augment(&pre, all));
    assert_string_equal(augment_text(&pre), all);
    assert_true(pre.flip_left_right && pre.crop == SX_CROP_RANDOM && pre.extra_width == 10);
    assert_true(pre.shear_degrees == 20 && pre.zoom == .2f && pre.brightness_max_delta == .25f);
    assert_true(pre.contrast_lower == .2f && pre.contrast_upper == 1.8f);
    assert_ok(sx_preprocess_set_augment(&pre, "zoom=.5"));
    assert_string_equal(augment_text(&pre), "zoom=0.5");
    assert_int_equal(pre.crop, SX_CROP_CENTER); /* what evaluation sees is as before */
    assert_int_equal(pre.extra_height, 10);
    assert_ok(sx_preprocess_set_augment(&flowers_pre, "none"));
    assert_string_equal(augment_text(&flowers_pre), "none");
    assert_int_equal(flowers_pre.extra_height, 10);

    static const struct {
        const char *list, *message;
    } bad[] = {
        {"flip", "unknown augmentation \"flip\""},
        {"", "unknown augmentation \"\""},
        {"zoom=.2,", "unknown augmentation \"\""},
        {"contrst=1:2", "did you mean \"contrast\"?"},
        {"rotate=3", "expected flip_left_right, crop=PIXELS, shear=DEGREES"},
        {"none,zoom=.2", "augmentation \"none\" cannot be combined with others"},
        {"zoom=.2,none", "augmentation \"none\" cannot be combined with others"},
        {"zoom=.2,shear=3,zoom=.3", "augmentation \"zoom\" is given twice"},
        {"flip_left_right,flip_left_right", "augmentation \"flip_left_right\" is given twice"},
        {"flip_left_right=1", "expected flip_left_right"},
        {"crop", "augmentation \"crop\": expected crop=PIXELS"},
        {"crop=0", "expected crop=PIXELS"},
        {"crop=1.5", "expected crop=PIXELS"},
        {"crop=1e9", "expected crop=PIXELS"},
        {"crop=nan", "expected crop=PIXELS"},
        {"zoom=x", "expected zoom=FRACTION"},
        {"zoom=0.2:0.3", "expected zoom=FRACTION"},
        {"zoom=2", "zoom must be"},
        {"contrast=1", "expected contrast=LOWER:UPPER"},
        {"contrast=2:1", "the range of contrast is 2 to 1"},
        {"shear=-1", "the shear must be at least 0 and below 90 degrees; got -1"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_error(sx_preprocess_set_augment(&pre, bad[i].list), SX_INVALID_ARGUMENT,
                     bad[i].message);
    }
    assert_string_equal(augment_text(&pre), "zoom=0.5");
}

/* What a model asks for arrives, each field in its place; a recipe decides all but the size. */
static void test_image_preprocess__wishes(void **state)
{
    (void)state;
    const sx_preprocess_wish wish = {.image = {20, 30, 3},
                                     .scale = SX_MEAN_STD,
                                     .mean = {.1f, .2f, .3f},
                                     .std = {.4f, .5f, .6f},
                                     .augment = SX_FLIP_LEFT_RIGHT,
                                     .random_crop = 4,
                                     .random_shear = 5,
                                     .random_zoom = .25f,
                                     .random_brightness = .125f,
                                     .random_contrast = {.5f, 1.5f}};
    sx_preprocess pre;
    assert_ok(sx_preprocess_make(&wish, &pre));
    assert_int_equal(pre.height, 20);
    assert_int_equal(pre.width, 30);
    assert_int_equal(pre.channels, 3);
    assert_int_equal(pre.resize, SX_RESIZE_BILINEAR);
    assert_int_equal(pre.scale, SX_MEAN_STD);
    for (int c = 0; c < 3; c++) {
        assert_true(pre.mean[c] == wish.mean[c] && pre.std[c] == wish.std[c]);
    }
    assert_true(pre.flip_left_right);
    assert_int_equal(pre.extra_height, 4);
    assert_int_equal(pre.extra_width, 4);
    assert_int_equal(pre.crop, SX_CROP_RANDOM);
    assert_true(pre.shear_degrees == 5 && pre.zoom == .25f && pre.brightness_max_delta == .125f);
    assert_true(pre.contrast_lower == .5f && pre.contrast_upper == 1.5f);
    assert_ok(sx_preprocess_make(&(sx_preprocess_wish){.image = {20, 30, 1}}, &pre));
    assert_int_equal(pre.crop, SX_CROP_NONE);
    assert_false(pre.flip_left_right);
    sx_preprocess_wish recipe = wish;
    recipe.recipe = "tpu-flowers";
    assert_ok(sx_preprocess_make(&recipe, &pre));
    assert_int_equal(pre.extra_height, 10);
    assert_int_equal(pre.scale, SX_MINUS1_1);
    assert_true(pre.zoom == 0 && pre.contrast_upper == 1.8f);
    sx_preprocess_wish unknown = {.image = {20, 30, 3}, .augment = 1u << 20};
    assert_error(sx_preprocess_make(&unknown, &pre), SX_INVALID_ARGUMENT, "augment is 0x100000");
}

/* The limits themselves are allowed, what lies beyond is refused. */
static void test_image_preprocess__limits(void **state)
{
    (void)state;
    const int side = SX_RESIZE_MAX_SIDE / 2;
    const sx_preprocess base = {.height = 8, .width = 8, .channels = 3, .crop = SX_CROP_RANDOM};
    const struct {
        size_t at;
        double good[2], bad[2]; /* least and most; the first beyond them */
        bool is_int;
    } rows[] = {
#define AT(field) offsetof(sx_preprocess, field)
        {AT(height), {1, side}, {0, side + 1}, true},
        {AT(width), {1, side}, {0, side + 1}, true},
        {AT(channels), {1, 3}, {2, 4}, true},
        {AT(extra_height), {0, side}, {-1, side + 1}, true},
        {AT(extra_width), {0, side}, {-1, side + 1}, true},
        {AT(label_base), {0, 1}, {-1, 2}, true},
        {AT(shear_degrees), {0, 0x1.67fffep6}, {-1e-6, 90}, false},
        {AT(zoom), {0, 0x1.fffffep-1}, {-1e-6, 1}, false},
        {AT(brightness_max_delta), {0, 1}, {-1e-6, 0x1.000002p0}, false},
        {AT(contrast_upper), {0, 0x1.fffffep127}, {-1e-6, (double)INFINITY}, false},
#undef AT
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int k = 0; k < 4; k++) {
            sx_preprocess pre = base;
            double value = k < 2 ? rows[i].good[k] : rows[i].bad[k - 2];
            if (rows[i].is_int) {
                *(int *)(void *)((char *)&pre + rows[i].at) = (int)value;
            } else {
                *(float *)(void *)((char *)&pre + rows[i].at) = (float)value;
            }
            sx_status status = sx_preprocess_check(&pre);
            if (sx_status_code(status) != (k < 2 ? SX_CODE_OK : SX_INVALID_ARGUMENT)) {
                fail_msg("row %zu, %g: %s", i, value, sx_status_message(status));
            }
            sx_status_free(status);
        }
    }
    const float nan_or_less[] = {NAN, -1};
    for (int i = 0; i < 2; i++) {
        sx_preprocess pre = base;
        pre.contrast_lower = nan_or_less[i];
        pre.contrast_upper = 2;
        assert_error(sx_preprocess_check(&pre), SX_INVALID_ARGUMENT,
                     "expected 0 <= lower <= upper");
    }
    for (int c = 0; c < 3; c++) {
        sx_preprocess pre = base;
        pre.scale = SX_MEAN_STD;
        for (int k = 0; k < 3; k++) {
            pre.std[k] = 1;
        }
        assert_ok(sx_preprocess_check(&pre));
        pre.std[c] = 0;
        assert_error(sx_preprocess_check(&pre), SX_INVALID_ARGUMENT, "std must be positive");
        pre.std[c] = INFINITY;
        assert_error(sx_preprocess_check(&pre), SX_INVALID_ARGUMENT, "std must be positive");
        pre.std[c] = 1;
        pre.mean[c] = NAN;
        assert_error(sx_preprocess_check(&pre), SX_INVALID_ARGUMENT, "std must be positive");
    }
}

/* Each item of a list sets its own fields and no other's: two in either order are the same, and
 * what the third says is kept. */
static void test_image_preprocess__augment_items_are_apart(void **state)
{
    (void)state;
    static const char *const items[] = {"flip_left_right", "crop=10",         "shear=20",
                                        "zoom=0.2",        "brightness=0.25", "contrast=0.2:1.8"};
    enum { ITEMS = 6 };
    for (int a = 0; a < ITEMS; a++) {
        for (int b = 0; b < ITEMS; b++) {
            char list[100], expected[100];
            sx_preprocess pre;
            memset(&pre, 0, sizeof(pre));
            pre.height = pre.width = 8;
            pre.channels = 3;
            snprintf(list, sizeof(list), "%s%s%s", items[a], a == b ? "" : ",",
                     a == b ? "" : items[b]);
            snprintf(expected, sizeof(expected), "%s%s%s", items[a < b ? a : b], a == b ? "" : ",",
                     a == b ? "" : items[a < b ? b : a]);
            assert_ok(sx_preprocess_set_augment(&pre, list));
            assert_string_equal(augment_text(&pre), expected); /* in the order of the table */
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_image_preprocess__recipes),
    cmocka_unit_test(test_image_preprocess__evaluation_is_the_centre),
    cmocka_unit_test(test_image_preprocess__training_is_its_steps),
    cmocka_unit_test(test_image_preprocess__encoded_equals_decoded),
    cmocka_unit_test(test_image_preprocess__bytes_are_scaled_later),
    cmocka_unit_test(test_image_preprocess__what_is_not_whole),
    cmocka_unit_test(test_image_preprocess__scaled_decode),
    cmocka_unit_test(test_image_preprocess__shear_and_zoom),
    cmocka_unit_test(test_image_preprocess__record_decides_alone),
    cmocka_unit_test(test_image_preprocess__ranges),
    cmocka_unit_test(test_image_preprocess__gray_to_rgb),
    cmocka_unit_test(test_image_preprocess__bad_bytes),
    cmocka_unit_test(test_image_preprocess__json_round_trip),
    cmocka_unit_test(test_image_preprocess__json_refusals),
    cmocka_unit_test(test_image_preprocess__augment_lists),
    cmocka_unit_test(test_image_preprocess__wishes),
    cmocka_unit_test(test_image_preprocess__limits),
    cmocka_unit_test(test_image_preprocess__augment_items_are_apart),
};
SX_TEST_MAIN(tests)
