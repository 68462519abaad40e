/* See batcher.h.
 *
 * `mutex` guards the lines, the shares and the number of busy run states; no model runs under it. A
 * call lives on its thread's stack. Whoever adds a call or ends a run looks which batch runs next
 * (dispatch) and wakes the thread of its first call, which leads: it runs the batch, gives the run
 * state back, and wakes the threads of the others. A thread that is woken for a state finds it
 * without the mutex; one whose patience ends looks at the clock under it. */
#include "serve/batcher.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/pool.h"
#include "serve/batch_merge.h"

enum { LOOK_MS = 50 }; /* how often a waiting call looks whether its client is gone */

/* The time that the runs of a model have used, in relation to its weight. */
struct share {
    char *model;
    double weight, used_ns;
    int lines;
    struct share *next;
};

struct sx_batch_line {
    sx_batcher *batcher;
    sx_batch_runner runner;
    sx_batch_queue queue;
    struct share *share;
    bool merges;
    sx_batch_line *next;
};

struct sx_batcher {
    sx_batcher_config config;
    pthread_mutex_t mutex;
    int busy; /* run states */
    sx_batch_line *lines;
    struct share *shares;
    double used_ns; /* of the share that ran last: one that was idle has no claim to more */
    sx_batcher_stats stats;
};

enum { WAITING, LEADS, DONE };

struct waiter {
    sx_batch_call call; /* must be first: converted by address */
    const sx_batch_request *request;
    sx_merged *batch;
    sx_status status;
    atomic_int state;
    bool by_itself; /* the state was set by its own thread, which posts nothing */
    sem_t changed;
    int states; /* LEADS: the run states that it has */
    double expected_ns;
};

static struct waiter *waiter_of(sx_batch_call *call)
{
    return (struct waiter *)call;
}

/* ---- Creation and destruction ---- */

sx_status sx_batcher_create(const sx_batcher_config *config, sx_batcher **out)
{
    sx_batcher *b = sx_alloc(1, sizeof(*b));
    if (b == NULL) {
        return sx_no_memory("for a batcher");
    }
    pthread_mutex_init(&b->mutex, NULL);
    b->config = *config;
    b->config.run_states = config->run_states > 0 ? config->run_states : sx_cpu_count();
    b->config.now_ns = config->now_ns != NULL ? config->now_ns : sx_now_ns;
    b->config.weights = NULL;
    for (size_t i = 0; i < config->weight_count; i++) {
        struct share *share = sx_alloc(1, sizeof(*share));
        char *model = sx_strdup(config->weights[i].model);
        if (share == NULL || model == NULL) {
            sx_free(share);
            sx_free(model);
            sx_batcher_destroy(b);
            return sx_no_memory("for the weights of models");
        }
        *share = (struct share){model, config->weights[i].weight, 0, 1, b->shares};
        b->shares = share;
    }
    *out = b;
    return SX_OK;
}

void sx_batcher_destroy(sx_batcher *b)
{
    struct share *next;
    if (b == NULL) {
        return;
    }
    for (struct share *share = b->shares; share != NULL; share = next) {
        next = share->next;
        sx_free(share->model);
        sx_free(share);
    }
    pthread_mutex_destroy(&b->mutex);
    sx_free(b);
}

/* The share of a model's name; it is kept while lines have it, or a weight names it. */
static struct share *take_share(sx_batcher *b, const char *model)
{
    struct share *share = b->shares;
    while (share != NULL && strcmp(share->model, model) != 0) {
        share = share->next;
    }
    if (share == NULL) {
        char *name = sx_strdup(model);
        share = name != NULL ? sx_alloc(1, sizeof(*share)) : NULL;
        if (share == NULL) {
            sx_free(name);
            return NULL;
        }
        *share = (struct share){name, 1, b->used_ns, 0, b->shares};
        b->shares = share;
    }
    share->lines++;
    return share;
}

static void drop_share(sx_batcher *b, struct share *share)
{
    if (--share->lines > 0) {
        return;
    }
    struct share **at = &b->shares;
    while (*at != share) {
        at = &(*at)->next;
    }
    *at = share->next;
    sx_free(share->model);
    sx_free(share);
}

sx_status sx_batcher_add(sx_batcher *b, const sx_batch_runner *runner, sx_batch_line **out)
{
    const sx_serve_signature *signature = runner->signature;
    sx_batch_line *line = sx_alloc(1, sizeof(*line));
    if (line == NULL) {
        return sx_no_memory("for the calls of a model");
    }
    line->batcher = b;
    line->runner = *runner;
    line->queue.rules = b->config.rules;
    line->queue.input_count = signature->input_count;
    sx_batch_rules *rules = &line->queue.rules;
    line->merges = signature->batch_sizes != NULL && rules->max_rows > 0;
    rules->size_count = 0;
    for (int i = 0; i < signature->batch_size_count && i < SX_BATCH_SIZES && line->merges; i++) {
        rules->sizes[rules->size_count++] = signature->batch_sizes[i];
    }
    rules->max_rows = line->merges ? rules->max_rows : INT64_MAX;
    pthread_mutex_lock(&b->mutex);
    line->share = take_share(b, runner->model);
    if (line->share != NULL) {
        line->next = b->lines;
        b->lines = line;
    }
    pthread_mutex_unlock(&b->mutex);
    if (line->share == NULL) {
        sx_free(line);
        return sx_no_memory("for the calls of a model");
    }
    *out = line;
    return SX_OK;
}

void sx_batch_line_remove(sx_batch_line *line)
{
    if (line == NULL) {
        return;
    }
    sx_batcher *b = line->batcher;
    pthread_mutex_lock(&b->mutex);
    sx_batch_line **at = &b->lines;
    while (*at != line) {
        at = &(*at)->next;
    }
    *at = line->next;
    drop_share(b, line->share);
    pthread_mutex_unlock(&b->mutex);
    sx_free(line);
}

/* ---- What runs next; with the mutex held ---- */

/* `self` is the waiter of the calling thread, or NULL. */
static void set_state(struct waiter *w, int state, struct waiter *self)
{
    const bool own = w == self;
    atomic_store_explicit(&w->state, state, memory_order_release);
    if (own) {
        w->by_itself = true;
    } else {
        sem_post(&w->changed); /* the last use of *w: its thread may go on */
    }
}

static sx_status refusal(const sx_batch_call *call)
{
    return sx_cancel_requested(call->cancel)
               ? sx_error(SX_CANCELLED, "cancelled by the caller")
               : sx_error(SX_DEADLINE_EXCEEDED, "deadline exceeded before it was run");
}

static void drop_calls(sx_batch_line *line, int64_t now_ns, struct waiter *self)
{
    sx_batch_call *next;
    for (sx_batch_call *call = sx_batch_queue_drop(&line->queue, now_ns); call != NULL;
         call = next) {
        struct waiter *w = waiter_of(call);
        next = call->next;
        line->batcher->stats.dropped++;
        line->batcher->stats.waiting--;
        w->status = refusal(call);
        set_state(w, DONE, self);
    }
}

/* The line whose turn it is; NULL: nothing waits, or not for long enough. */
static sx_batch_line *next_line(sx_batcher *b, int64_t now_ns, struct waiter *self)
{
    sx_batch_line *best = NULL;
    for (sx_batch_line *line = b->lines; line != NULL; line = line->next) {
        if (line->queue.first != NULL) {
            drop_calls(line, now_ns, self);
        }
        if (sx_batch_queue_due_ns(&line->queue) <= now_ns &&
            (best == NULL || line->share->used_ns < best->share->used_ns)) {
            best = line;
        }
    }
    return best;
}

/* How many run states the line's next batch takes. */
static int states_of(const sx_batch_line *line)
{
    const sx_batch_runner *r = &line->runner;
    const int64_t rows = SX_MIN(line->queue.rows, line->queue.rules.max_rows);
    return r->is_wide != NULL && r->is_wide(r->user, r->signature, rows)
               ? line->batcher->config.run_states
               : 1;
}

static void dispatch(sx_batcher *b, struct waiter *self)
{
    while (b->busy < b->config.run_states) {
        sx_batch_line *line = next_line(b, b->config.now_ns(), self);
        const int states = line != NULL ? states_of(line) : 0;
        if (line == NULL || b->busy + states > b->config.run_states) {
            return; /* a wide run waits for all states, and others for it */
        }
        sx_batch_call *batch = sx_batch_queue_take(&line->queue);
        struct waiter *leader = waiter_of(batch);
        struct share *share = line->share;
        int64_t rows = 0;
        for (const sx_batch_call *call = batch; call != NULL; call = call->next) {
            rows += call->rows;
            b->stats.waiting--;
        }
        b->busy += states;
        b->used_ns = SX_MAX(b->used_ns, share->used_ns);
        leader->states = states;
        leader->expected_ns =
            (double)sx_batch_queue_run_ns(&line->queue, rows) * states / share->weight;
        share->used_ns += leader->expected_ns;
        set_state(leader, LEADS, self);
    }
}

/* ---- Running ---- */

static sx_status run_model(const sx_batch_line *line, const sx_tensor *inputs,
                           const sx_cancel *cancel, sx_arena *arena, sx_tensor *outputs)
{
    const sx_batch_runner *r = &line->runner;
    return r->run(r->user, r->signature, inputs, cancel, arena, outputs);
}

static void run_alone(const sx_batch_line *line, struct waiter *w)
{
    const sx_batch_request *q = w->request;
    w->status = run_model(line, w->call.inputs, q->cancel, q->arena, q->outputs);
}

/* Runs the calls of a list as one batch; false: they have to run one by one. */
static bool run_merged(sx_batch_line *line, struct waiter *leader)
{
    const sx_serve_signature *signature = line->runner.signature;
    const sx_budget *budget = leader->request->arena->budget;
    sx_cancel cancel;
    sx_merged *batch = NULL;
    int64_t rows = 0, until_ns = 0;
    for (sx_batch_call *call = &leader->call; call != NULL; call = call->next) {
        rows += call->rows;
        until_ns = SX_MAX(until_ns, call->cancel != NULL ? call->cancel->deadline_ns : INT64_MAX);
    }
    sx_cancel_init(&cancel, until_ns);
    sx_status status =
        sx_merged_create(signature, &leader->call, sx_batch_size_for(&line->queue.rules, rows),
                         budget != NULL ? budget->parent : NULL, &batch);
    if (status == SX_OK) {
        status = run_model(line, batch->inputs, &cancel, &batch->arena, batch->outputs);
    }
    const bool done = status == SX_OK && sx_merged_can_split(batch, signature);
    int64_t first = 0;
    for (sx_batch_call *call = &leader->call; call != NULL && done; call = call->next) {
        struct waiter *w = waiter_of(call);
        sx_merged_part(batch, signature, first, call->rows, w->request->outputs);
        first += call->rows;
        w->batch = batch;
        atomic_fetch_add_explicit(&batch->users, 1, memory_order_relaxed);
    }
    sx_merged_release(batch);
    sx_status_free(status);
    return done;
}

static void note_metrics(sx_batch_metrics *metrics, const struct waiter *leader, int64_t begin_ns,
                         bool merged)
{
    int64_t rows = 0;
    for (const sx_batch_call *call = &leader->call; call != NULL; call = call->next) {
        rows += call->rows;
        sx_batch_metrics_add_call(metrics, call->rows, begin_ns - call->arrived_ns);
        if (!merged) {
            sx_batch_metrics_add_run(metrics, call->rows, call->rows);
        }
    }
    if (merged) {
        sx_batch_metrics_add_run(metrics, rows, leader->batch->size);
    }
}

/* Runs the batch that the waiter leads, gives its run states back, and ends the other calls. */
static void lead(sx_batch_line *line, struct waiter *leader)
{
    sx_batcher *b = line->batcher;
    const int64_t begin_ns = b->config.now_ns();
    uint64_t calls = 0;
    int64_t rows = 0;
    for (sx_batch_call *call = &leader->call; call != NULL; call = call->next) {
        calls++;
        rows += call->rows;
    }
    const bool merged = calls > 1 && run_merged(line, leader);
    for (sx_batch_call *call = &leader->call; call != NULL && !merged; call = call->next) {
        run_alone(line, waiter_of(call));
    }
    const int64_t run_ns = b->config.now_ns() - begin_ns;
    pthread_mutex_lock(&b->mutex);
    if (line->merges) {
        note_metrics(&b->stats.metrics, leader, begin_ns, merged);
    }
    b->busy -= leader->states;
    line->share->used_ns +=
        (double)run_ns * leader->states / line->share->weight - leader->expected_ns;
    if (merged || (calls == 1 && leader->status == SX_OK)) {
        sx_batch_queue_note_run(&line->queue, rows, run_ns);
    }
    b->stats.runs += merged ? 1 : calls;
    b->stats.merged += merged ? calls : 0;
    b->stats.rows += (uint64_t)rows;
    b->stats.padding += merged ? (uint64_t)(leader->batch->size - rows) : 0;
    dispatch(b, NULL);
    pthread_mutex_unlock(&b->mutex);
    sx_batch_call *next;
    for (sx_batch_call *call = leader->call.next; call != NULL; call = next) {
        next = call->next;
        set_state(waiter_of(call), DONE, leader);
    }
}

/* ---- Waiting ---- */

/* Until the waiter's state is another than WAITING. */
static void wait_for_turn(sx_batch_line *line, struct waiter *w)
{
    sx_batcher *b = line->batcher;
    const int64_t due_ns = w->call.arrived_ns + line->queue.rules.timeout_ns;
    while (!w->by_itself) {
        const int64_t now_ns = sx_now_ns();
        int64_t until_ns = now_ns + (int64_t)LOOK_MS * 1000000;
        until_ns = due_ns > now_ns ? SX_MIN(until_ns, due_ns) : until_ns;
        const struct timespec until = sx_timespec_of(until_ns);
        int error;
        while ((error = sem_clockwait(&w->changed, CLOCK_MONOTONIC, &until)) != 0 &&
               errno == EINTR) {
        }
        if (error == 0) {
            return;
        }
        pthread_mutex_lock(&b->mutex);
        if (atomic_load_explicit(&w->state, memory_order_relaxed) == WAITING) {
            drop_calls(line, b->config.now_ns(), w);
            dispatch(b, w);
        }
        pthread_mutex_unlock(&b->mutex);
    }
}

/* A call that is no larger than a batch, or is not merged. */
static sx_status run_call(sx_batch_line *line, const sx_batch_request *request, int64_t rows,
                          bool alone, sx_merged **out_batch)
{
    sx_batcher *b = line->batcher;
    struct waiter w = {.call = {.inputs = request->inputs,
                                .rows = rows,
                                .alone = alone,
                                .arrived_ns = b->config.now_ns(),
                                .cancel = request->cancel},
                       .request = request};
    sem_init(&w.changed, 0, 0);
    pthread_mutex_lock(&b->mutex);
    if (line->queue.first == NULL) { /* it was idle */
        line->share->used_ns = SX_MAX(line->share->used_ns, b->used_ns);
    }
    sx_status status = sx_batch_queue_add(&line->queue, &w.call);
    if (status == SX_OK) {
        b->stats.waiting++;
        dispatch(b, &w);
    }
    pthread_mutex_unlock(&b->mutex);
    if (status != SX_OK) {
        sem_destroy(&w.changed);
        return status;
    }
    wait_for_turn(line, &w);
    if (atomic_load_explicit(&w.state, memory_order_acquire) == LEADS) {
        lead(line, &w);
    }
    sem_destroy(&w.changed);
    *out_batch = w.batch;
    return w.status;
}

/* ---- Calls of more rows than a batch ---- */

/* Appends the outputs of a part to those of the call, which are allocated with the first. */
static sx_status keep_part(const sx_serve_signature *signature, const sx_batch_request *request,
                           const sx_tensor *part, int64_t first, int64_t part_rows, int64_t rows)
{
    for (size_t i = 0; i < signature->output_count; i++) {
        sx_tensor *whole = &request->outputs[i];
        const size_t row_bytes = sx_batch_row_bytes(&part[i].type);
        if (first == 0) {
            *whole = part[i];
            whole->type.dims[0] = rows;
            whole->data =
                sx_arena_alloc(request->arena, (size_t)rows, SX_MAX(row_bytes, (size_t)1));
            if (whole->data == NULL) {
                return sx_no_memory("for output \"%s\" of %lld rows", signature->outputs[i].name,
                                    (long long)rows);
            }
        }
        if (part[i].type.rank == 0 || part[i].type.dims[0] != part_rows ||
            sx_batch_row_bytes(&whole->type) != row_bytes) {
            return sx_error(SX_INTERNAL, "output \"%s\" has not a row for each of the inputs",
                            signature->outputs[i].name);
        }
        memcpy((uint8_t *)whole->data + (size_t)first * row_bytes, part[i].data,
               (size_t)part_rows * row_bytes);
        for (size_t k = 0; part[i].type.dtype == SX_STRING &&
                           k < (size_t)part_rows * row_bytes / sizeof(sx_bytes);
             k++) {
            sx_bytes *text =
                (sx_bytes *)whole->data + (size_t)first * row_bytes / sizeof(*text) + k;
            text->data = sx_arena_memdup(request->arena, text->data, text->size);
            if (text->data == NULL) {
                return sx_no_memory("for output \"%s\"", signature->outputs[i].name);
            }
        }
    }
    return SX_OK;
}

static sx_status run_parts(sx_batch_line *line, const sx_batch_request *request, int64_t rows)
{
    const sx_serve_signature *signature = line->runner.signature;
    sx_tensor *inputs = sx_arena_array(request->arena, signature->input_count + 1, sx_tensor);
    sx_tensor *outputs = sx_arena_array(request->arena, signature->output_count + 1, sx_tensor);
    if (inputs == NULL || outputs == NULL) {
        return sx_no_memory("for a call");
    }
    sx_arena arena; /* of one part */
    sx_arena_init(&arena, 0);
    arena.budget = request->arena->budget;
    const sx_batch_request part = {inputs, request->cancel, &arena, outputs};
    sx_status status = SX_OK;
    int64_t part_rows = line->queue.rules.max_rows;
    for (int64_t first = 0; first < rows && status == SX_OK; first += part_rows) {
        sx_merged *batch = NULL;
        part_rows = SX_MIN(part_rows, rows - first);
        for (size_t i = 0; i < signature->input_count; i++) {
            inputs[i] = request->inputs[i];
            inputs[i].type.dims[0] = part_rows;
            inputs[i].data =
                (uint8_t *)inputs[i].data + (size_t)first * sx_batch_row_bytes(&inputs[i].type);
        }
        status = run_call(line, &part, part_rows, false, &batch);
        if (status == SX_OK) {
            status = keep_part(signature, request, outputs, first, part_rows, rows);
        }
        sx_merged_release(batch);
        sx_arena_reset(&arena);
    }
    sx_arena_deinit(&arena);
    return status;
}

/* The rows that all inputs have; -1 if they differ, or there are none. */
static int64_t rows_of(const sx_serve_signature *signature, const sx_tensor *inputs)
{
    int64_t rows = -1;
    for (size_t i = 0; i < signature->input_count; i++) {
        const int64_t own = inputs[i].type.rank > 0 ? inputs[i].type.dims[0] : 0;
        if (own <= 0 || (rows >= 0 && own != rows)) {
            return -1;
        }
        rows = own;
    }
    return rows;
}

sx_status sx_batch_line_run(sx_batch_line *line, const sx_batch_request *request,
                            sx_merged **out_batch)
{
    const sx_batcher *b = line->batcher;
    const int64_t rows = line->merges ? rows_of(line->runner.signature, request->inputs) : -1;
    const int64_t max_rows = line->queue.rules.max_rows;
    *out_batch = NULL;
    if (rows > max_rows && b->config.no_split) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "Task size %lld is larger than maximum input batch size %lld",
                        (long long)rows, (long long)max_rows);
    }
    const bool ones = line->runner.signature->one_by_itself;
    const bool alone = rows < 0 || (ones && (rows == 1 || (rows - 1) % max_rows == 0));
    return rows > max_rows && !alone
               ? run_parts(line, request, rows)
               : run_call(line, request, SX_MAX(rows, (int64_t)1), alone, out_batch);
}

sx_batcher_stats sx_batcher_get_stats(sx_batcher *b)
{
    pthread_mutex_lock(&b->mutex);
    const sx_batcher_stats stats = b->stats;
    pthread_mutex_unlock(&b->mutex);
    return stats;
}
