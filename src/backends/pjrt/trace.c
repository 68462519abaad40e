/* See trace.h. */
#include "backends/pjrt/trace.h"

#include "base/memory.h"

typedef struct traced {
    const sx_pjrt_plugin *plugin;
    void *event;
    sx_timeline_work *work;
} traced;

/* The callback ends the event, which is of this trace alone. */
static void on_ready(void *error, void *user)
{
    traced *t = user;
    sx_status status = sx_pjrt_status(t->plugin, "Event_OnReady", error);
    sx_pjrt_end(t->plugin, SX_PJRT_EVENT_DESTROY, t->event);
    if (status == SX_OK) {
        sx_timeline_end(t->work);
    } else {
        sx_timeline_drop(t->work);
    }
    sx_status_free(status);
    sx_free(t);
}

void sx_pjrt_trace(const sx_pjrt_client *c, sx_timeline *timeline, sx_span_kind kind,
                   int64_t start_ns, int64_t bytes, void *array)
{
    if (timeline == NULL || array == NULL) {
        return;
    }
    traced *t = sx_alloc(1, sizeof(*t));
    sx_pjrt_pointer ready = SX_PJRT_ARGS(pointer, .object = array);
    sx_status status = t == NULL ? sx_no_memory("for a timeline")
                                 : sx_pjrt_call(c->plugin, SX_PJRT_BUFFER_READY, &ready);
    if (status == SX_OK) {
        *t = (traced){.plugin = c->plugin,
                      .event = ready.value,
                      .work = sx_timeline_begin(timeline, kind, start_ns, bytes)};
        sx_pjrt_on_ready args =
            SX_PJRT_ARGS(on_ready, .event = t->event, .callback = on_ready, .user = t);
        status = t->work == NULL ? sx_no_memory("for a timeline")
                                 : sx_pjrt_call(c->plugin, SX_PJRT_EVENT_ON_READY, &args);
        if (status != SX_OK) {
            sx_pjrt_end(c->plugin, SX_PJRT_EVENT_DESTROY, t->event);
            if (t->work != NULL) {
                sx_timeline_drop(t->work);
            }
        }
    }
    if (status != SX_OK) {
        sx_free(t);
        sx_status_free(status);
    }
}
