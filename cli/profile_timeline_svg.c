/* See profile_timeline_svg.h. */
#include "profile_timeline_svg.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"
#include "svg.h"

enum {
    LANE = 34,
    GAP = 6,        /* between lanes */
    LABEL = 74,     /* left of them */
    COLUMNS = 1152, /* of the loop's lane */
    LAUNCHES = 3,   /* shown */
    LEGEND_ROW = 20,
    LEGEND_COLUMNS = 2,
};

typedef struct frame {
    sx_buf *out;
    const sx_timeline_sums *s;
    int64_t from_ns, to_ns;
    double x, width; /* of the lanes */
} frame;

static double x_of(const frame *f, int64_t ns)
{
    const int64_t at = SX_MIN(SX_MAX(ns, f->from_ns), f->to_ns);
    return f->x + f->width * (double)(at - f->from_ns) / (double)(f->to_ns - f->from_ns);
}

/* ---- Lanes ---- */

/* There may be thousands of spans, one beside the other: each column has the color of what is done
 * most in its time. */
static void put_loop(const frame *f, double y)
{
    float part[COLUMNS + 1][SX_SPAN_TRANSFER] = {0};
    const double column = (double)(f->to_ns - f->from_ns) / COLUMNS;
    for (int i = 0; i < f->s->n_spans; i++) {
        const sx_timeline_span *span = &f->s->spans[i];
        const double from = (double)(SX_MAX(span->start_ns, f->from_ns) - f->from_ns) / column;
        const double to = (double)(SX_MIN(span->end_ns, f->to_ns) - f->from_ns) / column;
        if (span->kind >= SX_SPAN_TRANSFER || to <= from) {
            continue;
        }
        for (int c = (int)from; c < COLUMNS && c < to; c++) {
            part[c][span->kind] += (float)(SX_MIN(to, c + 1) - SX_MAX(from, c));
        }
    }
    int begin = 0, last = -1;
    for (int c = 0; c <= COLUMNS; c++) {
        int kind = -1;
        for (int k = 0; k < SX_SPAN_TRANSFER && c < COLUMNS; k++) {
            kind = part[c][k] > 0.25F && (kind < 0 || part[c][k] > part[c][kind]) ? k : kind;
        }
        if (kind == last && c < COLUMNS) {
            continue;
        }
        if (last >= 0) {
            char about[120];
            snprintf(about, sizeof(about), "%s: %.3f ms", sx_span_names[last].name,
                     (c - begin) * column * 1e-6);
            sx_svg_rect(f->out, f->x + f->width * begin / COLUMNS, y,
                        f->width * (c - begin) / COLUMNS, LANE, sx_span_names[last].color, about);
        }
        begin = c;
        last = kind;
    }
}

/* Copies, or launches. */
static void put_device(const frame *f, sx_span_kind kind, double y)
{
    for (int i = 0; i < f->s->n_spans; i++) {
        const sx_timeline_span *span = &f->s->spans[i];
        if (span->kind != kind || span->end_ns <= f->from_ns || span->start_ns >= f->to_ns) {
            continue;
        }
        const double x = x_of(f, span->start_ns), wide = x_of(f, span->end_ns) - x;
        char about[160], label[48];
        snprintf(label, sizeof(label), "launch %d", span->launch);
        snprintf(about, sizeof(about), "launch %d %s: %.3f ms%s", span->launch,
                 sx_span_names[kind].name, (double)(span->end_ns - span->start_ns) * 1e-6, "");
        if (span->bytes > 0) {
            snprintf(about, sizeof(about), "launch %d %s: %.3f ms, %" PRId64 " bytes", span->launch,
                     sx_span_names[kind].name, (double)(span->end_ns - span->start_ns) * 1e-6,
                     span->bytes);
        }
        sx_svg_rect(f->out, x, y, SX_MAX(wide - 0.5, 0.3), LANE, sx_span_names[kind].color, about);
        sx_svg_label(f->out, x + 4, y + LANE * 0.62, wide - 8, SX_SVG_PAPER, label);
    }
}

/* ---- Legend ---- */

static double put_legend(const frame *f, double left, double width, double y)
{
    const sx_timeline_sums *s = f->s;
    int shown = 0;
    for (int kind = 0; kind < SX_SPANS; kind++) {
        char text[160];
        if (kind == SX_SPAN_TRANSFER && !s->copies) {
            continue;
        }
        const double at = left + shown % LEGEND_COLUMNS * (width / LEGEND_COLUMNS);
        const double row = y + shown / LEGEND_COLUMNS * LEGEND_ROW;
        snprintf(text, sizeof(text), "%s%s: %.3f ms a step, %.1f %%",
                 kind == SX_SPAN_COMPUTE ? "the device " : "", sx_span_names[kind].name,
                 1e3 * s->all.seconds[kind] / (double)SX_MAX(s->all.steps, 1),
                 100 * s->all.seconds[kind] / SX_MAX(s->total, 1e-12));
        sx_svg_rect(f->out, at, row + 3, 12, 12, sx_span_names[kind].color, NULL);
        sx_svg_text(f->out, at + 18, row + 13, SX_SVG_NORMAL - 1, "start", SX_SVG_INK, text);
        shown++;
    }
    return y + (shown + LEGEND_COLUMNS - 1) / LEGEND_COLUMNS * LEGEND_ROW;
}

static void put_name(const frame *f, double left, double y, const char *name)
{
    sx_svg_text(f->out, left, y + LANE * 0.62, SX_SVG_NORMAL - 1, "start", SX_SVG_INK, name);
}

double sx_put_timeline_svg(sx_buf *out, const sx_timeline_sums *s, double left, double width,
                           double top)
{
    if (s->n == 0) {
        return top;
    }
    const frame f = {.out = out,
                     .s = s,
                     .from_ns = s->rows[SX_MAX(s->n - LAUNCHES, 0)].start_ns,
                     .to_ns = s->rows[s->n - 1].end_ns,
                     .x = left + LABEL,
                     .width = width - LABEL};
    double y = top + 4;
    put_loop(&f, y);
    put_name(&f, left, y, "loop");
    y += LANE + GAP;
    if (s->copies) {
        put_device(&f, SX_SPAN_TRANSFER, y);
        put_name(&f, left, y, "copies");
        y += LANE + GAP;
    }
    put_device(&f, SX_SPAN_COMPUTE, y);
    put_name(&f, left, y, "device");
    y += LANE;
    sx_svg_time_axis(out, (double)(f.to_ns - f.from_ns) * 1e-6, f.x, f.width, y, y + 4);
    return put_legend(&f, left, width, y + 4 + SX_SVG_AXIS + 4);
}
