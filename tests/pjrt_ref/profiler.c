/* See profiler.h. Errors of the profiler are statuses, as those of the plugin are. */
#include "pjrt_ref/profiler.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "pjrt_ref/api.h"
#include "pjrt_ref/fault.h"
#include "pjrt_ref/objects.h"
#include "pjrt_ref/ops.h"
#include "proto/wire.h"

enum { MAX_EVENTS = 1 << 16, NAME_BYTES = 120, TF_OP = 1 };

typedef struct event {
    char name[NAME_BYTES], loc[NAME_BYTES];
    int64_t start_ns, end_ns; /* of sx_now_ns() */
} event;

static struct {
    pthread_mutex_t lock;
    atomic_bool is_on;
    event *events;
    int n, max;
    sx_buf space; /* what was handed out; valid until the profiler is destroyed */
    int64_t epoch_ns;
} recorder = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Recording ---- */

int64_t ref_profiler_begin(void)
{
    return atomic_load(&recorder.is_on) ? sx_now_ns() : 0;
}

void ref_profiler_end(const ref_op *op, int64_t start_ns)
{
    pthread_mutex_lock(&recorder.lock);
    if (recorder.n == recorder.max && recorder.max < MAX_EVENTS) {
        const int most = 2 * recorder.max + 256;
        event *more = sx_realloc(recorder.events, (size_t)most, sizeof(*more));
        recorder.max = more != NULL ? most : recorder.max;
        recorder.events = more != NULL ? more : recorder.events;
    }
    if (recorder.n < recorder.max) {
        event *e = &recorder.events[recorder.n++];
        if (ref_setting("profiler", 0) == 3) { /* no numbers, but parts */
            snprintf(e->name, sizeof(e->name), "%%%s = %s()", op->row->name, op->row->name);
            snprintf(e->loc, sizeof(e->loc), "%s/%s:", op->loc, op->row->name);
        } else {
            snprintf(e->name, sizeof(e->name), "%%%s.%d = %s()", op->row->name, op->line,
                     op->row->name);
            snprintf(e->loc, sizeof(e->loc), "%s:", op->loc);
        }
        e->start_ns = start_ns;
        e->end_ns = sx_now_ns();
    }
    pthread_mutex_unlock(&recorder.lock);
}

/* ---- XSpace ---- */

static void put_event(sx_buf *line, const event *e, int id, int64_t first_ns)
{
    size_t at = sx_wire_begin(line, 4);
    sx_wire_append_number(line, 1, (uint64_t)id);
    sx_wire_append_number(line, 2, (uint64_t)(e->start_ns - first_ns) * 1000);
    sx_wire_append_number(line, 3, (uint64_t)(e->end_ns - e->start_ns) * 1000);
    sx_wire_end(line, at);
}

/* An entry of the plane's map of event metadata: the name, and the operation as a stat. */
static void put_metadata(sx_buf *plane, const event *e, int id)
{
    size_t entry = sx_wire_begin(plane, 4);
    sx_wire_append_number(plane, 1, (uint64_t)id);
    size_t about = sx_wire_begin(plane, 2);
    sx_wire_append_text(plane, 2, e->name);
    size_t stat = sx_wire_begin(plane, 5);
    sx_wire_append_number(plane, 1, TF_OP);
    sx_wire_append_text(plane, 5, e->loc);
    sx_wire_end(plane, stat);
    sx_wire_end(plane, about);
    sx_wire_end(plane, entry);
}

/* Every event has metadata of its own. */
static void put_space(sx_buf *out)
{
    int64_t first_ns = recorder.n > 0 ? recorder.events[0].start_ns : 0;
    for (int i = 0; i < recorder.n; i++) {
        first_ns = recorder.events[i].start_ns < first_ns ? recorder.events[i].start_ns : first_ns;
    }
    size_t plane = sx_wire_begin(out, 1);
    sx_wire_append_text(out, 2, "/device:REF:0");
    size_t line = sx_wire_begin(out, 3);
    sx_wire_append_text(out, 2, "XLA Ops");
    sx_wire_append_number(out, 3, (uint64_t)(first_ns + recorder.epoch_ns));
    for (int i = 0; i < recorder.n; i++) {
        put_event(out, &recorder.events[i], i + 1, first_ns);
    }
    sx_wire_end(out, line);
    for (int i = 0; i < recorder.n; i++) {
        put_metadata(out, &recorder.events[i], i + 1);
    }
    size_t stat = sx_wire_begin(out, 5);
    sx_wire_append_number(out, 1, TF_OP);
    size_t about = sx_wire_begin(out, 2);
    sx_wire_append_text(out, 2, "tf_op");
    sx_wire_end(out, about);
    sx_wire_end(out, stat);
    sx_wire_end(out, plane);
}

/* ---- The functions ---- */

static void *error_destroy(void *args)
{
    sx_status_free(((sx_pjrt_profiler_error *)args)->error);
    return NULL;
}

static void *error_message(void *args)
{
    sx_pjrt_profiler_error *a = args;
    a->message = sx_status_message(a->error);
    a->size = strlen(a->message);
    return NULL;
}

static void *error_code(void *args)
{
    sx_pjrt_profiler_code *a = args;
    a->code = (int)sx_status_code(a->error);
    return NULL;
}

static void *create(void *args)
{
    ((sx_pjrt_profiler_create *)args)->profiler = &recorder;
    return NULL;
}

static void *start(void *args)
{
    (void)args;
    recorder.n = 0;
    recorder.epoch_ns = (int64_t)(sx_wall_seconds() * 1e9) - sx_now_ns();
    sx_buf_init(&recorder.space, 0);
    sx_status status = ref_fault("profiler");
    atomic_store(&recorder.is_on, status == SX_OK);
    return ref_error_of(status);
}

static void *stop(void *args)
{
    (void)args;
    atomic_store(&recorder.is_on, false);
    return NULL;
}

static void *collect(void *args)
{
    sx_pjrt_profiler_data *a = args;
    sx_status status = ref_fault("collect");
    if (status != SX_OK) {
        return ref_error_of(status);
    }
    pthread_mutex_lock(&recorder.lock);
    if (recorder.space.size == 0) {
        put_space(&recorder.space);
    }
    pthread_mutex_unlock(&recorder.lock);
    if (a->data != NULL) {
        memcpy(a->data, recorder.space.data, recorder.space.size);
    } else if (ref_setting("profiler", 0) > 1) { /* as XLA's plugins do */
        a->data = (uint8_t *)recorder.space.data;
    }
    a->size = recorder.space.size;
    return NULL;
}

static void *destroy(void *args)
{
    (void)args;
    atomic_store(&recorder.is_on, false);
    pthread_mutex_lock(&recorder.lock);
    sx_buf_deinit(&recorder.space);
    sx_free(recorder.events);
    recorder.events = NULL;
    recorder.n = recorder.max = 0;
    pthread_mutex_unlock(&recorder.lock);
    return NULL;
}

const sx_pjrt_extension *ref_profiler_extension(void)
{
    static const sx_pjrt_profiler_api api = {.struct_size = sizeof(api),
                                             .error_destroy = error_destroy,
                                             .error_message = error_message,
                                             .error_code = error_code,
                                             .create = create,
                                             .destroy = destroy,
                                             .start = start,
                                             .stop = stop,
                                             .collect = collect};
    static const sx_pjrt_profiler_extension extension = {
        .head = {.struct_size = sizeof(extension) + 8, .type = SX_PJRT_PROFILER}, .api = &api};
    static const sx_pjrt_extension other = {
        .struct_size = sizeof(other), .type = 4, .next = &extension.head};
    return &other;
}
