/* The device loop of a fit, from one control point to the next.
 *
 *   feed       a batch from the iterator; another size is compiled first   \
 *   see_step   sums, observers; leaves at the end of an epoch, of time,     > sx_program_loop: at
 *              on stop                                                     /  most segment() steps
 *
 *   sx_fit_control_point()   epoch ends ─ controls ─ save ─ evaluate ─ controls
 *
 * A device may run many batches in one launch and return the results of their steps afterwards,
 * while it runs the next; until then, what is known of each batch waits in a queue. A launch never
 * goes beyond a control point (segment(), the end of an epoch). Timers and stop requests are
 * checked while feeding, and when the results arrive, after the whole launch has run: all its
 * steps, and those of a launch that is running by then, are saved. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "train/lockstep.h"
#include "train/save.h"

static const int64_t TELL_NS = 100000000; /* interval of a progress bar */

/* Whether batches of this size run in launches of many steps: full ones do; a smaller one comes
 * once per epoch. */
static bool is_looped(const sx_fit *f, int64_t batch)
{
    return !f->no_position && batch == f->input.max_batch &&
           batch % sx_session_replicas(f->t->session) == 0;
}

sx_status sx_fit_compile(sx_fit *f, int64_t batch)
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
    sx_fit_skip_time(f, sx_now_ns() - start); /* compiling is not part of the rates */
    return SX_OK;
}

/* Room for the launches on their way, and the batch of another size that may end them. */
sx_status sx_fit_make_queue(sx_fit *f)
{
    f->fed_room = sx_program_launch_steps(f->program) * sx_program_launches(f->program) + 1;
    sx_free(f->fed);
    f->fed = sx_alloc((size_t)f->fed_room, sizeof(*f->fed));
    return f->fed != NULL ? SX_OK : sx_no_memory("for the step loop");
}

static sx_status next_batch(sx_fit *f, sx_feed_batch *out)
{
    sx_status status = sx_batch_gather_next(&f->input, out);
    if (sx_status_code(status) == SX_OUT_OF_RANGE) {
        sx_fit_progress(f)->data_ended = true;
    }
    return status;
}

/* Ends a launch before its time; processes in step agree on that before each launch. */
static bool leaves_early(const sx_fit *f, int64_t now)
{
    return f->t->processes == NULL && (sx_trainer_stopped(f->t) || sx_fit_time_to_save(f, now));
}

static sx_status feed_batch(sx_fit *f, sx_step_input *out)
{
    sx_feed_batch batch;
    SX_TRY(next_batch(f, &batch));
    batch.ends_epoch = batch.ends_epoch && !f->no_position;
    SX_TRY(sx_fit_compile(f, batch.size));
    sx_feed_bind(&batch, f->order, f->n_inputs, out->inputs);
    f->fed[f->n_fed++ % f->fed_room] =
        (sx_fed_batch){sx_batch_gather_waited(&f->input), batch.ends_epoch};
    out->batch = batch.size;
    out->ends_launch = batch.ends_epoch || leaves_early(f, sx_now_ns());
    return SX_OK;
}

/* Notes whether an error comes from the input, not from the device. */
static sx_status feed(void *user, sx_step_input *out)
{
    sx_fit *f = user;
    sx_status status = feed_batch(f, out);
    f->feed_failed = status != SX_OK && !sx_fit_progress(f)->data_ended;
    return status;
}

static void add_step(sx_fit *f, const sx_step_scalars *s)
{
    sx_progress *p = sx_fit_progress(f);
    double weight = f->weight_scalar >= 0 ? s->values[f->weight_scalar] : (double)s->batch;
    for (int k = 0; k < f->n_metrics; k++) {
        f->last[k] = s->values[f->metric_scalars[k]];
        p->sums[k] += f->last[k] * weight;
    }
    p->weight += weight;
    p->examples += s->batch;
    p->examples_in_all += s->batch;
    p->step_in_epoch++;
    f->trained_examples += s->batch;
    f->learning_rate = f->rate_scalar >= 0 ? s->values[f->rate_scalar] : 0;
    f->step = s->step;
    for (int k = 0; k < f->n_metrics; k++) {
        f->metrics[k].value = p->weight > 0 ? p->sums[k] / p->weight : 0;
    }
}

static bool see_step(void *user, const sx_step_scalars *s)
{
    sx_fit *f = user;
    const sx_fed_batch batch = f->fed[f->n_shown++ % f->fed_room];
    add_step(f, s);
    if (!f->marked) {
        f->marked = true;
        f->marks[0] = f->marks[1] = (sx_fit_mark){s->ended_ns, s->step};
    }
    f->batch = s->batch;
    f->wait_ns = batch.wait_ns;
    f->epoch_ended = batch.ends_epoch;
    bool at_cadence = sx_is_multiple(f->step, f->t->config.log_step_count_steps);
    if (at_cadence || f->epoch_ended || s->ended_ns - f->told_ns >= TELL_NS) {
        sx_fit_tell_progress(f, s->ended_ns, at_cadence || f->epoch_ended);
    }
    sx_trainer_end_save(f->t, false);
    if (f->failed == SX_OK) {
        f->failed = sx_host_caller_step(&f->host, s);
    }
    return f->failed != SX_OK || f->epoch_ended || leaves_early(f, s->ended_ns);
}

/* Steps up to the next multiple of `every`. */
static int64_t steps_until(int64_t step, int64_t every, int64_t at_most)
{
    return every > 0 ? SX_MIN(at_most, every - step % every) : at_most;
}

static int64_t segment(const sx_fit *f)
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

static sx_status explain_nonfinite(sx_fit *f, sx_status withheld)
{
    sx_buf text;
    sx_buf_init(&text, 1 << 16);
    sx_status cause = sx_program_find_nonfinite(f->program);
    sx_buf_printf(&text, "%s",
                  cause != SX_OK ? sx_status_message(cause)
                                 : "all values were finite when the step was repeated");
    sx_train_event e = sx_fit_event(f, SX_EVENT_NONFINITE);
    e.step = f->step + 1;
    e.text = sx_buf_text(&text);
    sx_trainer_emit(f->t, &e);
    sx_status status = sx_error(
        SX_ABORTED,
        "step %" PRId64 ": %s; the update was not applied or saved (try a smaller learning rate)",
        f->step + 1, sx_buf_text(&text));
    sx_status_free(cause);
    sx_status_free(withheld);
    sx_buf_deinit(&text);
    return status;
}

/* Adds to a device's error in which steps it happened and which checkpoint is left. */
static sx_status explain_failure(sx_fit *f, int64_t failed, sx_status status)
{
    char steps[64], kept[96] = "nothing is saved";
    status = sx_lockstep_explain(f->t, status);
    snprintf(steps, sizeof(steps),
             failed > 1 ? "one of steps %" PRId64 " to %" PRId64 : "step %" PRId64, f->step + 1,
             f->step + failed);
    sx_trainer_end_save(f->t, true);
    if (f->t->config.model_dir != NULL && !sx_is_chief(f->t->processes)) {
        snprintf(kept, sizeof(kept), "the run can be resumed from the checkpoint of process 0");
    } else if (f->t->saved_step >= 0) {
        snprintf(kept, sizeof(kept),
                 "the checkpoint of step %" PRId64 " is kept; the run can be resumed from it",
                 f->t->saved_step);
    }
    return sx_status_annotate(status, __FILE__, __LINE__, "%s failed (%s)", steps, kept);
}

sx_status sx_fit_run_segment(sx_fit *f, int64_t steps)
{
    int64_t failed = 1;
    const sx_loop_args args = {.steps = SX_MIN(steps, segment(f)),
                               .feed = feed,
                               .step = see_step,
                               .plan = sx_lockstep_plan,
                               .user = f,
                               .failed_steps = &failed,
                               .ok_output = sx_program_find_output(f->program, SX_OK_OUTPUT)};
    int64_t done = 0, compiling = f->t->times.compile_ns, start = sx_now_ns();
    f->epoch_ended = false;
    f->n_fed = f->n_shown = 0;
    sx_fit_progress(f)->data_ended = false;
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
    return status != SX_OK && !f->feed_failed ? explain_failure(f, failed, status) : status;
}

/* The input failed: saves the steps so far, so that the run can be resumed once the data are
 * repaired. */
static sx_status save_and_explain(sx_fit *f, sx_status status)
{
    char saved[128] = "";
    if (f->t->config.model_dir != NULL) {
        sx_status save = sx_fit_save(f);
        snprintf(saved, sizeof(saved),
                 save == SX_OK ? " (step %" PRId64 " is saved)"
                               : " (saving step %" PRId64 " failed, too)",
                 f->step);
        sx_status_free(save);
    }
    return sx_status_annotate(status, __FILE__, __LINE__, "reading the batch of step %" PRId64 "%s",
                              f->step + 1, saved);
}

sx_status sx_fit_run(sx_fit *f)
{
    while (!sx_fit_at_end(f) && !sx_trainer_stopped(f->t)) {
        sx_status status = sx_fit_run_segment(f, INT64_MAX);
        if (status != SX_OK) {
            return f->feed_failed ? save_and_explain(f, status) : status;
        }
        int64_t start = sx_now_ns();
        SX_TRY(sx_fit_control_point(f));
        sx_fit_skip_time(f, sx_now_ns() - start);
    }
    return SX_OK;
}
