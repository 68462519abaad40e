/* See buffer.h. */
#include "backends/pjrt/buffer.h"

#include <string.h>
#include <time.h>

#include "backends/pjrt/trace.h"
#include "base/clock.h"
#include "base/memory.h"

static sx_pjrt_platform *platform_of(const sx_device_buffer *buffer)
{
    return (sx_pjrt_platform *)buffer->device->platform;
}

static sx_status too_late(const sx_pjrt_buffer *b)
{
    return sx_error(SX_DEADLINE_EXCEEDED, "%s of %s has not given a value in time",
                    b->head.device->name, platform_of(&b->head)->client->plugin->path);
}

sx_status sx_pjrt_buffer_settle(sx_pjrt_buffer *b)
{
    const sx_pjrt_platform *p = platform_of(&b->head);
    sx_status first = SX_OK;
    for (int r = 0; r < p->local; r++) {
        sx_pjrt_keep_first(&first, sx_pjrt_await(p->client, b->transfers[r]));
        b->transfers[r] = NULL;
    }
    if (b->filling != NULL) {
        sx_pjrt_end(p->client->plugin, SX_PJRT_FILL_DESTROY, b->filling);
        b->filling = NULL;
    }
    return first;
}

static void drop_arrays(sx_pjrt_buffer *b)
{
    const sx_pjrt_platform *p = platform_of(&b->head);
    for (int r = 0; r < p->local; r++) {
        sx_pjrt_array_destroy(p->client, b->arrays[r]);
        b->arrays[r] = NULL;
    }
}

void sx_pjrt_buffer_destroy(sx_device_buffer *head)
{
    sx_pjrt_buffer *b = (sx_pjrt_buffer *)head;
    if (b->arrays != NULL && b->transfers != NULL) {
        sx_status_free(sx_pjrt_buffer_settle(b));
        drop_arrays(b);
    }
    pthread_mutex_destroy(&b->lock);
    sx_free(b->arrays);
    sx_free(b->transfers);
    sx_free(b->owned);
    sx_free(b);
}

sx_status sx_pjrt_buffer_create(sx_device *device, int memory, const sx_type *type,
                                sx_device_buffer **out)
{
    const sx_pjrt_platform *p = (const sx_pjrt_platform *)device->platform;
    sx_pjrt_buffer *b = sx_alloc(1, sizeof(*b));
    if (b == NULL) {
        return sx_no_memory("for a buffer");
    }
    b->head.device = device;
    b->head.memory = memory;
    b->head.type = *type;
    atomic_init(&b->head.refs, 1);
    pthread_mutex_init(&b->lock, NULL);
    b->arrays = sx_alloc((size_t)p->local, sizeof(*b->arrays));
    b->transfers = sx_alloc((size_t)p->local, sizeof(*b->transfers));
    if (b->arrays == NULL || b->transfers == NULL) {
        sx_pjrt_buffer_destroy(&b->head);
        return sx_no_memory("for a buffer");
    }
    *out = &b->head;
    return SX_OK;
}

/* The type of one replica's array. */
static sx_type part_of(const sx_pjrt_buffer *b, int axis)
{
    sx_type type = b->head.type;
    if (axis != SX_PJRT_WHOLE) {
        type.dims[axis] /= platform_of(&b->head)->replicas;
    }
    return type;
}

/* Bytes from one index of the axis to the next, in the whole value. */
static int64_t stride_of(const sx_type *type, int axis)
{
    int64_t stride = (int64_t)sx_dtype_bytes(type->dtype);
    for (int i = type->rank - 1; i > axis; i--) {
        stride *= type->dims[i];
    }
    return stride;
}

/* NULL: the default, which plugins without memories have, too. */
static void *memory_of(const sx_device *device, int memory)
{
    return memory > 0 ? device->memories[memory].handle : NULL;
}

/* Copies host data to the devices of this process: of data that are split, it reads their parts
 * alone. With `lent`, the data must remain unchanged until
 * sx_pjrt_buffer_settle(). */
static sx_status put(sx_pjrt_buffer *b, const void *data, int axis, bool lent)
{
    const sx_pjrt_platform *p = platform_of(&b->head);
    sx_type part = part_of(b, axis);
    int64_t strides[SX_MAX_RANK], step = 0;
    for (int i = 0; i < part.rank; i++) {
        strides[i] = stride_of(&b->head.type, i);
    }
    if (axis != SX_PJRT_WHOLE) {
        step = part.dims[axis] * strides[axis];
    }
    drop_arrays(b);
    b->state = SX_PJRT_EMPTY;
    const int64_t start = sx_timeline_now(p->head.timeline);
    sx_status status = SX_OK;
    for (int r = 0; r < p->local && status == SX_OK; r++) {
        status = sx_pjrt_put(p->client, sx_pjrt_number(p, b->head.device->index + r),
                             memory_of(b->head.device, b->head.memory), &part,
                             (const char *)data + (p->first + r) * step, axis > 0 ? strides : NULL,
                             lent ? &b->transfers[r] : NULL, &b->arrays[r]);
    }
    if (status !=
        SX_OK) { /* copies to other replicas must end before the caller may change the data */
        sx_status_free(sx_pjrt_buffer_settle(b));
        drop_arrays(b);
        return status;
    }
    b->state = axis == SX_PJRT_WHOLE ? SX_PJRT_COPIED : SX_PJRT_CUT;
    b->axis = axis;
    if (lent) { /* what is fed, not a number beside it; of replicas of the whole, to each */
        sx_pjrt_trace(p->client, p->head.timeline, SX_SPAN_TRANSFER, start,
                      sx_type_bytes(&part) * p->local, b->arrays[p->local - 1]);
    }
    return SX_OK;
}

/* Keeps host data for later: a copy, or `data` itself if lent. */
static sx_status hold(sx_pjrt_buffer *b, const void *data, bool lent)
{
    size_t bytes = (size_t)sx_type_bytes(&b->head.type);
    if (!lent) {
        b->owned = b->owned != NULL ? b->owned : sx_alloc(bytes + 1, 1);
        if (b->owned == NULL) {
            return sx_no_memory("for a buffer");
        }
        memcpy(b->owned, data, bytes);
    }
    drop_arrays(b);
    b->held = lent ? data : b->owned;
    b->state = SX_PJRT_HELD;
    return SX_OK;
}

static sx_status write_locked(sx_pjrt_buffer *b, const void *data, bool borrow)
{
    SX_TRY(sx_pjrt_buffer_settle(b));
    if (platform_of(&b->head)->replicas == 1 || b->state == SX_PJRT_COPIED) {
        return put(b, data, SX_PJRT_WHOLE, borrow);
    }
    return b->state == SX_PJRT_CUT || b->state == SX_PJRT_GIVEN ? put(b, data, b->axis, borrow)
                                                                : hold(b, data, borrow);
}

sx_status sx_pjrt_buffer_write(sx_device_buffer *head, const void *data, bool borrow)
{
    sx_pjrt_buffer *b = (sx_pjrt_buffer *)head;
    pthread_mutex_lock(&b->lock);
    sx_status status = write_locked(b, data, borrow);
    pthread_mutex_unlock(&b->lock);
    return status;
}

/* Not of several replicas, which get parts; nor of a device that may tile its arrays, as TPUs do.
 * Of GPUs it has not been tried. */
static bool takes_beginnings(const sx_pjrt_buffer *b)
{
    const sx_pjrt_platform *p = platform_of(&b->head);
    return p->replicas == 1 && b->head.device->memories[b->head.memory].handle != NULL &&
           strcmp(p->client->platform, "cpu") == 0 && !atomic_load(&p->whole_only);
}

/* UNIMPLEMENTED, INVALID_ARGUMENT: the plugin cannot. */
static sx_status put_first(sx_pjrt_buffer *b, const void *data, int64_t bytes)
{
    const sx_pjrt_platform *p = platform_of(&b->head);
    SX_TRY(sx_pjrt_buffer_settle(b));
    drop_arrays(b);
    b->state = SX_PJRT_EMPTY;
    const int64_t start = sx_timeline_now(p->head.timeline);
    SX_TRY(sx_pjrt_put_first(p->client, b->head.device->memories[b->head.memory].handle,
                             &b->head.type, data, bytes, &b->transfers[0], &b->filling,
                             &b->arrays[0]));
    b->state = SX_PJRT_COPIED;
    sx_pjrt_trace(p->client, p->head.timeline, SX_SPAN_TRANSFER, start, bytes, b->arrays[0]);
    return SX_OK;
}

sx_status sx_pjrt_buffer_write_first(sx_device_buffer *head, const void *data, int64_t bytes)
{
    sx_pjrt_buffer *b = (sx_pjrt_buffer *)head;
    pthread_mutex_lock(&b->lock);
    const bool tried = takes_beginnings(b);
    sx_status status = tried ? put_first(b, data, bytes) : write_locked(b, data, true);
    const sx_code code = sx_status_code(status);
    if (tried && (code == SX_UNIMPLEMENTED || code == SX_INVALID_ARGUMENT)) {
        sx_status_free(status);
        atomic_store(&platform_of(head)->whole_only, true);
        status = write_locked(b, data, true);
    }
    pthread_mutex_unlock(&b->lock);
    return status;
}

/* ---- Reading ---- */

/* A copy to the host that its reader may leave: the plugin writes to memory that is freed after
 * both. */
typedef struct leavable {
    sx_pjrt_platform *platform;
    void *event;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool ended, left;
    sx_status status;
    char data[];
} leavable;

static void leavable_free(leavable *copy)
{
    pthread_mutex_destroy(&copy->lock);
    pthread_cond_destroy(&copy->changed);
    sx_free(copy);
}

/* The callback ends the event, as no other thread may use it any more. */
static void on_copied(void *error, void *user)
{
    leavable *copy = user;
    sx_pjrt_platform *p = copy->platform;
    sx_status status = sx_pjrt_status(p->client->plugin, "Event_OnReady", error);
    sx_pjrt_end(p->client->plugin, SX_PJRT_EVENT_DESTROY, copy->event);
    pthread_mutex_lock(&copy->lock);
    const bool left = copy->left;
    copy->status = status;
    copy->ended = true;
    pthread_cond_broadcast(&copy->changed);
    pthread_mutex_unlock(&copy->lock);
    if (left) {
        sx_status_free(status);
        leavable_free(copy);
        atomic_fetch_sub(&p->head.abandoned, 1);
    }
}

/* Begins the copy; an error means that nothing of it is left. */
static sx_status begin_copy(leavable *copy, void *array, const sx_type *type)
{
    const sx_pjrt_client *c = copy->platform->client;
    SX_TRY(sx_pjrt_begin_get(c, array, type, copy->data, &copy->event));
    if (copy->event == NULL) { /* no bytes */
        copy->ended = true;
        return SX_OK;
    }
    sx_pjrt_on_ready args =
        SX_PJRT_ARGS(on_ready, .event = copy->event, .callback = on_copied, .user = copy);
    sx_status status = sx_pjrt_call(c->plugin, SX_PJRT_EVENT_ON_READY, &args);
    if (status != SX_OK) { /* the copy may have begun */
        sx_status_free(sx_pjrt_await(c, copy->event));
    }
    return status;
}

/* Copies an array's value to the host. */
static sx_status get(const sx_pjrt_buffer *b, void *array, const sx_type *type, void *data,
                     int64_t deadline_ns)
{
    sx_pjrt_platform *p = platform_of(&b->head);
    const size_t bytes = (size_t)sx_type_bytes(type);
    if (deadline_ns == SX_NO_DEADLINE) {
        return sx_pjrt_get(p->client, array, type, data);
    }
    leavable *copy = sx_alloc(sizeof(*copy) + bytes, 1);
    if (copy == NULL) {
        return sx_no_memory("for %zu bytes from %s", bytes, b->head.device->name);
    }
    copy->platform = p;
    pthread_mutex_init(&copy->lock, NULL);
    pthread_cond_init(&copy->changed, NULL);
    sx_status status = begin_copy(copy, array, type);
    if (status != SX_OK) {
        leavable_free(copy);
        return status;
    }
    const struct timespec until = sx_timespec_of(deadline_ns);
    int late = 0;
    pthread_mutex_lock(&copy->lock);
    while (late == 0 && !copy->ended) {
        late = pthread_cond_clockwait(&copy->changed, &copy->lock, CLOCK_MONOTONIC, &until);
    }
    const bool left = copy->left = !copy->ended;
    if (left) {
        atomic_fetch_add(&p->head.abandoned, 1);
    }
    pthread_mutex_unlock(&copy->lock);
    if (left) {
        return too_late(b);
    }
    status = copy->status;
    if (status == SX_OK) {
        memcpy(data, copy->data, bytes);
    }
    leavable_free(copy);
    return status;
}

/* Reads the parts of a superbatch: K rows from each replica, joined along the batch. */
static sx_status read_parts(sx_pjrt_buffer *b, char *data, int64_t deadline_ns)
{
    const sx_pjrt_platform *p = platform_of(&b->head);
    sx_type part = part_of(b, b->axis);
    int64_t outer = 1, whole = stride_of(&b->head.type, b->axis);
    if (p->processes > 1) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "the buffer is split over %d processes; this one has a part of it",
                        p->processes);
    }
    for (int i = 0; i < b->axis; i++) {
        outer *= part.dims[i];
    }
    int64_t bytes = sx_type_bytes(&part), row = bytes / (outer > 0 ? outer : 1);
    whole *= b->head.type.dims[b->axis];
    for (int r = 0; r < p->replicas; r++) {
        if (b->axis == 0) {
            SX_TRY(get(b, b->arrays[r], &part, data + r * row, deadline_ns));
            continue;
        }
        b->owned = b->owned != NULL ? b->owned : sx_alloc((size_t)whole * (size_t)outer + 1, 1);
        if (b->owned == NULL) {
            return sx_no_memory("for a buffer");
        }
        SX_TRY(get(b, b->arrays[r], &part, b->owned, deadline_ns));
        for (int64_t k = 0; k < outer; k++) {
            memcpy(data + k * whole + r * row, (const char *)b->owned + k * row, (size_t)row);
        }
    }
    return SX_OK;
}

static sx_status read_locked(sx_pjrt_buffer *b, void *data, int64_t deadline_ns)
{
    size_t bytes = (size_t)sx_type_bytes(&b->head.type);
    switch (b->state) {
    case SX_PJRT_EMPTY:
        memset(data, 0, bytes);
        return SX_OK;
    case SX_PJRT_HELD:
        memcpy(data, b->held, bytes);
        return SX_OK;
    case SX_PJRT_COPIED:
        return get(b, b->arrays[0], &b->head.type, data, deadline_ns);
    case SX_PJRT_CUT:
        return read_parts(b, data, deadline_ns);
    case SX_PJRT_GIVEN:
        return sx_error(SX_FAILED_PRECONDITION, "the buffer's value was given to an execution");
    case SX_PJRT_LOST:
        break;
    }
    return sx_error(SX_FAILED_PRECONDITION,
                    "the buffer's value was lost in an execution that failed");
}

sx_status sx_pjrt_buffer_read(sx_device_buffer *head, void *data, int64_t deadline_ns)
{
    sx_pjrt_buffer *b = (sx_pjrt_buffer *)head;
    if (deadline_ns == SX_NO_DEADLINE) {
        pthread_mutex_lock(&b->lock);
    }
    /* ThreadSanitizer does not know pthread_mutex_clocklock(). */
    while (deadline_ns != SX_NO_DEADLINE && pthread_mutex_trylock(&b->lock) != 0) {
        if (sx_now_ns() >= deadline_ns) { /* another thread waits for the value */
            return too_late(b);
        }
        sx_sleep_ns(1000000);
    }
    sx_status status = read_locked(b, data, deadline_ns);
    pthread_mutex_unlock(&b->lock);
    return status;
}

/* Plugins copy on threads of their own, so several copies at once take little longer than one. */
sx_status sx_pjrt_buffers_read(int n, sx_device_buffer *const *heads, void *const *data)
{
    sx_pjrt_platform *p = platform_of(heads[0]);
    sx_status first = SX_OK;
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < n && first == SX_OK; i++) {
        sx_pjrt_buffer *b = (sx_pjrt_buffer *)heads[i];
        pthread_mutex_lock(&b->lock);
        first = b->state == SX_PJRT_COPIED ? sx_pjrt_begin_get(p->client, b->arrays[0],
                                                               &b->head.type, data[i], &b->reading)
                                           : read_locked(b, data[i], SX_NO_DEADLINE);
        pthread_mutex_unlock(&b->lock);
    }
    for (int i = 0; i < n; i++) {
        sx_pjrt_buffer *b = (sx_pjrt_buffer *)heads[i];
        sx_pjrt_keep_first(&first, sx_pjrt_await(p->client, b->reading));
        b->reading = NULL;
    }
    pthread_mutex_unlock(&p->lock);
    return first;
}

sx_status sx_pjrt_buffer_copy(sx_device_buffer *from, sx_device *to, int memory,
                              sx_device_buffer **out)
{
    sx_pjrt_platform *p = platform_of(from);
    sx_pjrt_buffer *b = (sx_pjrt_buffer *)from;
    sx_device_buffer *made = NULL;
    /* Plugins refuse a copy to where the value is. */
    if (p->replicas > 1 || (from->device == to && from->memory == memory)) {
        return SX_OK;
    }
    pthread_mutex_lock(&b->lock);
    sx_status status = SX_OK;
    if (b->state == SX_PJRT_COPIED) {
        const bool by_device = memory == 0 && from->device != to;
        sx_pjrt_copy args =
            SX_PJRT_ARGS(copy, .buffer = b->arrays[0],
                         .to = by_device ? p->client->devices[sx_pjrt_number(p, to->index)]
                                         : to->memories[memory].handle);
        status = sx_pjrt_buffer_create(to, memory, &from->type, &made);
        if (status == SX_OK) {
            status = sx_pjrt_call(p->client->plugin,
                                  by_device ? SX_PJRT_BUFFER_COPY : SX_PJRT_BUFFER_COPY_TO_MEMORY,
                                  &args);
        }
        if (status == SX_OK) {
            sx_pjrt_buffer_take((sx_pjrt_buffer *)made, &args.copy, 1, SX_PJRT_WHOLE);
        }
    }
    pthread_mutex_unlock(&b->lock);
    if (status != SX_OK) {
        sx_device_buffer_release(made);
        return status;
    }
    *out = made;
    return SX_OK;
}

sx_status sx_pjrt_buffer_place(sx_pjrt_buffer *b, int axis)
{
    if (axis == SX_PJRT_WHOLE ? b->state == SX_PJRT_COPIED
                              : b->state == SX_PJRT_CUT && b->axis == axis) {
        return SX_OK;
    }
    if (b->state == SX_PJRT_HELD) {
        return put(b, b->held, axis, b->held != b->owned);
    }
    void *host = sx_alloc((size_t)sx_type_bytes(&b->head.type) + 1, 1);
    if (host == NULL) {
        return sx_no_memory("for a buffer");
    }
    sx_status status = read_locked(b, host, SX_NO_DEADLINE);
    status = status != SX_OK ? status : put(b, host, axis, false);
    sx_free(host);
    return status;
}

void sx_pjrt_buffer_take(sx_pjrt_buffer *b, void *const *arrays, int stride, int axis)
{
    drop_arrays(b);
    for (int r = 0; r < platform_of(&b->head)->local; r++) {
        b->arrays[r] = arrays[r * stride];
    }
    b->axis = axis;
    b->state = axis == SX_PJRT_WHOLE ? SX_PJRT_COPIED : SX_PJRT_CUT;
}

void sx_pjrt_buffer_give_up(sx_pjrt_buffer *b)
{
    drop_arrays(b);
    b->state = SX_PJRT_GIVEN;
}

void sx_pjrt_buffer_lose(sx_pjrt_buffer *b)
{
    drop_arrays(b);
    b->state = SX_PJRT_LOST;
}
