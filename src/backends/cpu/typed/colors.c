/* Colors in float32: BLOCK pixels at a time with each channel by itself, so that the loops over
 * them are vector loops. The formulas are those of graph/ops/color.c. */
#include <math.h>

#include "backends/cpu/typed/typed.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"

enum { BLOCK = 64 };

typedef struct block {
    float c[3][BLOCK];
} block;

static bool takes_colors(const void *attrs, const sx_tensor *in)
{
    (void)attrs;
    const sx_type *x = &in[0].type;
    return x->dtype == SX_F32 && x->rank > 0 && x->dims[x->rank - 1] == 3;
}

/* As fmin(), fmax(), which are calls: of a number and a NaN, the number. */
static inline float least_of(float a, float b)
{
    return a < b || b != b ? a : b;
}

static inline float most_of(float a, float b)
{
    return a > b || b != b ? a : b;
}

static inline float clipped(float x)
{
    return x > 0 ? (x < 1 ? x : 1) : 0;
}

static inline float hue_of(float r, float g, float b, float most, float range)
{
    const float d = range > 0 ? range : 1;
    const float hue = r == most ? (g - b) / d : g == most ? (b - r) / d + 2 : (r - g) / d + 4;
    const float turn = range > 0 ? hue / 6 : 0;
    return turn < 0 ? turn + 1 : turn;
}

static void to_hsv(const block *x, block *y)
{
    for (int k = 0; k < BLOCK; k++) {
        const float r = x->c[0][k], g = x->c[1][k], b = x->c[2][k];
        const float most = most_of(r, most_of(g, b));
        const float range = most - least_of(r, least_of(g, b));
        y->c[0][k] = hue_of(r, g, b, most, range);
        y->c[1][k] = most > 0 ? range / most : 0;
        y->c[2][k] = most;
    }
}

static void to_rgb(const block *x, block *y)
{
    for (int k = 0; k < BLOCK; k++) {
        const float h = x->c[0][k] * 6, s = x->c[1][k], v = x->c[2][k];
        y->c[0][k] = v * (1 - s + s * clipped(fabsf(h - 3) - 1));
        y->c[1][k] = v * (1 - s + s * clipped(2 - fabsf(h - 2)));
        y->c[2][k] = v * (1 - s + s * clipped(2 - fabsf(h - 4)));
    }
}

static void turn_hue(block *x, float delta)
{
    for (int k = 0; k < BLOCK; k++) {
        const float r = x->c[0][k], g = x->c[1][k], b = x->c[2][k];
        const float most = most_of(r, most_of(g, b)), least = least_of(r, least_of(g, b));
        const float range = most - least;
        float h = hue_of(r, g, b, most, range) + delta;
        h = (h - floorf(h)) * 6;
        x->c[0][k] = least + range * clipped(fabsf(h - 3) - 1);
        x->c[1][k] = least + range * clipped(2 - fabsf(h - 2));
        x->c[2][k] = least + range * clipped(2 - fabsf(h - 4));
    }
}

static sx_status run_colors(const sx_typed_call *c, int op)
{
    const int64_t pixels = sx_type_elems(&c->in[0].type) / 3;
    const float *x = c->in[0].data;
    const float factor = op == SX_OPID_adjust_hue || op == SX_OPID_adjust_saturation
                             ? *(const float *)c->in[1].data
                             : 0;
    float *y = c->out[0].data;
    for (int64_t i = 0; i < pixels; i += BLOCK) {
        const int n = (int)SX_MIN(pixels - i, (int64_t)BLOCK);
        block in = {0}, out;
        if (i % (BLOCK * 1024) == 0) {
            SX_TRY(sx_cancel_check(c->context->cancel));
        }
        for (int k = 0; k < n; k++) {
            for (int j = 0; j < 3; j++) {
                in.c[j][k] = x[3 * (i + k) + j];
            }
        }
        switch (op) {
        case SX_OPID_rgb_to_hsv:
            to_hsv(&in, &out);
            break;
        case SX_OPID_hsv_to_rgb:
            to_rgb(&in, &out);
            break;
        case SX_OPID_adjust_hue:
            turn_hue(&in, factor);
            out = in;
            break;
        default:
            to_hsv(&in, &out);
            for (int k = 0; k < BLOCK; k++) {
                out.c[1][k] = clipped(out.c[1][k] * factor);
            }
            to_rgb(&out, &in);
            out = in;
            break;
        }
        for (int k = 0; k < n; k++) {
            for (int j = 0; j < 3; j++) {
                y[3 * (i + k) + j] = out.c[j][k];
            }
        }
    }
    return SX_OK;
}

#define COLORS(name)                                    \
    static sx_status run_##name(const sx_typed_call *c) \
    {                                                   \
        return run_colors(c, SX_OPID_##name);           \
    }                                                   \
    const sx_typed_kernel sx_typed_##name = {           \
        .op = SX_OPID_##name, .takes = takes_colors, .run = run_##name};
COLORS(rgb_to_hsv)
COLORS(hsv_to_rgb)
COLORS(adjust_hue)
COLORS(adjust_saturation)

/* ---- Contrast ---- */

static bool takes_images(const void *attrs, const sx_tensor *in)
{
    (void)attrs;
    return in[0].type.dtype == SX_F32 && in[0].type.rank >= 3;
}

static sx_status run_contrast(const sx_typed_call *c)
{
    const sx_type *t = &c->in[0].type;
    const int64_t channels = t->dims[t->rank - 1];
    const int64_t pixels = t->dims[t->rank - 2] * t->dims[t->rank - 3], n = sx_type_elems(t);
    const double factor = (double)*(const float *)c->in[1].data;
    const float *x = c->in[0].data;
    float *y = c->out[0].data;
    double *mean = sx_arena_array(c->context->arena, channels + 1, double);
    if (mean == NULL) {
        return sx_no_memory("for the means of channels");
    }
    for (int64_t image = 0; image < n; image += pixels * channels) {
        SX_TRY(sx_cancel_check(c->context->cancel));
        for (int64_t k = 0; k < channels; k++) {
            mean[k] = 0;
        }
        for (int64_t p = 0; p < pixels; p++) {
            for (int64_t k = 0; k < channels; k++) {
                mean[k] += (double)x[image + p * channels + k];
            }
        }
        for (int64_t k = 0; k < channels; k++) {
            mean[k] /= (double)pixels;
        }
        for (int64_t p = 0; p < pixels; p++) {
            for (int64_t k = 0; k < channels; k++) {
                const int64_t at = image + p * channels + k;
                y[at] = (float)(((double)x[at] - mean[k]) * factor + mean[k]);
            }
        }
    }
    return SX_OK;
}

const sx_typed_kernel sx_typed_adjust_contrast = {
    .op = SX_OPID_adjust_contrast, .takes = takes_images, .run = run_contrast};
