/* The state of a call of fit, shared by these files:
 *
 *   fit.c           the call from start to end: number of steps, whether they fit in memory
 *   fit_resume.c    lock, checkpoint, position in the data, changed numerics
 *   fit_loop.c      from one control point to the next: batches in, steps out
 *   fit_control.c   a control point: epochs, controls, history, checkpoints, evaluation
 *   fit_events.c    events for observers
 *   training.c      the same parts in a loop of the caller's (sextant/runtime.h)
 *
 * A checkpoint is saved after the controls of its step and before its evaluation, and records
 * whether a regular evaluation follows (eval_due). A run that resumes there starts with that
 * evaluation or, if history.json has its result, only shows it to the controls again. So no
 * evaluation is lost or counted twice. */
#ifndef SX_TRAIN_FIT_H
#define SX_TRAIN_FIT_H

#include "nn/model_program.h"
#include "train/gather.h"
#include "train/host_call.h"
#include "train/state.h"

/* Recorded when a batch is fed, used when its step has run. */
typedef struct sx_fed_batch {
    int64_t wait_ns; /* time spent waiting for input so far */
    bool ends_epoch;
} sx_fed_batch;

typedef struct sx_fit_mark {
    int64_t ns, step; /* the moment when the step ended */
} sx_fit_mark;

typedef struct sx_fit {
    sx_trainer *t;
    const sx_fit_request *r;
    sx_program *program;
    sx_batch_gather input;
    int n_inputs;
    int order[SX_MAX_MODEL_INPUTS]; /* the run's input of each of the program */
    int lock;                       /* on model_dir; SX_NO_LOCK = none */

    int64_t step, target; /* target INT64_MAX = until the data end */
    int64_t epochs;       /* total; 0 = unknown */
    int64_t saved_step;   /* of the last checkpoint, which may still be written; -1 = none */
    int64_t partial_step; /* resumed in the middle of an epoch, at this step; -1 = not */
    int64_t saved_ns;     /* when */

    int n_metrics; /* loss and metrics among the scalars */
    int metric_scalars[SX_MAX_RESULTS];
    sx_metric metrics[SX_MAX_RESULTS]; /* means over this epoch so far */
    double last[SX_MAX_RESULTS];       /* their values in the latest step */
    int weight_scalar, rate_scalar;    /* -1 = none */
    double learning_rate;

    int64_t compiled[4]; /* batch sizes compiled, newest first */
    int64_t batch;       /* size of the latest step's batch */
    bool epoch_ended;    /* with that step */
    sx_fed_batch *fed;   /* [fed_room], a ring: batches fed whose steps have not been seen */
    int64_t fed_room, n_fed, n_shown;
    sx_host_caller host;
    sx_status failed; /* error of the host call */
    bool feed_failed; /* the error comes from the input */
    bool no_position; /* the batch comes from the caller: it has no place in data and no epoch */

    sx_control control;
    bool told_thinned; /* that entries of history.json were dropped */
    bool cut_short;    /* stopped before or during an evaluation */

    int64_t told_ns, epoch_ns;
    int64_t history_due_ns; /* when history.json may be written again */
    bool marked;            /* a step has ended */
    sx_fit_mark marks[2];   /* two recent steps, the older one first: for the remaining time */
    int64_t window_ns, window_wait_ns, window_step,
        window_examples; /* start of the window for rates */
    int64_t wait_ns;     /* time spent waiting for input up to the latest step */
    int64_t trained_examples;
} sx_fit;

static inline sx_progress *sx_fit_progress(sx_fit *f)
{
    return &f->t->state.progress;
}

/* `every` <= 0: never. */
static inline bool sx_is_multiple(int64_t step, int64_t every)
{
    return every > 0 && step % every == 0;
}

/* Finite data that are batched already are trained on once; all other data are repeated. */
static inline bool sx_fit_until_data_end(const sx_fit_request *r)
{
    return sx_dataset_batch_size(r->train) > 0 && r->epochs == 0;
}

/* ---- fit.c ---- */

/* Gets the program, and finds its inputs and outputs, for the batches of f->input. */
SX_MUST_USE sx_status sx_fit_open_program(sx_fit *f);
/* Between restoring and the first step: compiles, writes the run's files if it is new, locks it,
 * moves f->input, if there is one, to the position of the checkpoint. `found`: one was restored. */
SX_MUST_USE sx_status sx_fit_begin(sx_fit *f, bool found);

/* ---- fit_resume.c ---- */

/* Locks model_dir, if it exists: two processes that train in one directory would delete each
 * other's checkpoints. PERMISSION_DENIED: no files can be created in it. */
SX_MUST_USE sx_status sx_fit_lock(sx_fit *f);
/* Locks and repairs the run, and restores the newest checkpoint unless the session already has
 * trained variables. */
SX_MUST_USE sx_status sx_fit_restore(sx_fit *f, bool *out_found);
/* Moves the input to the checkpoint's position; in other data, to the same number of batches. */
SX_MUST_USE sx_status sx_fit_place_input(sx_fit *f);
/* Warns, or with require_exact fails, if the steps so far were computed with other numerics. */
SX_MUST_USE sx_status sx_fit_check_numerics(sx_fit *f);

/* ---- fit_loop.c ---- */

/* Compiles the step for that batch size, unless it is among the latest few. */
SX_MUST_USE sx_status sx_fit_compile(sx_fit *f, int64_t batch);
/* Trains `steps` steps, or fewer if an epoch, the data, a launch or the fit ends; sees which. */
SX_MUST_USE sx_status sx_fit_run_segment(sx_fit *f, int64_t steps);
/* Allocates the queue of batches of a launch. */
SX_MUST_USE sx_status sx_fit_make_queue(sx_fit *f);
/* Trains until the end, or until a stop is requested. */
SX_MUST_USE sx_status sx_fit_run(sx_fit *f);

/* ---- fit_control.c ---- */

SX_MUST_USE sx_status sx_fit_control_point(sx_fit *f);
/* Counts the epoch, and tells the observers and the controls. */
void sx_fit_end_epoch(sx_fit *f);
/* Brings the history up to this step: drops what it has of the part of an epoch that was resumed;
 * `means`: adds the epoch's means so far. */
SX_MUST_USE sx_status sx_fit_record(sx_fit *f, bool means);
/* The target is reached, a callback has stopped the fit, or the data have ended. */
bool sx_fit_at_end(sx_fit *f);
bool sx_fit_time_to_save(const sx_fit *f, int64_t now);
/* Stores the position in the data, for a checkpoint or another fit in this process. */
void sx_fit_keep_cursor(sx_fit *f);
void sx_fit_begin_epoch(sx_fit *f);
/* Saves the history, and a checkpoint unless this step has one. Without a model_dir, nothing. */
SX_MUST_USE sx_status sx_fit_save(sx_fit *f);
SX_MUST_USE sx_status sx_fit_evaluate(sx_fit *f);
/* Does the evaluation that the restored checkpoint says is due, or shows its result again. */
SX_MUST_USE sx_status sx_fit_replay_eval(sx_fit *f);

/* ---- fit_events.c ---- */

/* An event with the fields that all kinds have. */
sx_train_event sx_fit_event(sx_fit *f, sx_train_event_kind kind);
/* The same with the metrics of the epoch so far. */
sx_train_event sx_fit_event_with_means(sx_fit *f, sx_train_event_kind kind);
void sx_fit_tell_begin(sx_fit *f, bool resumed);
void sx_fit_tell_progress(sx_fit *f, int64_t now, bool at_cadence);
void sx_fit_tell_end(sx_fit *f, const char *why);
/* `ns` that just passed are not part of the rates. */
void sx_fit_skip_time(sx_fit *f, int64_t ns);
/* Starts a new window for rates. */
void sx_fit_begin_window(sx_fit *f, int64_t now);

#endif
