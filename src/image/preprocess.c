/* See preprocess.h. */
#include "image/preprocess.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "image/decode.h"

/* ---- Recipes ---- */

/* Sizes are set by sx_preprocess_recipe. */
static const struct recipe {
    const char *name;
    sx_preprocess pre;
} recipes[] = {
    {"simple", {.resize = SX_RESIZE_BILINEAR, .scale = SX_0_1}},
    {"tpu-flowers",
     {.resize = SX_RESIZE_BILINEAR_TF1,
      .extra_height = 10,
      .extra_width = 10,
      .crop = SX_CROP_RANDOM,
      .flip_left_right = true,
      .brightness_max_delta = 63.0f / 255.0f,
      .contrast_lower = 0.2f,
      .contrast_upper = 1.8f,
      .scale = SX_MINUS1_1}},
};

sx_status sx_preprocess_recipe(const char *name, int height, int width, int channels,
                               sx_preprocess *out)
{
    for (size_t i = 0; i < SX_COUNT(recipes); i++) {
        if (strcmp(recipes[i].name, name) == 0) {
            sx_preprocess pre = recipes[i].pre;
            pre.height = height;
            pre.width = width;
            pre.channels = channels;
            SX_TRY(sx_preprocess_check(&pre), "recipe \"%s\"", name);
            *out = pre;
            return SX_OK;
        }
    }
    return sx_error(SX_NOT_FOUND, "unknown recipe \"%s\"; expected \"simple\" or \"tpu-flowers\"",
                    name);
}

sx_status sx_preprocess_make(const sx_preprocess_wish *wish, sx_preprocess *out)
{
    const unsigned flags = SX_FLIP_LEFT_RIGHT;
    sx_preprocess pre;
    SX_TRY(sx_preprocess_recipe(wish->recipe != NULL ? wish->recipe : "simple", wish->image[0],
                                wish->image[1], wish->image[2], &pre));
    if ((wish->augment & ~flags) != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "augment is %#x, expected flags of sx_augmentation",
                        wish->augment);
    }
    if (wish->recipe == NULL) {
        pre.scale = wish->scale;
        memcpy(pre.mean, wish->mean, sizeof(pre.mean));
        memcpy(pre.std, wish->std, sizeof(pre.std));
        pre.flip_left_right = (wish->augment & SX_FLIP_LEFT_RIGHT) != 0;
        pre.extra_height = pre.extra_width = wish->random_crop;
        pre.crop = wish->random_crop != 0 ? SX_CROP_RANDOM : SX_CROP_NONE;
        pre.shear_degrees = wish->random_shear;
        pre.zoom = wish->random_zoom;
        pre.brightness_max_delta = wish->random_brightness;
        pre.contrast_lower = wish->random_contrast[0];
        pre.contrast_upper = wish->random_contrast[1];
    }
    SX_TRY(sx_preprocess_check(&pre));
    *out = pre;
    return SX_OK;
}

/* ---- Checks ---- */

static sx_status check_size(const sx_preprocess *pre)
{
    const int limit = SX_RESIZE_MAX_SIDE / 2;
    if (pre->height < 1 || pre->width < 1 || pre->height > limit || pre->width > limit ||
        (pre->channels != 1 && pre->channels != 3)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "preprocessing: invalid size [%d,%d,%d]: height and width must be 1 to %d, "
                        "channels 1 or 3",
                        pre->height, pre->width, pre->channels, limit);
    }
    if (pre->extra_height < 0 || pre->extra_width < 0 || pre->extra_height > limit ||
        pre->extra_width > limit) {
        return sx_error(SX_INVALID_ARGUMENT, "preprocessing: extra size (%d, %d) must be 0 to %d",
                        pre->extra_height, pre->extra_width, limit);
    }
    if (pre->crop == SX_CROP_NONE && (pre->extra_height != 0 || pre->extra_width != 0)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "preprocessing: extra size (%d, %d) requires crop \"center\" or \"random\"",
                        pre->extra_height, pre->extra_width);
    }
    return SX_OK;
}

static sx_status check_warp(const sx_preprocess *pre)
{
    if (!(pre->shear_degrees >= 0) || !(pre->shear_degrees < 90)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "preprocessing: the shear must be at least 0 and below 90 degrees; got %g",
                        (double)pre->shear_degrees);
    }
    if (!(pre->zoom >= 0) || !(pre->zoom < 1)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "preprocessing: zoom must be at least 0 and below 1; got %g",
                        (double)pre->zoom);
    }
    return SX_OK;
}

static sx_status check_colour(const sx_preprocess *pre)
{
    if (!(pre->brightness_max_delta >= 0) || !(pre->brightness_max_delta <= 1)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "preprocessing: the largest change of brightness must be 0 to 1; got %g",
                        (double)pre->brightness_max_delta);
    }
    if (!(pre->contrast_lower >= 0) || !(pre->contrast_upper >= pre->contrast_lower) ||
        !isfinite(pre->contrast_upper)) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "preprocessing: the range of contrast is %g to %g, expected 0 <= lower <= upper",
            (double)pre->contrast_lower, (double)pre->contrast_upper);
    }
    if ((unsigned)pre->scale > SX_MEAN_STD) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "preprocessing: scale is %d, expected SX_SCALE_NONE, SX_0_1, SX_MINUS1_1 "
                        "or SX_MEAN_STD",
                        (int)pre->scale);
    }
    for (int c = 0; c < pre->channels && pre->scale == SX_MEAN_STD; c++) {
        if (!isfinite(pre->mean[c]) || !isfinite(pre->std[c]) || !(pre->std[c] > 0)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "preprocessing: mean %g, std %g of channel %d: std must be positive",
                            (double)pre->mean[c], (double)pre->std[c], c);
        }
    }
    return SX_OK;
}

sx_status sx_preprocess_check(const sx_preprocess *pre)
{
    SX_TRY(check_size(pre));
    SX_TRY(check_warp(pre));
    SX_TRY(check_colour(pre));
    if (pre->label_base != 0 && pre->label_base != 1) {
        return sx_error(SX_INVALID_ARGUMENT, "preprocessing: label_base must be 0 or 1; got %d",
                        pre->label_base);
    }
    return SX_OK;
}

void sx_preprocess_affine(const sx_preprocess *pre, sx_affine *out)
{
    static const struct {
        double divisor, add;
    } fixed[] = {[SX_SCALE_NONE] = {1, 0},
                 [SX_0_1] = {255, 0},
                 [SX_MINUS1_1] = {127.5, -1},
                 [SX_MEAN_STD] = {0, 0}};
    for (int c = 0; c < SX_IMAGE_MAX_CHANNELS; c++) {
        double divisor = 1, add = 0;
        if (c < pre->channels) {
            bool own = pre->scale == SX_MEAN_STD;
            divisor = own ? 255 * (double)pre->std[c] : fixed[pre->scale].divisor;
            add = own ? -(double)pre->mean[c] / (double)pre->std[c] : fixed[pre->scale].add;
        }
        out->mul[c] = (float)(1 / divisor);
        out->add[c] = (float)add;
    }
}

void sx_preprocess_center(const sx_preprocess *pre, int *out_top, int *out_left)
{
    *out_top = pre->extra_height / 2;
    *out_left = pre->extra_width / 2;
}

/* ---- Running it ---- */

static sx_resize_args geometry(const sx_preprocess *pre, const sx_augment_key *key)
{
    sx_resize_args args = {.rule = pre->resize,
                           .height = pre->height + pre->extra_height,
                           .width = pre->width + pre->extra_width,
                           .window_height = pre->height,
                           .window_width = pre->width};
    sx_preprocess_center(pre, &args.top, &args.left);
    if (key != NULL && pre->crop == SX_CROP_RANDOM) {
        sx_u32x2 bits = sx_augment_draw(key, "random_crop");
        args.top = sx_augment_below(bits.a, pre->extra_height + 1);
        args.left = sx_augment_below(bits.b, pre->extra_width + 1);
    }
    if (key != NULL && pre->flip_left_right) {
        args.flip = sx_augment_draw(key, "flip_left_right").a >> 31 != 0;
    }
    return args;
}

static bool has_colour_steps(const sx_preprocess *pre)
{
    return pre->brightness_max_delta > 0 || pre->contrast_upper > 0 || pre->clip;
}

/* Steps 6 to 9, if there is more to do than scaling. */
static void change_colour(const sx_preprocess *pre, const sx_augment_key *key,
                          const sx_affine *affine, float *pixels)
{
    const size_t count = (size_t)pre->height * (size_t)pre->width;
    const size_t elems = count * (size_t)pre->channels;
    if (pre->brightness_max_delta > 0) {
        const float limit = pre->brightness_max_delta;
        uint32_t bits = sx_augment_draw(key, "brightness").a;
        sx_adjust_brightness(pixels, elems, 255.0f * sx_augment_between(bits, -limit, limit));
    }
    if (pre->contrast_upper > 0) {
        uint32_t bits = sx_augment_draw(key, "contrast").a;
        float factor = sx_augment_between(bits, pre->contrast_lower, pre->contrast_upper);
        sx_adjust_contrast(pixels, pre->height, pre->width, pre->channels, factor);
    }
    if (pre->clip) {
        sx_clip_pixels(pixels, elems, 0.0f, 255.0f);
    }
    sx_scale_channels(pixels, count, pre->channels, affine->mul, affine->add);
}

/* Steps 2 to 4, and also step 9 if `affine` is not NULL. */
static sx_status resize(const sx_preprocess *pre, const sx_image *pixels, const sx_augment_key *key,
                        const sx_affine *affine, sx_resizer *resizer, float *out)
{
    sx_resize_args args = geometry(pre, key);
    args.affine = affine;
    return sx_resize(resizer, pixels, &args, out);
}

/* Steps 2 to 5. */
static sx_status resize_and_warp(const sx_preprocess *pre, const sx_image *pixels,
                                 const sx_augment_key *key, sx_preprocess_scratch *scratch,
                                 float *out)
{
    SX_TRY(sx_image_reserve(&scratch->resized, SX_F32, pre->height, pre->width, pre->channels));
    float *resized = scratch->resized.pixels;
    SX_TRY(resize(pre, pixels, key, NULL, &scratch->resizer, resized));
    const float limit = pre->shear_degrees, low = 1.0f - pre->zoom, high = 1.0f + pre->zoom;
    const float shear = sx_augment_between(sx_augment_draw(key, "shear").a, -limit, limit);
    const sx_u32x2 zoom = sx_augment_draw(key, "zoom");
    sx_warp(resized, pre->height, pre->width, pre->channels, shear,
            sx_augment_between(zoom.a, low, high), sx_augment_between(zoom.b, low, high), out);
    return SX_OK;
}

/* Steps 2 to 9, on pixels with the right number of channels. */
static sx_status run(const sx_preprocess *pre, const sx_image *pixels, const sx_augment_key *key,
                     sx_preprocess_scratch *scratch, float *out)
{
    sx_affine affine;
    sx_preprocess_affine(pre, &affine);
    const bool warp = key != NULL && (pre->shear_degrees > 0 || pre->zoom > 0);
    const bool colour = key != NULL && (warp || has_colour_steps(pre));
    if (warp) {
        SX_TRY(resize_and_warp(pre, pixels, key, scratch, out));
    } else {
        SX_TRY(resize(pre, pixels, key, colour ? NULL : &affine, &scratch->resizer, out));
    }
    if (colour) {
        change_colour(pre, key, &affine, out);
    }
    return SX_OK;
}

sx_status sx_preprocess_encoded(const sx_preprocess *pre, sx_bytes encoded,
                                const sx_augment_key *key, sx_preprocess_scratch *scratch,
                                float *out)
{
    const sx_decode_options options = {.channels = pre->channels, .limits = scratch->limits};
    SX_TRY(sx_image_decode(encoded, &options, &scratch->decoded));
    return run(pre, &scratch->decoded, key, scratch, out);
}

/* Repeats a gray channel three times. */
static sx_status repeat_gray(const sx_image *gray, sx_image *rgb)
{
    SX_TRY(sx_image_reserve(rgb, SX_U8, gray->height, gray->width, 3));
    sx_image_set(rgb, SX_U8, gray->height, gray->width, 3);
    const uint8_t *from = gray->pixels;
    uint8_t *to = rgb->pixels;
    for (size_t i = 0; i < sx_image_elems(gray); i++, to += 3) {
        to[0] = to[1] = to[2] = from[i];
    }
    return SX_OK;
}

sx_status sx_preprocess_pixels(const sx_preprocess *pre, const sx_image *pixels,
                               const sx_augment_key *key, sx_preprocess_scratch *scratch,
                               float *out)
{
    if (pixels->channels == pre->channels) {
        return run(pre, pixels, key, scratch, out);
    }
    if (pixels->channels != 1 || pixels->dtype != SX_U8) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "preprocessing: expected %d channels; the pixels have %d", pre->channels,
                        pixels->channels);
    }
    SX_TRY(repeat_gray(pixels, &scratch->decoded));
    return run(pre, &scratch->decoded, key, scratch, out);
}

void sx_preprocess_scratch_deinit(sx_preprocess_scratch *scratch)
{
    sx_image_deinit(&scratch->decoded);
    sx_image_deinit(&scratch->resized);
    sx_resizer_deinit(&scratch->resizer);
}
