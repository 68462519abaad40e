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

/* Of the recorded time; spans are in the order of their start. */
static double idle_seconds(const sx_timeline_sums *s)
{
    int64_t idle = 0, busy_ns = s->all.start_ns;
    for (int i = 0; i < s->n_spans; i++) {
        const sx_timeline_span *span = &s->spans[i];
        if (span->kind >= SX_SPAN_TRANSFER && span->end_ns > s->all.start_ns) {
            idle += SX_MAX(SX_MIN(span->start_ns, s->all.end_ns) - busy_ns, 0);
            busy_ns = SX_MIN(SX_MAX(busy_ns, span->end_ns), s->all.end_ns);
        }
    }
    return (double)(idle + s->all.end_ns - busy_ns) * 1e-9;
}

double sx_timeline_busy(const sx_timeline_sums *s, sx_bound part)
{
    return part == SX_BOUND_INPUT      ? s->all.seconds[SX_SPAN_INPUT]
           : part == SX_BOUND_TRANSFER ? s->all.seconds[SX_SPAN_TRANSFER]
           : part == SX_BOUND_COMPUTE  ? s->all.seconds[SX_SPAN_COMPUTE]
                                       : s->host;
}

sx_status sx_timeline_sum(sx_timeline *timeline, int64_t first, int64_t last, sx_arena *arena,
                          sx_timeline_sums *out)
{
    const sx_timeline_launch *launches;
    int n_launches;
    *out = (sx_timeline_sums){.n = 0};
    SX_TRY(sx_timeline_read(timeline, &out->spans, &out->n_spans, &launches, &n_launches));
    out->rows = sx_arena_array(arena, n_launches + 1, sx_timeline_row);
    if (out->rows == NULL) {
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
    out->idle = idle_seconds(out);
    out->bound = SX_BOUND_COMPUTE;
    for (int i = 0; i < SX_BOUNDS; i++) {
        const bool more = sx_timeline_busy(out, (sx_bound)i) > sx_timeline_busy(out, out->bound);
        out->bound = more ? (sx_bound)i : out->bound;
    }
    return SX_OK;
}
