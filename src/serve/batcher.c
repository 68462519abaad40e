/* See batcher.h.
 *
 * `mutex` guards the lines, the shares, the number of busy run states and the tasks that wait; no
 * model runs under it. Whoever adds a task or ends a run looks which batch runs next (dispatch) and
 * wakes its first task, which leads: it runs the batch, gives the run state back, and wakes the
 * others. A thread of the batcher's own, the clock, takes tasks out whose clients are gone or whose
 * deadlines have passed, and begins batches that have waited for long enough. */
#include "serve/batcher.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/thread.h"
#include "serve/batch_merge.h"

enum { LOOK_MS = 50 }; /* how often the clock looks whether clients are gone */

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
    pthread_t clock;
    pthread_cond_t ticks;
    int64_t tick_ns; /* when the clock looks next; INT64_MAX: not before it is told */
    bool has_clock, stopping;
};

/* Of a call of more rows than a batch: the part that runs. */
struct sx_batch_parts {
    sx_tensor *inputs, *outputs;
    sx_arena arena;
    int64_t first, rows, all_rows;
};

static sx_batch_task *task_of(sx_batch_call *call)
{
    return (sx_batch_task *)((char *)call - offsetof(sx_batch_task, call));
}

/* ---- Creation and destruction ---- */

static void *run_clock(void *user);

sx_status sx_batcher_create(const sx_batcher_config *config, sx_batcher **out)
{
    sx_batcher *b = sx_alloc(1, sizeof(*b));
    if (b == NULL) {
        return sx_no_memory("for a batcher");
    }
    pthread_mutex_init(&b->mutex, NULL);
    pthread_cond_init(&b->ticks, NULL);
    b->tick_ns = INT64_MAX;
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
    const int error = sx_thread_create(&b->clock, NULL, run_clock, b);
    b->has_clock = error == 0;
    if (error != 0) {
        sx_batcher_destroy(b);
        return sx_error(SX_RESOURCE_EXHAUSTED, "batcher: cannot start its thread: %s",
                        strerror(error));
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
    if (b->has_clock) {
        pthread_mutex_lock(&b->mutex);
        b->stopping = true;
        pthread_cond_signal(&b->ticks);
        pthread_mutex_unlock(&b->mutex);
        pthread_join(b->clock, NULL);
    }
    for (struct share *share = b->shares; share != NULL; share = next) {
        next = share->next;
        sx_free(share->model);
        sx_free(share);
    }
    pthread_cond_destroy(&b->ticks);
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
    line->queue.run_states = b->config.run_states;
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

/* `self` is the task that the calling thread has brought, or NULL: it is not woken. */
static void set_state(sx_batch_task *task, sx_batch_state state, const sx_batch_task *self)
{
    task->state = state;
    if (task != self) {
        task->wake(task, state == SX_BATCH_LEADS); /* the last use of *task */
    }
}

static sx_status refusal(const sx_batch_call *call)
{
    return sx_cancel_requested(call->cancel)
               ? sx_error(SX_CANCELLED, "cancelled by the caller")
               : sx_error(SX_DEADLINE_EXCEEDED, "deadline exceeded before it was run");
}

static void drop_calls(sx_batch_line *line, int64_t now_ns, const sx_batch_task *self)
{
    sx_batch_call *next;
    for (sx_batch_call *call = sx_batch_queue_drop(&line->queue, now_ns); call != NULL;
         call = next) {
        sx_batch_task *task = task_of(call);
        next = call->next;
        line->batcher->stats.dropped++;
        line->batcher->stats.waiting--;
        task->status = refusal(call);
        set_state(task, SX_BATCH_ENDED, self);
    }
}

/* Whether it is rather `line`'s turn: its model has used less time, or, of the same model, its
 * first call came first. Both have calls. */
static bool goes_before(const sx_batch_line *line, const sx_batch_line *other)
{
    const double used_ns = line->share->used_ns, other_ns = other->share->used_ns;
    return used_ns < other_ns ||
           (used_ns == other_ns && line->queue.first->arrived_ns < other->queue.first->arrived_ns);
}

/* The line whose turn it is; NULL: nothing waits, or not for long enough. */
static sx_batch_line *next_line(sx_batcher *b, int64_t now_ns, const sx_batch_task *self)
{
    sx_batch_line *best = NULL;
    for (sx_batch_line *line = b->lines; line != NULL; line = line->next) {
        if (line->queue.first != NULL) {
            drop_calls(line, now_ns, self);
        }
        if (sx_batch_queue_due_ns(&line->queue) <= now_ns &&
            (best == NULL || goes_before(line, best))) {
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

static void dispatch(sx_batcher *b, const sx_batch_task *self)
{
    while (b->busy < b->config.run_states) {
        const int64_t now_ns = b->config.now_ns();
        sx_batch_line *line = next_line(b, now_ns, self);
        const int states = line != NULL ? states_of(line) : 0;
        if (line == NULL || b->busy + states > b->config.run_states) {
            return; /* a wide run waits for all states, and others for it */
        }
        sx_batch_call *batch = sx_batch_queue_take(&line->queue, now_ns);
        sx_batch_task *leader = task_of(batch);
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
        set_state(leader, SX_BATCH_LEADS, self);
    }
}

/* ---- The clock ---- */

static void *run_clock(void *user)
{
    sx_batcher *b = user;
    pthread_mutex_lock(&b->mutex);
    while (!b->stopping) {
        const int64_t now_ns = sx_now_ns();
        if (now_ns < b->tick_ns) {
            const struct timespec until = sx_timespec_of(b->tick_ns);
            if (b->tick_ns == INT64_MAX) {
                pthread_cond_wait(&b->ticks, &b->mutex);
            } else {
                pthread_cond_clockwait(&b->ticks, &b->mutex, CLOCK_MONOTONIC, &until);
            }
            continue;
        }
        for (sx_batch_line *line = b->lines; line != NULL; line = line->next) {
            drop_calls(line, b->config.now_ns(), NULL);
        }
        dispatch(b, NULL);
        b->tick_ns = b->stats.waiting > 0 ? now_ns + (int64_t)LOOK_MS * 1000000 : INT64_MAX;
        for (const sx_batch_line *line = b->lines; line != NULL; line = line->next) {
            const int64_t due_ns = sx_batch_queue_due_ns(&line->queue);
            b->tick_ns = due_ns > now_ns ? SX_MIN(b->tick_ns, due_ns) : b->tick_ns;
        }
    }
    pthread_mutex_unlock(&b->mutex);
    return NULL;
}

/* With the mutex held: the clock looks at a call that has to wait soon enough. */
static void set_clock(sx_batcher *b, const sx_batch_line *line, const sx_batch_call *call)
{
    const int64_t look_ns = call->arrived_ns + (int64_t)LOOK_MS * 1000000;
    const int64_t due_ns = call->arrived_ns + line->queue.rules.timeout_ns;
    const int64_t tick_ns = line->queue.rules.timeout_ns > 0 ? SX_MIN(look_ns, due_ns) : look_ns;
    if (tick_ns < b->tick_ns) {
        b->tick_ns = tick_ns;
        pthread_cond_signal(&b->ticks);
    }
}

/* ---- Running ---- */

static sx_status run_model(const sx_batch_line *line, const sx_tensor *inputs,
                           const sx_cancel *cancel, sx_arena *arena, sx_tensor *outputs)
{
    const sx_batch_runner *r = &line->runner;
    return r->run(r->user, r->signature, inputs, cancel, arena, outputs);
}

static void run_alone(const sx_batch_line *line, sx_batch_task *task)
{
    const sx_batch_request *q = &task->part;
    task->status = run_model(line, q->inputs, q->cancel, q->arena, q->outputs);
}

/* Runs the calls of a list as one batch; false: they have to run one by one, perhaps because it was
 * stopped: the deadlines of all have passed. */
static bool run_merged(sx_batch_line *line, sx_batch_task *leader, bool *out_stopped)
{
    const sx_serve_signature *signature = line->runner.signature;
    const sx_budget *budget = leader->request.arena->budget;
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
    *out_stopped = sx_status_code(status) == SX_DEADLINE_EXCEEDED;
    const bool done = status == SX_OK && sx_merged_can_split(batch, signature);
    int64_t first = 0;
    for (sx_batch_call *call = &leader->call; call != NULL && done; call = call->next) {
        sx_batch_task *task = task_of(call);
        sx_merged_part(batch, signature, first, call->rows, task->part.outputs);
        first += call->rows;
        task->batch = batch;
        atomic_fetch_add_explicit(&batch->users, 1, memory_order_relaxed);
    }
    sx_merged_release(batch);
    sx_status_free(status);
    return done;
}

static void note_metrics(sx_batch_metrics *metrics, const sx_batch_task *leader, int64_t begin_ns,
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

/* Runs the batch that the task leads, gives its run states back, and ends the other calls. */
static void lead(sx_batch_task *leader)
{
    sx_batch_line *line = leader->line;
    sx_batcher *b = line->batcher;
    const int64_t begin_ns = b->config.now_ns();
    uint64_t calls = 0;
    int64_t rows = 0;
    for (sx_batch_call *call = &leader->call; call != NULL; call = call->next) {
        calls++;
        rows += call->rows;
    }
    bool stopped = false;
    const bool merged = calls > 1 && run_merged(line, leader, &stopped);
    for (sx_batch_call *call = &leader->call; call != NULL && !merged; call = call->next) {
        run_alone(line, task_of(call));
    }
    const int64_t run_ns = b->config.now_ns() - begin_ns;
    stopped = stopped || (calls == 1 && sx_status_code(leader->status) == SX_DEADLINE_EXCEEDED);
    pthread_mutex_lock(&b->mutex);
    if (line->merges) {
        note_metrics(&b->stats.metrics, leader, begin_ns, merged);
    }
    b->busy -= leader->states;
    line->share->used_ns +=
        (double)run_ns * leader->states / line->share->weight - leader->expected_ns;
    if (merged || (calls == 1 && leader->status == SX_OK)) {
        sx_batch_queue_note_run(&line->queue, rows, run_ns);
    } else if (stopped) {
        sx_batch_queue_note_stopped(&line->queue, rows, run_ns);
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
        set_state(task_of(call), SX_BATCH_ENDED, leader);
    }
    leader->state = SX_BATCH_ENDED;
}

/* Adds what is to run of a task, no more than a batch, or what is not merged. */
static sx_batch_state add_call(sx_batch_task *task, int64_t rows, bool alone)
{
    sx_batch_line *line = task->line;
    sx_batcher *b = line->batcher;
    task->call = (sx_batch_call){.inputs = task->part.inputs,
                                 .rows = rows,
                                 .alone = alone,
                                 .arrived_ns = b->config.now_ns(),
                                 .cancel = task->part.cancel};
    task->state = SX_BATCH_WAITS;
    pthread_mutex_lock(&b->mutex);
    if (line->queue.first == NULL) { /* it was idle */
        line->share->used_ns = SX_MAX(line->share->used_ns, b->used_ns);
    }
    task->status = sx_batch_queue_add(&line->queue, &task->call);
    if (task->status == SX_OK) {
        b->stats.waiting++;
        dispatch(b, task);
    } else {
        task->state = SX_BATCH_ENDED;
    }
    const sx_batch_state state = task->state;
    if (state == SX_BATCH_WAITS) {
        set_clock(b, line, &task->call);
    }
    pthread_mutex_unlock(&b->mutex);
    return state;
}

/* ---- Calls of more rows than a batch ---- */

/* Appends the outputs of a part to those of the call, which are allocated with the first. */
static sx_status keep_part(const sx_serve_signature *signature, const sx_batch_request *request,
                           const struct sx_batch_parts *parts)
{
    const sx_tensor *part = parts->outputs;
    const int64_t first = parts->first, part_rows = parts->rows, rows = parts->all_rows;
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

static sx_batch_state add_part(sx_batch_task *task)
{
    const sx_serve_signature *signature = task->line->runner.signature;
    struct sx_batch_parts *parts = task->parts;
    parts->rows = SX_MIN(task->line->queue.rules.max_rows, parts->all_rows - parts->first);
    for (size_t i = 0; i < signature->input_count; i++) {
        parts->inputs[i] = task->request.inputs[i];
        parts->inputs[i].type.dims[0] = parts->rows;
        parts->inputs[i].data = (uint8_t *)parts->inputs[i].data +
                                (size_t)parts->first * sx_batch_row_bytes(&parts->inputs[i].type);
    }
    return add_call(task, parts->rows, false);
}

static sx_batch_state begin_parts(sx_batch_task *task, int64_t rows)
{
    const sx_serve_signature *signature = task->line->runner.signature;
    sx_arena *arena = task->request.arena;
    struct sx_batch_parts *parts = sx_arena_new(arena, struct sx_batch_parts);
    sx_tensor *inputs = sx_arena_array(arena, signature->input_count + 1, sx_tensor);
    sx_tensor *outputs = sx_arena_array(arena, signature->output_count + 1, sx_tensor);
    if (parts == NULL || inputs == NULL || outputs == NULL) {
        task->status = sx_no_memory("for a call");
        return SX_BATCH_ENDED;
    }
    *parts = (struct sx_batch_parts){.inputs = inputs, .outputs = outputs, .all_rows = rows};
    sx_arena_init(&parts->arena, 0);
    parts->arena.budget = arena->budget;
    task->parts = parts;
    task->part = (sx_batch_request){inputs, task->request.cancel, &parts->arena, outputs};
    return add_part(task);
}

/* Keeps the part that has ended, and adds the next one. */
static sx_batch_state next_part(sx_batch_task *task)
{
    struct sx_batch_parts *parts = task->parts;
    if (task->status == SX_OK) {
        task->status = keep_part(task->line->runner.signature, &task->request, parts);
    }
    sx_merged_release(task->batch);
    task->batch = NULL;
    sx_arena_reset(&parts->arena);
    parts->first += parts->rows;
    return task->status == SX_OK && parts->first < parts->all_rows ? add_part(task)
                                                                   : SX_BATCH_ENDED;
}

/* ---- Interface ---- */

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

sx_status sx_batch_line_admit(sx_batch_line *line, const sx_cancel *cancel, int64_t arrives_ns,
                              bool others_wait)
{
    sx_batcher *b = line->batcher;
    const sx_batch_call call = {
        .rows = 1, .alone = !line->merges, .arrived_ns = arrives_ns, .cancel = cancel};
    pthread_mutex_lock(&b->mutex);
    sx_status status = sx_batch_queue_admit(&line->queue, &call, others_wait);
    pthread_mutex_unlock(&b->mutex);
    return status;
}

sx_batch_state sx_batch_line_begin(sx_batch_line *line, sx_batch_task *task)
{
    const sx_batcher *b = line->batcher;
    const sx_serve_signature *signature = line->runner.signature;
    const int64_t rows = line->merges ? rows_of(signature, task->request.inputs) : -1;
    const int64_t max_rows = line->queue.rules.max_rows;
    task->line = line;
    task->status = SX_OK;
    task->batch = NULL;
    task->parts = NULL;
    task->part = task->request;
    if (rows > max_rows && b->config.no_split) {
        task->status = sx_error(SX_INVALID_ARGUMENT,
                                "Task size %lld is larger than maximum input batch size %lld",
                                (long long)rows, (long long)max_rows);
        return SX_BATCH_ENDED;
    }
    const bool ones = signature->one_by_itself;
    const bool alone = rows < 0 || (ones && (rows == 1 || (rows - 1) % max_rows == 0));
    return rows > max_rows && !alone ? begin_parts(task, rows)
                                     : add_call(task, SX_MAX(rows, (int64_t)1), alone);
}

sx_batch_state sx_batch_task_go_on(sx_batch_task *task)
{
    if (task->state == SX_BATCH_LEADS) {
        lead(task);
    }
    struct sx_batch_parts *parts = task->parts;
    const sx_batch_state state = parts != NULL ? next_part(task) : SX_BATCH_ENDED;
    if (state == SX_BATCH_ENDED && parts != NULL) {
        sx_arena_deinit(&parts->arena);
        task->parts = NULL;
    }
    return state;
}

sx_batcher_stats sx_batcher_get_stats(sx_batcher *b)
{
    pthread_mutex_lock(&b->mutex);
    const sx_batcher_stats stats = b->stats;
    pthread_mutex_unlock(&b->mutex);
    return stats;
}
