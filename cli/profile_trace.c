/* See profile_trace.h. */
#include "profile_trace.h"

#include <inttypes.h>
#include <jansson.h>

#include "base/memory.h"
#include "io/json_text.h"

enum { EXECUTIONS_ROW = 0, FIRST_THREAD_ROW = 1 };

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

sx_status sx_put_profile_trace(sx_buf *out, const sx_profile_report *r)
{
    int n = 0;
    const sx_profile_event *events = sx_profile_events(r->run->profile, &n);
    sx_buf_puts(out, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    SX_TRY(put_object(out, row_name(EXECUTIONS_ROW, "executions"), true));
    for (int i = 0; i < r->run->threads; i++) {
        char name[32];
        snprintf(name, sizeof(name), "thread %d", i);
        SX_TRY(put_object(out, row_name(FIRST_THREAD_ROW + i, name), false));
    }
    for (int i = 0; i < n; i++) {
        const double start_us = (double)(events[i].start_ns - events[0].start_ns) * 1e-3;
        SX_TRY(put_object(out, event_json(r, &events[i], start_us), false));
    }
    sx_buf_puts(out, "\n]}\n");
    return sx_buf_status(out);
}
