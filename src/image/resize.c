/* Resizing; see resize.h for the methods.
 *
 * An axis becomes a table of taps, one for each output index of the window:
 *
 *   lower, upper   the two source samples (elements from the row's start, or rows)
 *   lerp           the weight of upper; 0 where upper = lower, which changes no bit of the result
 *
 * A source row passes through three buffers; each step is a loop over contiguous floats:
 *
 *   source row --load--> wide --along x--> row[0] or row[1] --along y, scale--> out
 *
 * Along x, upper is either lower or the next pixel. `wide` ends with a copy of its last pixel, so
 * the loops along x read lower and lower + channels and do not need upper.
 *
 * The two rows resized along x are kept as long as output rows need them. The arithmetic is that of
 * TensorFlow's single pass, but done once per source row.
 *
 * All tables are in one block; row, mul and add have the length of a window row:
 *
 *   [ x taps | y taps | wide | row | row | mul | add ] */
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

/* Buffers are longer by SLACK floats: `wide` for the copy of the last pixel, and all of them so
 * that three channels can be read and written as a vector of four. */
enum { SLACK = SX_IMAGE_MAX_CHANNELS + 4 };

/* The arguments of the row functions. */
typedef struct plan {
    const sx_image *src;
    size_t src_stride; /* elements of a source row */
    int channels;
    int rows, columns; /* of the window */
    size_t row_elems;  /* columns × channels */
    const tap *x, *y;
    float *wide;            /* [src_stride]: a source row as floats */
    float *row[2];          /* [row_elems]: source rows resized along x */
    int held[2];            /* their source rows; -1 = none */
    const float *mul, *add; /* [row_elems] */
} plan;

/* ---- Methods ---- */

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
        taps[i].lerp = taps[i].upper != taps[i].lower ? at - lower : 0.0f;
    }
}

/* ---- Converting a source row to floats ---- */

SX_CLONES static void widen(const uint8_t *restrict src, size_t count, float *restrict out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = (float)src[i];
    }
}

static void load_row(plan *p, int row)
{
    const size_t at = (size_t)row * p->src_stride, n = (size_t)p->channels;
    if (p->src->dtype == SX_U8) {
        widen((const uint8_t *)p->src->pixels + at, p->src_stride, p->wide);
    } else {
        memcpy(p->wide, (const float *)p->src->pixels + at, p->src_stride * sizeof(float));
    }
    memcpy(p->wide + p->src_stride, p->wide + p->src_stride - n, n * sizeof(float));
}

/* ---- Along x: from p->wide to a window row ---- */

typedef void row_fn(const plan *p, float *out);

/* Three channels as a vector of four; the next pixel overwrites the fourth. */
typedef float floats4 __attribute__((vector_size(16)));

static inline __attribute__((always_inline)) floats4 load4(const float *src)
{
    floats4 x;
    memcpy(&x, src, sizeof(x));
    return x;
}

SX_CLONES static void lerp_rgb(const plan *p, float *out)
{
    const float *wide = p->wide;
    for (const tap *x = p->x, *end = p->x + p->columns; x < end; x++, out += 3) {
        const floats4 left = load4(wide + x->lower), right = load4(wide + x->lower + 3);
        const floats4 mixed = left + (right - left) * x->lerp;
        memcpy(out, &mixed, sizeof(mixed));
    }
}

static void lerp_any(const plan *p, float *out)
{
    for (int i = 0; i < p->columns; i++) {
        const float *left = p->wide + p->x[i].lower, *right = left + p->channels;
        for (int c = 0; c < p->channels; c++) {
            *out++ = left[c] + (right[c] - left[c]) * p->x[i].lerp;
        }
    }
}

static void pick_rgb(const plan *p, float *out)
{
    for (int i = 0; i < p->columns; i++, out += 3) {
        memcpy(out, p->wide + p->x[i].lower, 16);
    }
}

static void pick_any(const plan *p, float *out)
{
    for (int i = 0; i < p->columns; i++) {
        for (int c = 0; c < p->channels; c++) {
            *out++ = p->wide[p->x[i].lower + c];
        }
    }
}

/* Neither resized nor mirrored. */
static void copy_row(const plan *p, float *out)
{
    memcpy(out, p->wide + p->x[0].lower, p->row_elems * sizeof(float));
}

static row_fn *choose_row_fn(const plan *p, const sx_resize_args *a)
{
    static row_fn *const functions[2][2] = {{lerp_any, lerp_rgb}, {pick_any, pick_rgb}};
    const bool same = a->height == p->src->height && a->width == p->src->width;
    if (same && !a->flip) {
        return copy_row;
    }
    return functions[same || a->rule == SX_RESIZE_NEAREST][p->channels == 3];
}

/* ---- Along y ---- */

SX_CLONES static void mix_rows(const plan *p, const float *restrict top,
                               const float *restrict bottom, float lerp, float *restrict out)
{
    const float *restrict mul = p->mul, *restrict add = p->add;
    for (size_t i = 0; i < p->row_elems; i++) {
        out[i] = (top[i] + (bottom[i] - top[i]) * lerp) * mul[i] + add[i];
    }
}

SX_CLONES static void scale_row(const plan *p, const float *restrict row, float *restrict out)
{
    const float *restrict mul = p->mul, *restrict add = p->add;
    for (size_t i = 0; i < p->row_elems; i++) {
        out[i] = row[i] * mul[i] + add[i];
    }
}

/* Loads source row `row` into p->row[slot]. */
static void hold_row(plan *p, int slot, int row, row_fn *along_x)
{
    if (p->held[slot] != row) {
        load_row(p, row);
        along_x(p, p->row[slot]);
        p->held[slot] = row;
    }
}

static void swap_rows(plan *p)
{
    float *row = p->row[0];
    int held = p->held[0];
    p->row[0] = p->row[1];
    p->held[0] = p->held[1];
    p->row[1] = row;
    p->held[1] = held;
}

static void resize_rows(plan *p, row_fn *along_x, float *out)
{
    for (int y = 0; y < p->rows; y++, out += p->row_elems) {
        const tap t = p->y[y];
        if (p->held[1] == t.lower) {
            swap_rows(p);
        }
        hold_row(p, 0, t.lower, along_x);
        if (t.lerp == 0) {
            scale_row(p, p->row[0], out);
        } else {
            hold_row(p, 1, t.upper, along_x);
            mix_rows(p, p->row[0], p->row[1], t.lerp, out);
        }
    }
}

/* ---- Set-up ---- */

static sx_status check_args(const sx_image *src, const sx_resize_args *args)
{
    int height = args->height, width = args->width;
    if (src->channels < 1 || src->channels > SX_IMAGE_MAX_CHANNELS) {
        return sx_error(SX_INVALID_ARGUMENT, "resize: expected 1 to %d channels; got %d",
                        SX_IMAGE_MAX_CHANNELS, src->channels);
    }
    if (src->height < 1 || src->width < 1 || height < 1 || width < 1 ||
        height > SX_RESIZE_MAX_SIDE || width > SX_RESIZE_MAX_SIDE ||
        (size_t)args->rule >= SX_COUNT(rules)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "resize: cannot resize %dx%d to %dx%d; height and width must be 1 to %d",
                        src->height, src->width, height, width, SX_RESIZE_MAX_SIDE);
    }
    if (args->top < 0 || args->left < 0 || args->window_height < 1 || args->window_width < 1 ||
        args->window_height > height - args->top || args->window_width > width - args->left) {
        return sx_error(SX_INVALID_ARGUMENT, "resize: window %dx%d at (%d, %d) is outside %dx%d",
                        args->window_height, args->window_width, args->top, args->left, height,
                        width);
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
        return sx_no_memory("for resize tables of %zu bytes", bytes);
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

static void *take(char **at, size_t bytes)
{
    void *taken = *at;
    *at += bytes;
    return taken;
}

static sx_status make_plan(sx_resizer *resizer, const sx_image *src, const sx_resize_args *a,
                           plan *p)
{
    *p = (plan){.src = src,
                .src_stride = (size_t)src->width * (size_t)src->channels,
                .channels = src->channels,
                .rows = a->window_height,
                .columns = a->window_width,
                .row_elems = (size_t)a->window_width * (size_t)src->channels,
                .held = {-1, -1}};
    const size_t x_bytes = sx_align_up((size_t)p->columns * sizeof(tap), 64);
    const size_t y_bytes = sx_align_up((size_t)p->rows * sizeof(tap), 64);
    const size_t wide_bytes = sx_align_up((p->src_stride + SLACK) * sizeof(float), 64);
    const size_t row_bytes = sx_align_up((p->row_elems + SLACK) * sizeof(float), 64);
    SX_TRY(reserve(resizer, x_bytes + y_bytes + wide_bytes + 4 * row_bytes));
    char *at = resizer->block;
    tap *x = take(&at, x_bytes), *y = take(&at, y_bytes);
    p->wide = take(&at, wide_bytes);
    p->row[0] = take(&at, row_bytes);
    p->row[1] = take(&at, row_bytes);
    float *mul = take(&at, row_bytes), *add = take(&at, row_bytes);
    const struct rule_row *rule = &rules[a->rule];
    int first = a->flip ? a->left + a->window_width - 1 : a->left;
    make_taps(rule, src->width, a->width, first, a->flip ? -1 : 1, p->columns, src->channels, x);
    make_taps(rule, src->height, a->height, a->top, 1, p->rows, 1, y);
    fill_affine(p, a->affine, mul, add);
    memset(p->wide + p->src_stride, 0, SLACK * sizeof(float));
    p->x = x;
    p->y = y;
    p->mul = mul;
    p->add = add;
    return SX_OK;
}

sx_status sx_resize(sx_resizer *resizer, const sx_image *src, const sx_resize_args *args,
                    float *out)
{
    assert(src->dtype == SX_U8 || src->dtype == SX_F32);
    const sx_resize_args a = resolve(src, args);
    SX_TRY(check_args(src, &a));
    plan p;
    SX_TRY(make_plan(resizer, src, &a, &p));
    resize_rows(&p, choose_row_fn(&p, &a), out);
    return SX_OK;
}

void sx_resizer_deinit(sx_resizer *resizer)
{
    sx_free_aligned(resizer->block);
    *resizer = (sx_resizer){0};
}
