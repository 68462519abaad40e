/* A fit in progress, for the files that it is spread over.
 *
 *   fit.c           from its beginning to its end: how far, the first launch's proof, what is left
 *   fit_resume.c    where it begins: the checkpoint, the place in the data, the same numbers
 *   fit_loop.c      from one control point to the next: batches in, steps out
 *   fit_control.c   a control point: epochs, controls, saving, evaluation
 *   fit_events.c    what it tells its observers
 *
 * A checkpoint is taken after the controls of its step and before its evaluation, and says whether
 * a regular evaluation follows (eval_due); a run that resumes there begins with that evaluation,
 * or, if its result is on disk already, shows it to the controls again. So nothing is lost or
 * counted twice. */
#ifndef SX_TRAIN_FIT_H
#define SX_TRAIN_FIT_H

#include "nn/model_program.h"
#include "train/gather.h"
#include "train/host_call.h"
#include "train/state.h"

/* What is known of a batch when it is fed. */
typedef struct sx_fed_batch {
    int64_t wait_ns; /* the input's waiting so far */
    bool ends_epoch;
} sx_fed_batch;

typedef struct sx_fit {
    sx_trainer *t;
    const sx_fit_request *r;
    sx_program *program;
    sx_batch_gather input;
    int lock; /* on model_dir, while this fit writes there */

    int64_t step, target; /* target INT64_MAX = until the data end */
    int64_t epochs;       /* to come in all; 0 = unknown */
    int64_t saved_step;   /* of the last checkpoint; -1 = none */
    int64_t saved_ns;     /* when */

    int n_metrics; /* loss and metrics among the scalars */
    int metric_scalars[SX_MAX_RESULTS];
    sx_metric metrics[SX_MAX_RESULTS]; /* means of this epoch, up to the step shown last */
    double last[SX_MAX_RESULTS];       /* their values in that step alone */
    int rate_scalar;                   /* -1 = none */
    double learning_rate;

    int64_t compiled[4]; /* batch sizes that were compiled, newest first */
    int64_t batch;       /* size of the batch shown last */
    bool epoch_ended;    /* with it */
    sx_fed_batch *fed;   /* [fed_room], round: batches fed and not yet shown */
    int64_t fed_room, n_fed, n_shown;
    sx_host_caller host;
    sx_status failed; /* what the host call returned */
    bool feed_failed; /* the error is the input's */

    sx_control control;
    bool cut_short; /* stopped before an evaluation had ended */

    int64_t told_ns, epoch_ns;
    int64_t history_ns; /* when history.json was written */
    int64_t window_ns, window_wait_ns, window_step, window_examples; /* since the last cadence */
    int64_t wait_ns; /* the input's waiting up to the batch shown last */
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

/* Finite batches train until they end; everything else goes round and round. */
static inline bool sx_fit_until_data_end(const sx_fit_request *r)
{
    return sx_dataset_batch_size(r->train) > 0 && r->epochs == 0;
}

/* ---- fit_resume.c ---- */

/* Holds model_dir, once it exists: two that train in one folder would delete each other's
 * checkpoints. */
SX_MUST_USE sx_status sx_fit_lock(sx_fit *f);
/* The newest checkpoint, unless the session is at a step of its own; locked first. */
SX_MUST_USE sx_status sx_fit_restore(sx_fit *f, bool *out_found);
/* Where the data go on: at the cursor, or at the same number of batches in other data. */
SX_MUST_USE sx_status sx_fit_place_input(sx_fit *f);
/* Warns, or with require_exact refuses, if the steps so far were computed otherwise. */
SX_MUST_USE sx_status sx_fit_check_numerics(sx_fit *f);

/* ---- fit_loop.c ---- */

/* Compiles the step for that batch size, unless it is among the last few. */
SX_MUST_USE sx_status sx_fit_compile(sx_fit *f, int64_t batch);
/* Room for the batches of a launch. */
SX_MUST_USE sx_status sx_fit_make_queue(sx_fit *f);
/* Trains until the end, or until a stop was asked for. */
SX_MUST_USE sx_status sx_fit_run(sx_fit *f);

/* ---- fit_control.c ---- */

SX_MUST_USE sx_status sx_fit_control_point(sx_fit *f);
/* The target is reached, a callback has stopped the fit, or the data have ended. */
bool sx_fit_at_end(sx_fit *f);
bool sx_fit_time_to_save(const sx_fit *f, int64_t now);
/* Notes the place in the data for a checkpoint, or for another fit in this process. */
void sx_fit_keep_cursor(sx_fit *f);
void sx_fit_begin_epoch(sx_fit *f);
/* Nothing to do without a model_dir, or if this step is saved. */
SX_MUST_USE sx_status sx_fit_save(sx_fit *f);
SX_MUST_USE sx_status sx_fit_evaluate(sx_fit *f);
/* What a checkpoint said was still to be done at its step. */
SX_MUST_USE sx_status sx_fit_replay_eval(sx_fit *f);

/* ---- fit_events.c ---- */

/* An event with what is known of every kind. */
sx_train_event sx_fit_event(sx_fit *f, sx_train_event_kind kind);
/* The same with the metrics of the epoch so far. */
sx_train_event sx_fit_event_with_means(sx_fit *f, sx_train_event_kind kind);
void sx_fit_tell_begin(sx_fit *f, bool resumed);
void sx_fit_tell_progress(sx_fit *f, int64_t now, bool at_cadence);
void sx_fit_tell_end(sx_fit *f, const char *why);
/* From here rates are counted anew. */
void sx_fit_begin_window(sx_fit *f, int64_t now);

#endif
