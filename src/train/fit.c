/* A fit from its beginning to its end. See fit.h. */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "io/dir_lock.h"
#include "runtime/memory_fit.h"
#include "train/fit.h"
#include "train/save.h"
#include "train/warm_start.h"

static sx_status check_request(const sx_fit_request *r)
{
    if (r->steps < 0 || r->max_steps < 0 || r->epochs < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "steps, max_steps and epochs must not be negative");
    }
    if ((r->steps > 0) + (r->max_steps > 0) + (r->epochs > 0) > 1) {
        return sx_error(SX_INVALID_ARGUMENT, "steps, max_steps and epochs cannot be combined");
    }
    if (r->train == NULL || (r->n_shards > 0 && r->shards[0] != r->train)) {
        return sx_error(SX_INVALID_ARGUMENT, "no training data");
    }
    return SX_OK;
}

static sx_status choose_target(sx_fit *f)
{
    const sx_fit_request *r = f->r;
    int64_t epochs = r->epochs;
    if (r->steps == 0 && r->max_steps == 0 && epochs == 0 && !sx_fit_until_data_end(r)) {
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
                            "the data are endless and have no epochs; use steps or max_steps");
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
static void list_metrics(sx_fit *f)
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

static sx_status open_input(sx_fit *f)
{
    sx_trainer *t = f->t;
    const sx_feed_args args = {.mode = SX_TRAIN,
                               .batch_size = t->config.train_batch_size / SX_MAX(1, f->r->n_shards),
                               .no_shuffle = t->config.no_shuffle,
                               .repeat = !sx_fit_until_data_end(f->r),
                               .classes = sx_trainer_classes(t),
                               .program = t->graphs.by_mode[SX_TRAIN]};
    bool cut = f->r->n_shards > 0;
    SX_TRY(sx_batch_gather_init(&f->input, &t->info, cut ? f->r->shards : &f->r->train,
                                cut ? f->r->n_shards : 1, SX_MAX(1, f->r->pulls), &args),
           "training data");
    bool batched = sx_dataset_batch_size(f->r->train) > 0;
    SX_TRY(sx_check_batch_divides(&t->config,
                                  batched ? f->input.max_batch : t->config.train_batch_size));
    if (f->r->eval != NULL) { /* a misfit is found now, not after an epoch */
        const sx_feed_args eval = {.mode = SX_EVAL,
                                   .batch_size = t->config.eval_batch_size,
                                   .classes = args.classes,
                                   .program = t->graphs.by_mode[SX_EVAL]};
        sx_feed trial;
        SX_TRY(sx_feed_init(&trial, &t->info, f->r->eval, &eval), "evaluation data");
        sx_feed_deinit(&trial);
    }
    return SX_OK;
}

static sx_status prepare(sx_fit *f, bool *out_found)
{
    sx_trainer *t = f->t;
    SX_TRY(open_input(f));
    SX_TRY(sx_trainer_program(t, SX_TRAIN, &f->program));
    list_metrics(f);
    SX_TRY(sx_host_caller_init(&f->host, f->program, &t->host.calls[SX_TRAIN], f->input.max_batch,
                               t->config.tpu_config.experimental_host_call_every_n_steps));
    SX_TRY(sx_fit_restore(f, out_found));
    sx_fit_progress(f)->n_sums = f->n_metrics;
    return choose_target(f);
}

/* The last batch of an epoch, if that takes more of a device than a full one: replicas that do not
 * divide it compute it whole. 0 = it does not, or is not known, or the run ends before. */
static int64_t large_remainder(const sx_fit *f)
{
    const sx_batch_gather *g = &f->input;
    int64_t replicas = sx_session_replicas(f->t->session), n = sx_dataset_count(f->r->train);
    bool known = sx_dataset_batch_size(f->r->train) == 0 && n != SX_ENDLESS && g->n == 1;
    int64_t rest = known ? n % g->max_batch : 0, epoch = known ? n / g->max_batch + 1 : 0;
    bool reached = rest > 0 && f->target >= (f->step / epoch + 1) * epoch;
    return reached && rest % replicas != 0 && rest > g->max_batch / replicas ? rest : 0;
}

static sx_status prove_remainder(sx_fit *f)
{
    int64_t rest = large_remainder(f);
    if (rest == 0) {
        return SX_OK;
    }
    SX_TRY(sx_fit_compile(f, rest));
    return sx_program_prove_remainder_fits(f->t->session, f->program, rest);
}

/* That the program compiles and fits, before a record is read or a run replaced. */
static sx_status prove(sx_fit *f)
{
    sx_session *session = f->t->session;
    int64_t batch = f->input.max_batch;
    int ok = sx_program_find_output(f->program, SX_OK_OUTPUT);
    sx_status status = sx_fit_compile(f, batch);
    if (sx_status_code(status) != SX_RESOURCE_EXHAUSTED) {
        SX_TRY(status);
        SX_TRY(sx_program_prove_fit(session, f->program, batch, ok));
        return prove_remainder(f);
    }
    int64_t largest = sx_program_suggest_batch(session, f->program, batch, ok);
    return largest == 0 ? status
                        : sx_status_annotate(status, __FILE__, __LINE__,
                                             "a batch of %" PRId64 " does not fit, one of about "
                                             "%" PRId64 " does",
                                             batch, largest);
}

static sx_status begin(sx_fit *f, bool found)
{
    sx_trainer *t = f->t;
    sx_fit_tell_begin(f, found);
    SX_TRY(prove(f));
    if (!found && !t->has_state) {
        SX_TRY(sx_warm_start(t));
    }
    bool is_new = !t->on_disk;
    SX_TRY(sx_trainer_begin_run(t));
    SX_TRY(sx_fit_lock(f)); /* that has just been made */
    if (is_new && f->lock != SX_NO_LOCK) {
        sx_trainer_clean_up(t); /* after one that was killed before it was a run */
    }
    SX_TRY(sx_fit_place_input(f));
    SX_TRY(sx_fit_make_queue(f));
    SX_TRY(sx_fit_check_numerics(f));
    t->has_state = true;
    f->told_ns = f->epoch_ns = f->saved_ns = sx_now_ns();
    sx_fit_begin_window(f, f->told_ns);
    if (!found) {
        SX_TRY(sx_fit_save(f));
    }
    return sx_fit_replay_eval(f);
}

static const char *reason(sx_fit *f)
{
    if (f->control.stop) {
        return f->control.reason != NULL ? f->control.reason : "stopped by a callback";
    }
    bool cut = f->cut_short || (sx_trainer_stopped(f->t) && f->step < f->target);
    return cut ? "stopped" : f->step >= f->target ? "finished" : "end of data";
}

static sx_status stopped(const sx_fit *f)
{
    const char *prefix = f->t->config.model_dir != NULL ? f->t->prefix : NULL;
    return sx_error(SX_CANCELLED, "stopped at step %" PRId64 "%s%s", f->step,
                    prefix != NULL ? ", saved as " : "", prefix != NULL ? prefix : "");
}

/* Nothing to train. A run that died between its last checkpoint and its last evaluation gets that.
 */
static sx_status confirm_finished(sx_fit *f)
{
    bool missing = f->r->eval != NULL && f->step == f->target && f->t->has_state &&
                   sx_history_find(&f->t->history, f->step) == NULL;
    if (missing) {
        SX_TRY(sx_fit_evaluate(f));
    }
    sx_fit_tell_end(f, f->cut_short ? "stopped" : "already finished");
    return f->cut_short ? stopped(f) : SX_OK;
}

static sx_status fit_all(sx_fit *f)
{
    bool found;
    SX_TRY(prepare(f, &found));
    if (f->step >= f->target) {
        return confirm_finished(f);
    }
    SX_TRY(begin(f, found));
    SX_TRY(sx_fit_run(f));
    sx_fit_keep_cursor(f); /* for another fit in this process */
    sx_fit_tell_end(f, reason(f));
    return f->cut_short || (sx_trainer_stopped(f->t) && !sx_fit_at_end(f)) ? stopped(f) : SX_OK;
}

sx_status sx_trainer_fit(sx_trainer *t, const sx_fit_request *request)
{
    sx_fit f = {.t = t, .r = request, .saved_step = -1, .lock = SX_NO_LOCK};
    SX_TRY(check_request(request));
    t->callbacks = request->callbacks;
    t->n_callbacks = request->n_callbacks;
    t->times = (sx_train_times){0};
    sx_status status = fit_all(&f);
    t->callbacks = NULL;
    t->n_callbacks = 0;
    sx_batch_gather_deinit(&f.input);
    sx_host_caller_deinit(&f.host);
    sx_free(f.fed);
    sx_dir_unlock(f.lock);
    return status;
}
