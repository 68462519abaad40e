/* sample_distorted_bounding_box: a part of an image that covers enough of one of its boxes, as a
 * function of a key and a counter, the same as TensorFlow's. No gradient.
 *
 *   image_size          integers [3]: height, width, channels
 *   bounding_boxes      float32 [images, boxes, 4]: y_min, x_min, y_max, x_max, each in [0, 1]
 *   min_object_covered  float32 scalar, not negative: the share of a box that the part must cover
 *   key, counter        as in random_stream.h
 *   aspect_ratio        float32 [2]: the least and the greatest width / height of the part
 *   area                float32 [2]: the least and the greatest share of the image, in (0, 1]
 *   max_attempts        parts that are drawn; if none will do, the result is the whole image
 *   use_image_if_no_bounding_boxes   without boxes, the image is one
 *   returns             begin and size of image_size's dtype [3], as slice() takes them, and the
 *                       part as a box, float32 [1, 1, 4]
 *
 * Errors   INVALID_ARGUMENT  attributes, shapes, dtypes; (running) sizes, boxes, no boxes
 * Source   TensorFlow StatelessSampleDistortedBoundingBox, SampleDistortedBoundingBoxV2 */
#ifdef SX_ATTRS
typedef struct sx_sample_distorted_bounding_box_attrs {
    int64_t max_attempts;
    bool use_image_if_no_bounding_boxes;
} sx_sample_distorted_bounding_box_attrs;
#endif

#include "graph/ops/random_stream.h"

#include <math.h>

static const sx_attr_def sample_distorted_bounding_box_attrs[] = {
    SX_ATTR(sx_sample_distorted_bounding_box_attrs, max_attempts, SX_ATTR_INT),
    SX_ATTR(sx_sample_distorted_bounding_box_attrs, use_image_if_no_bounding_boxes, SX_ATTR_BOOL),
};

enum { IMAGE_SIZE, BOXES, COVERED, KEY, COUNTER, ASPECT_RATIO, AREA, INPUTS };

static sx_status sample_distorted_bounding_box_infer(sx_infer_context *c)
{
    const sx_sample_distorted_bounding_box_attrs *a = c->attrs;
    const sx_dtype d = c->inputs[IMAGE_SIZE].dtype;
    if (!sx_dtype_is_integer(d) || d == SX_U64 || a->max_attempts < 1) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "image_size is %s and max_attempts %lld, expected integers and 1 or more",
                        SX_TEXT(&c->inputs[IMAGE_SIZE]), (long long)a->max_attempts);
    }
    SX_TRY(sx_require_maybe("image_size", &c->inputs[IMAGE_SIZE], d, 1, "[3]"));
    SX_TRY(sx_require_maybe("bounding_boxes", &c->inputs[BOXES], SX_F32, 3, "[images, boxes, 4]"));
    SX_TRY(sx_require_maybe("min_object_covered", &c->inputs[COVERED], SX_F32, 0, "a scalar"));
    SX_TRY(sx_require_maybe("key", &c->inputs[KEY], SX_U64, 1, "[1]"));
    SX_TRY(sx_require_maybe("counter", &c->inputs[COUNTER], SX_U64, 1, "[2]"));
    SX_TRY(sx_require_maybe("aspect_ratio", &c->inputs[ASPECT_RATIO], SX_F32, 1, "[2]"));
    SX_TRY(sx_require_maybe("area", &c->inputs[AREA], SX_F32, 1, "[2]"));
    c->outputs[0] = sx_type_of(d, 3);
    c->outputs[1] = sx_type_of(d, 3);
    c->outputs[2] = sx_type_of(SX_F32, 1, 1, 4);
    return SX_OK;
}

static sx_status sample_distorted_bounding_box_host_types(const sx_kernel_call *c,
                                                          sx_type *out_types)
{
    static const struct {
        int input;
        int64_t size;
    } of[] = {{IMAGE_SIZE, 3}, {KEY, 1}, {COUNTER, 2}, {ASPECT_RATIO, 2}, {AREA, 2}};
    for (size_t i = 0; i < SX_COUNT(of); i++) {
        if (c->in[of[i].input].type.dims[0] != of[i].size) {
            return sx_error(SX_INVALID_ARGUMENT, "input %d is %s, expected [%lld]", of[i].input,
                            SX_TEXT(&c->in[of[i].input].type), (long long)of[i].size);
        }
    }
    if (c->in[BOXES].type.dims[2] != 4) {
        return sx_error(SX_INVALID_ARGUMENT, "bounding_boxes are %s, expected [images, boxes, 4]",
                        SX_TEXT(&c->in[BOXES].type));
    }
    out_types[0] = sx_type_of(c->in[IMAGE_SIZE].type.dtype, 3);
    out_types[1] = out_types[0];
    out_types[2] = sx_type_of(SX_F32, 1, 1, 4);
    return SX_OK;
}

/* In pixels; max is outside. */
typedef struct box {
    int64_t y_min, x_min, y_max, x_max;
} box;

static float area_of(const box *b)
{
    return (float)((b->x_max - b->x_min) * (b->y_max - b->y_min));
}

static float area_of_both(const box *a, const box *b)
{
    const box both = {SX_MAX(a->y_min, b->y_min), SX_MAX(a->x_min, b->x_min),
                      SX_MIN(a->y_max, b->y_max), SX_MIN(a->x_max, b->x_max)};
    return both.x_min > both.x_max || both.y_min > both.y_max ? 0 : area_of(&both);
}

static bool covers_one(const box *part, const box *boxes, int64_t n, float share)
{
    for (int64_t i = 0; i < n && area_of(part) >= 1; i++) {
        const float area = area_of(&boxes[i]);
        if (area >= 1 && area_of_both(part, &boxes[i]) / area >= share) {
            return true;
        }
    }
    return false;
}

static int64_t width_of(int64_t height, float ratio)
{
    return lrintf((float)height * ratio);
}

/* Draws the height and the place of a part with that ratio; false: none fits. In float32, as the
 * part depends on how these numbers are rounded. */
static bool draw_part(sx_random_words *r, const box *image, float least, float most, float ratio,
                      box *out)
{
    const int64_t rows = image->y_max, columns = image->x_max;
    if (rows < 1 || columns < 1 || least > most) {
        return false;
    }
    const float least_area = least * (float)columns * (float)rows,
                most_area = most * (float)columns * (float)rows;
    int64_t height = lrintf(sqrtf(least_area / ratio)), tallest = lrintf(sqrtf(most_area / ratio));
    if (width_of(tallest, ratio) > columns) {
        static const float just_below = 0.0000001f;
        tallest = (int64_t)(((double)columns + 0.5 - (double)just_below) / (double)ratio);
        tallest -= width_of(tallest, ratio) > columns;
    }
    tallest = SX_MIN(tallest, rows);
    height = SX_MIN(height, tallest);
    if (height < tallest) {
        height += (int64_t)sx_random_below(r, (uint64_t)(tallest - height) + 1, false);
    }
    /* what rounding did to the area is mended by a row */
    int64_t width = width_of(height, ratio);
    float area = (float)(width * height);
    if (area < least_area) {
        height++;
        width = width_of(height, ratio);
        area = (float)(width * height);
    }
    if (area > most_area) {
        height--;
        width = width_of(height, ratio);
        area = (float)(width * height);
    }
    if (area < least_area || area > most_area || width > columns || height > rows || width < 1 ||
        height < 1) {
        return false;
    }
    const int64_t y =
        height < rows ? (int64_t)sx_random_below(r, (uint64_t)(rows - height), false) : 0;
    const int64_t x =
        width < columns ? (int64_t)sx_random_below(r, (uint64_t)(columns - width), false) : 0;
    *out = (box){y, x, y + height, x + width};
    return true;
}

static sx_status read_boxes(const sx_kernel_call *c, const box *image, box *out)
{
    const int64_t n = sx_type_elems(&c->in[BOXES].type) / 4;
    for (int64_t i = 0; i < n; i++) {
        const double *v = &c->in[BOXES].f[4 * i];
        for (int k = 0; k < 4; k++) {
            if (!(v[k] >= 0 && v[k] <= 1)) {
                return sx_error(SX_INVALID_ARGUMENT, "box %lld has %g, expected 0 to 1",
                                (long long)i, v[k]);
            }
        }
        const float rows = (float)image->y_max, columns = (float)image->x_max;
        out[i] = (box){(int64_t)((float)v[0] * rows), (int64_t)((float)v[1] * columns),
                       (int64_t)((float)v[2] * rows), (int64_t)((float)v[3] * columns)};
    }
    return SX_OK;
}

static sx_status sample_distorted_bounding_box_host(const sx_kernel_call *c)
{
    const sx_sample_distorted_bounding_box_attrs *a = c->attrs;
    const int64_t *sizes = c->in[IMAGE_SIZE].i;
    const float covered = (float)c->in[COVERED].f[0];
    const float ratios[] = {(float)c->in[ASPECT_RATIO].f[0], (float)c->in[ASPECT_RATIO].f[1]},
                areas[] = {(float)c->in[AREA].f[0], (float)c->in[AREA].f[1]};
    const uint64_t key = c->in[KEY].u[0], low = c->in[COUNTER].u[0], high = c->in[COUNTER].u[1];
    int64_t n = sx_type_elems(&c->in[BOXES].type) / 4;
    for (int i = 0; i < 2; i++) {
        if (!(ratios[i] > 0) || !(areas[i] > 0) || !(areas[i] <= 1) || sizes[i] < 0 ||
            sizes[i] >= INT32_MAX) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "number %d of aspect_ratio is %g, of area %g, of image_size %lld, "
                            "expected above 0, above 0 to 1, and 0 to 2^31 - 2",
                            i, (double)ratios[i], (double)areas[i], (long long)sizes[i]);
        }
    }
    if (!(covered >= 0) || (n == 0 && !a->use_image_if_no_bounding_boxes)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "min_object_covered is %g for %lld boxes, expected 0 or more, and a box "
                        "or use_image_if_no_bounding_boxes",
                        (double)covered, (long long)n);
    }
    const box image = {0, 0, sizes[0], sizes[1]};
    box *boxes = sx_arena_array(c->arena, n + 1, box);
    if (boxes == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    SX_TRY(read_boxes(c, &image, boxes));
    if (n == 0) {
        boxes[n++] = image;
    }
    sx_random_words r = {.stream = {.key = {(uint32_t)key, (uint32_t)(key >> 32)},
                                    .counter = {(uint32_t)low, (uint32_t)(low >> 32),
                                                (uint32_t)high, (uint32_t)(high >> 32)}}};
    box part = image;
    bool found = false;
    for (int64_t i = 0; i < a->max_attempts && !found; i++) {
        if (i % 1024 == 0) {
            SX_TRY(sx_cancel_check(c->cancel));
        }
        const float u = (float)sx_random_float(sx_random_word(&r)),
                    ratio = u * (ratios[1] - ratios[0]) + ratios[0];
        found = draw_part(&r, &image, areas[0], areas[1], ratio, &part) &&
                covers_one(&part, boxes, n, covered);
    }
    part = found ? part : image;
    const int64_t begin[] = {part.y_min, part.x_min, 0},
                  size[] = {part.y_max - part.y_min, part.x_max - part.x_min, -1};
    for (int k = 0; k < 3; k++) {
        c->out[0].i[k] = begin[k];
        c->out[1].i[k] = size[k];
    }
    c->out[2].f[0] = (double)((float)part.y_min / (float)sizes[0]);
    c->out[2].f[1] = (double)((float)part.x_min / (float)sizes[1]);
    c->out[2].f[2] = (double)((float)part.y_max / (float)sizes[0]);
    c->out[2].f[3] = (double)((float)part.x_max / (float)sizes[1]);
    return SX_OK;
}

const sx_op_def sx_op_sample_distorted_bounding_box = {
    SX_OP_NAMED(sample_distorted_bounding_box),
    .n_in = INPUTS,
    .n_out = 3,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_sample_distorted_bounding_box_attrs, sample_distorted_bounding_box_attrs),
    .infer = sample_distorted_bounding_box_infer,
    .host = sample_distorted_bounding_box_host,
    .host_types = sample_distorted_bounding_box_host_types,
};
