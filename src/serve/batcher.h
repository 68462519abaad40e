/* The batcher: every run of a model goes through it, and it is the only place where calls wait. A
 * call that waits is a record in a queue, and holds no thread.
 *
 *   call -> queue of its signature -> one of the run states        batch_queue.h: which calls
 *
 * There are as many run states as processors (or threads of TensorFlow Serving's policy); a run
 * that uses all processors takes all of them. While one is idle, a call runs at once, on the thread
 * that brought it, and nothing is copied. While all are busy, calls gather; the call whose turn has
 * come leads: its owner finds it a thread, which runs it together with the others of its batch,
 * which is one copy of their inputs: outputs are views of the batch's. If that run fails, they run
 * one by one, so that a bad one fails alone. A call with more rows than a batch runs in parts,
 * between which others have their turn.
 *
 * Of several queues, the one runs next whose model has used the least time for its weight; of one
 * model's, the one whose first call came first.
 *
 * A row's result depends on its own values and the number of rows that run together, including
 * padding, and not on its place among them or on the others. */
#ifndef SX_SERVE_BATCHER_H
#define SX_SERVE_BATCHER_H

#include <sextant/types.h>

#include "base/arena.h"
#include "base/cancel.h"
#include "serve/batch_metrics.h"
#include "serve/batch_queue.h"
#include "serve/model.h"

typedef struct sx_batcher sx_batcher;
typedef struct sx_batch_line sx_batch_line; /* of one signature of one version */
typedef struct sx_merged sx_merged;         /* calls that ran together: what their outputs lie in */

/* Of a model's runs, in relation to other models: --model_weights. */
typedef struct sx_batch_weight {
    const char *model;
    double weight; /* 1 */
} sx_batch_weight;

/* A zero takes the default in the comment. */
typedef struct sx_batcher_config {
    sx_batch_rules rules; /* max_rows 0: calls are not merged; the sizes are the signatures' */
    int run_states;       /* as many as processors */
    bool no_split;        /* a call of more than max_rows is INVALID_ARGUMENT */
    const sx_batch_weight *weights; /* [weight_count], copied */
    size_t weight_count;
    int64_t (*now_ns)(void); /* sx_now_ns */
} sx_batcher_config;

SX_MUST_USE sx_status sx_batcher_create(const sx_batcher_config *config, sx_batcher **out);
/* All lines have been removed. NULL is allowed. */
void sx_batcher_destroy(sx_batcher *batcher);

/* What runs: `run` is as that of sx_serve_model_ops. */
typedef struct sx_batch_runner {
    const char *model; /* its name: whose share of the time this is */
    const sx_serve_signature *signature;
    sx_status (*run)(void *user, const sx_serve_signature *signature, const sx_tensor *inputs,
                     const sx_cancel *cancel, sx_arena *arena, sx_tensor *outputs);
    /* Whether a run of so many rows uses all processors; NULL: none does. */
    bool (*is_wide)(void *user, const sx_serve_signature *signature, int64_t rows);
    void *user;
} sx_batch_runner;

SX_MUST_USE sx_status sx_batcher_add(sx_batcher *batcher, const sx_batch_runner *runner,
                                     sx_batch_line **out);
void sx_batch_line_remove(sx_batch_line *line); /* no call is in it; NULL is allowed */

typedef struct sx_batch_request {
    const sx_tensor *inputs;
    const sx_cancel *cancel; /* NULL = none */
    sx_arena *arena;
    sx_tensor *outputs;
} sx_batch_request;

typedef enum sx_batch_state {
    SX_BATCH_WAITS, /* `wake` says when that ends: the task is not to be touched until then */
    SX_BATCH_LEADS, /* it is its turn: sx_batch_task_go_on() runs it */
    SX_BATCH_ENDED, /* `status` and `batch` are set */
} sx_batch_state;

/* A call on its way through a line; its owner's, who sets the first fields. */
typedef struct sx_batch_task {
    sx_batch_request request;
    /* A task that waited leads, or (`runs` is false) has ended or goes on with its next part: the
     * owner lets a thread call sx_batch_task_go_on(), once. Any thread; perhaps with the batcher's
     * mutex held. */
    void (*wake)(struct sx_batch_task *task, bool runs);
    sx_status status;
    sx_merged *batch; /* in which outputs lie, released after their last use; NULL: in none */
    /* The batcher's: */
    sx_batch_call call;
    sx_batch_line *line;
    sx_batch_state state;
    int states;         /* run states that it has while it leads */
    double expected_ns; /* of its run */
    sx_batch_request part;
    struct sx_batch_parts *parts; /* NULL: it runs as a whole */
} sx_batch_task;

/* Whether a call of one row that arrives at that time may be answered before its deadline; others
 * wait to arrive, or do not. UNAVAILABLE: too much waits already. */
SX_MUST_USE sx_status sx_batch_line_admit(sx_batch_line *line, const sx_cancel *cancel,
                                          int64_t arrives_ns, bool others_wait);
/* Runs a call, as the runner's function does, in its turn. Its status may also be UNAVAILABLE: too
 * much waits already; DEADLINE_EXCEEDED, CANCELLED: it waited in vain, and was not run. */
SX_MUST_USE sx_batch_state sx_batch_line_begin(sx_batch_line *line, sx_batch_task *task);
/* After SX_BATCH_LEADS, or `wake`. Of a task that has ended: nothing. */
SX_MUST_USE sx_batch_state sx_batch_task_go_on(sx_batch_task *task);
void sx_merged_release(sx_merged *batch); /* NULL is allowed */

typedef struct sx_batcher_stats {
    uint64_t runs;            /* executions, of one call or of several */
    uint64_t merged;          /* calls that shared one */
    uint64_t rows;            /* examples */
    uint64_t padding;         /* rows added to them by the batcher */
    uint64_t dropped;         /* calls that were not run: too late, or nobody waits */
    uint64_t waiting;         /* calls, now */
    sx_batch_metrics metrics; /* of the signatures whose calls may be merged */
} sx_batcher_stats;

sx_batcher_stats sx_batcher_get_stats(sx_batcher *batcher);

#endif
