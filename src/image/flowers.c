/* Synthetic flowers; see generate.h.
 *
 * From back to front: a background with blots and grass, independent of the class; one to three
 * flowers of the image's class, the largest last; exposure and noise over everything. A flower is
 * either rings of petals around a heart or a cup of upright petals on a stem, according to its row
 * in `species`. All shapes are ellipses with soft edges, blended into the uint8 image with integer
 * arithmetic. */
#include "image/generate.h"

#include <math.h>
#include <stdbool.h>

#include "base/checked.h"
#include "image/draw.h"

typedef struct colour {
    float r, g, b; /* 0 … 255 */
} colour;

typedef struct range {
    float lower, upper;
} range;

enum { COLOURS = 3 };

/* Lengths are fractions of the flower's radius. */
static const struct species {
    const char *name;
    bool cup;              /* upright petals on a stem */
    range petals;          /* per ring */
    range rings;           /* from the outermost inwards, each smaller */
    range width;           /* half a petal's width as a fraction of its length */
    range heart;           /* radius; 0 = none */
    colour petal[COLOURS]; /* one is chosen at random */
    colour heart_colour;
} species[] = {
    {"daisy",
     false,
     {11, 19},
     {1, 1.99f},
     {0.10f, 0.17f},
     {0.20f, 0.32f},
     {{245, 245, 250}, {235, 235, 225}, {240, 205, 225}},
     {235, 190, 40}},
    {"dandelion",
     false,
     {26, 40},
     {2, 3.99f},
     {0.04f, 0.08f},
     {0.05f, 0.15f},
     {{250, 220, 40}, {240, 200, 30}, {250, 235, 90}},
     {225, 165, 20}},
    {"roses",
     false,
     {5, 7.99f},
     {3, 4.99f},
     {0.40f, 0.60f},
     {0, 0},
     {{200, 25, 45}, {235, 120, 150}, {245, 225, 205}},
     {0, 0, 0}},
    {"sunflowers",
     false,
     {16, 26},
     {1, 2.99f},
     {0.12f, 0.20f},
     {0.40f, 0.55f},
     {{250, 195, 20}, {245, 170, 15}, {255, 215, 60}},
     {85, 50, 20}},
    {"tulips",
     true,
     {3, 4.99f},
     {1, 1},
     {0.32f, 0.45f},
     {0, 0},
     {{215, 35, 45}, {150, 60, 160}, {250, 200, 60}},
     {0, 0, 0}},
};

_Static_assert(SX_COUNT(species) == SX_FLOWERS_CLASSES, "one row for each class");

typedef struct canvas {
    uint8_t *pixels; /* [side][side][3] */
    int side;
    sx_draws draws;
} canvas;

static float pick(canvas *c, range r)
{
    return sx_draws_between(&c->draws, r.lower, r.upper);
}

static colour shade(colour c, float light)
{
    return (colour){c.r * light, c.g * light, c.b * light};
}

static colour vary(canvas *c, colour from, float spread)
{
    from.r += sx_draws_between(&c->draws, -spread, spread);
    from.g += sx_draws_between(&c->draws, -spread, spread);
    from.b += sx_draws_between(&c->draws, -spread, spread);
    return from;
}

/* ---- Shapes ---- */

/* An ellipse: `along` is the unit vector of its first axis; semi-axes in pixels. */
typedef struct ellipse {
    sx_point centre, along;
    float length, width;
} ellipse;

static void blend(uint8_t *pixel, const uint8_t ink[3], int alpha)
{
    for (int i = 0; i < 3; i++) {
        pixel[i] = (uint8_t)((pixel[i] * (256 - alpha) + ink[i] * alpha) >> 8);
    }
}

static int clamp_to(const canvas *c, float x)
{
    return x < 0.0f ? 0 : x > (float)(c->side - 1) ? c->side - 1 : (int)x;
}

/* Fills the ellipse, darker towards the start of the first axis by `depth`. */
static void fill_ellipse(canvas *c, const ellipse *e, colour paint, float depth)
{
    const float reach = SX_MAX(e->length, e->width) + 1.0f, thin = SX_MIN(e->length, e->width);
    const int top = clamp_to(c, e->centre.y - reach), bottom = clamp_to(c, e->centre.y + reach);
    const int left = clamp_to(c, e->centre.x - reach), right = clamp_to(c, e->centre.x + reach);
    for (int y = top; y <= bottom; y++) {
        for (int x = left; x <= right; x++) {
            const float dx = (float)x - e->centre.x, dy = (float)y - e->centre.y;
            const float u = (dx * e->along.x + dy * e->along.y) / e->length;
            const float v = (dy * e->along.x - dx * e->along.y) / e->width;
            const float covered = sx_coverage((1.0f - sqrtf(u * u + v * v)) * thin);
            if (covered > 0.0f) {
                const colour lit = shade(paint, 1.0f - depth * (0.5f - 0.5f * u));
                const uint8_t ink[3] = {sx_to_byte(lit.r), sx_to_byte(lit.g), sx_to_byte(lit.b)};
                blend(c->pixels + ((size_t)y * (size_t)c->side + (size_t)x) * 3, ink,
                      (int)(covered * 256.0f));
            }
        }
    }
}

/* A petal that starts at `root` and extends `length` pixels along `direction`. */
static void fill_petal(canvas *c, sx_point root, sx_point direction, float length, float width,
                       colour paint)
{
    const ellipse e = {
        .centre = {root.x + direction.x * length * 0.5f, root.y + direction.y * length * 0.5f},
        .along = direction,
        .length = length * 0.5f,
        .width = width};
    fill_ellipse(c, &e, paint, 0.35f);
}

static void fill_disc(canvas *c, sx_point centre, float radius, colour paint)
{
    const ellipse e = {.centre = centre, .along = {0.6f, 0.8f}, .length = radius, .width = radius};
    fill_ellipse(c, &e, paint, 0.3f);
}

/* ---- Flowers ---- */

static void draw_rings(canvas *c, const struct species *s, sx_point centre, float radius,
                       colour paint)
{
    const int rings = (int)pick(c, s->rings), petals = (int)pick(c, s->petals);
    const float width = pick(c, s->width), heart = pick(c, s->heart);
    for (int ring = 0; ring < rings; ring++) {
        const float length = radius * (1.0f - 0.8f * (float)ring / (float)rings);
        const float start = sx_draws_between(&c->draws, 0.0f, 1.0f);
        const colour layer = shade(paint, 1.0f - 0.12f * (float)(ring % 3));
        for (int i = 0; i < petals; i++) {
            const float bend = sx_draws_between(&c->draws, -0.15f, 0.15f);
            const sx_point direction = sx_turn(start + ((float)i + bend) / (float)petals);
            const float long_by = length * sx_draws_between(&c->draws, 0.88f, 1.06f);
            const colour own = shade(layer, sx_draws_between(&c->draws, 0.85f, 1.05f));
            fill_petal(c, centre, direction, long_by, length * width, own);
        }
    }
    if (heart > 0.0f) {
        fill_disc(c, centre, radius * heart, vary(c, s->heart_colour, 20.0f));
    }
}

static void draw_cup(canvas *c, const struct species *s, sx_point centre, float radius,
                     colour paint)
{
    const sx_point foot = {centre.x, centre.y + radius * 0.6f};
    const float lean = sx_draws_between(&c->draws, -0.04f, 0.04f), width = pick(c, s->width);
    const colour green = vary(c, (colour){70, 130, 50}, 25.0f);
    fill_petal(c, foot, sx_turn(0.25f + lean), (float)c->side, radius * 0.09f + 0.5f, green);
    fill_petal(c, (sx_point){foot.x, foot.y + radius}, sx_turn(0.58f + lean), radius * 1.1f,
               radius * 0.16f, green);
    const int petals = (int)pick(c, s->petals);
    for (int i = 0; i < petals; i++) {
        /* the outer two first, the middle one in front */
        const float side = i == petals - 1 ? 0.0f : (float)i / (float)(petals - 2) * 2.0f - 1.0f;
        const sx_point up = sx_turn(0.75f + lean + side * 0.055f);
        const colour own = shade(paint, sx_draws_between(&c->draws, 0.8f, 1.05f));
        fill_petal(c, foot, up, radius * sx_draws_between(&c->draws, 1.45f, 1.65f), radius * width,
                   own);
    }
}

static void draw_flower(canvas *c, const struct species *s, float size)
{
    const float side = (float)c->side, margin = 0.5f - 0.6f * size;
    const sx_point centre = {side * (0.5f + sx_draws_between(&c->draws, -margin, margin)),
                             side * (0.5f + sx_draws_between(&c->draws, -margin, margin))};
    const colour paint = vary(c, s->petal[sx_draws_below(&c->draws, COLOURS)], 18.0f);
    void (*draw)(canvas *, const struct species *, sx_point, float, colour) =
        s->cup ? draw_cup : draw_rings;
    draw(c, s, centre, side * size, paint);
}

/* ---- Background and exposure, independent of the class ---- */

static void draw_background(canvas *c)
{
    static const colour grounds[] = {
        {60, 110, 50}, {95, 125, 70}, {120, 100, 70}, {130, 165, 205}, {40, 50, 40}};
    const int n = (int)SX_COUNT(grounds);
    const colour top = vary(c, grounds[sx_draws_below(&c->draws, n)], 25.0f);
    const colour bottom = vary(c, grounds[sx_draws_below(&c->draws, n)], 25.0f);
    for (int y = 0; y < c->side; y++) {
        const float t = (float)y / (float)c->side;
        const uint8_t ink[3] = {sx_to_byte(top.r + (bottom.r - top.r) * t),
                                sx_to_byte(top.g + (bottom.g - top.g) * t),
                                sx_to_byte(top.b + (bottom.b - top.b) * t)};
        for (int x = 0; x < c->side; x++) {
            blend(c->pixels + ((size_t)y * (size_t)c->side + (size_t)x) * 3, ink, 256);
        }
    }
}

/* Blots of any colour and blades of grass. */
static void draw_clutter(canvas *c)
{
    const float side = (float)c->side;
    for (int i = sx_draws_below(&c->draws, 10); i > 0; i--) {
        const sx_point at = {pick(c, (range){0, side}), pick(c, (range){0, side})};
        const colour any = {pick(c, (range){0, 255}), pick(c, (range){0, 255}),
                            pick(c, (range){0, 255})};
        fill_disc(c, at, side * pick(c, (range){0.02f, 0.09f}), any);
    }
    for (int i = sx_draws_below(&c->draws, 14); i > 0; i--) {
        const sx_point root = {pick(c, (range){0, side}), pick(c, (range){side * 0.5f, side})};
        const colour green = vary(c, (colour){70, 125, 55}, 35.0f);
        const float length = side * pick(c, (range){0.15f, 0.6f});
        fill_petal(c, root, sx_turn(pick(c, (range){0.66f, 0.84f})), length, side * 0.012f + 0.4f,
                   green);
    }
}

/* Applies exposure, some contrast, and noise. */
static void develop(canvas *c)
{
    const float gain = pick(c, (range){0.7f, 1.2f}), lift = pick(c, (range){-20, 20});
    const float noise = pick(c, (range){2, 14});
    const size_t elems = (size_t)c->side * (size_t)c->side * 3;
    for (size_t i = 0; i < elems; i++) {
        const float grain = sx_draws_between(&c->draws, -noise, noise);
        c->pixels[i] = sx_to_byte((float)c->pixels[i] * gain + lift + grain);
    }
}

const char *sx_flowers_class_name(int label)
{
    return label >= 0 && label < SX_FLOWERS_CLASSES ? species[label].name : NULL;
}

sx_status sx_flowers_draw(uint64_t seed, uint64_t index, int side, uint8_t *out, int *out_label)
{
    if (side < SX_FLOWERS_MIN_SIDE || side > SX_FLOWERS_MAX_SIDE) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "generated flowers: size must be %d to %d pixels; got %d",
                        SX_FLOWERS_MIN_SIDE, SX_FLOWERS_MAX_SIDE, side);
    }
    canvas c = {.pixels = out, .side = side, .draws = sx_draws_start("flowers", seed, index)};
    const int label = sx_draws_below(&c.draws, SX_FLOWERS_CLASSES);
    draw_background(&c);
    draw_clutter(&c);
    for (int i = sx_draws_below(&c.draws, 3); i > 0; i--) {
        draw_flower(&c, &species[label], pick(&c, (range){0.10f, 0.16f}));
    }
    draw_flower(&c, &species[label], pick(&c, (range){0.22f, 0.40f}));
    develop(&c);
    *out_label = label;
    return SX_OK;
}
