/* Executions: each segment runs on its device when those that it waits for have ended. */
#include <string.h>

#include "backends/placed/placed.h"
#include "base/checked.h"
#include "base/memory.h"

/* One segment of a run. */
typedef struct part {
    sx_run *run;
    sx_device_buffer **args, **outputs; /* [the executable's], set when it runs */
    sx_placed_task task;
    atomic_int waits; /* segments that have not ended */
} part;

struct sx_placed_run {
    sx_run head;
    part *parts;                /* [n_segments] */
    sx_device_buffer **borders; /* [n_borders][n_subs]: where they are made and read */
    bool *brought;              /* the same: copied in this execution */
    const void *
        *hosts; /* [n_borders]: where they are made, if the host sees it; NULL: it does not */
    sx_device_buffer **later;                       /* [n_results]: new values of variables */
    sx_device_buffer *const *args, *const *outputs; /* of this execution */
    atomic_int left;                                /* segments that have not ended */
    atomic_bool assigned;                           /* a segment that assigns has begun */
    _Atomic(sx_status) fault;                       /* the first error */
    sx_cancel cancel; /* this execution's, which ends with it: the owner's may be gone before */
    bool has_cancel;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ended, wanted;   /* the last segment is to end the run */
    bool left_alone;      /* by its owner: no segment is to begin */
    int looking;          /* segments that look at `cancel`, and so at the owner's */
    sx_kernel_time *rows; /* of the profile */
};

static const sx_placed_executable *executable_of(const sx_placed_run *r)
{
    return (const sx_placed_executable *)r->head.executable;
}

static sx_placed_platform *platform_of(const sx_placed_run *r)
{
    return (sx_placed_platform *)r->head.executable->platform;
}

static sx_device_buffer **border_at(const sx_placed_run *r, int border, int sub)
{
    return &r->borders[(size_t)border * (size_t)platform_of(r)->n_subs + (size_t)sub];
}

/* ---- Life cycle ---- */

void sx_placed_run_destroy(sx_run *head)
{
    sx_placed_run *r = (sx_placed_run *)head;
    const sx_placed_executable *e = executable_of(r);
    const int n_subs = platform_of(r)->n_subs;
    for (int s = 0; r->parts != NULL && s < e->n_segments; s++) {
        sx_run_destroy(r->parts[s].run);
        sx_free(r->parts[s].args);
    }
    for (int i = 0; r->borders != NULL && i < e->partition.n_borders * n_subs; i++) {
        sx_device_buffer_release(r->borders[i]);
    }
    for (int i = 0; r->later != NULL && i < e->head.n_results; i++) {
        sx_device_buffer_release(r->later[i]);
    }
    sx_free(r->parts);
    sx_free(r->borders);
    sx_free(r->brought);
    sx_free(r->hosts);
    sx_free(r->later);
    sx_free(r->rows);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->changed);
    sx_run_deinit(head);
    sx_free(r);
}

/* The buffers that segment s writes and those, on its device, that it reads of other devices. */
static sx_status make_buffers(sx_placed_run *r, int s)
{
    const sx_placed_executable *e = executable_of(r);
    const sx_placed_segment *segment = &e->segments[s];
    const sx_executable *own = segment->executable;
    sx_device *device = platform_of(r)->subs[segment->device];
    sx_budget *memory = sx_placed_budget(platform_of(r), segment->device, e->head.memory);
    for (int i = 0; i < own->n_results; i++) {
        sx_device_buffer **buffer = segment->out[i].kind == SX_END_BORDER
                                        ? border_at(r, segment->out[i].index, segment->device)
                                    : segment->out[i].kind == SX_END_LATER
                                        ? &r->later[segment->out[i].index]
                                        : NULL;
        if (buffer != NULL) {
            SX_TRY(sx_device_buffer_create_within(device, &own->result_types[i], memory, buffer));
        }
        if (segment->out[i].kind == SX_END_BORDER) {
            r->hosts[segment->out[i].index] = sx_device_buffer_data(*buffer);
        }
    }
    for (int i = 0; i < own->n_args; i++) {
        sx_device_buffer **buffer = segment->in[i].kind == SX_END_BORDER
                                        ? border_at(r, segment->in[i].index, segment->device)
                                        : NULL;
        if (buffer != NULL && *buffer == NULL) {
            SX_TRY(sx_device_buffer_create_within(device, &own->arg_types[i], memory, buffer));
        }
    }
    return SX_OK;
}

static sx_status make_part(sx_placed_run *r, int s)
{
    const sx_placed_segment *segment = &executable_of(r)->segments[s];
    const size_t n_args = (size_t)segment->executable->n_args;
    part *p = &r->parts[s];
    SX_TRY(sx_run_create(segment->executable, &p->run));
    p->args = sx_alloc(n_args + (size_t)segment->executable->n_results + 1, sizeof(*p->args));
    if (p->args == NULL) {
        return sx_no_memory("for a run");
    }
    p->outputs = p->args + n_args;
    p->task = (sx_placed_task){.run = r, .segment = s};
    return make_buffers(r, s);
}

sx_status sx_placed_run_create(sx_executable *executable, sx_run **out)
{
    sx_placed_run *r = sx_alloc(1, sizeof(*r));
    if (r == NULL) {
        return sx_no_memory("for a run");
    }
    sx_status status = sx_run_init(&r->head, executable);
    if (status != SX_OK) {
        sx_free(r);
        return status;
    }
    const sx_placed_executable *e = executable_of(r);
    const size_t borders = (size_t)e->partition.n_borders * (size_t)platform_of(r)->n_subs;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    r->parts = sx_alloc((size_t)e->n_segments + 1, sizeof(*r->parts));
    r->borders = sx_alloc(borders + 1, sizeof(*r->borders));
    r->brought = sx_alloc(borders + 1, sizeof(*r->brought));
    r->hosts = sx_alloc((size_t)e->partition.n_borders + 1, sizeof(*r->hosts));
    r->later = sx_alloc((size_t)executable->n_results + 1, sizeof(*r->later));
    if (r->parts == NULL || r->borders == NULL || r->brought == NULL || r->hosts == NULL ||
        r->later == NULL) {
        status = sx_no_memory("for a run");
    }
    for (int s = 0; s < e->n_segments && status == SX_OK; s++) {
        status = make_part(r, s);
    }
    if (status != SX_OK) {
        sx_placed_run_destroy(&r->head);
        return status;
    }
    *out = &r->head;
    return SX_OK;
}

/* ---- A segment ---- */

/* A border is copied once for each device that reads it; segments of a device follow one another.
 */
static sx_status bring_border(sx_placed_run *r, int border, int sub, sx_device_buffer **out)
{
    const sx_placed_executable *e = executable_of(r);
    const int home = e->segments[e->partition.borders[border].segment].device;
    sx_device_buffer **here = border_at(r, border, sub);
    bool *brought = &r->brought[here - r->borders];
    if (home != sub && !*brought) {
        SX_TRY(sx_placed_copy(*border_at(r, border, home), r->hosts[border], here));
        *brought = true;
    }
    *out = *here;
    return SX_OK;
}

/* Sets the segment's arguments and outputs. `values`: their values are brought to the device. */
static sx_status bind(sx_placed_run *r, int s, bool values)
{
    const sx_placed_segment *segment = &executable_of(r)->segments[s];
    const int sub = segment->device;
    part *p = &r->parts[s];
    for (int i = 0; i < segment->executable->n_args; i++) {
        const sx_segment_end *end = &segment->in[i];
        if (end->kind == SX_END_ARG) {
            SX_TRY(sx_placed_value(r->args[end->index], sub, &p->args[i]));
        } else if (values) {
            SX_TRY(bring_border(r, end->index, sub, &p->args[i]));
        } else {
            p->args[i] = *border_at(r, end->index, sub);
        }
    }
    for (int i = 0; i < segment->executable->n_results && values; i++) {
        const sx_segment_end *end = &segment->out[i];
        if (end->kind == SX_END_OUTPUT) {
            SX_TRY(sx_placed_room(r->outputs[end->index], sub, &p->outputs[i]));
        } else if (end->kind == SX_END_LATER) {
            sx_device_buffer **later = &r->later[end->index];
            if (*later == NULL) { /* the variable took it, and had none on this device */
                sx_placed_platform *all = platform_of(r);
                SX_TRY(sx_device_buffer_create_within(
                    all->subs[sub], &segment->executable->result_types[i],
                    sx_placed_budget(all, sub, r->head.executable->memory), later));
            }
            p->outputs[i] = *later;
        } else {
            p->outputs[i] = end->kind == SX_END_BORDER ? *border_at(r, end->index, sub) : NULL;
        }
    }
    return SX_OK;
}

/* The variable that the segment's result i is assigned to. */
static sx_device_buffer *variable_of(const sx_placed_run *r, const sx_segment_end *end)
{
    return r->args[r->head.executable->result_args[end->index]];
}

/* Begins the segment, and ends it if it runs on this thread, looking at the run's sx_cancel. */
static sx_status submit_part(sx_placed_run *r, part *p)
{
    const bool looks = r->has_cancel && p->run->executable->platform->backend->await == NULL;
    if (!looks) {
        return sx_run_submit(p->run, p->args, p->outputs);
    }
    pthread_mutex_lock(&r->lock);
    const bool begins = !r->left_alone;
    r->looking += begins;
    pthread_mutex_unlock(&r->lock);
    if (!begins) {
        return sx_error(SX_CANCELLED, "the run was left before its end");
    }
    sx_run_set_cancel(p->run, &r->cancel);
    sx_status status = sx_run_submit(p->run, p->args, p->outputs);
    sx_run_set_cancel(p->run, NULL);
    pthread_mutex_lock(&r->lock);
    r->looking--;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return status;
}

static sx_status execute(sx_placed_run *r, int s)
{
    const sx_placed_segment *segment = &executable_of(r)->segments[s];
    part *p = &r->parts[s];
    SX_TRY(bind(r, s, true));
    for (int i = 0; i < segment->executable->n_results; i++) {
        if (segment->out[i].kind == SX_END_UPDATE) {
            atomic_store(&r->assigned, true);
        }
    }
    SX_TRY(submit_part(r, p));
    SX_TRY(sx_run_await(p->run, SX_NO_DEADLINE));
    for (int i = 0; i < segment->executable->n_results; i++) {
        const sx_segment_end *end = &segment->out[i];
        if (end->kind == SX_END_OUTPUT) {
            sx_placed_written(r->outputs[end->index], segment->device);
        } else if (end->kind == SX_END_UPDATE) {
            sx_placed_written(variable_of(r, end), segment->device);
        }
    }
    return SX_OK;
}

/* ---- An execution ---- */

static void assign_later(sx_placed_run *r)
{
    const sx_placed_executable *e = executable_of(r);
    for (int s = 0; s < e->n_segments; s++) {
        const sx_placed_segment *segment = &e->segments[s];
        for (int i = 0; i < segment->executable->n_results; i++) {
            if (segment->out[i].kind == SX_END_LATER) {
                sx_placed_take(variable_of(r, &segment->out[i]), segment->device,
                               &r->later[segment->out[i].index]);
            }
        }
    }
}

static void end_run(sx_placed_run *r)
{
    sx_status status = atomic_exchange(&r->fault, SX_OK);
    if (status != SX_OK && atomic_load(&r->assigned)) {
        sx_run_lose(&r->head);
    }
    sx_run_end(&r->head, status);
}

static void end_all(sx_placed_run *r)
{
    if (atomic_load(&r->fault) == SX_OK) {
        assign_later(r);
    }
    pthread_mutex_lock(&r->lock);
    r->ended = true;
    const bool wanted = r->wanted;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    if (wanted) {
        end_run(r);
    }
}

static void enqueue(sx_placed_run *r, int s)
{
    sx_placed_enqueue(platform_of(r), executable_of(r)->segments[s].device, &r->parts[s].task);
}

void sx_placed_run_segment(sx_placed_run *r, int s)
{
    const sx_placed_segment *segment = &executable_of(r)->segments[s];
    if (atomic_load(&r->fault) == SX_OK) {
        sx_status none = SX_OK, status = execute(r, s);
        status = sx_status_annotate(status, __FILE__, __LINE__, "on %s",
                                    platform_of(r)->names[segment->device]);
        if (status != SX_OK && !atomic_compare_exchange_strong(&r->fault, &none, status)) {
            sx_status_free(status);
        }
    }
    for (int i = 0; i < segment->n_next; i++) {
        const int next = segment->next[i];
        if (atomic_fetch_sub(&r->parts[next].waits, 1) == 1) {
            enqueue(r, next);
        }
    }
    if (atomic_fetch_sub(&r->left, 1) == 1) {
        end_all(r);
    }
}

sx_status sx_placed_submit(sx_run *head, sx_device_buffer *const *args,
                           sx_device_buffer *const *outputs)
{
    sx_placed_run *r = (sx_placed_run *)head;
    const sx_placed_executable *e = executable_of(r);
    const size_t borders = (size_t)e->partition.n_borders * (size_t)platform_of(r)->n_subs;
    /* Not the caller's arrays, which a run that is left may outlive. */
    (void)args;
    (void)outputs;
    r->args = head->checked;
    r->outputs = head->checked + head->executable->n_args;
    r->ended = r->wanted = r->left_alone = false;
    r->has_cancel = head->cancel != NULL;
    if (r->has_cancel) {
        sx_cancel_init(&r->cancel, head->cancel->deadline_ns);
        r->cancel.max_trips = head->cancel->max_trips;
        r->cancel.outer = head->cancel;
    }
    atomic_store(&r->assigned, false);
    atomic_store(&r->left, e->n_segments);
    memset(r->brought, 0, borders * sizeof(*r->brought));
    for (int s = 0; s < e->n_segments; s++) {
        atomic_store(&r->parts[s].waits, e->segments[s].n_before);
    }
    for (int s = 0; s < e->n_segments; s++) {
        if (e->segments[s].n_before == 0) {
            enqueue(r, s);
        }
    }
    if (e->n_segments == 0) {
        end_all(r);
    }
    return SX_OK;
}

void sx_placed_await(sx_run *head)
{
    sx_placed_run *r = (sx_placed_run *)head;
    pthread_mutex_lock(&r->lock);
    while (!r->ended) {
        pthread_cond_wait(&r->changed, &r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    end_run(r);
}

void sx_placed_watch(sx_run *head)
{
    sx_placed_run *r = (sx_placed_run *)head;
    pthread_mutex_lock(&r->lock);
    r->wanted = true;
    const bool ended = r->ended;
    pthread_mutex_unlock(&r->lock);
    if (ended) {
        end_run(r);
    }
}

/* Loops end at their next trip. */
void sx_placed_leave(sx_run *head)
{
    sx_placed_run *r = (sx_placed_run *)head;
    pthread_mutex_lock(&r->lock);
    r->left_alone = true;
    if (r->has_cancel) {
        sx_cancel_request(&r->cancel);
    }
    while (r->looking > 0) {
        pthread_cond_wait(&r->changed, &r->lock);
    }
    pthread_mutex_unlock(&r->lock);
}

sx_status sx_placed_prepare(sx_run *head, sx_device_buffer *const *args)
{
    sx_placed_run *r = (sx_placed_run *)head;
    r->args = args;
    for (int s = 0; s < executable_of(r)->n_segments; s++) {
        SX_TRY(bind(r, s, false));
        SX_TRY(sx_run_prepare(r->parts[s].run, r->parts[s].args));
    }
    return SX_OK;
}

sx_status sx_placed_profile(sx_run *head, const sx_kernel_time **out_rows, int *out_count)
{
    sx_placed_run *r = (sx_placed_run *)head;
    int total = 0;
    for (int s = 0; s < executable_of(r)->n_segments; s++) {
        const sx_kernel_time *rows = NULL;
        int n = 0;
        SX_TRY(sx_run_get_profile(r->parts[s].run, &rows, &n));
        sx_kernel_time *grown = sx_realloc(r->rows, (size_t)(total + n) + 1, sizeof(*grown));
        if (grown == NULL) {
            return sx_no_memory("for a profile");
        }
        r->rows = grown;
        if (n > 0) {
            memcpy(&r->rows[total], rows, (size_t)n * sizeof(*rows));
        }
        total += n;
    }
    *out_rows = r->rows;
    *out_count = total;
    return SX_OK;
}
