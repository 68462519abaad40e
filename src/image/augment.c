/* See augment.h. */
#include "image/augment.h"

#include <assert.h>
#include <string.h>

#include "base/map.h"
#include "base/clones.h"
#include "image/draw.h"
#include "image/resize.h"

enum { LANES = 8 }; /* partial sums for each channel's mean */

static uint32_t fold(uint64_t x)
{
    return (uint32_t)x ^ (uint32_t)(x >> 32);
}

sx_u32x2 sx_augment_draw(const sx_augment_key *key, const char *name)
{
    sx_u32x2 k = {fold(key->seed), fold(sx_hash64(name, strlen(name)))};
    sx_u32x2 counter = {key->epoch, fold(key->record)};
    return sx_threefry2x32(k, counter);
}

int sx_augment_below(uint32_t bits, int count)
{
    return (int)((uint64_t)bits * (uint64_t)count >> 32);
}

float sx_augment_between(uint32_t bits, float lower, float upper)
{
    return lower + (upper - lower) * sx_uniform_f32(bits);
}

void sx_adjust_brightness(float *pixels, size_t elems, float delta)
{
    for (size_t i = 0; i < elems; i++) {
        pixels[i] += delta;
    }
}

/* A group is LANES pixels. Its elements repeat a pattern of known length, so loops over a group
 * need no inner loop over channels. The last group may be incomplete. */
typedef struct pattern {
    float of[LANES * SX_IMAGE_MAX_CHANNELS];
} pattern;

static pattern repeat(const float *values, int channels)
{
    pattern p;
    for (int i = 0; i < LANES * SX_IMAGE_MAX_CHANNELS; i++) {
        p.of[i] = values[i % channels];
    }
    return p;
}

/* sums[lane·channels + c] over all groups. */
SX_CLONES static void sum_lanes(const float *pixels, size_t elems, size_t group, double *sums)
{
    size_t at = 0;
    for (; at + group <= elems; at += group) {
        for (size_t i = 0; i < group; i++) {
            sums[i] += (double)pixels[at + i];
        }
    }
    for (size_t i = 0; at + i < elems; i++) {
        sums[i] += (double)pixels[at + i];
    }
}

static void mean_channels(const float *pixels, size_t count, int channels, float *out_means)
{
    double sums[LANES * SX_IMAGE_MAX_CHANNELS] = {0};
    sum_lanes(pixels, count * (size_t)channels, (size_t)LANES * (size_t)channels, sums);
    for (int c = 0; c < channels; c++) {
        double total = 0;
        for (int lane = 0; lane < LANES; lane++) {
            total += sums[lane * channels + c];
        }
        out_means[c] = (float)(total / (double)count);
    }
}

/* (x − centre)·mul + add, each with a pattern. */
SX_CLONES static void apply(float *pixels, size_t elems, size_t group, const pattern *centre,
                            const pattern *mul, const pattern *add)
{
    for (; elems > 0; pixels += group) {
        group = group < elems ? group : elems;
        for (size_t i = 0; i < group; i++) {
            pixels[i] = (pixels[i] - centre->of[i]) * mul->of[i] + add->of[i];
        }
        elems -= group;
    }
}

void sx_adjust_contrast(float *pixels, int height, int width, int channels, float factor)
{
    assert(channels <= SX_IMAGE_MAX_CHANNELS);
    const size_t count = (size_t)height * (size_t)width;
    const size_t group = (size_t)LANES * (size_t)channels;
    float means[SX_IMAGE_MAX_CHANNELS];
    mean_channels(pixels, count, channels, means);
    const pattern mean = repeat(means, channels), mul = repeat(&factor, 1);
    apply(pixels, count * (size_t)channels, group, &mean, &mul, &mean);
}

/* A position along an axis: the two neighbouring samples and the weight of the second. */
typedef struct between {
    int lower, upper;
    float lerp;
} between;

static between clamp_position(float at, int size)
{
    const float last = (float)(size - 1);
    at = at > 0.0f ? at : 0.0f;
    at = at < last ? at : last;
    const int lower = (int)at;
    return (between){lower, lower + 1 < size ? lower + 1 : lower, at - (float)lower};
}

static void sample(const float *src, int width, int channels, between row, between column,
                   float *out)
{
    const size_t n = (size_t)channels, stride = (size_t)width * n;
    const float *top = src + (size_t)row.lower * stride, *bottom = src + (size_t)row.upper * stride;
    const size_t left = (size_t)column.lower * n, right = (size_t)column.upper * n;
    for (size_t c = 0; c < n; c++) {
        const float above = top[left + c] + (top[right + c] - top[left + c]) * column.lerp;
        const float below = bottom[left + c] + (bottom[right + c] - bottom[left + c]) * column.lerp;
        out[c] = above + (below - above) * row.lerp;
    }
}

/* Without a shear, a row of the result lies between two rows of the source, of which a strip of
 * columns is interpolated once for all rows that need it. The arithmetic is that of sample(). */
enum { STRIP = 64, SLACK = 1 /* so that three channels can be written as four */ };

typedef struct strip {
    const float *src;
    int height, width, channels;
    between columns[STRIP];
    int n;
    int held[2]; /* source rows, of which the strip lies in */
    float rows[2][STRIP * SX_IMAGE_MAX_CHANNELS + SLACK];
} strip;

typedef float four __attribute__((vector_size(16)));

/* Three channels, of a row that another follows: a pixel's fourth float is the next one's. */
static void lerp_rgb(const strip *s, const float *row, float *out)
{
    for (int i = 0; i < s->n; i++) {
        const between *x = &s->columns[i];
        four left, right;
        memcpy(&left, row + (size_t)x->lower * 3, sizeof(left));
        memcpy(&right, row + (size_t)x->upper * 3, sizeof(right));
        left += (right - left) * x->lerp;
        memcpy(out + (size_t)i * 3, &left, sizeof(left));
    }
}

static void lerp_columns(const strip *s, const float *row, float *out)
{
    for (int i = 0; i < s->n; i++) {
        const between *x = &s->columns[i];
        const float *left = row + (size_t)x->lower * (size_t)s->channels;
        const float *right = row + (size_t)x->upper * (size_t)s->channels;
        for (int c = 0; c < s->channels; c++) {
            *out++ = left[c] + (right[c] - left[c]) * x->lerp;
        }
    }
}

/* The strip of source row y; that of row `kept` stays. */
static const float *hold(strip *s, int y, int kept)
{
    const int at = s->held[0] == y || (s->held[1] != y && s->held[0] != kept) ? 0 : 1;
    if (s->held[at] != y) {
        const float *row = s->src + (size_t)y * (size_t)s->width * (size_t)s->channels;
        if (s->channels == 3 && y + 1 < s->height) {
            lerp_rgb(s, row, s->rows[at]);
        } else {
            lerp_columns(s, row, s->rows[at]);
        }
        s->held[at] = y;
    }
    return s->rows[at];
}

SX_CLONES static void mix_strips(const float *restrict above, const float *restrict below,
                                 float lerp, size_t elems, float *restrict out)
{
    for (size_t i = 0; i < elems; i++) {
        out[i] = above[i] + (below[i] - above[i]) * lerp;
    }
}

static void zoom(const float *src, int height, int width, int channels, float zoom_rows,
                 float zoom_columns, float *out)
{
    const float middle_row = (float)(height - 1) * 0.5f, middle_column = (float)(width - 1) * 0.5f;
    strip s = {.src = src, .height = height, .width = width, .channels = channels};
    for (int first = 0; first < width; first += STRIP) {
        s.n = width - first < STRIP ? width - first : STRIP;
        s.held[0] = s.held[1] = -1;
        for (int i = 0; i < s.n; i++) {
            const float c = zoom_columns * ((float)(first + i) - middle_column);
            s.columns[i] = clamp_position(c + middle_column, width);
        }
        for (int y = 0; y < height; y++) {
            const float r = zoom_rows * ((float)y - middle_row);
            const between row = clamp_position(r + middle_row, height);
            const float *above = hold(&s, row.lower, row.upper);
            const float *below = hold(&s, row.upper, row.lower);
            mix_strips(above, below, row.lerp, (size_t)s.n * (size_t)channels,
                       out + ((size_t)y * (size_t)width + (size_t)first) * (size_t)channels);
        }
    }
}

void sx_warp(const float *src, int height, int width, int channels, float shear_degrees,
             float zoom_rows, float zoom_columns, float *out)
{
    const sx_point turn = sx_turn(shear_degrees / 360.0f); /* (cos, sin) */
    const float middle_row = (float)(height - 1) * 0.5f, middle_column = (float)(width - 1) * 0.5f;
    assert(channels <= SX_IMAGE_MAX_CHANNELS);
    if (turn.y == 0) {
        zoom(src, height, width, channels, zoom_rows, zoom_columns, out);
        return;
    }
    for (int y = 0; y < height; y++) {
        const float r = zoom_rows * ((float)y - middle_row);
        for (int x = 0; x < width; x++, out += channels) {
            const float c = zoom_columns * ((float)x - middle_column);
            sample(src, width, channels, clamp_position(r - turn.y * c + middle_row, height),
                   clamp_position(turn.x * c + middle_column, width), out);
        }
    }
}

void sx_clip_pixels(float *pixels, size_t elems, float lower, float upper)
{
    for (size_t i = 0; i < elems; i++) {
        float x = pixels[i] > lower ? pixels[i] : lower;
        pixels[i] = x < upper ? x : upper;
    }
}

void sx_scale_channels(float *pixels, size_t count, int channels, const float *mul,
                       const float *add)
{
    assert(channels <= SX_IMAGE_MAX_CHANNELS);
    const float zero = 0;
    const pattern none = repeat(&zero, 1), times = repeat(mul, channels),
                  plus = repeat(add, channels);
    apply(pixels, count * (size_t)channels, (size_t)LANES * (size_t)channels, &none, &times, &plus);
}
