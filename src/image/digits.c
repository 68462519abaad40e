/* Synthetic digits; see generate.h.
 *
 * A glyph is up to four strokes, each a chain of quadratic Bézier curves on a 100 × 100 grid:
 * point, control, point, control, point … An image takes a glyph of its label, jitters every point,
 * maps the grid to about 20 × 20 pixels in the middle and inks the pixels near a stroke. */
#include "image/generate.h"

#include <math.h>

#include "base/checked.h"
#include "image/draw.h"

enum {
    SIDE = SX_DIGITS_SIDE,
    MAX_STROKES = 4,
    MAX_POINTS = 19, /* in a stroke: nine curves */
    STEPS = 6,       /* line segments per curve */
};

typedef struct glyph {
    int label;
    struct {
        int count;
        int8_t at[MAX_POINTS][2];
    } strokes[MAX_STROKES]; /* count 0 ends them */
} glyph;

/* Sorted by label. */
static const glyph glyphs[] = {
    {0,
     {{9, {{50, 5}, {86, 5}, {84, 50}, {86, 95}, {50, 95}, {14, 95}, {16, 50}, {14, 5}, {50, 5}}}}},
    {0,
     {{9, {{58, 5}, {90, 12}, {76, 55}, {68, 98}, {42, 95}, {8, 90}, {24, 44}, {32, 4}, {60, 6}}}}},
    {1, {{3, {{52, 4}, {51, 50}, {50, 96}}}}},
    {1, {{3, {{30, 26}, {46, 18}, {55, 4}}}, {3, {{55, 4}, {54, 50}, {53, 96}}}}},
    {1,
     {{3, {{32, 24}, {46, 18}, {54, 4}}},
      {3, {{54, 4}, {54, 50}, {54, 95}}},
      {3, {{30, 95}, {54, 95}, {78, 95}}}}},
    {2,
     {{7, {{18, 28}, {22, 4}, {50, 5}, {84, 5}, {78, 36}, {70, 58}, {18, 95}}},
      {3, {{18, 95}, {50, 94}, {84, 94}}}}},
    {2,
     {{11,
       {{20, 20},
        {40, 0},
        {62, 6},
        {86, 18},
        {66, 52},
        {48, 80},
        {26, 92},
        {8, 92},
        {22, 80},
        {46, 76},
        {86, 95}}}}},
    {3,
     {{5, {{20, 12}, {82, -6}, {76, 27}, {70, 48}, {42, 48}}},
      {5, {{42, 48}, {88, 50}, {80, 76}, {70, 102}, {18, 88}}}}},
    {3,
     {{3, {{20, 8}, {50, 8}, {78, 8}}},
      {3, {{78, 8}, {60, 26}, {44, 44}}},
      {5, {{44, 44}, {90, 46}, {80, 76}, {66, 104}, {18, 86}}}}},
    {4,
     {{3, {{60, 5}, {40, 40}, {14, 66}}},
      {3, {{14, 66}, {50, 66}, {88, 65}}},
      {3, {{65, 36}, {65, 66}, {63, 97}}}}},
    {4,
     {{5, {{24, 6}, {16, 34}, {20, 50}, {40, 54}, {74, 48}}}, {3, {{76, 5}, {74, 50}, {70, 97}}}}},
    {5,
     {{3, {{78, 8}, {52, 8}, {28, 9}}},
      {3, {{28, 9}, {25, 28}, {22, 46}}},
      {5, {{22, 46}, {84, 34}, {78, 70}, {72, 102}, {20, 90}}}}},
    {6,
     {{11,
       {{68, 5},
        {24, 26},
        {20, 68},
        {20, 97},
        {50, 96},
        {80, 94},
        {78, 70},
        {74, 48},
        {50, 50},
        {28, 52},
        {20, 72}}}}},
    {7, {{3, {{15, 10}, {50, 10}, {84, 9}}}, {3, {{84, 9}, {58, 46}, {42, 96}}}}},
    {7,
     {{3, {{15, 10}, {50, 10}, {84, 9}}},
      {3, {{84, 9}, {62, 46}, {46, 96}}},
      {3, {{36, 52}, {52, 51}, {74, 50}}}}},
    {8,
     {{17,
       {{50, 48},
        {16, 40},
        {20, 24},
        {26, 4},
        {50, 5},
        {78, 5},
        {78, 25},
        {78, 40},
        {50, 48},
        {13, 56},
        {16, 77},
        {20, 96},
        {50, 96},
        {84, 96},
        {82, 74},
        {80, 55},
        {50, 48}}}}},
    {9,
     {{9, {{78, 30}, {74, 4}, {48, 6}, {18, 8}, {22, 32}, {26, 54}, {52, 50}, {76, 46}, {78, 28}}},
      {3, {{78, 28}, {78, 62}, {60, 96}}}}},
    {9,
     {{9, {{76, 26}, {70, 4}, {46, 6}, {18, 10}, {22, 32}, {28, 52}, {52, 48}, {74, 42}, {77, 26}}},
      {5, {{77, 26}, {82, 66}, {72, 84}, {56, 102}, {26, 88}}}}},
};

/* Grid to pixels: out = origin + (xx·x + xy·y, yx·x + yy·y), with 0 at the centre of the grid. */
typedef struct placing {
    float xx, xy, yx, yy;
    sx_point origin;
    float shake;  /* jitter of points, in grid units */
    float radius; /* of the pen, in pixels */
} placing;

static const glyph *choose_glyph(sx_draws *draws, int label)
{
    size_t first = 0;
    while (glyphs[first].label != label) {
        first++;
    }
    int count = 1;
    while (first + (size_t)count < SX_COUNT(glyphs) &&
           glyphs[first + (size_t)count].label == label) {
        count++;
    }
    return &glyphs[first + (size_t)sx_draws_below(draws, count)];
}

static placing choose_placing(sx_draws *draws)
{
    const sx_point turn = sx_turn(sx_draws_between(draws, -0.035f, 0.035f)); /* ±12.6° */
    const float wide = sx_draws_between(draws, 0.15f, 0.22f),
                high = sx_draws_between(draws, 0.175f, 0.215f);
    const float shear = sx_draws_between(draws, -0.3f, 0.2f);
    placing p = {.xx = turn.x * wide,
                 .xy = (turn.x * shear - turn.y) * high,
                 .yx = turn.y * wide,
                 .yy = (turn.y * shear + turn.x) * high};
    p.origin.x = sx_draws_between(draws, 12.5f, 15.5f) - 0.5f;
    p.origin.y = sx_draws_between(draws, 12.5f, 15.5f) - 0.5f;
    p.shake = sx_draws_between(draws, 1.0f, 5.0f);
    p.radius = sx_draws_between(draws, 0.75f, 1.75f);
    return p;
}

static sx_point place(const placing *p, sx_draws *draws, const int8_t at[2])
{
    const float x = (float)at[0] - 50.0f + sx_draws_between(draws, -p->shake, p->shake);
    const float y = (float)at[1] - 50.0f + sx_draws_between(draws, -p->shake, p->shake);
    return (sx_point){p->origin.x + (p->xx * x + p->xy * y), p->origin.y + (p->yx * x + p->yy * y)};
}

static float square_distance(sx_point p, sx_point a, sx_point b)
{
    const float dx = b.x - a.x, dy = b.y - a.y, px = p.x - a.x, py = p.y - a.y;
    const float length = dx * dx + dy * dy;
    float t = length > 0.0f ? (px * dx + py * dy) / length : 0.0f;
    t = t < 0.0f ? 0.0f : t > 1.0f ? 1.0f : t;
    const float ex = px - t * dx, ey = py - t * dy;
    return ex * ex + ey * ey;
}

static int clamp_pixel(float x)
{
    return x < 0.0f ? 0 : x > (float)(SIDE - 1) ? SIDE - 1 : (int)x;
}

/* Updates near[y][x], the squared distance to the nearest stroke, around a line segment. */
static void ink_piece(sx_point a, sx_point b, float reach, float near[SIDE][SIDE])
{
    const int top = clamp_pixel(SX_MIN(a.y, b.y) - reach),
              bottom = clamp_pixel(SX_MAX(a.y, b.y) + reach + 1.0f);
    const int left = clamp_pixel(SX_MIN(a.x, b.x) - reach),
              right = clamp_pixel(SX_MAX(a.x, b.x) + reach + 1.0f);
    for (int y = top; y <= bottom; y++) {
        for (int x = left; x <= right; x++) {
            float d = square_distance((sx_point){(float)x, (float)y}, a, b);
            near[y][x] = SX_MIN(near[y][x], d);
        }
    }
}

static sx_point on_curve(const sx_point c[3], float t)
{
    const float s = 1.0f - t, u = s * s, v = 2.0f * s * t, w = t * t;
    return (sx_point){u * c[0].x + v * c[1].x + w * c[2].x, u * c[0].y + v * c[1].y + w * c[2].y};
}

static void ink_glyph(const glyph *g, const placing *p, sx_draws *draws, float near[SIDE][SIDE])
{
    const float reach = p->radius + 1.0f;
    for (int s = 0; s < MAX_STROKES && g->strokes[s].count > 0; s++) {
        sx_point curve[3];
        curve[0] = place(p, draws, g->strokes[s].at[0]);
        for (int i = 1; i + 1 < g->strokes[s].count; i += 2) {
            curve[1] = place(p, draws, g->strokes[s].at[i]);
            curve[2] = place(p, draws, g->strokes[s].at[i + 1]);
            sx_point from = curve[0];
            for (int step = 1; step <= STEPS; step++) {
                sx_point to = on_curve(curve, (float)step / (float)STEPS);
                ink_piece(from, to, reach, near);
                from = to;
            }
            curve[0] = curve[2];
        }
    }
}

void sx_digits_draw(uint64_t seed, uint64_t index, uint8_t out[28 * 28], int *out_label)
{
    sx_draws draws = sx_draws_start("digits", seed, index);
    const int label = sx_draws_below(&draws, SX_DIGITS_CLASSES);
    const glyph *g = choose_glyph(&draws, label);
    const placing p = choose_placing(&draws);
    float near[SIDE][SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) {
        near[i / SIDE][i % SIDE] = 1e6f;
    }
    ink_glyph(g, &p, &draws, near);
    const float ink = sx_draws_between(&draws, 200.0f, 256.0f),
                noise = sx_draws_between(&draws, 0.0f, 24.0f);
    for (int i = 0; i < SIDE * SIDE; i++) {
        float covered = sx_coverage(p.radius - sqrtf(near[i / SIDE][i % SIDE]));
        out[i] = sx_to_byte(ink * covered + sx_draws_between(&draws, -noise, noise));
    }
    *out_label = label;
}
