/* The events of a fit. See fit.h. */
#include <stdio.h>

#include "base/checked.h"
#include "train/config.h"
#include "train/fit.h"

sx_train_event sx_fit_event(sx_fit *f, sx_train_event_kind kind)
{
    const sx_progress *p = sx_fit_progress(f);
    bool between = p->step_in_epoch == 0 && p->epochs_done > 0 && f->epoch_ended;
    return (sx_train_event){.kind = kind,
                            .step = f->step,
                            .total_steps = f->target == INT64_MAX ? 0 : f->target,
                            .epoch = p->epochs_done + (between ? 0 : 1),
                            .epochs = f->epochs,
                            .step_in_epoch = p->step_in_epoch,
                            .steps_per_epoch = f->input.steps_per_epoch,
                            .batch = f->batch,
                            .examples = f->trained_examples,
                            .learning_rate = f->learning_rate,
                            .eta_seconds = -1};
}

sx_train_event sx_fit_event_with_means(sx_fit *f, sx_train_event_kind kind)
{
    sx_train_event e = sx_fit_event(f, kind);
    e.metrics = f->metrics;
    e.n_metrics = f->n_metrics;
    return e;
}

/* The remaining time at the rate of recent steps; -1 until some have been seen: the first one takes
 * longer than others. */
static double seconds_left(sx_fit *f, int64_t now)
{
    enum { STEPS = 4, SECONDS = 5 }; /* enough of either */
    if (f->step - f->marks[1].step >= STEPS &&
        now - f->marks[1].ns >= (int64_t)SECONDS * 1000000000) {
        f->marks[0] = f->marks[1];
        f->marks[1] = (sx_fit_mark){now, f->step};
    }
    const int64_t steps = f->step - f->marks[0].step;
    const double seconds = (double)(now - f->marks[0].ns) * 1e-9;
    if (f->target == INT64_MAX || steps < 1 || (steps < STEPS && seconds < SECONDS)) {
        return -1;
    }
    return (double)(f->target - f->step) * seconds / (double)steps;
}

void sx_fit_skip_time(sx_fit *f, int64_t ns)
{
    f->window_ns += ns;
    f->marks[0].ns += ns;
    f->marks[1].ns += ns;
}

static void add_rates(sx_fit *f, sx_train_event *e, int64_t now)
{
    double seconds = (double)(now - f->window_ns) * 1e-9;
    if (seconds <= 0) {
        return;
    }
    e->examples_per_second = (double)(f->trained_examples - f->window_examples) / seconds;
    e->steps_per_second = (double)(f->step - f->window_step) / seconds;
    e->input_wait = SX_MIN(1.0, (double)(f->wait_ns - f->window_wait_ns) * 1e-9 / seconds);
    e->eta_seconds = seconds_left(f, now);
}

void sx_fit_begin_window(sx_fit *f, int64_t now)
{
    f->window_ns = now;
    f->window_wait_ns = f->wait_ns;
    f->window_step = f->step;
    f->window_examples = f->trained_examples;
}

void sx_fit_tell_progress(sx_fit *f, int64_t now, bool at_cadence)
{
    sx_train_event e = sx_fit_event_with_means(f, SX_EVENT_PROGRESS);
    e.at_cadence = at_cadence;
    add_rates(f, &e, now);
    sx_trainer_emit(f->t, &e);
    f->told_ns = now;
    if (sx_is_multiple(f->step, f->t->config.log_step_count_steps)) {
        sx_fit_begin_window(f, now);
    }
}

static void warn_ignored(sx_trainer *t)
{
    const char *name, *why;
    char text[256];
    for (size_t i = 0; sx_run_config_next_ignored(&t->config, &i, &name, &why);) {
        snprintf(text, sizeof(text), "%s is ignored: %s", name, why);
        sx_trainer_warn(t, text);
    }
}

void sx_fit_tell_begin(sx_fit *f, bool resumed)
{
    sx_train_event e = sx_fit_event(f, SX_EVENT_BEGIN);
    e.resumed = resumed;
    e.path = resumed ? f->t->prefix : NULL;
    e.text = f->t->warned == NULL ? f->t->rate_text : NULL;
    sx_trainer_emit(f->t, &e);
    warn_ignored(f->t);
    if (f->t->warned != NULL) {
        sx_trainer_warn(f->t, f->t->warned);
        f->t->warned = NULL;
    }
}

void sx_fit_tell_end(sx_fit *f, const char *why)
{
    sx_metric final[SX_MAX_RESULTS];
    sx_train_event e = sx_fit_event(f, SX_EVENT_END);
    for (int k = 0; k < f->n_metrics && f->trained_examples > 0; k++) {
        final[e.n_metrics++] = (sx_metric){f->metrics[k].name, f->last[k]};
    }
    e.metrics = final;
    e.text = why;
    e.path = f->t->prefix;
    sx_trainer_emit(f->t, &e);
}
