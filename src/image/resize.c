/* Resizing; see resize.h for the methods.
 *
 * An axis becomes a table of taps, one for each output index of the window:
 *
 *   lower, upper   the two source samples, counted from the first that is needed (elements from the
 *                  row's start, or rows)
 *   lerp           the weight of upper; 0 where upper = lower, which changes no bit of the result
 *
 * Source rows come from the top down. Those that an output row needs pass through two buffers:
 *
 *   source row --along x--> row[0] or row[1] --along y, scale--> out
 *
 * row[1] is of the newest such source row, row[0] of the one before it, which is kept since an
 * output row may lie between the two. The arithmetic is that of TensorFlow's single pass, but done
 * once per source row.
 *
 * All tables are in one block; row, mul and add have the length of a window row:
 *
 *   [ plan | x taps | y taps | groups | row | row | mul | add ] */
#include "image/resize.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/checked.h"
#include "base/memory.h"
#include "base/clones.h"

typedef struct tap {
    int32_t lower, upper;
    float lerp;
} tap;

/* Rows are longer by SLACK floats, so that three channels can be written as a vector of four, and
 * the last group of a row as a whole one. */
enum {
    GROUP = 16,  /* elements of a row */
    WINDOW = 64, /* bytes of the source that they are made of */
    SLACK = GROUP,
    FAST_ELEMS =
        16, /* read from a column's lower sample on, where columns are computed in vectors */
};

/* Elements that lie side by side, of sources in a window. `left` and `right` are the places in it,
 * in each fourth byte. */
typedef struct group {
    uint8_t left[4 * GROUP], right[4 * GROUP];
    float lerp[GROUP];
    int32_t first; /* of the window, in the row */
    uint8_t unused[60];
} group;

struct plan;
typedef void row_fn(const struct plan *p, const void *src, float *out);

typedef struct plan {
    sx_dtype dtype;
    int channels;
    int rows, columns; /* of the window */
    size_t row_elems;  /* columns × channels */
    const tap *x, *y;
    const group *groups; /* of x, if lerp_groups() computes it */
    int n_groups;
    int fast_from, fast_to; /* columns whose FAST_ELEMS are within the row */
    row_fn *along_x;
    bool direct;            /* neither resized nor mirrored */
    bool bytes;             /* out is uint8 */
    float *row[2];          /* [row_elems] */
    const float *mul, *add; /* [row_elems] */
    char *out;
    size_t out_row_bytes;
    int source_row; /* that comes next */
    int held;       /* the source row in row[1]; -1 = none */
    int output_row; /* that is written next */
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

/* taps[i] for the full index first + i·step. */
static void make_taps(const struct rule_row *rule, int src_size, int full_size, int first, int step,
                      int count, tap *taps)
{
    const float scale = (float)src_size / (float)full_size;
    for (int i = 0; i < count; i++) {
        float at = rule->place(first + i * step, scale);
        float lower = floorf(at);
        taps[i].lower = clamp_index(lower, src_size);
        taps[i].upper = clamp_index(ceilf(at), src_size);
        taps[i].lerp = taps[i].upper != taps[i].lower ? at - lower : 0.0f;
    }
}

/* The taps count from their first sample, in elements of `unit`. Returns the number of samples that
 * they need, and the first of them. */
static int rebase_taps(tap *taps, int count, int unit, int *out_first)
{
    const tap *low = &taps[0],
              *high = &taps[count - 1]; /* one of them is mirrored: the ends swap */
    const int first = SX_MIN(low->lower, high->lower);
    const int last = SX_MAX(low->upper, high->upper);
    for (int i = 0; i < count; i++) {
        taps[i].lower = (taps[i].lower - first) * unit;
        taps[i].upper = (taps[i].upper - first) * unit;
    }
    *out_first = first;
    return last - first + 1;
}

/* ---- Along x: from a source row to a window row ---- */

static inline __attribute__((always_inline)) float load(const plan *p, const void *src, int at)
{
    return p->dtype == SX_U8 ? (float)((const uint8_t *)src)[at] : ((const float *)src)[at];
}

static inline __attribute__((always_inline)) void lerp_columns(const plan *p, const void *src,
                                                               int from, int to, float *out)
{
    out += from * p->channels;
    for (const tap *x = p->x + from; x < p->x + to; x++) {
        for (int c = 0; c < p->channels; c++) {
            const float left = load(p, src, x->lower + c), right = load(p, src, x->upper + c);
            *out++ = left + (right - left) * x->lerp;
        }
    }
}

static void lerp_any(const plan *p, const void *src, float *out)
{
    lerp_columns(p, src, 0, p->columns, out);
}

#if defined(__x86_64__)

/* Three channels of uint8. Two output pixels at a time: each half of a vector has the source from
 * the lower sample on, of which three bytes become the left floats and three the right ones; the
 * next pixel overwrites the fourth float. Where upper = lower, what follows lower is multiplied by
 * 0. */
__attribute__((target("avx2"))) static void lerp_rgb_avx2(const plan *p, const void *src,
                                                          float *out)
{
    const __m256i lefts = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, -1, -1, -1, -1));
    const __m256i rights = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(3, -1, -1, -1, 4, -1, -1, -1, 5, -1, -1, -1, -1, -1, -1, -1));
    const uint8_t *bytes = src;
    const int end = p->fast_to - (p->fast_to - p->fast_from) % 2;
    lerp_columns(p, src, 0, p->fast_from, out);
    for (int i = p->fast_from; i < end; i += 2) {
        const tap *x = p->x + i;
        float *to = out + i * 3;
        const __m256i both = _mm256_inserti128_si256(
            _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(bytes + x[0].lower))),
            _mm_loadu_si128((const __m128i *)(bytes + x[1].lower)), 1);
        const __m256 lerp = _mm256_insertf128_ps(
            _mm256_castps128_ps256(_mm_broadcast_ss(&x[0].lerp)), _mm_broadcast_ss(&x[1].lerp), 1);
        const __m256 left = _mm256_cvtepi32_ps(_mm256_shuffle_epi8(both, lefts));
        const __m256 right = _mm256_cvtepi32_ps(_mm256_shuffle_epi8(both, rights));
        const __m256 mixed = _mm256_add_ps(left, _mm256_mul_ps(_mm256_sub_ps(right, left), lerp));
        _mm_storeu_ps(to, _mm256_castps256_ps128(mixed));
        _mm_storeu_ps(to + 3, _mm256_extractf128_ps(mixed, 1));
    }
    lerp_columns(p, src, end, p->columns, out);
}

/* Any channels of uint8: the bytes of sixteen elements are picked from a window as integers of four
 * bytes. */
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) static void
lerp_groups(const plan *p, const void *src, float *out)
{
    const __mmask64 low_bytes = 0x1111111111111111;
    for (const group *g = p->groups; g < p->groups + p->n_groups; g++, out += GROUP) {
        const __m512i window = _mm512_loadu_si512((const uint8_t *)src + g->first);
        const __m512 left = _mm512_cvtepi32_ps(
            _mm512_maskz_permutexvar_epi8(low_bytes, _mm512_load_si512(g->left), window));
        const __m512 right = _mm512_cvtepi32_ps(
            _mm512_maskz_permutexvar_epi8(low_bytes, _mm512_load_si512(g->right), window));
        const __m512 lerp = _mm512_load_ps(g->lerp);
        _mm512_storeu_ps(out, _mm512_add_ps(left, _mm512_mul_ps(_mm512_sub_ps(right, left), lerp)));
    }
}

static row_fn *choose_groups(void)
{
    return __builtin_cpu_supports("avx512vbmi") ? lerp_groups : NULL;
}

static row_fn *fast_lerp_rgb(void)
{
    return __builtin_cpu_supports("avx2") ? lerp_rgb_avx2 : lerp_any;
}

#else

static row_fn *choose_groups(void)
{
    return NULL;
}

static row_fn *fast_lerp_rgb(void)
{
    return lerp_any;
}

#endif

static void pick_any(const plan *p, const void *src, float *out)
{
    for (int i = 0; i < p->columns; i++) {
        for (int c = 0; c < p->channels; c++) {
            *out++ = load(p, src, p->x[i].lower + c);
        }
    }
}

/* Of the source's width and not mirrored. */
SX_CLONES static void copy_row(const plan *p, const void *src, float *out)
{
    if (p->dtype != SX_U8) {
        memcpy(out, src, p->row_elems * sizeof(float));
        return;
    }
    const uint8_t *bytes = src;
    for (size_t i = 0; i < p->row_elems; i++) {
        out[i] = (float)bytes[i];
    }
}

/* ---- Along y ---- */

SX_CLONES static void mix_rows(const plan *p, float lerp, float *restrict out)
{
    const float *restrict top = p->row[0], *restrict bottom = p->row[1];
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

SX_CLONES static void scale_bytes(const plan *p, const uint8_t *restrict row, float *restrict out)
{
    const float *restrict mul = p->mul, *restrict add = p->add;
    for (size_t i = 0; i < p->row_elems; i++) {
        out[i] = (float)row[i] * mul[i] + add[i];
    }
}

SX_CLONES static void narrow_row(const plan *p, const float *restrict row, uint8_t *restrict out)
{
    for (size_t i = 0; i < p->row_elems; i++) {
        out[i] = (uint8_t)row[i];
    }
}

/* A source row as it is. */
static void write_direct(const plan *p, const void *src, void *out)
{
    if (p->bytes) {
        memcpy(out, src, p->row_elems);
    } else {
        scale_bytes(p, src, out);
    }
}

static void write_held(const plan *p, void *out)
{
    if (p->bytes) {
        narrow_row(p, p->row[1], out);
    } else {
        scale_row(p, p->row[1], out);
    }
}

/* Loads the next source row into row[1], and what was there becomes row[0]. */
static void hold_row(plan *p, const void *src)
{
    if (p->held != p->source_row) {
        float *before = p->row[0];
        p->row[0] = p->row[1];
        p->row[1] = before;
        p->along_x(p, src, p->row[1]);
        p->held = p->source_row;
    }
}

/* Writes all output rows that need no later source row than this. */
static void write_rows(plan *p, const void *src)
{
    for (; p->output_row < p->rows; p->output_row++) {
        const tap t = p->y[p->output_row];
        void *out = p->out + (size_t)p->output_row * p->out_row_bytes;
        if (p->source_row < t.lower) {
            return;
        }
        if (t.lerp == 0 && p->direct) {
            write_direct(p, src, out);
            continue;
        }
        hold_row(p, src);
        if (t.lerp == 0) {
            write_held(p, out);
        } else if (p->source_row < t.upper) {
            return;
        } else {
            mix_rows(p, t.lerp, out);
        }
    }
}

void sx_resize_add(sx_resizer *resizer, const void *pixels)
{
    plan *p = resizer->block;
    write_rows(p, pixels);
    p->source_row++;
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
    for (int x = 0; x < p->columns; x++) {
        for (int c = 0; c < p->channels; c++) {
            *mul++ = affine != NULL ? affine->mul[c] : 1.0f;
            *add++ = affine != NULL ? affine->add[c] : 0.0f;
        }
    }
}

static row_fn *choose_along_x(const plan *p, bool same_width, const sx_resize_args *a)
{
    if (same_width && !a->flip) {
        return copy_row;
    }
    if (same_width || a->rule == SX_RESIZE_NEAREST) {
        return pick_any;
    }
    return p->channels == 3 && p->dtype == SX_U8 ? fast_lerp_rgb() : lerp_any;
}

/* Along x, between bytes. */
static bool interpolates(const plan *p)
{
    return p->dtype == SX_U8 && p->along_x != copy_row && p->along_x != pick_any;
}

/* Groups for the rows of a source of `elems` bytes; false: some elements' sources are not within a
 * window. */
static bool make_groups(const plan *p, int elems, group *groups)
{
    const tap *x = p->x;
    int32_t lower[GROUP], upper[GROUP];
    int left = (int)p->row_elems, c = 0; /* elements to come; the next one's channel */
    for (group *g = groups; g < groups + p->n_groups; g++, left -= GROUP) {
        const int n = SX_MIN(left, (int)GROUP);
        int32_t low = INT32_MAX, high = 0;
        *g = (group){.first = 0};
        for (int i = 0; i < n; i++) {
            lower[i] = x->lower + c;
            upper[i] = x->upper + c;
            g->lerp[i] = x->lerp;
            low = SX_MIN(low, lower[i]);
            high = SX_MAX(high, upper[i]);
            c = c + 1 < p->channels ? c + 1 : 0;
            x += c == 0;
        }
        g->first = SX_MIN(low, elems - WINDOW);
        if (g->first < 0 || high - g->first >= WINDOW) {
            return false;
        }
        for (int i = 0; i < n; i++) {
            g->left[4 * i] = (uint8_t)(lower[i] - g->first);
            g->right[4 * i] = (uint8_t)(upper[i] - g->first);
        }
    }
    return true;
}

/* The columns that lerp_rgb_avx2() computes in vectors, of a row of `elems`. */
static void find_fast(plan *p, int elems)
{
    int from = 0, to = p->columns;
    while (from < to && p->x[from].lower + FAST_ELEMS > elems) {
        from++;
    }
    while (to > from && p->x[to - 1].lower + FAST_ELEMS > elems) {
        to--;
    }
    p->fast_from = from;
    p->fast_to = to;
}

static void *take(char **at, size_t bytes)
{
    void *taken = *at;
    *at += bytes;
    return taken;
}

static sx_status make_plan(sx_resizer *resizer, const sx_image *src, const sx_resize_args *a,
                           void *out, sx_image_window *out_needed)
{
    plan made = {.dtype = src->dtype,
                 .channels = src->channels,
                 .rows = a->window_height,
                 .columns = a->window_width,
                 .row_elems = (size_t)a->window_width * (size_t)src->channels,
                 .n_groups = (a->window_width * src->channels + GROUP - 1) / GROUP,
                 .bytes = a->bytes,
                 .out = out,
                 .held = -1};
    made.out_row_bytes = made.row_elems * (a->bytes ? sizeof(uint8_t) : sizeof(float));
    const size_t plan_bytes = sx_align_up(sizeof(plan), 64);
    const size_t x_bytes = sx_align_up((size_t)made.columns * sizeof(tap), 64);
    const size_t y_bytes = sx_align_up((size_t)made.rows * sizeof(tap), 64);
    const size_t group_bytes = (size_t)made.n_groups * sizeof(group);
    const size_t row_bytes = sx_align_up((made.row_elems + SLACK) * sizeof(float), 64);
    SX_TRY(reserve(resizer, plan_bytes + x_bytes + y_bytes + group_bytes + 4 * row_bytes));
    char *at = resizer->block;
    plan *p = take(&at, plan_bytes);
    *p = made;
    tap *x = take(&at, x_bytes), *y = take(&at, y_bytes);
    group *groups = take(&at, group_bytes);
    p->row[0] = take(&at, row_bytes);
    p->row[1] = take(&at, row_bytes);
    float *mul = take(&at, row_bytes), *add = take(&at, row_bytes);
    const struct rule_row *rule = &rules[a->rule];
    const int first = a->flip ? a->left + a->window_width - 1 : a->left;
    make_taps(rule, src->width, a->width, first, a->flip ? -1 : 1, p->columns, x);
    make_taps(rule, src->height, a->height, a->top, 1, p->rows, y);
    out_needed->width = rebase_taps(x, p->columns, p->channels, &out_needed->left);
    out_needed->height = rebase_taps(y, p->rows, 1, &out_needed->top);
    fill_affine(p, a->affine, mul, add);
    p->x = x;
    p->y = y;
    p->mul = mul;
    p->add = add;
    p->along_x = choose_along_x(p, a->width == src->width, a);
    p->direct = p->along_x == copy_row && p->dtype == SX_U8;
    p->groups = groups;
    row_fn *in_groups = interpolates(p) ? choose_groups() : NULL;
    if (in_groups != NULL && make_groups(p, out_needed->width * p->channels, groups)) {
        p->along_x = in_groups;
    }
    find_fast(p, out_needed->width * p->channels);
    return SX_OK;
}

bool sx_resize_is_whole(const sx_resize_args *args, int src_height, int src_width)
{
    const bool same_size = (args->height == 0 || args->height == src_height) &&
                           (args->width == 0 || args->width == src_width);
    return args->affine == NULL && (same_size || args->rule == SX_RESIZE_NEAREST);
}

sx_status sx_resize_begin(sx_resizer *resizer, const sx_image *src, const sx_resize_args *args,
                          void *out, sx_image_window *out_needed)
{
    assert(src->dtype == SX_U8 || (src->dtype == SX_F32 && !args->bytes));
    const sx_resize_args a = resolve(src, args);
    assert(!a.bytes || sx_resize_is_whole(&a, src->height, src->width));
    SX_TRY(check_args(src, &a));
    return make_plan(resizer, src, &a, out, out_needed);
}

sx_status sx_resize(sx_resizer *resizer, const sx_image *src, const sx_resize_args *args, void *out)
{
    sx_image_window needed;
    SX_TRY(sx_resize_begin(resizer, src, args, out, &needed));
    const size_t pixel = (size_t)src->channels * sx_dtype_bytes(src->dtype);
    const char *row = (const char *)src->pixels +
                      ((size_t)needed.top * (size_t)src->width + (size_t)needed.left) * pixel;
    for (int y = 0; y < needed.height; y++, row += (size_t)src->width * pixel) {
        sx_resize_add(resizer, row);
    }
    return SX_OK;
}

void sx_resizer_deinit(sx_resizer *resizer)
{
    sx_free_aligned(resizer->block);
    *resizer = (sx_resizer){0};
}
