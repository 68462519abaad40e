/* See timeline.h. */
#include "backends/timeline.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"

enum { MOST_SPANS = 1 << 21, MOST_LAUNCHES = 1 << 20 }; /* what comes later is left out */
static const int64_t SETTLE_NS = 5000000000;

struct sx_timeline {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    sx_timeline_span *spans, *read; /* read: a copy for the reader */
    int n, max;
    sx_timeline_launch *launches, *read_launches;
    int n_launches, max_launches;
    int pending; /* of sx_timeline_begin() */
};

struct sx_timeline_work {
    sx_timeline *t;
    sx_timeline_span span;
};

sx_status sx_timeline_create(sx_timeline **out)
{
    sx_timeline *t = sx_alloc(1, sizeof(*t));
    if (t == NULL) {
        return sx_no_memory("for a timeline");
    }
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->changed, NULL);
    *out = t;
    return SX_OK;
}

/* Waits until the device has ended what it was asked for; false: it has not, in time. With the
 * lock.
 */
static bool settle_pending(sx_timeline *t)
{
    const struct timespec until = sx_timespec_of(sx_now_ns() + SETTLE_NS);
    int late = 0;
    while (late == 0 && t->pending > 0) {
        late = pthread_cond_clockwait(&t->changed, &t->mutex, CLOCK_MONOTONIC, &until);
    }
    return t->pending == 0;
}

void sx_timeline_destroy(sx_timeline *t)
{
    if (t == NULL) {
        return;
    }
    pthread_mutex_lock(&t->mutex);
    const bool settled = settle_pending(t);
    pthread_mutex_unlock(&t->mutex);
    if (!settled) { /* it may still tell */
        return;
    }
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->mutex);
    sx_free(t->spans);
    sx_free(t->read);
    sx_free(t->launches);
    sx_free(t->read_launches);
    sx_free(t);
}

/* ---- Adding; with the lock ---- */

static void keep(sx_timeline *t, const sx_timeline_span *span)
{
    if (t->n == t->max && t->max < MOST_SPANS) {
        const int most = 2 * t->max + 256;
        sx_timeline_span *more = sx_realloc(t->spans, (size_t)most, sizeof(*more));
        t->max = more != NULL ? most : t->max;
        t->spans = more != NULL ? more : t->spans;
    }
    if (t->n < t->max) {
        t->spans[t->n++] = *span;
    }
}

/* ---- For the step loop ---- */

int sx_timeline_next_launch(sx_timeline *t)
{
    if (t == NULL) {
        return 0;
    }
    pthread_mutex_lock(&t->mutex);
    if (t->n_launches == t->max_launches && t->max_launches < MOST_LAUNCHES) {
        const int most = 2 * t->max_launches + 64;
        sx_timeline_launch *more = sx_realloc(t->launches, (size_t)most, sizeof(*more));
        t->max_launches = more != NULL ? most : t->max_launches;
        t->launches = more != NULL ? more : t->launches;
    }
    if (t->n_launches < t->max_launches) {
        t->launches[t->n_launches++] = (sx_timeline_launch){0};
    }
    const int launch = t->n_launches;
    pthread_mutex_unlock(&t->mutex);
    return launch;
}

void sx_timeline_set_steps(sx_timeline *t, int launch, int64_t steps, int64_t examples)
{
    if (t == NULL) {
        return;
    }
    pthread_mutex_lock(&t->mutex);
    if (launch > 0 && launch <= t->n_launches) {
        t->launches[launch - 1] = (sx_timeline_launch){.steps = steps, .examples = examples};
    }
    pthread_mutex_unlock(&t->mutex);
}

int64_t sx_timeline_now(const sx_timeline *t)
{
    return t != NULL ? sx_now_ns() : 0;
}

void sx_timeline_add(sx_timeline *t, sx_span_kind kind, int launch, int64_t start_ns)
{
    if (t == NULL) {
        return;
    }
    const sx_timeline_span span = {
        .start_ns = start_ns, .end_ns = sx_now_ns(), .launch = launch, .kind = kind};
    pthread_mutex_lock(&t->mutex);
    keep(t, &span);
    pthread_mutex_unlock(&t->mutex);
}

/* ---- For backends ---- */

sx_timeline_work *sx_timeline_begin(sx_timeline *t, sx_span_kind kind, int64_t start_ns,
                                    int64_t bytes)
{
    sx_timeline_work *work = t != NULL ? sx_alloc(1, sizeof(*work)) : NULL;
    if (work == NULL) {
        return NULL;
    }
    *work =
        (sx_timeline_work){.t = t, .span = {.start_ns = start_ns, .bytes = bytes, .kind = kind}};
    pthread_mutex_lock(&t->mutex);
    work->span.launch = t->n_launches;
    t->pending++;
    pthread_mutex_unlock(&t->mutex);
    return work;
}

static void end(sx_timeline_work *work, bool known)
{
    sx_timeline *t = work->t;
    work->span.end_ns = sx_now_ns();
    pthread_mutex_lock(&t->mutex);
    if (known) {
        keep(t, &work->span);
    }
    t->pending--;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
    sx_free(work);
}

void sx_timeline_end(sx_timeline_work *work)
{
    end(work, true);
}

void sx_timeline_drop(sx_timeline_work *work)
{
    end(work, false);
}

/* ---- For readers ---- */

static int by_start(const void *a, const void *b)
{
    const sx_timeline_span *x = a, *y = b;
    if (x->start_ns != y->start_ns) {
        return x->start_ns < y->start_ns ? -1 : 1;
    }
    return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* What a launch is on the device: when it was handed over, and its end; zeros: none is known. */
typedef struct execution {
    int64_t start_ns, end_ns;
} execution;

/* Of each launch, by its number. */
static void find_executions(const sx_timeline_span *spans, int n, execution *by_launch)
{
    for (int i = 0; i < n; i++) {
        execution *e = &by_launch[spans[i].launch];
        if (spans[i].kind == SX_SPAN_COMPUTE) {
            e->start_ns = e->end_ns == 0 ? spans[i].start_ns : e->start_ns;
            e->end_ns = SX_MAX(e->end_ns, spans[i].end_ns);
        }
    }
}

/* A launch ends after the copies that it reads: one whose end was told later had ended long before,
 * as when the thread that is to tell it computes first. */
static bool is_late(const sx_timeline_span *s, const execution *by_launch)
{
    return s->kind == SX_SPAN_TRANSFER && by_launch[s->launch].end_ns > 0 &&
           s->end_ns >= by_launch[s->launch].end_ns;
}

/* Bytes per nanosecond of the fastest copy whose end was told in time; 0: there is none. */
static double fastest_copy(const sx_timeline_span *spans, int n, const execution *by_launch)
{
    double fastest = 0;
    int64_t copied_ns = 0;
    for (int i = 0; i < n; i++) {
        const sx_timeline_span *s = &spans[i];
        if (s->kind != SX_SPAN_TRANSFER || is_late(s, by_launch)) {
            continue;
        }
        const int64_t ns = s->end_ns - SX_MAX(s->start_ns, copied_ns);
        fastest = ns > 0 ? SX_MAX(fastest, (double)s->bytes / (double)ns) : fastest;
        copied_ns = SX_MAX(copied_ns, s->end_ns);
    }
    return fastest;
}

/* The end of a late copy: as if it had been the fastest; of none that is known, when its launch was
 * handed over. */
static int64_t end_of_late(const sx_timeline_span *s, const execution *by_launch, double fastest)
{
    const execution *e = &by_launch[s->launch];
    const double left = (double)SX_MAX(e->end_ns - s->start_ns, 0);
    const double ns =
        fastest > 0 ? (double)s->bytes / fastest : (double)(e->start_ns - s->start_ns);
    return s->start_ns + (int64_t)SX_MIN(SX_MAX(ns, 0), left);
}

/* Moves the start of what was handed over to when the device could begin; spans are sorted.
 * `by_launch` is zeros, with room for every launch. */
static void settle(sx_timeline_span *spans, int n, execution *by_launch)
{
    find_executions(spans, n, by_launch);
    const double fastest = fastest_copy(spans, n, by_launch);
    int64_t copied_ns = 0, computed_ns = 0;
    int copied = 0; /* the launch of the last copies */
    for (int i = 0; i < n; i++) {
        sx_timeline_span *s = &spans[i];
        if (s->kind == SX_SPAN_TRANSFER) {
            const bool late = is_late(s, by_launch);
            s->start_ns = SX_MIN(SX_MAX(s->start_ns, copied_ns), s->end_ns);
            s->end_ns = late ? end_of_late(s, by_launch, fastest) : s->end_ns;
            copied_ns = SX_MAX(copied_ns, s->end_ns);
            copied = s->launch;
        } else if (s->kind == SX_SPAN_COMPUTE) {
            const int64_t own_ns = copied == s->launch ? copied_ns : 0;
            s->start_ns = SX_MIN(SX_MAX(s->start_ns, SX_MAX(own_ns, computed_ns)), s->end_ns);
            computed_ns = SX_MAX(computed_ns, s->end_ns);
        }
    }
}

/* A device may copy, or compute, within the call that asks for it: then that is a wait. Room for as
 * many spans again; returns their number. */
static int split_submits(sx_timeline_span *spans, int n)
{
    int all = n;
    for (int i = 0; i < n; i++) {
        sx_timeline_span *s = &spans[i];
        int64_t from = INT64_MAX, to = 0;
        for (int k = i + 1; s->kind == SX_SPAN_SUBMIT && k < n && spans[k].start_ns < s->end_ns;
             k++) {
            const bool is_within = spans[k].launch == s->launch && spans[k].end_ns <= s->end_ns &&
                                   spans[k].kind >= SX_SPAN_TRANSFER;
            from = is_within ? SX_MIN(from, spans[k].start_ns) : from;
            to = is_within ? SX_MAX(to, spans[k].end_ns) : to;
        }
        if (to > from) {
            spans[all++] = (sx_timeline_span){
                .start_ns = from, .end_ns = s->end_ns, .launch = s->launch, .kind = SX_SPAN_WAIT};
            s->end_ns = from;
        }
    }
    return all;
}

sx_status sx_timeline_read(sx_timeline *t, const sx_timeline_span **out_spans, int *out_n,
                           const sx_timeline_launch **out_launches, int *out_launch_n)
{
    pthread_mutex_lock(&t->mutex);
    (void)settle_pending(t);
    sx_timeline_span *spans = sx_realloc(t->read, 2 * (size_t)t->n + 1, sizeof(*spans));
    t->read = spans != NULL ? spans : t->read;
    sx_timeline_launch *launches =
        sx_realloc(t->read_launches, (size_t)t->n_launches + 1, sizeof(*launches));
    t->read_launches = launches != NULL ? launches : t->read_launches;
    execution *executions = sx_alloc((size_t)t->n_launches + 1, sizeof(*executions));
    const bool made = spans != NULL && launches != NULL && executions != NULL;
    if (made) {
        *out_n = t->n;
        *out_launch_n = t->n_launches;
        if (t->n > 0) {
            memcpy(spans, t->spans, (size_t)t->n * sizeof(*spans));
        }
        if (t->n_launches > 0) {
            memcpy(launches, t->launches, (size_t)t->n_launches * sizeof(*launches));
        }
    }
    pthread_mutex_unlock(&t->mutex);
    if (!made) {
        sx_free(executions);
        return sx_no_memory("for a timeline");
    }
    qsort(spans, (size_t)*out_n, sizeof(*spans), by_start);
    settle(spans, *out_n, executions);
    sx_free(executions);
    qsort(spans, (size_t)*out_n, sizeof(*spans), by_start);
    *out_n = split_submits(spans, *out_n);
    qsort(spans, (size_t)*out_n, sizeof(*spans), by_start);
    *out_spans = spans;
    *out_launches = launches;
    return SX_OK;
}
