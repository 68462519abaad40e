/* Preprocessing: from an encoded image (or its uint8 pixels) to a model's input.
 *
 * One function serves the input pipeline, the server and `predict`, and the exporter writes what it
 * does in evaluation as graph nodes; so it is defined operation by operation. With H, W, C the size
 * of the output and eh, ew the extra rows and columns:
 *
 *   #  operation     in training                         in evaluation, and as exported
 *   1  decode        decode.h, C channels; if            DecodeJpeg(channels=C, dct_method=
 *                    .scaled_decode, a JPEG at 1/2, 1/4  "INTEGER_FAST"): uint8 [h, w, C]
 *                    or 1/8, the least with as many
 *                    rows and columns as the result of 2
 *   2  resize        to float32 [H + eh, W + ew, C]      ResizeBilinear or ResizeNearestNeighbor
 *                                                        (then Cast) of the uint8 image,
 *                                                        align_corners=false, half_pixel_centers
 *                                                        unless the rule is bilinear-tf1
 *   3  crop          [H, W] from a random corner:        Slice from (eh / 2, ew / 2), rounded
 *                    top in [0, eh], left in [0, ew]     down; none when eh = ew = 0
 *   4  flip          left to right, probability 1/2      –
 *   5  shear, zoom   sx_warp: an angle in                –
 *                    ±shear_degrees; rows and columns
 *                    each by a factor in 1 ± zoom
 *   6  brightness    x + 255·d, d in ±max_delta          –
 *   7  contrast      factor in [lower, upper)            –
 *   8  clip          to [0, 255], if .clip               – (nothing is outside)
 *   9  scale         x·mul[c] + add[c]                   Mul, AddV2 (sx_preprocess_affine)
 *
 * Values are in 0 … 255 up to step 9. Steps 2 to 4 run as one pass, with the same result to the
 * bit. The random numbers are those of sx_augment_draw() (augment.h) for "random_crop" (first word:
 * top, second: left), "flip_left_right", "shear", "zoom" (first word: rows, second: columns),
 * "brightness" and "contrast"; where no word is named, the first.
 *
 *   scale     mul                add              float32, rounded once from double
 *   none      1                  0
 *   0..1      1 / 255            0
 *   -1..1     1 / 127.5          −1
 *   mean/std  1 / (255·std[c])   −mean[c] / std[c]     mean and std in units of 0..1 */
#ifndef SX_IMAGE_PREPROCESS_H
#define SX_IMAGE_PREPROCESS_H

#include <jansson.h>

#include <sextant/image.h>

#include "base/buffer.h"
#include "image/augment.h"
#include "image/image.h"
#include "image/resize.h"

typedef enum sx_crop { SX_CROP_NONE, SX_CROP_CENTER, SX_CROP_RANDOM } sx_crop;

/* Stored in sextant.json. */
typedef struct sx_preprocess {
    int height, width, channels; /* of the output; channels 1 or 3 */
    sx_resize_rule resize;
    int extra_height, extra_width; /* rows and columns beyond the result before the crop */
    sx_crop crop;
    bool scaled_decode;
    bool flip_left_right;
    float shear_degrees;                  /* 0 = off; Keras' shear_range */
    float zoom;                           /* 0 = off; Keras' zoom_range; below 1 */
    float brightness_max_delta;           /* as a fraction of 255; 0 = off */
    float contrast_lower, contrast_upper; /* both 0 = off */
    bool clip;
    sx_scale scale;
    float mean[3], std[3]; /* of SX_MEAN_STD */
    int label_base; /* number of the first class in the records: 0, or 1 in TPU-style files */
} sx_preprocess;

/* The preprocessing that a model or sx_image_pipeline() asks for; the fields of sextant/image.h. */
typedef struct sx_preprocess_wish {
    int image[3];
    sx_scale scale;
    float mean[3], std[3];
    unsigned augment;
    int random_crop;
    float random_shear, random_zoom, random_brightness, random_contrast[2];
    const char *recipe; /* instead of scale and augmentations; NULL = none */
} sx_preprocess_wish;

/* Makes one from a pointer to any struct with these fields. */
#define SX_PREPROCESS_WISH(from)                                                     \
    (&(sx_preprocess_wish){                                                          \
        .image = {(from)->image[0], (from)->image[1], (from)->image[2]},             \
        .scale = (from)->scale,                                                      \
        .mean = {(from)->mean[0], (from)->mean[1], (from)->mean[2]},                 \
        .std = {(from)->std[0], (from)->std[1], (from)->std[2]},                     \
        .augment = (from)->augment,                                                  \
        .random_crop = (from)->random_crop,                                          \
        .random_shear = (from)->random_shear,                                        \
        .random_zoom = (from)->random_zoom,                                          \
        .random_brightness = (from)->random_brightness,                              \
        .random_contrast = {(from)->random_contrast[0], (from)->random_contrast[1]}, \
        .recipe = (from)->recipe,                                                    \
    })

/* Errors: NOT_FOUND: an unknown recipe; INVALID_ARGUMENT: a value out of range, an unknown flag. */
SX_MUST_USE sx_status sx_preprocess_make(const sx_preprocess_wish *wish, sx_preprocess *out);

/* Replaces the augmentations with those of a list:
 *     flip_left_right,crop=10,shear=20,zoom=0.2,brightness=0.25,contrast=0.2:1.8,scaled_decode
 * or "none". Without crop, an extra size is kept and cropped at its centre. Errors:
 * INVALID_ARGUMENT, with the item and what is expected. */
SX_MUST_USE sx_status sx_preprocess_set_augment(sx_preprocess *pre, const char *list);
/* Appends the list; "none" if there are no augmentations. */
void sx_preprocess_put_augment(const sx_preprocess *pre, sx_buf *out);

/* A recipe by name, "simple" or "tpu-flowers", for an output of that size.
 * Errors: NOT_FOUND, naming those that exist. */
SX_MUST_USE sx_status sx_preprocess_recipe(const char *name, int height, int width, int channels,
                                           sx_preprocess *out);

/* INVALID_ARGUMENT, naming the field, for a value out of range. */
SX_MUST_USE sx_status sx_preprocess_check(const sx_preprocess *pre);

/* The constants of step 9; beyond the channels, `out` is 1 and 0. */
void sx_preprocess_affine(const sx_preprocess *pre, sx_affine *out);
/* The top left corner of the evaluation crop (step 3). */
void sx_preprocess_center(const sx_preprocess *pre, int *out_top, int *out_left);

/* Buffers of one thread, reused from call to call; starts as {0}. Once they have grown, nothing is
 * allocated. */
typedef struct sx_preprocess_scratch {
    sx_image decoded, resized; /* resized: float32, for step 5 only */
    sx_resizer resizer;
    const sx_image_limits *limits; /* NULL = sx_image_limits_default */
    bool bytes;                    /* the output is uint8, before step 9 (sx_preprocess_is_whole) */
} sx_preprocess_scratch;

void sx_preprocess_scratch_deinit(sx_preprocess_scratch *scratch);

/* Whether step 9 always gets whole numbers, so that bytes can be kept, and scaled later. `pixels`:
 * the type of the images, uint8 [H, W] or [H, W, C]; NULL = encoded ones, of any size. */
bool sx_preprocess_is_whole(const sx_preprocess *pre, bool training, const sx_type *pixels);

/* Preprocesses an encoded image to `out`, float32 [height, width, channels]. `key` is the key of
 * the random numbers; NULL = evaluation. `pre` must have passed sx_preprocess_check. On failure
 * `out` is undefined. Errors: those of sx_image_decode. */
SX_MUST_USE sx_status sx_preprocess_encoded(const sx_preprocess *pre, sx_bytes encoded,
                                            const sx_augment_key *key,
                                            sx_preprocess_scratch *scratch, void *out);
/* The same from decoded uint8 pixels, starting with step 2. A single channel is repeated if three
 * are needed; any other difference in channels is INVALID_ARGUMENT. */
SX_MUST_USE sx_status sx_preprocess_pixels(const sx_preprocess *pre, const sx_image *pixels,
                                           const sx_augment_key *key,
                                           sx_preprocess_scratch *scratch, void *out);

/* As a JSON object with every field by name (enumerations as text), in a fixed order; the caller
 * owns it. And back: fields that are missing are 0, off, none; the result has been checked.
 * Errors: INVALID_ARGUMENT for an unknown field, a wrong type, an unknown name, a value out of
 * range.
 */
SX_MUST_USE sx_status sx_preprocess_to_json(const sx_preprocess *pre, json_t **out_json);
SX_MUST_USE sx_status sx_preprocess_from_json(const json_t *json, sx_preprocess *out);

#endif
