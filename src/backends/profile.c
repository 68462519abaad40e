#include "backends/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

struct sx_profile {
    pthread_mutex_t mutex;
    sx_arena arena;
    sx_kernel_time *rows, *sorted; /* sorted: a copy, made when it is read */
    int n, max;
    sx_profile_event *events;
    int n_events, max_events;
    atomic_bool recording, keeps_events;
    _Atomic int64_t executions, executions_ns;
};

sx_status sx_profile_create(sx_profile **out)
{
    sx_profile *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_no_memory("for a profile");
    }
    pthread_mutex_init(&p->mutex, NULL);
    sx_arena_init(&p->arena, 0);
    atomic_init(&p->recording, true);
    atomic_init(&p->keeps_events, false);
    atomic_init(&p->executions, 0);
    atomic_init(&p->executions_ns, 0);
    *out = p;
    return SX_OK;
}

void sx_profile_destroy(sx_profile *p)
{
    if (p == NULL) {
        return;
    }
    pthread_mutex_destroy(&p->mutex);
    sx_arena_deinit(&p->arena);
    sx_free(p->rows);
    sx_free(p->sorted);
    sx_free(p->events);
    sx_free(p);
}

void sx_profile_record(sx_profile *p, bool on)
{
    atomic_store(&p->recording, on);
}

void sx_profile_keep_events(sx_profile *p)
{
    atomic_store(&p->keeps_events, true);
}

/* ---- For backends ---- */

bool sx_profile_is_recording(const sx_profile *p)
{
    return p == NULL || atomic_load_explicit(&p->recording, memory_order_relaxed);
}

bool sx_profile_keeps_events(const sx_profile *p)
{
    return p != NULL && atomic_load(&p->keeps_events);
}

int sx_profile_add(sx_profile *p, const sx_kernel_time *row)
{
    int at = -1;
    pthread_mutex_lock(&p->mutex);
    if (p->n == p->max) {
        sx_kernel_time *more = sx_realloc(p->rows, (size_t)p->max * 2 + 64, sizeof(*more));
        p->max = more != NULL ? 2 * p->max + 64 : p->max;
        p->rows = more != NULL ? more : p->rows;
    }
    char *kernel = sx_arena_printf(&p->arena, "%s", row->kernel);
    char *node = sx_arena_printf(&p->arena, "%s", row->node);
    char *ops = sx_arena_printf(&p->arena, "%s", row->ops != NULL ? row->ops : "");
    if (p->n < p->max && kernel != NULL && node != NULL && ops != NULL) {
        at = p->n++;
        p->rows[at] = *row;
        p->rows[at].kernel = kernel;
        p->rows[at].node = node;
        p->rows[at].ops = ops;
    }
    pthread_mutex_unlock(&p->mutex);
    return at;
}

void sx_profile_add_events(sx_profile *p, const sx_profile_event *events, int n)
{
    pthread_mutex_lock(&p->mutex);
    if (n > p->max_events - p->n_events) {
        const int most = SX_MAX(2 * p->max_events, p->n_events + n);
        sx_profile_event *more = sx_realloc(p->events, (size_t)most, sizeof(*more));
        p->max_events = more != NULL ? most : p->max_events;
        p->events = more != NULL ? more : p->events;
    }
    if (n > 0 && n <= p->max_events - p->n_events) {
        memcpy(p->events + p->n_events, events, (size_t)n * sizeof(*events));
        p->n_events += n;
    }
    pthread_mutex_unlock(&p->mutex);
}

void sx_profile_add_execution(sx_profile *p, int64_t ns)
{
    if (p != NULL) {
        atomic_fetch_add(&p->executions, 1);
        atomic_fetch_add(&p->executions_ns, ns);
    }
}

/* ---- For readers ---- */

static int by_time(const void *a, const void *b)
{
    const sx_kernel_time *x = a, *y = b;
    return (y->total_ns > x->total_ns) - (y->total_ns < x->total_ns);
}

const sx_kernel_time *sx_profile_rows(sx_profile *p, int *out_count)
{
    pthread_mutex_lock(&p->mutex);
    sx_kernel_time *sorted = sx_realloc(p->sorted, (size_t)p->n + 1, sizeof(*sorted));
    *out_count = sorted != NULL ? p->n : 0;
    p->sorted = sorted != NULL ? sorted : p->sorted;
    if (*out_count > 0) {
        memcpy(sorted, p->rows, (size_t)p->n * sizeof(*sorted));
        qsort(sorted, (size_t)p->n, sizeof(*sorted), by_time);
    }
    pthread_mutex_unlock(&p->mutex);
    return p->sorted;
}

const sx_kernel_time *sx_profile_row(const sx_profile *p, int row)
{
    return &p->rows[row];
}

static int by_start(const void *a, const void *b)
{
    const sx_profile_event *x = a, *y = b;
    if (x->start_ns != y->start_ns) {
        return x->start_ns < y->start_ns ? -1 : 1;
    }
    return (x->worker > y->worker) - (x->worker < y->worker);
}

const sx_profile_event *sx_profile_events(sx_profile *p, int *out_count)
{
    pthread_mutex_lock(&p->mutex);
    if (p->n_events > 0) {
        qsort(p->events, (size_t)p->n_events, sizeof(*p->events), by_start);
    }
    *out_count = p->n_events;
    pthread_mutex_unlock(&p->mutex);
    return p->events;
}

int64_t sx_profile_executions(const sx_profile *p, int64_t *out_ns)
{
    *out_ns = atomic_load(&p->executions_ns);
    return atomic_load(&p->executions);
}
