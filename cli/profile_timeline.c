/* See profile_timeline.h. */
#include "profile_timeline.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"

enum { SHOWN = 5, BAR = 64 }; /* launches with a bar, and its letters */

const struct sx_span_name sx_span_names[SX_SPANS] = {
    [SX_SPAN_INPUT] = {"input", "input: takes batches from the pipeline", 'i', "#4f9d69"},
    [SX_SPAN_STAGE] = {"stage", "staging: copies batches together", 's', "#8c5fb0"},
    [SX_SPAN_SUBMIT] = {"submit", "submitting copies and launches", 'u', "#7a4b2a"},
    [SX_SPAN_WAIT] = {"wait", "waits for the device", 'w', "#d3d7de"},
    [SX_SPAN_SHOW] = {"show", "shows results", 'r', "#c2413b"},
    [SX_SPAN_TRANSFER] = {"transfer", "copies to the device", 't', "#e08a1e"},
    [SX_SPAN_COMPUTE] = {"compute", "computes", 'c', "#2f6fb2"},
};

static double busy(const sx_timeline_sums *s, sx_bound part)
{
    return sx_timeline_busy(s, part);
}

/* ---- The verdict ---- */

const char *sx_bound_key(sx_bound bound)
{
    static const char *const keys[SX_BOUNDS] = {[SX_BOUND_INPUT] = "input",
                                                [SX_BOUND_TRANSFER] = "transfer",
                                                [SX_BOUND_COMPUTE] = "compute",
                                                [SX_BOUND_HOST] = "host",
                                                [SX_BOUND_IDLE] = "idle"};
    return keys[bound];
}

/* "1,240" or, of slow ones, "3.2" */
static void put_rate(sx_buf *out, double rate)
{
    if (rate < 20) {
        sx_buf_printf(out, "%.1f", rate);
    } else {
        sx_buf_printf(out, "%.0f", rate);
    }
}

/* Examples per second if only what is not the bound had to be done, one thing beside the other. */
static double rate_without(const sx_timeline_sums *s, sx_bound bound)
{
    double longest = 0;
    for (int i = 0; i < SX_BOUND_IDLE; i++) {
        longest = i == (int)bound || i == SX_BOUND_INPUT ? longest
                                                         : SX_MAX(longest, busy(s, (sx_bound)i));
    }
    return longest > 0 ? (double)s->all.examples / longest : 0;
}

static void put_input(sx_buf *out, double rate, const char *unit)
{
    if (rate > 0) {
        sx_buf_puts(out, "; the input alone gives ");
        put_rate(out, rate);
        sx_buf_printf(out, " %s/s", unit);
    }
}

/* Why the device is idle, and what to do about what makes it so for longest. */
static void put_idle(sx_buf *out, const sx_timeline_sums *s, const sx_bound_about *about)
{
    const double percent = 100 / SX_MAX(s->total, 1e-12);
    sx_buf_printf(out,
                  " (computing takes %.0f %%): launches and waiting for them take %.0f %%, input "
                  "%.0f %%, staging and showing results %.0f %%; ",
                  percent * s->all.seconds[SX_SPAN_COMPUTE], percent * s->idle_launch,
                  percent * s->idle_input, percent * s->idle_host);
    if (s->idle_launch >= SX_MAX(s->idle_input, s->idle_host)) {
        sx_buf_puts(out, "larger batches (--batch-size)");
        sx_buf_puts(out, about->loops ? " or more steps per launch (--iterations-per-loop)" : "");
        sx_buf_puts(out, " give each launch more to do");
    } else if (s->idle_input >= s->idle_host) {
        sx_buf_puts(out, "it waits for the input, which should be made faster first");
    } else {
        sx_buf_puts(out, "it waits for the loop's own work; longer steps, with larger batches "
                         "(--batch-size), have less of it");
    }
}

void sx_put_bound(sx_buf *out, const sx_timeline_sums *s, const sx_bound_about *about)
{
    const char *const unit = about->unit;
    const double total = SX_MAX(s->total, 1e-12), share = 100 * busy(s, s->bound) / total;
    const double rate = (double)s->all.examples / total;
    sx_buf_printf(out, "what bounds this run: %s%s, %.0f %% of the time", sx_bound_key(s->bound),
                  s->bound == SX_BOUND_IDLE ? " device" : "", SX_MIN(share, 100));
    switch (s->bound) {
    case SX_BOUND_INPUT:
        sx_buf_puts(out, " (the pipeline gives ");
        put_rate(out, rate);
        sx_buf_printf(out, " %s/s, the step could take ", unit);
        put_rate(out, rate_without(s, s->bound));
        sx_buf_putc(out, ')');
        break;
    case SX_BOUND_TRANSFER:
        sx_buf_puts(out, " (");
        sx_buf_put_size(out, s->all.bytes / (double)SX_MAX(s->all.steps, 1));
        sx_buf_printf(out, " a step at %.3g GB/s; computing takes %.0f %%",
                      s->all.bytes / SX_MAX(s->all.seconds[SX_SPAN_TRANSFER], 1e-12) * 1e-9,
                      100 * s->all.seconds[SX_SPAN_COMPUTE] / total);
        put_input(out, about->input_rate, unit);
        sx_buf_putc(out, ')');
        break;
    case SX_BOUND_COMPUTE:
        sx_buf_puts(out, " (");
        put_rate(out, rate);
        sx_buf_printf(out, " %s/s", unit);
        put_input(out, about->input_rate, unit);
        sx_buf_putc(out, ')');
        break;
    case SX_BOUND_IDLE:
        put_idle(out, s, about);
        break;
    default:
        sx_buf_printf(out,
                      " (the loop's own work: staging %.0f %%, submitting %.0f %%, showing results "
                      "%.0f %%; computing takes %.0f %%)",
                      100 * s->all.seconds[SX_SPAN_STAGE] / total,
                      100 * s->all.seconds[SX_SPAN_SUBMIT] / total,
                      100 * s->all.seconds[SX_SPAN_SHOW] / total,
                      100 * s->all.seconds[SX_SPAN_COMPUTE] / total);
    }
}

/* ---- Tables ---- */

/* Units of time: that of steps and launches shorter than a millisecond is a microsecond. */
static double scale_of(double seconds, const char **out_unit)
{
    const bool micro = seconds < 1e-3;
    *out_unit = micro ? "µs" : "ms";
    return micro ? 1e6 : 1e3;
}

static void put_part(sx_buf *out, const sx_timeline_sums *s, double seconds, const char *name)
{
    const char *unit;
    const double steps = (double)SX_MAX(s->all.steps, 1), scale = scale_of(s->total / steps, &unit);
    sx_buf_printf(out, "%10.3f %5.1f %%  %s", scale * seconds / steps,
                  100 * seconds / SX_MAX(s->total, 1e-12), name);
}

static void put_parts(sx_buf *out, const sx_timeline_sums *s)
{
    const char *unit;
    (void)scale_of(s->total / (double)SX_MAX(s->all.steps, 1), &unit);
    sx_buf_printf(out, "\n   %s/step   share  the step loop\n", unit);
    for (int kind = 0; kind < SX_SPANS; kind++) {
        if (kind == SX_SPAN_TRANSFER && !s->copies) {
            continue;
        }
        if (kind == SX_SPAN_TRANSFER || (kind == SX_SPAN_COMPUTE && !s->copies)) {
            sx_buf_printf(out, "%19s  the device, meanwhile\n", "");
        }
        put_part(out, s, s->all.seconds[kind], sx_span_names[kind].name);
        if (kind == SX_SPAN_TRANSFER) {
            sx_buf_printf(out, ", %.3g GB/s",
                          s->all.bytes / SX_MAX(s->all.seconds[kind], 1e-12) * 1e-9);
        }
        sx_buf_putc(out, '\n');
    }
    put_part(out, s, s->idle, "does neither\n");
    put_part(out, s, s->total, "a step\n");
}

/* The first that may lie in a launch's time: two are under way at once. */
static int first_span(const sx_timeline_sums *s, int launch)
{
    int i = 0;
    while (i < s->n_spans && s->spans[i].launch < launch - 2) {
        i++;
    }
    return i;
}

/* The part of a letter's time that spans of a kind take, from the first on, whatever their launch.
 */
static double part_of(const sx_timeline_sums *s, int first, sx_span_kind kind,
                      const sx_timeline_span *letter)
{
    double seconds = 0;
    for (int i = first; i < s->n_spans && s->spans[i].start_ns < letter->end_ns; i++) {
        seconds += s->spans[i].kind == kind ? sx_span_overlap(letter, &s->spans[i]) : 0;
    }
    return seconds / SX_MAX((double)(letter->end_ns - letter->start_ns) * 1e-9, 1e-12);
}

/* What the loop's thread does most in that time; a space: nothing that is known. */
static char letter_of_loop(const sx_timeline_sums *s, int first, const sx_timeline_span *letter)
{
    double most = 0.25;
    char c = ' ';
    for (int kind = 0; kind < SX_SPAN_TRANSFER; kind++) {
        const double part = part_of(s, first, (sx_span_kind)kind, letter);
        c = part > most ? sx_span_names[kind].letter : c;
        most = SX_MAX(part, most);
    }
    return c;
}

static char letter_of_device(const sx_timeline_sums *s, int first, const sx_timeline_span *letter)
{
    const bool copies = part_of(s, first, SX_SPAN_TRANSFER, letter) >= 0.5,
               computes = part_of(s, first, SX_SPAN_COMPUTE, letter) >= 0.5;
    return copies && computes ? 'b' : copies ? 't' : computes ? 'c' : '.';
}

static void put_bars(sx_buf *out, const sx_timeline_sums *s, const sx_timeline_row *row)
{
    char loop[BAR + 1] = "", device[BAR + 1] = "";
    const int64_t ns = row->end_ns - row->start_ns;
    const int first = first_span(s, row->launch);
    for (int i = 0; i < BAR; i++) {
        const sx_timeline_span letter = {.start_ns = row->start_ns + ns * i / BAR,
                                         .end_ns = row->start_ns + ns * (i + 1) / BAR};
        loop[i] = letter_of_loop(s, first, &letter);
        device[i] = letter_of_device(s, first, &letter);
    }
    sx_buf_printf(out, "        loop   |%s|\n        device |%s|\n", loop, device);
}

void sx_put_timeline(sx_buf *out, const sx_timeline_sums *s)
{
    const char *unit;
    const double scale = scale_of(s->total / (double)SX_MAX(s->n, 1), &unit);
    put_parts(out, s);
    sx_buf_printf(out, "\n launch steps       %s", unit);
    for (int kind = 0; kind < SX_SPANS; kind++) {
        if (kind != SX_SPAN_TRANSFER || s->copies) {
            sx_buf_printf(out, " %8s", sx_span_names[kind].key);
        }
    }
    sx_buf_putc(out, '\n');
    for (int i = SX_MAX(s->n - SHOWN, 0); i < s->n; i++) {
        const sx_timeline_row *row = &s->rows[i];
        sx_buf_printf(out, "%7d %5" PRId64 " %8.2f", row->launch, row->steps,
                      scale * (double)(row->end_ns - row->start_ns) * 1e-9);
        for (int kind = 0; kind < SX_SPANS; kind++) {
            if (kind != SX_SPAN_TRANSFER || s->copies) {
                sx_buf_printf(out, " %8.2f", scale * row->seconds[kind]);
            }
        }
        sx_buf_putc(out, '\n');
        put_bars(out, s, row);
    }
    sx_buf_puts(out, "  i input, s staging, u submitting, w waiting, r results; "
                     "c computing, t copying, b both, . neither\n");
}
