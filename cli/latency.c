/* See latency.h. */
#include "latency.h"

#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "svg.h"

static const double quantiles[] = {0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1};

static int slot_of(double us)
{
    if (us < 1) {
        return 0;
    }
    int exponent;
    const double part = frexp(us, &exponent) * 2 - 1; /* in [0, 1) of its doubling */
    const int slot = (exponent - 1) * SX_LATENCY_PARTS + (int)(part * SX_LATENCY_PARTS);
    return SX_MIN(slot, (int)SX_LATENCY_SLOTS - 1);
}

/* The upper end of a slot. */
static double slot_us(int slot)
{
    return ldexp(1 + (double)(slot % SX_LATENCY_PARTS + 1) / SX_LATENCY_PARTS,
                 slot / SX_LATENCY_PARTS);
}

void sx_latencies_add(sx_latencies *l, int64_t ns)
{
    const double us = (double)ns / 1000;
    l->slots[slot_of(us)]++;
    l->count++;
    l->sum_us += us;
    l->max_us = SX_MAX(l->max_us, us);
}

double sx_latencies_at(const sx_latencies *l, double q)
{
    const double wanted = ceil(q * (double)l->count);
    uint64_t below = 0;
    for (int i = 0; i < SX_LATENCY_SLOTS && l->count > 0; i++) {
        below += l->slots[i];
        if ((double)below >= wanted && below > 0) {
            return SX_MIN(slot_us(i), l->max_us);
        }
    }
    return l->max_us;
}

/* ---- Text ---- */

static const char *duration_text(double us, char text[32])
{
    snprintf(text, 32,
             us < 1000  ? "%.0f us"
             : us < 1e6 ? "%.2f ms"
                        : "%.2f s",
             us < 1000  ? us
             : us < 1e6 ? us / 1000
                        : us / 1e6);
    return text;
}

void sx_latencies_print(const sx_latencies *l, sx_buf *out)
{
    enum { COLUMNS = 40 };
    for (size_t i = 0; i < SX_COUNT(quantiles) && l->count > 0; i++) {
        char text[32], name[16];
        const double us = sx_latencies_at(l, quantiles[i]);
        snprintf(name, sizeof(name), "%g %%", quantiles[i] * 100);
        sx_buf_printf(out, "%9s  %10s  ", name, duration_text(us, text));
        for (int k = 0; k < (int)(us / l->max_us * COLUMNS + 0.5); k++) {
            sx_buf_puts(out, "▇");
        }
        sx_buf_putc(out, '\n');
    }
}

/* ---- Picture ---- */

enum { WIDTH = 960, HEIGHT = 480, LEFT = 70, RIGHT = 30, TOP = 90, BOTTOM = 50 };

/* The logarithms of the least and the greatest power of ten around the latencies. */
struct axis {
    double from, to;
};

static double x_of(const struct axis *axis, double us)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * (log10(SX_MAX(us, 1e-3)) - axis->from) /
                      (axis->to - axis->from);
}

static double y_of(double share)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share;
}

static void put_grid(const struct axis *axis, sx_buf *out)
{
    char text[32];
    for (double power = axis->from; power <= axis->to + 0.5; power++) {
        const double us = pow(10, power), x = x_of(axis, us);
        sx_svg_line(out, x, TOP, x, HEIGHT - BOTTOM, SX_SVG_GRID);
        sx_svg_text(out, x, HEIGHT - BOTTOM + 18, SX_SVG_SMALL, "middle", SX_SVG_FAINT,
                    duration_text(us, text));
    }
    for (int percent = 0; percent <= 100; percent += 25) {
        const double y = y_of(percent / 100.0);
        sx_svg_line(out, LEFT, y, WIDTH - RIGHT, y, SX_SVG_GRID);
        snprintf(text, sizeof(text), "%d %%", percent);
        sx_svg_text(out, LEFT - 8, y + 4, SX_SVG_SMALL, "end", SX_SVG_FAINT, text);
    }
}

void sx_latencies_print_svg(const sx_latencies *l, const char *title, const char *about,
                            sx_buf *out)
{
    static const char ink[] = "#2f6fb3";
    const double least = SX_MAX(sx_latencies_at(l, 0), 1.0), most = SX_MAX(l->max_us, least * 1.01);
    const struct axis axis = {floor(log10(least)), ceil(log10(most))};
    double x = LEFT, y = y_of(0);
    uint64_t below = 0;
    sx_svg_begin(out, WIDTH, HEIGHT);
    sx_svg_text(out, LEFT, 36, SX_SVG_HEADING, "start", SX_SVG_INK, title);
    sx_svg_text(out, LEFT, 62, SX_SVG_NORMAL, "start", SX_SVG_FAINT, about);
    put_grid(&axis, out);
    for (int i = 0; i < SX_LATENCY_SLOTS && l->count > 0; i++) {
        if (l->slots[i] > 0) {
            below += l->slots[i];
            const double to_x = x_of(&axis, slot_us(i));
            const double to_y = y_of((double)below / (double)l->count);
            sx_svg_line(out, x, y, to_x, y, ink);
            sx_svg_line(out, to_x, y, to_x, to_y, ink);
            x = to_x;
            y = to_y;
        }
    }
    for (size_t i = 0; i < SX_COUNT(quantiles) && l->count > 0; i++) {
        char text[80], duration[32];
        const double us = sx_latencies_at(l, quantiles[i]);
        snprintf(text, sizeof(text), "%g %%: %s", quantiles[i] * 100, duration_text(us, duration));
        sx_svg_rect(out, x_of(&axis, us) - 3, y_of(quantiles[i]) - 3, 6, 6, ink, text);
    }
    sx_svg_end(out);
}
