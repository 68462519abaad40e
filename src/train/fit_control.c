/* A control point of a fit: the work between two launches. See fit.h. */
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "train/lockstep.h"
#include "train/save.h"

/* history.json between checkpoints, however short the epochs: at most once a second, and, since
 * writing takes longer the more epochs it has, in at most a 20th of the time. */
static const int64_t HISTORY_NS = 1000000000, HISTORY_SHARE = 20;

static void ask_controls(sx_fit *f, const sx_train_event *event)
{
    for (int i = 0; i < f->r->n_callbacks; i++) {
        const sx_callback *c = &f->r->callbacks[i];
        bool asked = event->kind != SX_EVENT_PROGRESS || sx_is_multiple(f->step, c->every_steps);
        if (c->control != NULL && asked) {
            c->control(c->user, event, &f->control);
        }
    }
}

void sx_fit_begin_epoch(sx_fit *f)
{
    sx_progress *p = sx_fit_progress(f);
    p->step_in_epoch = 0;
    p->examples = 0;
    p->weight = 0;
    memset(p->sums, 0, sizeof(p->sums));
}

void sx_fit_end_epoch(sx_fit *f)
{
    sx_progress *p = sx_fit_progress(f);
    p->epochs_done++;
    sx_fit_begin_epoch(f);
    int64_t now = sx_now_ns();
    sx_train_event e = sx_fit_event_with_means(f, SX_EVENT_EPOCH);
    e.seconds = (double)(now - f->epoch_ns) * 1e-9;
    f->epoch_ns = now;
    sx_trainer_emit(f->t, &e);
    ask_controls(f, &e);
}

static bool regular_eval(const sx_fit *f)
{
    int64_t every = f->t->config.steps_per_eval;
    if (f->r->eval == NULL || f->step == 0) {
        return false;
    }
    return every == SX_EVERY_EPOCH ? f->epoch_ended : sx_is_multiple(f->step, every);
}

bool sx_fit_at_end(sx_fit *f)
{
    return f->step >= f->target || f->control.stop || sx_fit_progress(f)->data_ended;
}

bool sx_fit_time_to_save(const sx_fit *f, int64_t now)
{
    int64_t secs = f->t->config.save_checkpoints_secs;
    return sx_trainer_writes(f->t) && secs > 0 && (now - f->saved_ns) / 1000000000 >= secs;
}

void sx_fit_keep_cursor(sx_fit *f)
{
    if (f->no_position) {
        f->t->state.n_cursors = 0;
        return;
    }
    sx_batch_gather_save(&f->input, f->t->state.cursors);
    f->t->state.n_cursors = f->input.n;
}

/* Before the checkpoint of its last step: a run that resumes there has the whole history. */
static sx_status save_history(sx_fit *f)
{
    if (!sx_trainer_writes(f->t) || !f->t->history.changed) {
        return SX_OK;
    }
    if (f->t->history.thinned && !f->told_thinned) {
        f->told_thinned = true;
        sx_trainer_warn(f->t,
                        "history.json has reached its maximum number of entries: every second "
                        "one of the older half is dropped");
    }
    int64_t start = sx_now_ns();
    sx_status status = sx_history_save(&f->t->history, f->t->config.model_dir);
    f->history_due_ns = start + SX_MAX(HISTORY_NS, HISTORY_SHARE * (sx_now_ns() - start));
    return status;
}

/* With `wait`, the checkpoint is written when this returns. */
static sx_status save(sx_fit *f, bool wait)
{
    SX_TRY(save_history(f));
    if (f->t->config.model_dir == NULL || f->saved_step == f->step) {
        return SX_OK;
    }
    sx_fit_progress(f)->eval_due = regular_eval(f);
    sx_fit_keep_cursor(f);
    if (sx_trainer_writes(f->t)) {
        SX_TRY(wait ? sx_trainer_save(f->t) : sx_trainer_begin_save(f->t));
    }
    f->saved_step = f->step;
    f->saved_ns = sx_now_ns();
    return SX_OK;
}

sx_status sx_fit_save(sx_fit *f)
{
    return save(f, true);
}

static void tell_eval(sx_fit *f, const sx_eval_result *result, double seconds, bool is_best,
                      bool replayed)
{
    sx_metric metrics[SX_MAX_RESULTS];
    sx_train_event e = sx_fit_event(f, SX_EVENT_EVAL);
    metrics[e.n_metrics++] = (sx_metric){SX_LOSS, result->loss};
    for (int k = 0; k < result->n_metrics; k++) {
        metrics[e.n_metrics++] = result->metrics[k];
    }
    e.metrics = metrics;
    e.examples = result->examples;
    e.available = result->available;
    e.eval_steps = result->steps;
    e.seconds = seconds;
    e.is_best = is_best;
    if (!replayed) {
        sx_trainer_emit(f->t, &e);
    }
    ask_controls(f, &e);
}

sx_status sx_fit_evaluate(sx_fit *f)
{
    sx_eval_result result;
    bool is_best;
    int64_t start = sx_now_ns();
    sx_status status = sx_trainer_evaluate_at_most(f->t, f->r->eval, f->r->eval_examples,
                                                   f->r->eval_steps, &result);
    if (sx_status_code(status) == SX_CANCELLED && sx_trainer_stopped(f->t)) {
        sx_status_free(status); /* the next fit evaluates again */
        f->cut_short = true;
        return SX_OK;
    }
    SX_TRY(status);
    SX_TRY(sx_history_put(&f->t->history, &result, &is_best));
    if (sx_trainer_writes(f->t)) {
        SX_TRY(sx_trainer_save_history(f->t, is_best));
    }
    tell_eval(f, &result, (double)(sx_now_ns() - start) * 1e-9, is_best, false);
    return sx_lockstep_agree_controls(f);
}

sx_status sx_fit_replay_eval(sx_fit *f)
{
    const sx_eval_result *known = sx_history_find(&f->t->history, f->step);
    if (!sx_fit_progress(f)->eval_due || f->r->eval == NULL) {
        return SX_OK;
    }
    if (known == NULL) {
        return sx_fit_evaluate(f);
    }
    tell_eval(f, known, 0, f->t->history.best_step == f->step, true);
    return sx_lockstep_agree_controls(f);
}

sx_status sx_fit_record(sx_fit *f, bool means)
{
    sx_history *history = &f->t->history;
    if (f->trained_examples == 0) {
        return SX_OK;
    }
    if (f->partial_step >= 0) {
        sx_history_drop_training(history, f->partial_step);
        f->partial_step = -1;
    }
    return means
               ? sx_history_put_training(history, f->step, sx_fit_event(f, SX_EVENT_PROGRESS).epoch,
                                         f->metrics, f->n_metrics)
               : SX_OK;
}

sx_status sx_fit_control_point(sx_fit *f)
{
    const sx_run_config *c = &f->t->config;
    if (f->epoch_ended) {
        sx_fit_end_epoch(f);
    }
    const sx_train_event e = sx_fit_event_with_means(f, SX_EVENT_PROGRESS);
    ask_controls(f, &e);
    SX_TRY(sx_lockstep_agree_controls(f));

    bool at_end = sx_fit_at_end(f), regular = regular_eval(f);
    bool last = at_end && f->r->eval != NULL && sx_history_find(&f->t->history, f->step) == NULL;
    bool evaluate = regular || last;
    SX_TRY(sx_fit_record(f, f->epoch_ended || evaluate || at_end));
    const bool last_save = at_end || sx_trainer_stopped(f->t);
    if (last_save || regular || sx_fit_time_to_save(f, sx_now_ns()) ||
        sx_is_multiple(f->step, c->save_checkpoints_steps)) {
        SX_TRY(save(f, last_save));
    } else if (sx_now_ns() >= f->history_due_ns) {
        SX_TRY(save_history(f));
    }
    if (evaluate && sx_trainer_stopped(f->t)) {
        f->cut_short = true;
    } else if (evaluate) {
        SX_TRY(sx_fit_evaluate(f));
    }
    return SX_OK;
}
