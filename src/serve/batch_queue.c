/* See batch_queue.h. */
#include "serve/batch_queue.h"

#include "base/checked.h"

enum { DEFAULT_PATIENCE_S = 30 }; /* of a call without a deadline */

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
    /* Runs that were disturbed by other processes count little. */
    int64_t *known = &queue->run_ns[size_index(&queue->rules, rows)];
    *known = *known == 0 || run_ns < *known ? SX_MAX(run_ns, (int64_t)1)
                                            : *known + (run_ns - *known) / 8;
}

int64_t sx_batch_queue_run_ns(const sx_batch_queue *queue, int64_t rows)
{
    return queue->run_ns[size_index(&queue->rules, rows)];
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

sx_status sx_batch_queue_add(sx_batch_queue *queue, sx_batch_call *call)
{
    const sx_batch_rules *rules = &queue->rules;
    if (queue->calls > 0 && queue->rows + call->rows > rules->max_queued_rows) {
        return sx_error(SX_UNAVAILABLE,
                        "The batch scheduling queue to which this task was submitted is full: "
                        "%lld rows wait, and the limit is %lld; try again later",
                        (long long)queue->rows, (long long)rules->max_queued_rows);
    }
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

/* Whether not even a run of this call alone would end in time. What a run takes is a guess; while
 * others wait that have more time, a call needs half as much again, or else a server that is
 * overloaded would always begin the one that is just too late. */
static bool is_hopeless(const sx_batch_queue *queue, const sx_batch_call *call, int64_t now_ns)
{
    const int64_t run_ns = queue->run_ns[size_index(&queue->rules, call->rows)];
    const int64_t left_ns = deadline_of(call) - now_ns;
    return deadline_of(call) != INT64_MAX &&
           left_ns < (call->next != NULL ? run_ns + run_ns / 2 : run_ns);
}

static size_t batch_of_tfs(const sx_batch_queue *queue);

sx_batch_call *sx_batch_queue_drop(sx_batch_queue *queue, int64_t now_ns)
{
    sx_batch_call *dropped = NULL, **last = &dropped, *before = NULL;
    size_t of_batch = queue->calls;
    int64_t *wrong_ns = NULL;                  /* what a hopeless call would take, perhaps */
    if (queue->rules.policy == SX_BATCH_TFS) { /* the first batch, or none */
        of_batch = batch_of_tfs(queue);
        const sx_batch_call *call = queue->first;
        for (size_t i = 0; i < of_batch; i++, call = call->next) {
            of_batch = now_ns >= deadline_of(call) ? of_batch : 0;
        }
    }
    for (sx_batch_call **at = &queue->first; *at != NULL && of_batch > 0; of_batch--) {
        const bool past = is_past(*at, now_ns);
        if (past || (queue->rules.policy == SX_BATCH_CONSERVE && is_hopeless(queue, *at, now_ns))) {
            if (!past) {
                wrong_ns = &queue->run_ns[size_index(&queue->rules, (*at)->rows)];
            }
            *last = unlink_call(queue, at, before);
            last = &(*last)->next;
        } else {
            before = *at;
            at = &(*at)->next;
        }
    }
    if (wrong_ns != NULL && queue->calls == 0) { /* a guess that nothing passes is tried again */
        *wrong_ns -= *wrong_ns / 8;
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

sx_batch_call *sx_batch_queue_take(sx_batch_queue *queue)
{
    const sx_batch_rules *rules = &queue->rules;
    sx_batch_call *first = queue->first;
    if (first == NULL) {
        return NULL;
    }
    const bool tfs = rules->policy == SX_BATCH_TFS;
    size_t left = tfs ? batch_of_tfs(queue) : queue->calls;
    int64_t rows = 0, limit = tfs ? rules->max_rows : 0;
    for (const sx_batch_call *call = first; call != NULL && !tfs && rows < rules->max_rows;
         call = call->next) {
        const bool takes = call == first || (fit_together(queue, first, call) &&
                                             rows + call->rows <= rules->max_rows);
        rows += takes ? call->rows : 0;
    }
    limit = tfs ? limit : rows_to_run(rules, rows);
    sx_batch_call *batch = unlink_call(queue, &queue->first, NULL), **last = &batch->next,
                  *before = NULL;
    rows = batch->rows;
    for (sx_batch_call **at = &queue->first; *at != NULL && --left > 0 && rows < limit;) {
        if (fit_together(queue, batch, *at) && rows + (*at)->rows <= limit) {
            rows += (*at)->rows;
            *last = unlink_call(queue, at, before);
            last = &(*last)->next;
        } else {
            before = *at;
            at = &(*at)->next;
        }
    }
    return batch;
}
