/* See profile_svg.h. */
#include "profile_svg.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/utf8.h"
#include "profile_timeline_svg.h"
#include "svg.h"

enum {
    WIDTH = 1200,
    MARGIN = 24,
    INNER = WIDTH - 2 * MARGIN,
    LEGEND_COLUMNS = 2,
    LEGEND_ROW = 20,
    BAR = 34,
    LANE = 44,     /* of a thread */
    LABEL = 74,    /* left of the lanes */
    ROW = 22,      /* of a kernel */
    NAME = 330,    /* left of its bar, */
    FIGURES = 250, /* right of it */
    KERNELS = 14,
    COLORED = 9,
};

/* Colors of kernels in the timeline, the slowest first; gray: all others. They are light, so that
 * they are not taken for those of causes. */
static const char *const colors[COLORED] = {"#9ecae1", "#fdd28a", "#b5dfa0", "#f7b6b0", "#cfc0e6",
                                            "#9fdcd2", "#f2b8d8", "#ddcf8e", "#b4bdf2"};
static const char other_color[] = "#d3d7de";

typedef struct picture {
    sx_buf *out;
    const sx_profile_report *r;
    double scale; /* seconds of threads to units of time in a step */
    const char *unit;
    double y;
} picture;

static const char *color_of(const sx_profile_causes *c, const char *kernel)
{
    for (int i = 0; i < c->by_kernel.n && i < COLORED; i++) {
        if (strcmp(c->by_kernel.items[i].kernel, kernel) == 0) {
            return colors[i];
        }
    }
    return other_color;
}

static void heading(picture *p, const char *text)
{
    p->y += 40;
    sx_svg_text(p->out, MARGIN, p->y, SX_SVG_NORMAL + 2, "start", SX_SVG_INK, text);
    p->y += 14;
}

/* ---- Title ---- */

/* The verdict from y on, in lines that fit; p->y is the next line. */
static void put_lines(picture *p, double y, const char *text)
{
    enum { LONG = 150 };
    while (strlen(text) > LONG) {
        char line[LONG + 1];
        size_t cut = LONG;
        while (cut > 0 && text[cut] != ' ') {
            cut--;
        }
        cut = cut > 0 ? cut : sx_utf8_prefix(text, LONG);
        snprintf(line, sizeof(line), "%.*s", (int)cut, text);
        sx_svg_text(p->out, MARGIN, y, SX_SVG_NORMAL, "start", SX_SVG_INK, line);
        text += cut + (text[cut] == ' ');
        y += 20;
    }
    sx_svg_text(p->out, MARGIN, y, SX_SVG_NORMAL, "start", SX_SVG_INK, text);
    p->y = y + 22;
}

static void put_title(picture *p)
{
    const sx_cpu_limits *l = p->r->limits;
    sx_buf text;
    sx_buf_init(&text, 1 << 12);
    sx_put_profile_title(&text, p->r);
    sx_buf_printf(&text, ": %.3f %s a step", p->scale * p->r->causes->total, p->unit);
    sx_svg_text(p->out, MARGIN, 40, SX_SVG_HEADING, "start", SX_SVG_INK, sx_buf_text(&text));
    sx_buf_reset(&text);
    sx_put_profile_verdict(&text, p->r);
    put_lines(p, 66, sx_buf_text(&text));
    sx_buf_reset(&text);
    if (l == NULL) {
        sx_buf_printf(&text, "%s", p->r->run->kind);
    } else {
        sx_buf_printf(&text, "%s; at most, per thread: %.0f GFLOP/s float32, ", p->r->cpu,
                      l->f32 * 1e-9);
        if (l->bf16 > 0) {
            sx_buf_printf(&text, "%.0f bfloat16, ", l->bf16 * 1e-9);
        }
        sx_buf_printf(&text, "%.1f GB/s of second-level cache; %.1f GB/s of memory in all",
                      l->cache * 1e-9, l->memory * 1e-9);
    }
    sx_svg_text(p->out, MARGIN, p->y, SX_SVG_SMALL, "start", SX_SVG_FAINT, sx_buf_text(&text));
    sx_buf_deinit(&text);
}

/* ---- Where the time goes ---- */

static void put_causes(picture *p)
{
    const sx_profile_causes *c = p->r->causes;
    double x = MARGIN;
    int shown = 0;
    heading(p, "Where the time of all threads goes");
    for (int i = 0; i < SX_CAUSES; i++) {
        const double width = INNER * c->causes[i] / c->total;
        char about[160];
        snprintf(about, sizeof(about), "%s: %.3f %s, %.1f %%", sx_cause_names[i].name,
                 p->scale * c->causes[i], p->unit, 100 * c->causes[i] / c->total);
        sx_svg_rect(p->out, x, p->y, width, BAR, sx_cause_names[i].color, about);
        if (width > 46) {
            char share[16];
            snprintf(share, sizeof(share), "%.0f %%", 100 * c->causes[i] / c->total);
            sx_svg_text(p->out, x + width / 2, p->y + BAR * 0.62, SX_SVG_NORMAL, "middle",
                        SX_SVG_PAPER, share);
        }
        x += width;
    }
    p->y += BAR + 8;
    for (int i = 0; i < SX_CAUSES; i++) {
        const double left = MARGIN + shown % LEGEND_COLUMNS * (INNER / LEGEND_COLUMNS);
        const double top = p->y + shown / LEGEND_COLUMNS * LEGEND_ROW;
        char text[160];
        snprintf(text, sizeof(text), "%s: %.3f %s, %.1f %%", sx_cause_names[i].name,
                 p->scale * c->causes[i], p->unit, 100 * c->causes[i] / c->total);
        sx_svg_rect(p->out, left, top + 3, 12, 12, sx_cause_names[i].color, NULL);
        sx_svg_text(p->out, left + 18, top + 13, SX_SVG_NORMAL - 1, "start", SX_SVG_INK, text);
        shown++;
    }
    p->y += (SX_CAUSES + LEGEND_COLUMNS - 1) / LEGEND_COLUMNS * LEGEND_ROW;
}

/* ---- One step ---- */

/* The execution that took the shortest: nothing disturbed it. */
static const sx_profile_event *fastest_execution(const sx_profile_event *events, int n)
{
    const sx_profile_event *best = NULL;
    for (int i = 0; i < n; i++) {
        const sx_profile_event *e = &events[i];
        const bool whole = e->row == SX_PROFILE_EXECUTION;
        if (whole && (best == NULL || e->end_ns - e->start_ns < best->end_ns - best->start_ns)) {
            best = e;
        }
    }
    return best;
}

static void put_timeline(picture *p)
{
    const sx_profile_report *r = p->r;
    int n = 0;
    const sx_profile_event *events = sx_profile_events(r->run->profile, &n);
    const sx_profile_event *step = fastest_execution(events, n);
    if (step == NULL) {
        return;
    }
    heading(p, "The fastest step: what every thread does (white: it waits)");
    const double top = p->y, x = MARGIN + LABEL, width = INNER - LABEL;
    const double ns = (double)(step->end_ns - step->start_ns);
    for (int i = 0; i < n; i++) {
        const sx_profile_event *e = &events[i];
        if (e->row == SX_PROFILE_EXECUTION || e->start_ns < step->start_ns ||
            e->end_ns > step->end_ns) {
            continue;
        }
        const sx_kernel_time *k = sx_profile_row(r->run->profile, e->row);
        const double from = width * (double)(e->start_ns - step->start_ns) / ns;
        const double wide = width * (double)(e->end_ns - e->start_ns) / ns;
        const double y = top + 4 + e->worker * LANE;
        const int lanes = SX_MIN(k->threads, r->run->threads - e->worker);
        char about[400];
        snprintf(about, sizeof(about), "%s: %.3f ms\n%.150s\n%.150s", k->kernel,
                 (double)(e->end_ns - e->start_ns) * 1e-6, k->ops, k->node);
        sx_svg_rect(p->out, x + from, y, SX_MAX(wide - 0.3, 0.2), lanes * LANE - 8,
                    color_of(r->causes, k->kernel), about);
        sx_svg_label(p->out, x + from + 3, y + LANE * 0.5, wide - 6, SX_SVG_INK, k->kernel);
    }
    for (int w = 0; w < r->run->threads; w++) {
        char name[32];
        snprintf(name, sizeof(name), "thread %d", w);
        sx_svg_text(p->out, MARGIN, top + w * LANE + LANE * 0.6, SX_SVG_NORMAL - 1, "start",
                    SX_SVG_INK, name);
    }
    p->y = top + r->run->threads * LANE;
    sx_svg_time_axis(p->out, ns * 1e-6, x, width, p->y - 2, p->y);
    p->y += SX_SVG_AXIS;
}

/* ---- Kernels ---- */

/* `is_colored`: with its color in the timeline. */
static void put_kernel(picture *p, const sx_profile_kernel *k, double most, bool is_colored)
{
    const double x = MARGIN + NAME, width = INNER - NAME - FIGURES;
    char name[120], figures[120];
    double at = x;
    if (k->count > 1) {
        snprintf(name, sizeof(name), "%.90s (%d)", k->kernel, k->count);
    } else {
        snprintf(name, sizeof(name), "%.90s", k->kernel);
    }
    if (is_colored) {
        sx_svg_rect(p->out, MARGIN, p->y + 4, 12, 12, color_of(p->r->causes, k->kernel), NULL);
    }
    sx_svg_label(p->out, MARGIN + 18, p->y + 14, NAME - 24, SX_SVG_INK, name);
    if (!sx_profiled_on_cpu(p->r->run)) {
        const double wide = width * k->seconds / most;
        sx_svg_rect(p->out, at, p->y + 2, wide, ROW - 6, sx_span_names[SX_SPAN_COMPUTE].color,
                    NULL);
        at += wide;
    }
    for (int i = 0; i < SX_CAUSE_ALONE; i++) {
        const double wide = width * k->causes[i] / most;
        char about[160];
        snprintf(about, sizeof(about), "%s: %.3f %s", sx_cause_names[i].name,
                 p->scale * k->causes[i], p->unit);
        sx_svg_rect(p->out, at, p->y + 2, wide, ROW - 6, sx_cause_names[i].color, about);
        at += wide;
    }
    snprintf(figures, sizeof(figures), "%.3f %s, %.0f %%; %.1f GFLOP/s, %.1f GB/s",
             p->scale * k->seconds, p->unit, 100 * k->seconds / p->r->causes->whole,
             k->flops / SX_MAX(k->seconds, 1e-12) * 1e-9,
             k->bytes / SX_MAX(k->seconds, 1e-12) * 1e-9);
    sx_svg_text(p->out, at + 6, p->y + 14, SX_SVG_SMALL, "start", SX_SVG_INK, figures);
    p->y += ROW;
}

static void put_groups(picture *p, const sx_profile_groups *groups, const char *what)
{
    const bool on_cpu = sx_profiled_on_cpu(p->r->run);

    char text[120];
    if (groups->n == 0) {
        return;
    }
    snprintf(text, sizeof(text), "%ss: time in a step%s", what,
             on_cpu ? ", in the colors of its causes; rates per thread" : "");
    heading(p, text);
    for (int i = 0; i < groups->n && i < KERNELS; i++) {
        put_kernel(p, &groups->items[i], groups->items[0].seconds,
                   on_cpu && groups == &p->r->causes->by_kernel);
    }
    if (groups->n > KERNELS) {
        snprintf(text, sizeof(text), "and %d more", groups->n - KERNELS);
        sx_svg_text(p->out, MARGIN + 18, p->y + 14, SX_SVG_SMALL, "start", SX_SVG_FAINT, text);
        p->y += ROW;
    }
}

/* The step loop, where the report tells of it. */
static void put_loop(picture *p)
{
    if (sx_profile_tells_loop(p->r->run)) {
        heading(p, "The step loop: the last launches");
        p->y = sx_put_timeline_svg(p->out, &p->r->run->loop, MARGIN, INNER, p->y);
    }
}

sx_status sx_put_profile_svg(sx_buf *out, const sx_profile_report *r)
{
    sx_buf body;
    sx_buf_init(&body, 0);
    picture p = {.out = &body, .r = r};
    p.scale = sx_profile_per_step(r, 1, &p.unit);
    put_title(&p);
    put_loop(&p);
    if (sx_profiled_on_cpu(r->run)) {
        put_causes(&p);
        put_timeline(&p);
    }
    put_groups(&p, &r->causes->by_op, "Operator");
    put_groups(&p, &r->causes->by_layer, "Layer");
    put_groups(&p, &r->causes->by_kernel, sx_profiled_on_cpu(r->run) ? "Kernel" : "Operation");
    sx_status status = sx_buf_status(&body);
    if (status == SX_OK) {
        sx_svg_begin(out, WIDTH, (int)p.y + MARGIN);
        sx_buf_append(out, body.data, body.size);
        sx_svg_end(out);
        status = sx_buf_status(out);
    }
    sx_buf_deinit(&body);
    return status;
}
