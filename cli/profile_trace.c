/* See profile_trace.h. */
#include "profile_trace.h"

#include <inttypes.h>
#include <jansson.h>

#include "base/memory.h"
#include "io/json_text.h"

enum {
    EXECUTIONS_ROW = 0,
    FIRST_THREAD_ROW = 1,
    LOOP_ROW = 10000,
    COPIES_ROW,
    DEVICE_ROW,
    OPS_ROW
};

static sx_status put_object(sx_buf *out, json_t *object, bool first)
{
    char *text = NULL;
    sx_status status = sx_json_text(object, JSON_COMPACT | JSON_ENSURE_ASCII, &text);
    json_decref(object);
    if (status == SX_OK) {
        sx_buf_printf(out, "%s%s", first ? "" : ",\n", text);
    }
    sx_free(text);
    return status;
}

static json_t *row_name(int row, const char *name)
{
    return json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", "thread_name", "ph", "M", "pid", 1,
                     "tid", row, "args", "name", name);
}

static json_t *event_json(const sx_profile_report *r, const sx_profile_event *e, double start_us)
{
    const double us = (double)(e->end_ns - e->start_ns) * 1e-3;
    if (e->row == SX_PROFILE_EXECUTION) {
        return json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i}", "name", "execution", "cat",
                         "execution", "ph", "X", "ts", start_us, "dur", us, "pid", 1, "tid",
                         EXECUTIONS_ROW);
    }
    const sx_kernel_time *k = sx_profile_row(r->run->profile, e->row);
    return json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:{s:s, s:s, s:i}}", "name", k->kernel,
                     "cat", "kernel", "ph", "X", "ts", start_us, "dur", us, "pid", 1, "tid",
                     FIRST_THREAD_ROW + e->worker, "args", "operators", k->ops, "layer", k->node,
                     "shard", e->shard);
}

/* The step loop, the copies, the launches on the device. */
static sx_status put_loop(sx_buf *out, const sx_timeline_sums *s, int64_t zero_ns, bool first)
{
    SX_TRY(put_object(out, row_name(LOOP_ROW, "step loop"), first));
    if (s->copies) {
        SX_TRY(put_object(out, row_name(COPIES_ROW, "copies to the device"), false));
    }
    SX_TRY(put_object(out, row_name(DEVICE_ROW, "device"), false));
    for (int i = 0; i < s->n_spans; i++) {
        const sx_timeline_span *span = &s->spans[i];
        const int row = span->kind == SX_SPAN_TRANSFER  ? COPIES_ROW
                        : span->kind == SX_SPAN_COMPUTE ? DEVICE_ROW
                                                        : LOOP_ROW;
        json_t *event =
            json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:{s:i, s:I}}", "name",
                      sx_span_names[span->kind].key, "cat", "loop", "ph", "X", "ts",
                      (double)(span->start_ns - zero_ns) * 1e-3, "dur",
                      (double)(span->end_ns - span->start_ns) * 1e-3, "pid", 1, "tid", row, "args",
                      "launch", span->launch, "bytes", (json_int_t)span->bytes);
        SX_TRY(put_object(out, event, false));
    }
    return SX_OK;
}

/* The operations of a device, by what computed them. */
static sx_status put_ops(sx_buf *out, const sx_profile_ops *ops, int64_t zero_ns)
{
    for (int i = 0; i < ops->n_lines; i++) {
        SX_TRY(put_object(out, row_name(OPS_ROW + i, ops->lines[i]), false));
    }
    for (int i = 0; i < ops->n_events; i++) {
        const sx_profile_op_event *e = &ops->events[i];
        json_t *event =
            json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:{s:s}}", "name",
                      ops->items[e->op].name, "cat", "operation", "ph", "X", "ts",
                      (double)(e->start_ns - zero_ns) * 1e-3, "dur", e->seconds * 1e6, "pid", 1,
                      "tid", OPS_ROW + e->line, "args", "layer", ops->items[e->op].node);
        SX_TRY(put_object(out, event, false));
    }
    return SX_OK;
}

/* The kernels of cpu, by thread. */
static sx_status put_threads(sx_buf *out, const sx_profile_report *r, int64_t zero_ns)
{
    int n = 0;
    const sx_profile_event *events = sx_profile_events(r->run->profile, &n);
    SX_TRY(put_object(out, row_name(EXECUTIONS_ROW, "executions"), true));
    for (int i = 0; i < r->run->threads; i++) {
        char name[32];
        snprintf(name, sizeof(name), "thread %d", i);
        SX_TRY(put_object(out, row_name(FIRST_THREAD_ROW + i, name), false));
    }
    for (int i = 0; i < n; i++) {
        const double start_us = (double)(events[i].start_ns - zero_ns) * 1e-3;
        SX_TRY(put_object(out, event_json(r, &events[i], start_us), false));
    }
    return SX_OK;
}

sx_status sx_put_profile_trace(sx_buf *out, const sx_profile_report *r)
{
    const sx_timeline_sums *loop = &r->run->loop;
    const bool tells_loop = sx_profile_tells_loop(r->run), on_cpu = sx_profiled_on_cpu(r->run);
    int n = 0;
    const sx_profile_event *events = sx_profile_events(r->run->profile, &n);
    const int64_t zero_ns = tells_loop && loop->n_spans > 0 ? loop->spans[0].start_ns
                            : n > 0                         ? events[0].start_ns
                                                            : 0;
    sx_buf_puts(out, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    if (on_cpu) {
        SX_TRY(put_threads(out, r, zero_ns));
    }
    if (tells_loop) {
        SX_TRY(put_loop(out, loop, zero_ns, !on_cpu));
        SX_TRY(put_ops(out, &r->run->ops, zero_ns));
    }
    sx_buf_puts(out, "\n]}\n");
    return sx_buf_status(out);
}
