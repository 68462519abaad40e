/* See timeline_sums.h. */
#include "runtime/timeline_sums.h"

#include "base/checked.h"
#include "base/memory.h"

static double seconds_of(const sx_timeline_span *s)
{
    return (double)(s->end_ns - s->start_ns) * 1e-9;
}

double sx_span_overlap(const sx_timeline_span *a, const sx_timeline_span *b)
{
    const int64_t from = SX_MAX(a->start_ns, b->start_ns), to = SX_MIN(a->end_ns, b->end_ns);
    return to > from ? (double)(to - from) * 1e-9 : 0;
}

/* The recorded launches whose end is known. */
static void make_rows(sx_timeline_sums *s, const sx_timeline_launch *launches, int64_t first,
                      int64_t last)
{
    for (int i = 0; i < s->n_spans; i++) {
        const sx_timeline_span *span = &s->spans[i];
        if (span->kind != SX_SPAN_COMPUTE || span->launch < first || span->launch > last) {
            continue;
        }
        sx_timeline_row *before = s->n > 0 ? &s->rows[s->n - 1] : NULL;
        if (before != NULL && span->launch <= before->launch) { /* in several executions */
            before->end_ns = SX_MAX(before->end_ns, span->end_ns);
            continue;
        }
        s->rows[s->n++] = (sx_timeline_row){.launch = span->launch,
                                            .steps = launches[span->launch - 1].steps,
                                            .examples = launches[span->launch - 1].examples,
                                            .start_ns = before != NULL ? before->end_ns : 0,
                                            .end_ns = span->end_ns};
    }
}

/* The first row begins with the end of the launch before it; without one, with its own. */
static void begin_first(sx_timeline_sums *s)
{
    sx_timeline_row *row = &s->rows[0];
    for (int i = 0; i < s->n_spans; i++) {
        const sx_timeline_span *span = &s->spans[i];
        const bool before = span->kind == SX_SPAN_COMPUTE && span->launch < row->launch;
        const bool own = span->kind == SX_SPAN_COMPUTE && span->launch == row->launch;
        row->start_ns = before                      ? SX_MAX(row->start_ns, span->end_ns)
                        : own && row->start_ns == 0 ? span->start_ns
                                                    : row->start_ns;
    }
}

/* Adds what a span is of each row's time; rows before `from` are over by then. */
static void add_span(sx_timeline_sums *s, const sx_timeline_span *span, int from)
{
    for (int i = from; i < s->n && s->rows[i].start_ns < span->end_ns; i++) {
        sx_timeline_row *row = &s->rows[i];
        const sx_timeline_span time = {.start_ns = row->start_ns, .end_ns = row->end_ns};
        const double seconds = sx_span_overlap(&time, span);
        row->seconds[span->kind] += seconds;
        row->bytes += seconds > 0 ? (double)span->bytes * seconds / seconds_of(span) : 0;
    }
}

static void add_spans(sx_timeline_sums *s)
{
    int from = 0;
    for (int i = 0; i < s->n_spans; i++) {
        const sx_timeline_span *span = &s->spans[i];
        while (from < s->n && s->rows[from].end_ns <= span->start_ns) {
            from++;
        }
        add_span(s, span, from);
        s->copies = s->copies || span->kind == SX_SPAN_TRANSFER;
    }
    for (int i = 0; i < s->n; i++) {
        sx_timeline_row *row = &s->rows[i];
        s->all.steps += row->steps;
        s->all.examples += row->examples;
        s->all.bytes += row->bytes;
        for (int kind = 0; kind < SX_SPANS; kind++) {
            s->all.seconds[kind] += row->seconds[kind];
        }
    }
    s->all.start_ns = s->rows[0].start_ns;
    s->all.end_ns = s->rows[s->n - 1].end_ns;
}

/* ---- The idle device ---- */

typedef struct gap {
    int64_t start_ns, end_ns;
} gap;

/* When the device is idle, of the recorded time; room for one more than there are spans, which are
 * in the order of their start. Returns their number. */
static int find_gaps(const sx_timeline_sums *s, gap *gaps)
{
    int n = 0;
    int64_t busy_ns = s->all.start_ns;
    for (int i = 0; i < s->n_spans; i++) {
        const sx_timeline_span *span = &s->spans[i];
        const int64_t start_ns = SX_MIN(span->start_ns, s->all.end_ns);
        if (span->kind < SX_SPAN_TRANSFER || span->end_ns <= s->all.start_ns) {
            continue;
        }
        if (start_ns > busy_ns) {
            gaps[n++] = (gap){busy_ns, start_ns};
        }
        busy_ns = SX_MIN(SX_MAX(busy_ns, span->end_ns), s->all.end_ns);
    }
    if (s->all.end_ns > busy_ns) {
        gaps[n++] = (gap){busy_ns, s->all.end_ns};
    }
    return n;
}

/* Divides the time of the gaps by what the loop does meanwhile. */
static void add_gaps(sx_timeline_sums *s, const gap *gaps, int n)
{
    int from = 0;
    for (int i = 0; i < n; i++) {
        s->idle += (double)(gaps[i].end_ns - gaps[i].start_ns) * 1e-9;
    }
    for (int i = 0; i < s->n_spans; i++) {
        const sx_timeline_span *span = &s->spans[i];
        double *part = span->kind == SX_SPAN_INPUT                                 ? &s->idle_input
                       : span->kind == SX_SPAN_STAGE || span->kind == SX_SPAN_SHOW ? &s->idle_host
                                                                                   : NULL;
        while (from < n && gaps[from].end_ns <= span->start_ns) {
            from++;
        }
        for (int g = from; part != NULL && g < n && gaps[g].start_ns < span->end_ns; g++) {
            const sx_timeline_span time = {.start_ns = gaps[g].start_ns, .end_ns = gaps[g].end_ns};
            *part += sx_span_overlap(&time, span);
        }
    }
    s->idle_launch = SX_MAX(s->idle - s->idle_input - s->idle_host, 0);
}

double sx_timeline_busy(const sx_timeline_sums *s, sx_bound part)
{
    return part == SX_BOUND_INPUT      ? s->all.seconds[SX_SPAN_INPUT]
           : part == SX_BOUND_TRANSFER ? s->all.seconds[SX_SPAN_TRANSFER]
           : part == SX_BOUND_COMPUTE  ? s->all.seconds[SX_SPAN_COMPUTE]
           : part == SX_BOUND_HOST     ? s->host
                                       : s->idle;
}

/* What is busy longest; but the idle device, if it is idle for longer than it is busy with that, or
 * waits for launches for longer. */
static sx_bound find_bound(const sx_timeline_sums *s)
{
    sx_bound bound = SX_BOUND_COMPUTE;
    for (int i = 0; i < SX_BOUND_IDLE; i++) {
        bound = sx_timeline_busy(s, (sx_bound)i) > sx_timeline_busy(s, bound) ? (sx_bound)i : bound;
    }
    const bool is_of_device = bound == SX_BOUND_COMPUTE || bound == SX_BOUND_TRANSFER;
    return (is_of_device ? s->idle : s->idle_launch) > sx_timeline_busy(s, bound) ? SX_BOUND_IDLE
                                                                                  : bound;
}

sx_status sx_timeline_sum(sx_timeline *timeline, int64_t first, int64_t last, sx_arena *arena,
                          sx_timeline_sums *out)
{
    const sx_timeline_launch *launches;
    int n_launches;
    *out = (sx_timeline_sums){.n = 0};
    SX_TRY(sx_timeline_read(timeline, &out->spans, &out->n_spans, &launches, &n_launches));
    out->rows = sx_arena_array(arena, n_launches + 1, sx_timeline_row);
    gap *gaps = sx_arena_array(arena, out->n_spans + 1, gap);
    if (out->rows == NULL || gaps == NULL) {
        return sx_no_memory("for a timeline");
    }
    make_rows(out, launches, first, SX_MIN(last, n_launches));
    if (out->n == 0) {
        return sx_error(SX_FAILED_PRECONDITION, "the device did not tell when its launches ended");
    }
    begin_first(out);
    add_spans(out);
    out->total = (double)(out->all.end_ns - out->all.start_ns) * 1e-9;
    out->host = out->all.seconds[SX_SPAN_STAGE] + out->all.seconds[SX_SPAN_SUBMIT] +
                out->all.seconds[SX_SPAN_SHOW];
    add_gaps(out, gaps, find_gaps(out, gaps));
    out->bound = find_bound(out);
    return SX_OK;
}
