/* See batch_queue.h. */
#include "serve/batch_queue.h"

#include <math.h>

#include "base/checked.h"

enum {
    DEFAULT_PATIENCE_S = 30, /* of a call without a deadline */
    ALL_CALLS = 1024,        /* of sx_batch_queue.short_of_time */
    RECENT_CALLS = 64,
    RECENT_RUNS = 8,
    MAX_WAY_MS = 100, /* for which an answer is given time to reach the client */
};

/* ---- Sizes ---- */

static int size_index(const sx_batch_rules *rules, int64_t rows)
{
    int i = 0;
    while (i < rules->size_count && rules->sizes[i] < rows) {
        i++;
    }
    return i;
}

int64_t sx_batch_size_for(const sx_batch_rules *rules, int64_t rows)
{
    const int i = size_index(rules, rows);
    return i < rules->size_count ? rules->sizes[i] : rows;
}

void sx_batch_queue_note_run(sx_batch_queue *queue, int64_t rows, int64_t run_ns)
{
    int64_t *known = &queue->run_ns[size_index(&queue->rules, rows)];
    if (*known == 0) {
        *known = SX_MAX(run_ns, (int64_t)1);
        queue->spread = SX_MAX(queue->spread, 1. / 6); /* until more is known of this size */
        return;
    }
    /* A single run that was disturbed counts as twice what is known at most. */
    const double off = SX_MIN((double)(run_ns - *known) / (double)*known, 1.);
    queue->spread += (fabs(off) - queue->spread) / RECENT_RUNS;
    *known = SX_MAX(*known + (int64_t)((double)*known * off / RECENT_RUNS), (int64_t)1);
}

void sx_batch_queue_note_stopped(sx_batch_queue *queue, int64_t rows, int64_t run_ns)
{
    int64_t *known = &queue->run_ns[size_index(&queue->rules, rows)];
    *known = SX_MAX(*known, run_ns);
}

int64_t sx_batch_queue_run_ns(const sx_batch_queue *queue, int64_t rows)
{
    const sx_batch_rules *rules = &queue->rules;
    const int at = size_index(rules, rows);
    const int64_t size = at < rules->size_count ? rules->sizes[at] : rows;
    int64_t run_ns = queue->run_ns[at];
    for (int i = at + 1; i < rules->size_count && run_ns == 0; i++) {
        run_ns = queue->run_ns[i];
    }
    for (int i = at - 1; i >= 0 && run_ns == 0; i--) {
        run_ns = queue->run_ns[i];
    }
    for (int i = 0; i < at; i++) {
        const int64_t parts_ns = queue->run_ns[i] * ((size - 1) / rules->sizes[i] + 1);
        run_ns = parts_ns > 0 ? SX_MIN(run_ns, parts_ns) : run_ns;
    }
    return run_ns;
}

/* ---- The queue ---- */

static int64_t deadline_of(const sx_batch_call *call)
{
    return call->cancel != NULL ? call->cancel->deadline_ns : INT64_MAX;
}

static int64_t due_of(const sx_batch_call *call)
{
    const int64_t patience_ns = (int64_t)DEFAULT_PATIENCE_S * 1000000000;
    return SX_MIN(deadline_of(call), call->arrived_ns + patience_ns);
}

/* ---- Time ---- */

static int64_t states_of(const sx_batch_queue *queue)
{
    return SX_MAX(queue->run_states, 1);
}

/* A call has been refused for want of time, or not. */
static void note_shortage(sx_batch_queue *queue, bool refused)
{
    queue->short_of_time += ((refused ? ALL_CALLS : 0) - queue->short_of_time) / RECENT_CALLS;
}

/* Whether enough is left of a call's time if a run that is expected to take `run_ns` begins then,
 * while others wait. It is a guess, so the run may take more, as recent ones did. The answer has to
 * reach the client, who has sent the request before it arrived: for that a sixteenth of the call's
 * time, and more the more calls are refused: another one runs instead, and a server that is
 * overloaded would otherwise always run the one that is just too late. But a call may always wait
 * for half of the time that it does not need itself. */
static bool has_time(const sx_batch_queue *queue, const sx_batch_call *call, int64_t run_ns,
                     int64_t at_ns)
{
    const int64_t time_ns = SX_MAX(deadline_of(call) - call->arrived_ns, (int64_t)0);
    const int64_t way_ns = time_ns / ALL_CALLS * (ALL_CALLS / 16 + queue->short_of_time / 8);
    const int64_t spare_ns =
        SX_MIN((int64_t)((double)run_ns * SX_MAX(queue->spread * 1.5, 1. / 16)) +
                   SX_MIN(way_ns, (int64_t)MAX_WAY_MS * 1000000),
               SX_MAX((time_ns - run_ns) / 2, (int64_t)0));
    return deadline_of(call) == INT64_MAX || deadline_of(call) - at_ns >= run_ns + spare_ns;
}

/* The same without anything to spare. */
static bool may_have_time(const sx_batch_call *call, int64_t run_ns, int64_t at_ns)
{
    return deadline_of(call) == INT64_MAX || deadline_of(call) - at_ns >= run_ns;
}

sx_status sx_batch_queue_admit(sx_batch_queue *queue, const sx_batch_call *call, bool others_wait)
{
    const sx_batch_rules *rules = &queue->rules;
    const int64_t one_ns = sx_batch_queue_run_ns(queue, 1);
    const int64_t most_ns = sx_batch_queue_run_ns(queue, rules->max_rows);
    const int64_t free_ns = SX_MAX(queue->free_ns, call->arrived_ns);
    int64_t rows = 0, alone = 0; /* that run before it: rows of batches; calls */
    for (const sx_batch_call *at = queue->first; at != NULL && due_of(at) <= due_of(call);
         at = at->next) { /* those that will be late do not */
        const bool runs = has_time(queue, at, at->alone ? one_ns : most_ns, free_ns);
        rows += runs && !at->alone ? at->rows : 0;
        alone += runs && at->alone;
    }
    const int64_t batches = rows / rules->max_rows;
    const int64_t own_rows =
        call->alone ? call->rows : SX_MAX(rows % rules->max_rows + call->rows, queue->latest_rows);
    const int64_t own_ns = sx_batch_queue_run_ns(queue, SX_MIN(own_rows, rules->max_rows));
    const int64_t begin_ns = free_ns + (alone * one_ns + batches * most_ns) / states_of(queue);
    if (rules->policy != SX_BATCH_CONSERVE || (queue->first == NULL && !others_wait) ||
        (others_wait ? has_time(queue, call, own_ns, begin_ns)
                     : may_have_time(call, own_ns, begin_ns))) {
        return SX_OK;
    }
    note_shortage(queue, true);
    return sx_error(SX_UNAVAILABLE,
                    "what runs and waits takes about %lld ms, which leaves too little of the %lld "
                    "ms in which this call has to be answered; try again later",
                    (long long)((begin_ns - call->arrived_ns) / 1000000),
                    (long long)((deadline_of(call) - call->arrived_ns) / 1000000));
}

/* ---- Adding ---- */

sx_status sx_batch_queue_add(sx_batch_queue *queue, sx_batch_call *call)
{
    const sx_batch_rules *rules = &queue->rules;
    if (queue->calls > 0 && queue->rows + call->rows > rules->max_queued_rows) {
        return sx_error(SX_UNAVAILABLE,
                        "The batch scheduling queue to which this task was submitted is full: "
                        "%lld rows wait, and the limit is %lld; try again later",
                        (long long)queue->rows, (long long)rules->max_queued_rows);
    }
    SX_TRY(sx_batch_queue_admit(queue, call, false));
    note_shortage(queue, false);
    sx_batch_call **at = &queue->first;
    if (queue->last != NULL &&
        (rules->policy == SX_BATCH_TFS || due_of(queue->last) <= due_of(call))) {
        at = &queue->last->next;
    }
    while (*at != NULL && due_of(*at) <= due_of(call)) {
        at = &(*at)->next;
    }
    call->next = *at;
    *at = call;
    queue->last = call->next == NULL ? call : queue->last;
    queue->calls++;
    queue->rows += call->rows;
    return SX_OK;
}

/* Unlinks the call at `*at`, which follows `before` (NULL: it is the first). */
static sx_batch_call *unlink_call(sx_batch_queue *queue, sx_batch_call **at, sx_batch_call *before)
{
    sx_batch_call *call = *at;
    *at = call->next;
    queue->last = call->next == NULL ? before : queue->last;
    queue->calls--;
    queue->rows -= call->rows;
    call->next = NULL;
    return call;
}

/* ---- Dropping ---- */

static bool is_past(const sx_batch_call *call, int64_t now_ns)
{
    return sx_cancel_requested(call->cancel) || now_ns >= deadline_of(call);
}

static size_t batch_of_tfs(const sx_batch_queue *queue);

sx_batch_call *sx_batch_queue_drop(sx_batch_queue *queue, int64_t now_ns)
{
    sx_batch_call *dropped = NULL, **last = &dropped, *before = NULL;
    size_t of_batch = queue->calls;
    int64_t rows = 0, run_ns = 0;              /* of so many */
    bool guessed = false;                      /* that a call would be late even if it ran alone */
    if (queue->rules.policy == SX_BATCH_TFS) { /* the first batch, or none */
        of_batch = batch_of_tfs(queue);
        const sx_batch_call *call = queue->first;
        for (size_t i = 0; i < of_batch; i++, call = call->next) {
            of_batch = now_ns >= deadline_of(call) ? of_batch : 0;
        }
    }
    for (sx_batch_call **at = &queue->first; *at != NULL && of_batch > 0; of_batch--) {
        const bool past = is_past(*at, now_ns);
        run_ns = (*at)->rows == rows ? run_ns : sx_batch_queue_run_ns(queue, (*at)->rows);
        rows = (*at)->rows;
        if (past ||
            (queue->rules.policy == SX_BATCH_CONSERVE && !may_have_time(*at, run_ns, now_ns))) {
            guessed = guessed || !past;
            if (!sx_cancel_requested((*at)->cancel)) {
                note_shortage(queue, true);
            }
            *last = unlink_call(queue, at, before);
            last = &(*last)->next;
        } else {
            before = *at;
            at = &(*at)->next;
        }
    }
    for (int i = 0; guessed && queue->calls == 0 && i < SX_BATCH_SIZES + 1; i++) {
        queue->run_ns[i] -= queue->run_ns[i] / 8; /* a guess that nothing passes is tried again */
    }
    return dropped;
}

/* ---- Batches ---- */

/* Whether both can be rows of one batch: only dimension 0 differs. */
static bool fit_together(const sx_batch_queue *queue, const sx_batch_call *a,
                         const sx_batch_call *b)
{
    bool fit = !a->alone && !b->alone;
    for (size_t i = 0; i < queue->input_count && fit; i++) {
        const sx_type *x = &a->inputs[i].type, *y = &b->inputs[i].type;
        fit = x->rank == y->rank;
        for (int d = 1; d < x->rank && fit; d++) {
            fit = x->dims[d] == y->dims[d];
        }
    }
    return fit;
}

/* How many calls the first batch of SX_BATCH_TFS has. */
static size_t batch_of_tfs(const sx_batch_queue *queue)
{
    int64_t rows = 0;
    size_t count = 0;
    for (const sx_batch_call *call = queue->first; call != NULL; call = call->next) {
        rows += call->rows;
        if (count > 0 &&
            (rows > queue->rules.max_rows || !fit_together(queue, queue->first, call))) {
            return count;
        }
        count++;
    }
    return count;
}

int64_t sx_batch_queue_due_ns(const sx_batch_queue *queue)
{
    const sx_batch_call *first = queue->first;
    if (first == NULL || queue->rules.policy == SX_BATCH_CONSERVE) {
        return first == NULL ? INT64_MAX : first->arrived_ns;
    }
    const bool closed =
        first->alone || queue->rows >= queue->rules.max_rows || batch_of_tfs(queue) < queue->calls;
    return closed ? first->arrived_ns : first->arrived_ns + queue->rules.timeout_ns;
}

/* How many rows of `rows` that could be one batch run now. */
static int64_t rows_to_run(const sx_batch_rules *rules, int64_t rows)
{
    const int i = size_index(rules, rows);
    const bool sparse = i > 0 && i < rules->size_count && rows * 4 < rules->sizes[i] * 3;
    return sparse ? rules->sizes[i - 1] : rows;
}

/* The largest allowed size below `rows` that still leaves the first call its time, or what the call
 * has itself. */
static int64_t rows_for_first(const sx_batch_queue *queue, int64_t rows, int64_t now_ns)
{
    const sx_batch_call *first = queue->first;
    int64_t most = first->rows;
    for (int i = 0; i < queue->rules.size_count && queue->rules.sizes[i] < rows; i++) {
        const int64_t size = queue->rules.sizes[i];
        const int64_t run_ns = sx_batch_queue_run_ns(queue, size);
        most = size > most && has_time(queue, first, run_ns, now_ns) ? size : most;
    }
    return most;
}

/* Whether the calls behind the first `taken` rows are one run, which is in time at `at_ns`. */
static bool others_can_wait(const sx_batch_queue *queue, int64_t taken, int64_t at_ns)
{
    const int64_t left = queue->rows - taken;
    const sx_batch_call *call = queue->first;
    for (int64_t rows = call->rows; call != NULL && rows <= taken;) {
        call = call->next;
        rows += call != NULL ? call->rows : 0;
    }
    const bool one_run =
        call == NULL || (call->alone ? call->next == NULL : left <= queue->rules.max_rows);
    return call == NULL ||
           (one_run && has_time(queue, call, sx_batch_queue_run_ns(queue, left), at_ns));
}

/* Of the sizes up to that of `rows`, the one in which most rows for its time are answered in time.
 */
static int64_t rows_of_best_rate(const sx_batch_queue *queue, int64_t rows, int64_t now_ns)
{
    const sx_batch_rules *rules = &queue->rules;
    int64_t best = rows, best_rows = 0, best_ns = 1;
    for (int i = 0; i <= rules->size_count && (i == 0 || rules->sizes[i - 1] < rows); i++) {
        const int64_t size =
            i < rules->size_count ? SX_MIN(rules->sizes[i], rules->max_rows) : rows;
        const int64_t run_ns = SX_MAX(sx_batch_queue_run_ns(queue, size), (int64_t)1);
        int64_t in_time = 0;
        for (const sx_batch_call *call = queue->first; call != NULL && in_time < size;
             call = call->next) {
            in_time += has_time(queue, call, run_ns, now_ns) ? call->rows : 0;
        }
        in_time = SX_MIN(in_time, size);
        if (in_time * best_ns >= best_rows * run_ns) {
            best = size, best_rows = in_time, best_ns = run_ns;
        }
    }
    return best;
}

/* Whether a call can lead a run of `rows` that is in time, in place of the first. */
static bool can_lead(const sx_batch_queue *queue, const sx_batch_call *call, int64_t rows,
                     int64_t run_ns, int64_t now_ns)
{
    return call->alone == queue->first->alone && call->rows <= rows &&
           has_time(queue, call, run_ns, now_ns);
}

/* How many rows run now of `rows` that could be one batch with the first call. All are to be in
 * time: if it is not in time in so large a run, a smaller one comes first, unless that makes the
 * others late; then another call leads, and it is passed over (`*out_passes`). */
static int64_t rows_in_time(const sx_batch_queue *queue, int64_t rows, int64_t now_ns,
                            bool *out_passes)
{
    const sx_batch_call *first = queue->first;
    *out_passes = false;
    if (has_time(queue, first, sx_batch_queue_run_ns(queue, rows), now_ns)) {
        return rows;
    }
    const int64_t first_rows = first->alone ? first->rows : rows_for_first(queue, rows, now_ns);
    if (others_can_wait(queue, first_rows, now_ns + sx_batch_queue_run_ns(queue, first_rows))) {
        return first_rows;
    }
    const int64_t best = first->alone ? first->rows : rows_of_best_rate(queue, rows, now_ns);
    const int64_t run_ns = sx_batch_queue_run_ns(queue, best);
    for (const sx_batch_call *call = first; call != NULL && !*out_passes; call = call->next) {
        *out_passes = can_lead(queue, call, best, run_ns, now_ns);
    }
    return *out_passes ? best : first_rows;
}

sx_batch_call *sx_batch_queue_take(sx_batch_queue *queue, int64_t now_ns)
{
    const sx_batch_rules *rules = &queue->rules;
    sx_batch_call **at = &queue->first, *before = NULL;
    const sx_batch_call *first = queue->first;
    if (first == NULL) {
        return NULL;
    }
    const bool tfs = rules->policy == SX_BATCH_TFS;
    bool passes = false; /* over those that would be late */
    size_t left = tfs ? batch_of_tfs(queue) : queue->calls;
    int64_t rows = 0, limit = rules->max_rows;
    for (const sx_batch_call *call = first; call != NULL && !tfs && rows < rules->max_rows;
         call = call->next) {
        const bool takes = call == first || (fit_together(queue, first, call) &&
                                             rows + call->rows <= rules->max_rows);
        rows += takes ? call->rows : 0;
    }
    if (!tfs) {
        limit = rows_in_time(queue, rows_to_run(rules, rows), now_ns, &passes);
    }
    const int64_t run_ns = sx_batch_queue_run_ns(queue, limit);
    while (passes && !can_lead(queue, *at, limit, run_ns, now_ns)) {
        before = *at;
        at = &(*at)->next;
    }
    sx_batch_call *batch = unlink_call(queue, at, before), **last = &batch->next;
    rows = batch->rows;
    /* Those that are passed over have the places that the others leave. */
    for (int round = passes ? 0 : 1; round < 2; round++) {
        before = NULL;
        for (at = &queue->first; *at != NULL && left > 1 && rows < limit;) {
            const bool in_time = !passes || (round == 0 ? has_time(queue, *at, run_ns, now_ns)
                                                        : may_have_time(*at, run_ns, now_ns));
            if (in_time && fit_together(queue, batch, *at) && rows + (*at)->rows <= limit) {
                rows += (*at)->rows;
                *last = unlink_call(queue, at, before);
                last = &(*last)->next;
            } else {
                before = *at;
                at = &(*at)->next;
            }
            left -= tfs;
        }
    }
    queue->latest_rows = rows;
    queue->free_ns = now_ns + sx_batch_queue_run_ns(queue, rows) / states_of(queue);
    return batch;
}
