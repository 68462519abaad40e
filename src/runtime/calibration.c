/* See calibration.h. */
#include "runtime/calibration.h"

#include <float.h>
#include <math.h>

#include "base/memory.h"

enum { BINS = 2048, CANDIDATES = 128 };

/* Magnitudes of one image, in bins of [0, limit). */
typedef struct histogram {
    float limit; /* a power of two; 0: no number was not 0 */
    float low, high;
    bool broken;    /* a value was not finite */
    bool any;       /* a value was observed */
    int64_t *count; /* [BINS] */
} histogram;

struct sx_calibration {
    sx_arena arena;
    sx_graph *plain, *observed;
    sx_quantize_points points;
    histogram *histograms; /* [points] */
};

/* ---- Life ---- */

static sx_status create_histograms(sx_calibration *c)
{
    c->histograms = sx_arena_array(&c->arena, c->points.n + 1, histogram);
    for (int i = 0; i < c->points.n && c->histograms != NULL; i++) {
        c->histograms[i].count = sx_arena_array(&c->arena, BINS, int64_t);
        if (c->histograms[i].count == NULL) {
            return sx_no_memory("for a calibration");
        }
    }
    return c->histograms != NULL ? SX_OK : sx_no_memory("for a calibration");
}

static sx_status prepare(sx_calibration *c, const sx_graph *graph)
{
    SX_TRY(sx_quantize_prepare(graph, &c->plain));
    SX_TRY(sx_quantize_find(c->plain, &c->arena, &c->points));
    if (c->points.n == 0) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "nothing to quantize: no convolutions or products of float32 matrices "
                        "whose weights stay as they are");
    }
    SX_TRY(create_histograms(c));
    return sx_quantize_observe(c->plain, &c->points, &c->observed);
}

sx_status sx_calibration_create(const sx_graph *graph, sx_calibration **out)
{
    sx_calibration *c = sx_alloc(1, sizeof(*c));
    if (c == NULL) {
        return sx_no_memory("for a calibration");
    }
    sx_arena_init(&c->arena, 0);
    sx_status status = prepare(c, graph);
    if (status != SX_OK) {
        sx_calibration_destroy(c);
        return status;
    }
    *out = c;
    return SX_OK;
}

void sx_calibration_destroy(sx_calibration *c)
{
    if (c != NULL) {
        sx_graph_destroy(c->plain);
        sx_graph_destroy(c->observed);
        sx_arena_deinit(&c->arena);
        sx_free(c);
    }
}

const sx_graph *sx_calibration_graph(const sx_calibration *c)
{
    return c->observed;
}

const sx_quantize_points *sx_calibration_points(const sx_calibration *c)
{
    return &c->points;
}

/* ---- Observing ---- */

/* Doubles the range of the bins until it has room for `most`. */
static void widen(histogram *h, float most)
{
    int exponent;
    if (h->limit == 0) {
        (void)frexpf(most, &exponent);
        h->limit = ldexpf(1, exponent);
    }
    while (h->limit <= most) {
        for (int i = 0; i < BINS / 2; i++) {
            h->count[i] = h->count[2 * i] + h->count[2 * i + 1];
        }
        for (int i = BINS / 2; i < BINS; i++) {
            h->count[i] = 0;
        }
        h->limit *= 2;
    }
}

static void observe_image(histogram *h, const float *data, int64_t elems)
{
    float low = h->any ? h->low : INFINITY, high = h->any ? h->high : -INFINITY;
    for (int64_t i = 0; i < elems; i++) {
        h->broken = h->broken || !isfinite(data[i]);
        low = fminf(low, data[i]);
        high = fmaxf(high, data[i]);
    }
    const float most = fmaxf(fabsf(low), fabsf(high));
    if (elems == 0 || h->broken || most > FLT_MAX / 4) {
        h->broken = h->broken || elems > 0;
        return;
    }
    h->any = true;
    h->low = low;
    h->high = high;
    if (most > 0) {
        widen(h, most);
    }
    for (int64_t i = 0; i < elems && h->limit > 0; i++) {
        h->count[(int)(fabsf(data[i]) * (BINS / h->limit))]++;
    }
}

static void observe_filter(sx_quantize_point *p, histogram *h, const float *data, int64_t elems)
{
    for (int64_t i = 0; i < elems; i++) {
        float *high = &p->high[i % p->channels];
        *high = fmaxf(*high, fabsf(data[i]));
        h->broken = h->broken || !isfinite(data[i]);
    }
    for (int64_t k = 0; k < p->channels; k++) {
        p->low[k] = -p->high[k];
    }
    h->any = true;
}

void sx_calibration_observe(sx_calibration *c, int point, const float *data, int64_t elems)
{
    sx_quantize_point *p = &c->points.points[point];
    histogram *h = &c->histograms[point];
    if (!p->is_filter) {
        observe_image(h, data, elems);
    } else if (!h->any) { /* it is the same in every run */
        observe_filter(p, h, data, elems);
    }
}

/* ---- Choosing ---- */

/* The sum of the squares of the errors if [0, most] is divided into `steps`. */
static double error_of(const histogram *h, float most, int steps)
{
    const double step = (double)most / steps, width = (double)h->limit / BINS;
    double sum = 0;
    for (int i = 0; i < BINS; i++) {
        const double x = (i + 0.5) * width, beyond = x > (double)most ? x - (double)most : 0;
        sum += (double)h->count[i] * (beyond > 0 ? beyond * beyond : step * step / 12);
    }
    return sum;
}

static void choose_range(const histogram *h, sx_quantize_point *p)
{
    const bool is_signed = h->low < 0;
    const float all = fmaxf(fabsf(h->low), fabsf(h->high));
    float best = all;
    double least = error_of(h, all, is_signed ? 127 : 255);
    for (int i = CANDIDATES / 4; i < CANDIDATES && all > 0; i++) {
        const float most = all * (float)i / CANDIDATES;
        const double error = error_of(h, most, is_signed ? 127 : 255);
        if (error < least) {
            least = error;
            best = most;
        }
    }
    p->low[0] = is_signed ? -best : 0;
    p->high[0] = best;
}

sx_status sx_calibration_finish(sx_calibration *c, sx_graph **out)
{
    for (int i = 0; i < c->points.n; i++) {
        sx_quantize_point *p = &c->points.points[i];
        const histogram *h = &c->histograms[i];
        if (h->broken || !h->any) {
            return sx_error(SX_INVALID_ARGUMENT, "\"%s\" cannot be quantized: %s",
                            sx_graph_maker(c->plain, p->value)->name,
                            h->broken ? "with these examples it has values that are not finite"
                                      : "there are no examples");
        }
        if (!p->is_filter) {
            choose_range(h, p);
        }
    }
    sx_graph_destroy(c->observed); /* it is of no more use */
    c->observed = NULL;
    return sx_pass_quantize(c->plain, &c->points, out);
}

static sx_status apply(const sx_calibration *c, const sx_graph *plain, sx_arena *arena,
                       sx_graph **out)
{
    sx_quantize_points points;
    SX_TRY(sx_quantize_find(plain, arena, &points));
    bool same = points.n == c->points.n;
    for (int i = 0; i < points.n && same; i++) {
        sx_quantize_point *p = &points.points[i];
        const sx_quantize_point *from = &c->points.points[i];
        same = p->is_filter == from->is_filter && p->channels == from->channels;
        if (same) {
            p->low = from->low;
            p->high = from->high;
        }
    }
    return same ? sx_pass_quantize(plain, &points, out)
                : sx_error(SX_INTERNAL, "the ranges are those of another graph");
}

sx_status sx_calibration_apply(const sx_calibration *c, const sx_graph *graph, sx_graph **out)
{
    sx_graph *plain;
    sx_arena arena;
    SX_TRY(sx_quantize_prepare(graph, &plain));
    sx_arena_init(&arena, 0);
    sx_status status = apply(c, plain, &arena, out);
    sx_arena_deinit(&arena);
    sx_graph_destroy(plain);
    return status;
}
