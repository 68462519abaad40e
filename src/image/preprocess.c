/* See preprocess.h. */
#include "image/preprocess.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "image/decode.h"
#include "image/format.h"

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
    const unsigned flags = SX_FLIP_LEFT_RIGHT | SX_SCALED_DECODE;
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
        pre.scaled_decode = (wish->augment & SX_SCALED_DECODE) != 0;
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

static bool warps(const sx_preprocess *pre)
{
    return pre->shear_degrees > 0 || pre->zoom > 0;
}

bool sx_preprocess_is_whole(const sx_preprocess *pre, bool training, const sx_type *pixels)
{
    const sx_resize_args args = geometry(pre, NULL);
    const int height = pixels != NULL ? (int)pixels->dims[0] : 0,
              width = pixels != NULL ? (int)pixels->dims[1] : 0;
    return sx_resize_is_whole(&args, height, width) &&
           !(training && (warps(pre) || has_colour_steps(pre)));
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

/* Steps 2 to 9 of one image: its pixels, or the rows of one that is being decoded, pass through the
 * resizer to `resized`, and finish() does the rest. */
typedef struct run {
    const sx_preprocess *pre;
    const sx_augment_key *key;
    sx_preprocess_scratch *scratch;
    sx_affine affine;
    bool warp, colour;   /* steps 5, and 6 to 8, follow */
    sx_resize_args args; /* steps 2 to 4, and step 9 if nothing is between them */
    void *resized, *out; /* the same, or what step 5 reads */
} run;

static sx_status start(run *r, const sx_preprocess *pre, const sx_augment_key *key,
                       sx_preprocess_scratch *scratch, void *out)
{
    *r = (run){.pre = pre, .key = key, .scratch = scratch, .resized = out, .out = out};
    sx_preprocess_affine(pre, &r->affine);
    r->warp = key != NULL && warps(pre);
    r->colour = key != NULL && (r->warp || has_colour_steps(pre));
    r->args = geometry(pre, key);
    r->args.affine = r->colour || scratch->bytes ? NULL : &r->affine;
    r->args.bytes = scratch->bytes;
    if (r->warp) {
        SX_TRY(sx_image_reserve(&scratch->resized, SX_F32, pre->height, pre->width, pre->channels));
        r->resized = scratch->resized.pixels;
    }
    return SX_OK;
}

static void finish(const run *r)
{
    const sx_preprocess *pre = r->pre;
    if (r->warp) {
        const float limit = pre->shear_degrees, low = 1.0f - pre->zoom, high = 1.0f + pre->zoom;
        const float shear = sx_augment_between(sx_augment_draw(r->key, "shear").a, -limit, limit);
        const sx_u32x2 zoom = sx_augment_draw(r->key, "zoom");
        sx_warp(r->resized, pre->height, pre->width, pre->channels, shear,
                sx_augment_between(zoom.a, low, high), sx_augment_between(zoom.b, low, high),
                r->out);
    }
    if (r->colour) {
        change_colour(pre, r->key, &r->affine, r->out);
    }
}

static sx_status run_pixels(run *r, const sx_image *pixels)
{
    SX_TRY(sx_resize(&r->scratch->resizer, pixels, &r->args, r->resized));
    finish(r);
    return SX_OK;
}

/* The largest ratio at which an image still has the rows and columns that it is resized to. */
static int choose_ratio(const sx_image_info *info, const sx_resize_args *args)
{
    int ratio = 8;
    while (ratio > 1 && ((info->height + ratio - 1) / ratio < args->height ||
                         (info->width + ratio - 1) / ratio < args->width)) {
        ratio /= 2;
    }
    return ratio;
}

static sx_status begin_rows(void *user, const sx_image *image, sx_image_window *out_wanted)
{
    run *r = user;
    return sx_resize_begin(&r->scratch->resizer, image, &r->args, r->resized, out_wanted);
}

static void add_row(void *user, const uint8_t *pixels)
{
    sx_resize_add(&((run *)user)->scratch->resizer, pixels);
}

sx_status sx_preprocess_encoded(const sx_preprocess *pre, sx_bytes encoded,
                                const sx_augment_key *key, sx_preprocess_scratch *scratch,
                                void *out)
{
    sx_decode_options options = {.channels = pre->channels, .limits = scratch->limits};
    run r;
    SX_TRY(start(&r, pre, key, scratch, out));
    if (key != NULL && pre->scaled_decode) {
        sx_image_info info;
        SX_TRY(sx_image_probe(encoded, &info));
        options.ratio = choose_ratio(&info, &r.args);
    }
    const sx_image_sink sink = {begin_rows, add_row, &r};
    SX_TRY(sx_image_decode_rows(encoded, &options, &sink, &scratch->decoded));
    finish(&r);
    return SX_OK;
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
                               const sx_augment_key *key, sx_preprocess_scratch *scratch, void *out)
{
    run r;
    SX_TRY(start(&r, pre, key, scratch, out));
    if (pixels->channels == pre->channels) {
        return run_pixels(&r, pixels);
    }
    if (pixels->channels != 1 || pixels->dtype != SX_U8) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "preprocessing: expected %d channels; the pixels have %d", pre->channels,
                        pixels->channels);
    }
    SX_TRY(repeat_gray(pixels, &scratch->decoded));
    return run_pixels(&r, &scratch->decoded);
}

void sx_preprocess_scratch_deinit(sx_preprocess_scratch *scratch)
{
    sx_image_deinit(&scratch->decoded);
    sx_image_deinit(&scratch->resized);
    sx_resizer_deinit(&scratch->resizer);
}
