/* Resizing; the rules are in resize.h.
 *
 * An axis becomes a table of taps, one for each output index of the window:
 *
 *   lower, upper   the two source samples (elements from the row's start, or rows)
 *   lerp           the weight of upper
 *
 * Bilinear runs in two passes over rows: source rows are interpolated along x into two row buffers,
 * which are kept while neighbouring output rows need them, and each output row is a lerp of the
 * two. That is the arithmetic of TensorFlow's one pass, done once per source row.
 *
 * The block:  [ x taps | y taps | row | row | mul | add ]      rows, mul, add: a window row long */
#include "image/resize.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "image/clones.h"

typedef struct tap {
    int32_t lower, upper;
    float lerp;
} tap;

/* Everything that the row functions need. */
typedef struct plan {
    const sx_image *src;
    size_t src_stride; /* elements of a source row */
    int channels;
    int rows, columns; /* of the window */
    size_t row_elems;  /* columns × channels */
    const tap *x, *y;
    int wide_begin, wide_end; /* columns whose taps may be read four elements wide */
    float *row[2];            /* [row_elems + 1]: a three-channel store writes one more */
    const float *mul, *add;   /* [row_elems] */
} plan;

/* ---- the rules ---- */

static float place_half_pixel(int i, float scale)
{
    return ((float)i + 0.5f) * scale - 0.5f;
}

static float place_corner(int i, float scale)
{
    return (float)i * scale;
}

static float place_nearest(int i, float scale)
{
    return floorf(((float)i + 0.5f) * scale);
}

static const struct rule_row {
    const char *name;
    float (*place)(int i, float scale);
} rules[] = {
    [SX_RESIZE_BILINEAR] = {"bilinear", place_half_pixel},
    [SX_RESIZE_BILINEAR_TF1] = {"bilinear-tf1", place_corner},
    [SX_RESIZE_NEAREST] = {"nearest", place_nearest},
};

const char *sx_resize_rule_name(sx_resize_rule rule)
{
    return (size_t)rule < SX_COUNT(rules) ? rules[rule].name : NULL;
}

bool sx_resize_rule_parse(const char *name, sx_resize_rule *out)
{
    for (size_t i = 0; i < SX_COUNT(rules); i++) {
        if (strcmp(rules[i].name, name) == 0) {
            *out = (sx_resize_rule)i;
            return true;
        }
    }
    return false;
}

static int32_t clamp_index(float at, int size)
{
    return at < 0 ? 0 : SX_MIN((int32_t)at, size - 1);
}

/* taps[i] for the full index first + i·step; indices are multiplied by `unit`. */
static void make_taps(const struct rule_row *rule, int src_size, int full_size, int first, int step,
                      int count, int unit, tap *taps)
{
    const float scale = (float)src_size / (float)full_size;
    for (int i = 0; i < count; i++) {
        float at = rule->place(first + i * step, scale);
        float lower = floorf(at);
        taps[i].lower = clamp_index(lower, src_size) * unit;
        taps[i].upper = clamp_index(ceilf(at), src_size) * unit;
        taps[i].lerp = at - lower;
    }
}

/* ---- along x ---- */

/* One source row to one row of the window. */
typedef void row_fn(const plan *p, const void *src, float *out);

#define DEFINE_ROWS(type, suffix)                                                                \
    static void lerp_columns_##suffix(const plan *p, const type *src, int begin, int end,        \
                                      float *out)                                                \
    {                                                                                            \
        for (int i = begin; i < end; i++) {                                                      \
            const tap t = p->x[i];                                                               \
            for (int c = 0; c < p->channels; c++) {                                              \
                float left = src[t.lower + c], right = src[t.upper + c];                         \
                out[i * p->channels + c] = left + (right - left) * t.lerp;                       \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
    static void lerp_row_##suffix(const plan *p, const void *src, float *out)                    \
    {                                                                                            \
        lerp_columns_##suffix(p, src, 0, p->columns, out);                                       \
    }                                                                                            \
    static void pick_row_##suffix(const plan *p, const void *src, float *out)                    \
    {                                                                                            \
        const type *from = src;                                                                  \
        for (int i = 0; i < p->columns; i++) {                                                   \
            for (int c = 0; c < p->channels; c++) {                                              \
                int at = i * p->channels + c;                                                    \
                out[at] = (float)from[p->x[i].lower + c] * p->mul[at] + p->add[at];              \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
    SX_CLONES static void copy_row_##suffix(const plan *p, const void *src, float *restrict out) \
    {                                                                                            \
        const type *from = (const type *)src + p->x[0].lower;                                    \
        for (size_t i = 0; i < p->row_elems; i++) {                                              \
            out[i] = (float)from[i] * p->mul[i] + p->add[i];                                     \
        }                                                                                        \
    }

DEFINE_ROWS(uint8_t, u8)
DEFINE_ROWS(float, f32)

typedef uint8_t bytes4 __attribute__((vector_size(4)));
typedef int32_t ints4 __attribute__((vector_size(16)));
typedef float floats4 __attribute__((vector_size(16)));

static inline __attribute__((always_inline)) floats4 load_pixel(const uint8_t *src)
{
    bytes4 bytes;
    memcpy(&bytes, src, sizeof(bytes));
    return __builtin_convertvector(__builtin_convertvector(bytes, ints4), floats4);
}

/* Three channels as a vector of four: the fourth is the next pixel's first, overwritten by it. */
SX_CLONES static void lerp_wide_u8(const plan *p, const uint8_t *src, float *out)
{
    for (int i = p->wide_begin; i < p->wide_end; i++) {
        const tap t = p->x[i];
        floats4 left = load_pixel(src + t.lower), right = load_pixel(src + t.upper);
        floats4 mixed = left + (right - left) * t.lerp;
        memcpy(out + (size_t)i * 3, &mixed, sizeof(mixed));
    }
}

/* The columns at the edge come after, for the last wide store spills into the first of them. */
static void lerp_row_u8_rgb(const plan *p, const void *src, float *out)
{
    lerp_wide_u8(p, src, out);
    lerp_columns_u8(p, src, 0, p->wide_begin, out);
    lerp_columns_u8(p, src, p->wide_end, p->columns, out);
}

/* Taps run monotonously, so the columns that may be read wide are one range. */
static void find_wide_columns(plan *p)
{
    const int32_t last = (int32_t)p->src_stride - 4;
    int begin = 0, end = p->columns;
    while (begin < end && p->x[begin].upper > last) {
        begin++;
    }
    while (end > begin && p->x[end - 1].upper > last) {
        end--;
    }
    p->wide_begin = begin;
    p->wide_end = end;
}

/* ---- along y ---- */

SX_CLONES static void mix_rows(const plan *p, const float *restrict top,
                               const float *restrict bottom, float lerp, float *restrict out)
{
    const float *restrict mul = p->mul, *restrict add = p->add;
    for (size_t i = 0; i < p->row_elems; i++) {
        out[i] = (top[i] + (bottom[i] - top[i]) * lerp) * mul[i] + add[i];
    }
}

static const void *source_row(const plan *p, int row)
{
    size_t bytes = p->src->dtype == SX_U8 ? 1 : sizeof(float);
    return (const char *)p->src->pixels + (size_t)row * p->src_stride * bytes;
}

static void resize_bilinear(plan *p, row_fn *lerp_row, float *out)
{
    int held[2] = {-1, -1}; /* which source row is in row[0], row[1] */
    for (int y = 0; y < p->rows; y++) {
        const tap t = p->y[y];
        if (held[1] == t.lower) {
            float *spare = p->row[0];
            p->row[0] = p->row[1];
            p->row[1] = spare;
            held[1] = held[0];
            held[0] = t.lower;
        }
        if (held[0] != t.lower) {
            lerp_row(p, source_row(p, t.lower), p->row[0]);
            held[0] = t.lower;
        }
        if (t.upper != t.lower && held[1] != t.upper) {
            lerp_row(p, source_row(p, t.upper), p->row[1]);
            held[1] = t.upper;
        }
        mix_rows(p, p->row[0], t.upper == t.lower ? p->row[0] : p->row[1], t.lerp, out);
        out += p->row_elems;
    }
}

static void resize_pick(const plan *p, row_fn *pick_row, float *out)
{
    for (int y = 0; y < p->rows; y++) {
        pick_row(p, source_row(p, p->y[y].lower), out);
        out += p->row_elems;
    }
}

/* ---- set-up ---- */

static sx_status check_args(const sx_image *src, const sx_resize_args *args)
{
    int height = args->height, width = args->width;
    if (src->channels < 1 || src->channels > SX_IMAGE_MAX_CHANNELS) {
        return sx_error(SX_INVALID_ARGUMENT, "resize: image of %d channels; expected 1 to %d",
                        src->channels, SX_IMAGE_MAX_CHANNELS);
    }
    if (src->height < 1 || src->width < 1 || height < 1 || width < 1 ||
        height > SX_RESIZE_MAX_SIDE || width > SX_RESIZE_MAX_SIDE ||
        (size_t)args->rule >= SX_COUNT(rules)) {
        return sx_error(SX_INVALID_ARGUMENT, "resize: from %dx%d to %dx%d; sides go from 1 to %d",
                        src->height, src->width, height, width, SX_RESIZE_MAX_SIDE);
    }
    if (args->top < 0 || args->left < 0 || args->window_height < 1 || args->window_width < 1 ||
        args->window_height > height - args->top || args->window_width > width - args->left) {
        return sx_error(
            SX_INVALID_ARGUMENT, "resize: a window of %dx%d at (%d, %d) does not lie within %dx%d",
            args->window_height, args->window_width, args->top, args->left, height, width);
    }
    return SX_OK;
}

static sx_resize_args resolve(const sx_image *src, const sx_resize_args *args)
{
    sx_resize_args a = *args;
    a.height = a.height != 0 ? a.height : src->height;
    a.width = a.width != 0 ? a.width : src->width;
    a.window_height = a.window_height != 0 ? a.window_height : a.height - a.top;
    a.window_width = a.window_width != 0 ? a.window_width : a.width - a.left;
    return a;
}

static sx_status reserve(sx_resizer *resizer, size_t bytes)
{
    if (bytes <= resizer->capacity_bytes) {
        return SX_OK;
    }
    void *block = sx_alloc_aligned(bytes, 64);
    if (block == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "resize: out of memory for tables of %zu bytes",
                        bytes);
    }
    sx_resizer_deinit(resizer);
    resizer->block = block;
    resizer->capacity_bytes = bytes;
    return SX_OK;
}

static void fill_affine(const plan *p, const sx_affine *affine, float *mul, float *add)
{
    for (size_t i = 0; i < p->row_elems; i++) {
        size_t c = i % (size_t)p->channels;
        mul[i] = affine != NULL ? affine->mul[c] : 1.0f;
        add[i] = affine != NULL ? affine->add[c] : 0.0f;
    }
}

static sx_status make_plan(sx_resizer *resizer, const sx_image *src, const sx_resize_args *a,
                           plan *p)
{
    *p = (plan){.src = src,
                .src_stride = (size_t)src->width * (size_t)src->channels,
                .channels = src->channels,
                .rows = a->window_height,
                .columns = a->window_width,
                .row_elems = (size_t)a->window_width * (size_t)src->channels};
    const size_t x_bytes = sx_align_up((size_t)p->columns * sizeof(tap), 64);
    const size_t y_bytes = sx_align_up((size_t)p->rows * sizeof(tap), 64);
    const size_t row_bytes = sx_align_up((p->row_elems + 1) * sizeof(float), 64);
    SX_TRY(reserve(resizer, x_bytes + y_bytes + 4 * row_bytes));
    char *block = resizer->block;
    tap *x = (tap *)block, *y = (tap *)(block + x_bytes);
    float *rows[4];
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        rows[i] = (float *)(block + x_bytes + y_bytes + i * row_bytes);
    }
    const struct rule_row *rule = &rules[a->rule];
    int first = a->flip ? a->left + a->window_width - 1 : a->left;
    make_taps(rule, src->width, a->width, first, a->flip ? -1 : 1, p->columns, src->channels, x);
    make_taps(rule, src->height, a->height, a->top, 1, p->rows, 1, y);
    fill_affine(p, a->affine, rows[2], rows[3]);
    p->x = x;
    p->y = y;
    p->row[0] = rows[0];
    p->row[1] = rows[1];
    p->mul = rows[2];
    p->add = rows[3];
    find_wide_columns(p);
    return SX_OK;
}

sx_status sx_resize(sx_resizer *resizer, const sx_image *src, const sx_resize_args *args,
                    float *out)
{
    assert(src->dtype == SX_U8 || src->dtype == SX_F32);
    const bool bytes = src->dtype == SX_U8;
    const sx_resize_args a = resolve(src, args);
    SX_TRY(check_args(src, &a));
    plan p;
    SX_TRY(make_plan(resizer, src, &a, &p));
    const bool same = a.height == src->height && a.width == src->width;
    if (same && !a.flip) {
        resize_pick(&p, bytes ? copy_row_u8 : copy_row_f32, out);
    } else if (same || a.rule == SX_RESIZE_NEAREST) {
        resize_pick(&p, bytes ? pick_row_u8 : pick_row_f32, out);
    } else {
        row_fn *lerp_u8 = src->channels == 3 ? lerp_row_u8_rgb : lerp_row_u8;
        resize_bilinear(&p, bytes ? lerp_u8 : lerp_row_f32, out);
    }
    return SX_OK;
}

void sx_resizer_deinit(sx_resizer *resizer)
{
    sx_free_aligned(resizer->block);
    *resizer = (sx_resizer){0};
}
