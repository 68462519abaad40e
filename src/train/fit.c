/* Training: the device loop runs from one control point to the next.
 *
 *   feed   a batch from the iterator; another size is compiled first     \
 *   step   sums, observers; leaves at the end of an epoch, of time, on    > sx_program_loop: at
 *          stop                                                          /  most `segment` steps
 *
 *   control point   epoch ends ─ controls ─ save ─ evaluate ─ controls
 *
 * A device may run many fed batches in one launch, and shows their steps afterwards: what a step
 * must know of its batch waits in a queue. Launches end by themselves before anything that must
 * not be passed (segment(), the end of an epoch). Time and stops are looked at while feeding, and
 * again when steps are shown: then the launch has been run to its end, and is saved whole.
 *
 * A checkpoint is taken after the controls of its step and before its evaluation, and says whether
 * a regular evaluation follows (eval_due); a run that resumes there begins with that evaluation,
 * or, if its result is on disk already, shows it to the controls again. So nothing is lost or
 * counted twice. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "io/dir_lock.h"
#include "io/path.h"
#include "nn/program.h"
#include "runtime/fits.h"
#include "train/gather.h"
#include "train/host_call.h"
#include "train/save.h"
#include "train/state.h"

static const int64_t TELL_NS = 100000000; /* a progress bar's cadence */

/* What is known of a batch when it is fed. */
typedef struct fed_batch {
    int64_t wait_ns; /* the input's waiting so far */
    bool ends_epoch;
} fed_batch;

typedef struct fit {
    sx_trainer *t;
    const sx_fit_request *r;
    sx_program *program;
    sx_gather input;

    int64_t step, target; /* target INT64_MAX = until the data end */
    int64_t epochs;       /* to come in all; 0 = unknown */
    int64_t saved_step;   /* of the last checkpoint; -1 = none */
    int64_t saved_ns;     /* when */

    int n_metrics; /* loss and metrics among the scalars */
    int metric_scalars[SX_MAX_RESULTS];
    sx_metric metrics[SX_MAX_RESULTS];
    int rate_scalar;
    double learning_rate;

    int64_t compiled[4]; /* batch sizes that were compiled, newest first */
    int64_t batch;       /* size of the batch shown last */
    bool epoch_ended;
    fed_batch *fed; /* [fed_room], round: batches fed and not yet shown */
    int64_t fed_room, n_fed, n_shown;
    sx_control control;
    bool cut_short; /* stopped before an evaluation had ended */
    sx_host_caller host;
    sx_status failed; /* what the host call returned */
    bool feed_failed; /* the error is the input's */
    int lock;         /* on model_dir, while this fit writes there */

    int64_t began_ns, told_ns, epoch_ns;
    int64_t window_ns, window_wait_ns, window_step, window_examples; /* since the last cadence */
    int64_t wait_ns; /* the input's waiting up to the batch shown last */
    int64_t trained_examples;
} fit;

static bool is_multiple(int64_t step, int64_t every)
{
    return every > 0 && step % every == 0;
}

static sx_progress *progress(fit *f)
{
    return &f->t->state.progress;
}

/* --- events
 * --------------------------------------------------------------------------------------- */

static void fill_means(fit *f)
{
    const sx_progress *p = progress(f);
    for (int k = 0; k < f->n_metrics; k++) {
        f->metrics[k].value = p->examples > 0 ? p->sums[k] / (double)p->examples : 0;
    }
}

static sx_train_event make_event(fit *f, sx_train_event_kind kind)
{
    const sx_progress *p = progress(f);
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

static void add_rates(fit *f, sx_train_event *e, int64_t now)
{
    double seconds = (double)(now - f->window_ns) * 1e-9;
    if (seconds <= 0) {
        return;
    }
    e->examples_per_second = (double)(f->trained_examples - f->window_examples) / seconds;
    e->steps_per_second = (double)(f->step - f->window_step) / seconds;
    e->input_wait = SX_MIN(1.0, (double)(f->wait_ns - f->window_wait_ns) * 1e-9 / seconds);
    if (f->target != INT64_MAX && e->steps_per_second > 0) {
        e->eta_seconds = (double)(f->target - f->step) / e->steps_per_second;
    }
}

static void begin_window(fit *f, int64_t now)
{
    f->window_ns = now;
    f->window_wait_ns = f->wait_ns;
    f->window_step = f->step;
    f->window_examples = f->trained_examples;
}

static void tell_progress(fit *f, int64_t now, bool at_cadence)
{
    sx_train_event e = make_event(f, SX_EVENT_PROGRESS);
    fill_means(f);
    e.metrics = f->metrics;
    e.n_metrics = f->n_metrics;
    e.at_cadence = at_cadence;
    add_rates(f, &e, now);
    sx_trainer_emit(f->t, &e);
    f->told_ns = now;
    if (is_multiple(f->step, f->t->config.log_step_count_steps)) {
        begin_window(f, now);
    }
}

/* The full batch runs in launches; a smaller one comes once an epoch. */
static bool is_looped(const fit *f, int64_t batch)
{
    return batch == f->input.max_batch && batch % sx_session_replicas(f->t->session) == 0;
}

/* --- what the loop calls
 * -------------------------------------------------------------------------- */

static sx_status compile_if_new(fit *f, int64_t batch)
{
    for (size_t i = 0; i < SX_COUNT(f->compiled); i++) {
        if (f->compiled[i] == batch) {
            return SX_OK;
        }
    }
    memmove(f->compiled + 1, f->compiled, sizeof(f->compiled) - sizeof(f->compiled[0]));
    f->compiled[0] = batch;
    int64_t start = sx_now_ns();
    SX_TRY(sx_trainer_compile(f->t, SX_TRAIN, batch, is_looped(f, batch)));
    f->window_ns += sx_now_ns() - start; /* no step's time */
    return SX_OK;
}

static bool time_to_save(const fit *f, int64_t now)
{
    int64_t secs = f->t->config.save_checkpoints_secs;
    return f->t->config.model_dir != NULL && secs > 0 && (now - f->saved_ns) / 1000000000 >= secs;
}

static sx_status next_batch(fit *f, sx_feed_batch *out)
{
    sx_status status = sx_gather_next(&f->input, out);
    if (sx_status_code(status) == SX_OUT_OF_RANGE) {
        progress(f)->data_ended = true;
    }
    return status;
}

static sx_status feed_batch(fit *f, sx_step_input *out)
{
    sx_feed_batch batch;
    SX_TRY(next_batch(f, &batch));
    SX_TRY(compile_if_new(f, batch.size));
    for (int i = 0; i < sx_program_input_count(f->program); i++) {
        bool labels = strcmp(sx_program_input_name(f->program, i), SX_LABELS) == 0;
        out->inputs[i] = labels ? batch.labels : batch.features;
    }
    f->fed[f->n_fed++ % f->fed_room] = (fed_batch){sx_gather_waited(&f->input), batch.ends_epoch};
    out->batch = batch.size;
    out->ends_launch = batch.ends_epoch || sx_trainer_stopped(f->t) || time_to_save(f, sx_now_ns());
    return SX_OK;
}

/* An error of the input is told from the device's. */
static sx_status feed(void *user, sx_step_input *out)
{
    fit *f = user;
    sx_status status = feed_batch(f, out);
    f->feed_failed = status != SX_OK && !progress(f)->data_ended;
    return status;
}

static void add_step(fit *f, const sx_step_scalars *s)
{
    sx_progress *p = progress(f);
    for (int k = 0; k < f->n_metrics; k++) {
        p->sums[k] += s->values[f->metric_scalars[k]] * (double)s->batch;
    }
    p->examples += s->batch;
    p->examples_in_all += s->batch;
    p->step_in_epoch++;
    f->trained_examples += s->batch;
    f->learning_rate = f->rate_scalar >= 0 ? s->values[f->rate_scalar] : 0;
    f->step = s->step;
}

static bool see_step(void *user, const sx_step_scalars *s)
{
    fit *f = user;
    const fed_batch batch = f->fed[f->n_shown++ % f->fed_room];
    add_step(f, s);
    f->batch = s->batch;
    f->wait_ns = batch.wait_ns;
    f->epoch_ended = batch.ends_epoch;
    bool at_cadence = is_multiple(f->step, f->t->config.log_step_count_steps);
    if (at_cadence || f->epoch_ended || s->ended_ns - f->told_ns >= TELL_NS) {
        tell_progress(f, s->ended_ns, at_cadence || f->epoch_ended);
    }
    if (f->failed == SX_OK) {
        f->failed = sx_host_caller_step(&f->host, s);
    }
    return f->failed != SX_OK || f->epoch_ended || sx_trainer_stopped(f->t) ||
           time_to_save(f, s->ended_ns);
}

/* --- control points
 * ------------------------------------------------------------------------------- */

static void ask_controls(fit *f, const sx_train_event *event)
{
    for (int i = 0; i < f->r->n_callbacks; i++) {
        const sx_callback *c = &f->r->callbacks[i];
        bool asked = event->kind != SX_EVENT_PROGRESS || is_multiple(f->step, c->every_steps);
        if (c->control != NULL && asked) {
            c->control(c->user, event, &f->control);
        }
    }
}

static void begin_epoch(fit *f)
{
    sx_progress *p = progress(f);
    p->step_in_epoch = 0;
    p->examples = 0;
    memset(p->sums, 0, sizeof(p->sums));
}

static void end_epoch(fit *f)
{
    sx_progress *p = progress(f);
    fill_means(f);
    p->epochs_done++;
    begin_epoch(f);
    int64_t now = sx_now_ns();
    sx_train_event e = make_event(f, SX_EVENT_EPOCH);
    e.metrics = f->metrics;
    e.n_metrics = f->n_metrics;
    e.seconds = (double)(now - f->epoch_ns) * 1e-9;
    f->epoch_ns = now;
    sx_trainer_emit(f->t, &e);
    ask_controls(f, &e);
}

static void control_steps(fit *f)
{
    sx_train_event e = make_event(f, SX_EVENT_PROGRESS);
    fill_means(f);
    e.metrics = f->metrics;
    e.n_metrics = f->n_metrics;
    ask_controls(f, &e);
}

static bool regular_eval(const fit *f)
{
    int64_t every = f->t->config.steps_per_eval;
    if (f->r->eval == NULL || f->step == 0) {
        return false;
    }
    return every == SX_EVERY_EPOCH ? f->epoch_ended : is_multiple(f->step, every);
}

static bool at_end(fit *f)
{
    return f->step >= f->target || f->control.stop || progress(f)->data_ended;
}

static void keep_cursor(fit *f)
{
    sx_gather_save(&f->input, f->t->state.cursors);
    f->t->state.n_cursors = f->input.n;
}

static sx_status save(fit *f)
{
    if (f->t->config.model_dir == NULL || f->saved_step == f->step) {
        return SX_OK;
    }
    progress(f)->eval_due = regular_eval(f);
    keep_cursor(f);
    SX_TRY(sx_trainer_save(f->t));
    f->saved_step = f->step;
    f->saved_ns = sx_now_ns();
    return SX_OK;
}

static void tell_eval(fit *f, const sx_eval_result *result, double seconds, bool is_best,
                      bool replayed)
{
    sx_metric metrics[SX_MAX_RESULTS];
    sx_train_event e = make_event(f, SX_EVENT_EVAL);
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

static sx_status keep_result(fit *f, const sx_eval_result *result, bool *out_is_best)
{
    SX_TRY(sx_history_put(&f->t->history, result, out_is_best));
    if (f->t->config.model_dir == NULL) {
        return SX_OK;
    }
    if (*out_is_best) {
        SX_TRY(sx_trainer_keep_best(f->t)); /* before the history names it */
    }
    return sx_history_save(&f->t->history, f->t->config.model_dir);
}

static sx_status evaluate(fit *f)
{
    sx_eval_result result;
    bool is_best;
    int64_t start = sx_now_ns();
    sx_status status = sx_trainer_evaluate_at_most(f->t, f->r->eval, f->r->eval_examples,
                                                   f->r->eval_steps, &result);
    if (sx_status_code(status) == SX_CANCELLED && sx_trainer_stopped(f->t)) {
        sx_status_free(status); /* made up for by the next fit */
        f->cut_short = true;
        return SX_OK;
    }
    SX_TRY(status);
    SX_TRY(keep_result(f, &result, &is_best));
    tell_eval(f, &result, (double)(sx_now_ns() - start) * 1e-9, is_best, false);
    return SX_OK;
}

/* What a checkpoint said was still to be done at its step. */
static sx_status replay_eval(fit *f)
{
    const sx_eval_result *known = sx_history_find(&f->t->history, f->step);
    if (!progress(f)->eval_due || f->r->eval == NULL) {
        return SX_OK;
    }
    if (known == NULL) {
        return evaluate(f);
    }
    tell_eval(f, known, 0, f->t->history.best_step == f->step, true);
    return SX_OK;
}

static bool save_is_due(fit *f)
{
    return at_end(f) || sx_trainer_stopped(f->t) || time_to_save(f, sx_now_ns()) ||
           is_multiple(f->step, f->t->config.save_checkpoints_steps) || regular_eval(f);
}

static bool eval_is_due(fit *f)
{
    bool last = at_end(f) && f->r->eval != NULL && sx_history_find(&f->t->history, f->step) == NULL;
    return regular_eval(f) || last;
}

static sx_status control_point(fit *f)
{
    if (f->epoch_ended) {
        end_epoch(f);
    }
    control_steps(f);
    if (save_is_due(f)) {
        SX_TRY(save(f));
    }
    if (!eval_is_due(f)) {
        return SX_OK;
    }
    if (sx_trainer_stopped(f->t)) {
        f->cut_short = true;
        return SX_OK;
    }
    return evaluate(f);
}

/* --- the loop
 * ------------------------------------------------------------------------------------- */

/* Steps up to the next multiple of `every`. */
static int64_t steps_until(int64_t step, int64_t every, int64_t at_most)
{
    return every > 0 ? SX_MIN(at_most, every - step % every) : at_most;
}

static int64_t segment(const fit *f)
{
    const sx_run_config *c = &f->t->config;
    int64_t n = f->target - f->step;
    n = c->iterations_per_loop > 0 ? SX_MIN(n, c->iterations_per_loop) : n;
    n = steps_until(f->step, c->model_dir != NULL ? c->save_checkpoints_steps : 0, n);
    n = steps_until(f->step, f->r->eval != NULL ? c->steps_per_eval : 0, n);
    for (int i = 0; i < f->r->n_callbacks; i++) {
        n = steps_until(f->step, f->r->callbacks[i].every_steps, n);
    }
    return n;
}

static sx_status explain_nonfinite(fit *f, sx_status withheld)
{
    sx_buf text;
    sx_buf_init(&text, 1 << 16);
    sx_status cause = sx_program_find_nonfinite(f->program);
    sx_buf_printf(&text, "%s",
                  cause != SX_OK ? sx_status_message(cause)
                                 : "every value was finite when the step was repeated");
    sx_train_event e = make_event(f, SX_EVENT_NONFINITE);
    e.step = f->step + 1;
    e.text = sx_buf_text(&text);
    sx_trainer_emit(f->t, &e);
    sx_status status = sx_error(
        SX_ABORTED,
        "step %" PRId64 ": %s; the update was withheld and nothing of it saved (try a smaller "
        "learning rate)",
        f->step + 1, sx_buf_text(&text));
    sx_status_free(cause);
    sx_status_free(withheld);
    sx_buf_deinit(&text);
    return status;
}

/* The device failed: in which step, or in a launch of which, and what is left. */
static sx_status explain_failure(const fit *f, sx_status status)
{
    char steps[64], kept[96] = "nothing is saved";
    int64_t fed = SX_MAX(f->n_fed - f->n_shown, 1);
    snprintf(steps, sizeof(steps),
             fed > 1 ? "one of steps %" PRId64 " to %" PRId64 : "step %" PRId64, f->step + 1,
             f->step + fed);
    if (f->saved_step >= 0) {
        snprintf(kept, sizeof(kept),
                 "the checkpoint of step %" PRId64 " is kept, and the run goes on from it",
                 f->saved_step);
    }
    return sx_status_annotate(status, __FILE__, __LINE__, "%s failed (%s)", steps, kept);
}

static sx_status run_segment(fit *f, int ok_output)
{
    const sx_loop_args args = {
        .steps = segment(f), .feed = feed, .step = see_step, .user = f, .ok_output = ok_output};
    int64_t done = 0, compiling = f->t->times.compile_ns, start = sx_now_ns();
    f->epoch_ended = false;
    f->n_fed = f->n_shown = 0;
    progress(f)->data_ended = false;
    sx_status status = sx_program_loop(f->program, &args, &done);
    f->t->times.train_ns += sx_now_ns() - start - (f->t->times.compile_ns - compiling);
    if (done > 0) {
        f->t->has_state = true;
    }
    if (f->failed != SX_OK) {
        sx_status_free(status);
        status = f->failed;
        f->failed = SX_OK;
        return sx_status_annotate(status, __FILE__, __LINE__, "host_call at step %" PRId64,
                                  f->step);
    }
    if (sx_status_code(status) == SX_ABORTED) {
        return explain_nonfinite(f, status);
    }
    return status != SX_OK && !f->feed_failed ? explain_failure(f, status) : status;
}

static sx_status run(fit *f)
{
    int ok_output = sx_program_find_output(f->program, SX_OK_OUTPUT);
    while (!at_end(f) && !sx_trainer_stopped(f->t)) {
        SX_TRY(run_segment(f, ok_output));
        int64_t start = sx_now_ns();
        SX_TRY(control_point(f));
        f->window_ns += sx_now_ns() - start;
    }
    return SX_OK;
}

/* --- where to begin and to end
 * -------------------------------------------------------------------- */

static sx_status check_request(const sx_fit_request *r)
{
    if (r->steps < 0 || r->max_steps < 0 || r->epochs < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "steps, max_steps and epochs must not be negative");
    }
    if ((r->steps > 0) + (r->max_steps > 0) + (r->epochs > 0) > 1) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "of steps (so many more), max_steps and epochs (in all) give "
                        "one");
    }
    if (r->train == NULL || (r->n_shards > 0 && r->shards[0] != r->train)) {
        return sx_error(SX_INVALID_ARGUMENT, "no training data");
    }
    return SX_OK;
}

/* Finite batches train until they end; everything else goes round and round. */
static bool until_data_end(const sx_fit_request *r)
{
    return sx_dataset_batch_size(r->train) > 0 && r->epochs == 0;
}

static sx_status choose_target(fit *f)
{
    const sx_fit_request *r = f->r;
    int64_t epochs = r->epochs;
    if (r->steps == 0 && r->max_steps == 0 && epochs == 0 && !until_data_end(r)) {
        epochs = 1;
    }
    f->target = INT64_MAX;
    if (r->steps > 0) {
        f->target = r->steps < INT64_MAX - f->step ? f->step + r->steps : INT64_MAX;
    } else if (r->max_steps > 0) {
        f->target = r->max_steps;
    } else if (epochs > 0) {
        if (f->input.steps_per_epoch == 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "the data have no end, so they have no epochs; give steps "
                            "or max_steps");
        }
        if (!sx_mul_i64(epochs, f->input.steps_per_epoch, &f->target)) {
            return sx_error(SX_INVALID_ARGUMENT, "%" PRId64 " epochs are too many", epochs);
        }
    }
    if (f->input.steps_per_epoch > 0 && f->target != INT64_MAX) {
        f->epochs = (f->target + f->input.steps_per_epoch - 1) / f->input.steps_per_epoch;
    }
    return SX_OK;
}

/* The scalars that are losses and metrics. */
static void list_metrics(fit *f)
{
    int scalar = 0;
    f->rate_scalar = -1;
    for (int i = 0; i < sx_program_output_count(f->program) && scalar < SX_MAX_SCALARS; i++) {
        const char *name = sx_program_output_name(f->program, i);
        if (sx_program_output_type(f->program, i)->rank > 0) {
            continue;
        }
        if (strcmp(name, SX_LEARNING_RATE) == 0) {
            f->rate_scalar = scalar;
        } else if (strcmp(name, SX_OK_OUTPUT) != 0 && !sx_is_host_call(name) &&
                   f->n_metrics < SX_MAX_RESULTS) {
            f->metric_scalars[f->n_metrics] = scalar;
            f->metrics[f->n_metrics++].name = name;
        }
        scalar++;
    }
}

static sx_status open_input(fit *f)
{
    sx_trainer *t = f->t;
    const sx_feed_args args = {.mode = SX_TRAIN,
                               .batch_size = t->config.train_batch_size / SX_MAX(1, f->r->n_shards),
                               .no_shuffle = t->config.no_shuffle,
                               .repeat = !until_data_end(f->r),
                               .classes = sx_trainer_classes(t)};
    bool cut = f->r->n_shards > 0;
    SX_TRY(sx_gather_init(&f->input, &t->info, cut ? f->r->shards : &f->r->train,
                          cut ? f->r->n_shards : 1, SX_MAX(1, f->r->pulls), &args),
           "training data");
    bool batched = sx_dataset_batch_size(f->r->train) > 0;
    SX_TRY(sx_check_batch_divides(&t->config,
                                  batched ? f->input.max_batch : t->config.train_batch_size));
    if (f->r->eval != NULL) { /* a misfit is found now, not after an epoch */
        const sx_feed_args eval = {
            .mode = SX_EVAL, .batch_size = t->config.eval_batch_size, .classes = args.classes};
        sx_feed trial;
        SX_TRY(sx_feed_init(&trial, &t->info, f->r->eval, &eval), "evaluation data");
        sx_feed_deinit(&trial);
    }
    return SX_OK;
}

/* Where the data go on: at the cursor, or at the same number of batches in other data. */
static sx_status place_input(fit *f)
{
    sx_train_state *state = &f->t->state;
    if (state->n_cursors == 0 || (progress(f)->data_ended && until_data_end(f->r))) {
        progress(f)->data_ended = false;
        return SX_OK;
    }
    sx_status status =
        sx_gather_restore(&f->input, state->cursors, state->n_cursors, progress(f)->step_in_epoch);
    if (status == SX_OK || f->t->config.require_exact) {
        return sx_status_annotate(status, __FILE__, __LINE__, "resuming exactly");
    }
    if (f->t->config.model_dir == NULL) { /* fitting other data next is no resuming */
        sx_status_free(status);
        begin_epoch(f);
        return SX_OK;
    }
    sx_buf text;
    sx_buf_init(&text, 1 << 16);
    sx_buf_printf(&text, "not resuming to the bit: %s; going on at batch %" PRId64 " of these data",
                  sx_status_message(status), f->step);
    sx_trainer_warn(f->t, sx_buf_text(&text));
    sx_buf_deinit(&text);
    sx_status_free(status);
    return sx_gather_seek(&f->input, f->step);
}

static sx_status check_numerics(fit *f)
{
    sx_executable_info info = {0};
    sx_trainer *t = f->t;
    SX_TRY(sx_program_info(f->program, f->input.max_batch, &info));
    const char *now = sx_arena_strdup(&t->arena, info.numerics != NULL ? info.numerics : "");
    const char *then = t->state.numerics;
    t->state.numerics = now;
    if (now == NULL || then == NULL || strcmp(now, then) == 0) {
        return now != NULL ? SX_OK : sx_error(SX_RESOURCE_EXHAUSTED, "out of memory");
    }
    if (t->config.require_exact) {
        return sx_error(
            SX_FAILED_PRECONDITION,
            "resuming exactly: this checkpoint was computed with \"%s\", here it would be "
            "\"%s\"",
            then, now);
    }
    sx_buf text;
    sx_buf_init(&text, 1 << 16);
    sx_buf_printf(&text,
                  "the bits of a step may differ: computed so far with \"%s\", from here with "
                  "\"%s\"",
                  then, now);
    sx_trainer_warn(t, sx_buf_text(&text));
    sx_buf_deinit(&text);
    return SX_OK;
}

/* Two that train in one folder would delete each other's checkpoints. */
static sx_status lock_directory(fit *f)
{
    const char *dir = f->t->config.model_dir;
    if (dir == NULL || f->lock != SX_NO_LOCK || !sx_path_exists(dir)) {
        return SX_OK;
    }
    return sx_dir_lock(dir, &f->lock);
}

static sx_status restore(fit *f, bool *out_found)
{
    sx_trainer *t = f->t;
    *out_found = false;
    SX_TRY(lock_directory(f));
    if (!t->has_state) {
        SX_TRY(sx_trainer_restore_latest(t, out_found));
    }
    f->step = sx_trainer_step(t);
    f->saved_step = *out_found ? f->step : -1;
    return SX_OK;
}

/* --- from beginning to end
 * ------------------------------------------------------------------------ */

static void tell_begin(fit *f, bool found)
{
    sx_train_event e = make_event(f, SX_EVENT_BEGIN);
    e.resumed = found;
    e.path = found ? f->t->prefix : NULL;
    e.text = f->t->warned == NULL ? f->t->rate_text : NULL;
    sx_trainer_emit(f->t, &e);
    const char *note = sx_tpu_config_note(&f->t->config.tpu_config);
    if (note != NULL) {
        sx_trainer_warn(f->t, note);
    }
    if (f->t->warned != NULL) {
        sx_trainer_warn(f->t, f->t->warned);
        f->t->warned = NULL;
    }
}

static void tell_end(fit *f, const char *why)
{
    sx_train_event e = make_event(f, SX_EVENT_END);
    e.text = why;
    e.path = f->t->prefix;
    sx_trainer_emit(f->t, &e);
}

static const char *reason(fit *f)
{
    if (f->control.stop) {
        return f->control.reason != NULL ? f->control.reason : "stopped by a callback";
    }
    bool cut = f->cut_short || (sx_trainer_stopped(f->t) && f->step < f->target);
    return cut ? "stopped" : f->step >= f->target ? "finished" : "end of data";
}

static sx_status prepare(fit *f, bool *out_found)
{
    sx_trainer *t = f->t;
    SX_TRY(open_input(f));
    SX_TRY(sx_trainer_program(t, SX_TRAIN, &f->program));
    list_metrics(f);
    SX_TRY(sx_host_caller_init(&f->host, f->program, &t->host.call, f->input.max_batch,
                               t->config.tpu_config.experimental_host_call_every_n_steps));
    SX_TRY(restore(f, out_found));
    progress(f)->n_sums = f->n_metrics;
    return choose_target(f);
}

/* A launch, and the batch of another size that may end it. */
static sx_status make_queue(fit *f)
{
    f->fed_room = sx_program_launch_steps(f->program) + 1;
    f->fed = sx_alloc((size_t)f->fed_room, sizeof(*f->fed));
    return f->fed != NULL ? SX_OK : sx_error(SX_RESOURCE_EXHAUSTED, "out of memory");
}

/* That the program compiles and fits, before a record is read or a run replaced. */
static sx_status prove(fit *f)
{
    sx_session *session = f->t->session;
    int64_t batch = f->input.max_batch;
    sx_status status = compile_if_new(f, batch);
    if (sx_status_code(status) != SX_RESOURCE_EXHAUSTED) {
        SX_TRY(status);
        return sx_program_prove_fit(session, f->program, batch);
    }
    int64_t largest = sx_program_suggest_batch(session, f->program, batch);
    return largest == 0 ? status
                        : sx_status_annotate(status, __FILE__, __LINE__,
                                             "a batch of %" PRId64 " does not fit, one of about "
                                             "%" PRId64 " does",
                                             batch, largest);
}

static sx_status begin(fit *f, bool found)
{
    sx_trainer *t = f->t;
    tell_begin(f, found);
    SX_TRY(prove(f));
    SX_TRY(sx_trainer_begin_run(t));
    SX_TRY(lock_directory(f)); /* that has just been made */
    SX_TRY(place_input(f));
    SX_TRY(make_queue(f));
    SX_TRY(check_numerics(f));
    t->has_state = true;
    f->began_ns = f->told_ns = f->epoch_ns = f->saved_ns = sx_now_ns();
    begin_window(f, f->began_ns);
    if (!found) {
        SX_TRY(save(f));
    }
    return replay_eval(f);
}

static sx_status stopped(const fit *f)
{
    const char *prefix = f->t->config.model_dir != NULL ? f->t->prefix : NULL;
    return sx_error(SX_CANCELLED, "stopped at step %" PRId64 "%s%s", f->step,
                    prefix != NULL ? ", saved as " : "", prefix != NULL ? prefix : "");
}

/* Nothing to train. A run that died between its last checkpoint and its last evaluation gets that.
 */
static sx_status confirm_finished(fit *f)
{
    bool missing = f->r->eval != NULL && f->step == f->target && f->t->has_state &&
                   sx_history_find(&f->t->history, f->step) == NULL;
    if (missing) {
        SX_TRY(evaluate(f));
    }
    tell_end(f, f->cut_short ? "stopped" : "already finished");
    return f->cut_short ? stopped(f) : SX_OK;
}

static sx_status fit_all(fit *f)
{
    bool found;
    SX_TRY(prepare(f, &found));
    if (f->step >= f->target) {
        return confirm_finished(f);
    }
    SX_TRY(begin(f, found));
    SX_TRY(run(f));
    keep_cursor(f); /* for another fit in this process */
    tell_end(f, reason(f));
    return f->cut_short || (sx_trainer_stopped(f->t) && !at_end(f)) ? stopped(f) : SX_OK;
}

sx_status sx_trainer_fit(sx_trainer *t, const sx_fit_request *request)
{
    fit f = {.t = t, .r = request, .saved_step = -1, .lock = SX_NO_LOCK};
    SX_TRY(check_request(request));
    t->callbacks = request->callbacks;
    t->n_callbacks = request->n_callbacks;
    t->times = (sx_train_times){0};
    sx_status status = fit_all(&f);
    t->callbacks = NULL;
    t->n_callbacks = 0;
    sx_gather_deinit(&f.input);
    sx_host_caller_deinit(&f.host);
    sx_free(f.fed);
    sx_dir_unlock(f.lock);
    return status;
}
