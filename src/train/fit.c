/* Runs a fit from start to end. See fit.h. */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "io/dir_lock.h"
#include "runtime/memory_fit.h"
#include "train/byte_images.h"
#include "train/lockstep.h"
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
                            "the data is endless and have no epochs; use steps or max_steps");
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

/* Finds the outputs that are the loss, metrics and the learning rate. */
static void list_metrics(sx_fit *f)
{
    int scalar = 0;
    f->n_metrics = 0;
    f->rate_scalar = f->weight_scalar = -1;
    for (int i = 0; i < sx_program_output_count(f->program) && scalar < SX_MAX_SCALARS; i++) {
        const char *name = sx_program_output_name(f->program, i);
        if (sx_program_output_type(f->program, i)->rank > 0) {
            continue;
        }
        if (strcmp(name, SX_LEARNING_RATE) == 0) {
            f->rate_scalar = scalar;
        } else if (strcmp(name, SX_WEIGHT_SUM) == 0) {
            f->weight_scalar = scalar;
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
    const bool cut = f->r->n_shards > 0;
    sx_dataset *const *data = cut ? f->r->shards : &f->r->train;
    const int n = cut ? f->r->n_shards : 1;
    const sx_feed_args args = {.mode = SX_TRAIN,
                               .batch_size = t->config.train_batch_size / SX_MAX(1, f->r->n_shards),
                               .no_shuffle = t->config.no_shuffle,
                               .repeat = !sx_fit_until_data_end(f->r),
                               .classes = sx_trainer_classes(t),
                               .program = t->graphs.by_mode[SX_TRAIN],
                               .preprocess = t->graphs.by_mode[SX_RUN_PREPROCESS],
                               .bytes = sx_can_feed_bytes(t, SX_TRAIN, data, n),
                               .part =
                                   cut || f->r->pulls > 1 ? (sx_part){0} : sx_lockstep_part(t, 0)};
    SX_TRY(sx_batch_gather_init(&f->input, &t->info, data, n, SX_MAX(1, f->r->pulls), &args),
           "training data");
    SX_TRY(sx_trainer_feed_bytes(t, SX_TRAIN, args.bytes));
    bool batched = sx_dataset_batch_size(f->r->train) > 0;
    SX_TRY(sx_check_batch_divides(&t->config,
                                  batched ? f->input.max_batch : t->config.train_batch_size));
    if (f->r->eval != NULL) { /* find a misfit now, not after an epoch */
        const sx_feed_args eval = {.mode = SX_EVAL,
                                   .batch_size = t->config.eval_batch_size,
                                   .classes = args.classes,
                                   .program = t->graphs.by_mode[SX_EVAL],
                                   .preprocess = args.preprocess};
        sx_feed trial;
        SX_TRY(sx_feed_init(&trial, &t->info, f->r->eval, &eval), "evaluation data");
        sx_feed_deinit(&trial);
    }
    return SX_OK;
}

/* The size of the last batch of an epoch, if a device needs more memory for it than for a full
 * batch: one that the replicas do not divide is computed whole by each. 0 = it does not, the size
 * is unknown, or training ends before. */
static int64_t large_remainder(const sx_fit *f)
{
    const sx_batch_gather *g = &f->input;
    int64_t replicas = sx_session_replicas(f->t->session), n = sx_dataset_count(f->r->train);
    bool known = sx_dataset_batch_size(f->r->train) == 0 && n != SX_ENDLESS && g->n == 1;
    int64_t rest = known ? n % g->max_batch : 0, epoch = known ? n / g->max_batch + 1 : 0;
    bool reached = rest > 0 && f->target >= (f->step / epoch + 1) * epoch;
    return reached && rest % replicas != 0 && rest > g->max_batch / replicas ? rest : 0;
}

/* Compiles the program and checks that it fits in memory, before a record is read or an existing
 * run is replaced. */
static sx_status prove(sx_fit *f)
{
    sx_session *session = f->t->session;
    int64_t batch = f->input.max_batch;
    int ok = sx_program_find_output(f->program, SX_OK_OUTPUT);
    sx_status status = sx_fit_compile(f, batch);
    if (sx_status_code(status) == SX_RESOURCE_EXHAUSTED) {
        int64_t largest = sx_program_suggest_batch(session, f->program, batch, ok);
        return largest == 0 ? status
                            : sx_status_annotate(status, __FILE__, __LINE__,
                                                 "a batch of %" PRId64 " does not fit; about "
                                                 "%" PRId64 " does",
                                                 batch, largest);
    }
    SX_TRY(status);
    SX_TRY(sx_program_prove_fit(session, f->program, batch, ok));
    int64_t rest = large_remainder(f);
    if (rest > 0) {
        SX_TRY(sx_fit_compile(f, rest));
        SX_TRY(sx_program_prove_remainder_fits(session, f->program, rest));
    }
    return SX_OK;
}

static sx_status stopped(const sx_fit *f)
{
    const char *prefix = f->t->config.model_dir != NULL ? f->t->prefix : NULL;
    return sx_error(SX_CANCELLED, "stopped at step %" PRId64 "%s%s", f->step,
                    prefix != NULL ? ", saved as " : "", prefix != NULL ? prefix : "");
}

/* Nothing is left to train. The last evaluation is made now if the run was killed before it. */
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

sx_status sx_fit_open_program(sx_fit *f)
{
    sx_trainer *t = f->t;
    SX_TRY(sx_trainer_program(t, SX_TRAIN, &f->program));
    list_metrics(f);
    SX_TRY(sx_feed_order(&t->info.inputs, f->program, f->order, &f->n_inputs));
    return sx_host_caller_init(&f->host, f->program, &t->host.calls[SX_TRAIN], f->input.max_batch,
                               t->config.tpu_config.experimental_host_call_every_n_steps);
}

sx_status sx_fit_begin(sx_fit *f, bool found)
{
    sx_trainer *t = f->t;
    const bool has_input = f->input.n > 0;
    sx_fit_tell_begin(f, found);
    SX_TRY(has_input ? prove(f) : SX_OK);
    if (!found && !t->has_state) {
        SX_TRY(sx_warm_start(t));
    }
    bool is_new = !t->on_disk;
    SX_TRY(sx_trainer_begin_run(t));
    SX_TRY(sx_fit_lock(f)); /* model_dir may not have existed before */
    if (is_new && f->lock != SX_NO_LOCK) {
        sx_trainer_clean_up(t); /* files of a process that was killed before the run existed */
    }
    if (has_input) {
        SX_TRY(sx_fit_place_input(f));
        SX_TRY(sx_fit_check_numerics(f));
        SX_TRY(sx_lockstep_compare_variables(t));
    }
    SX_TRY(sx_fit_make_queue(f));
    t->has_state = true;
    f->told_ns = f->epoch_ns = f->saved_ns = sx_now_ns();
    sx_fit_begin_window(f, f->told_ns);
    return SX_OK;
}

static sx_status fit(sx_fit *f)
{
    sx_trainer *t = f->t;
    bool found;
    SX_TRY(open_input(f));
    SX_TRY(sx_fit_open_program(f));
    SX_TRY(sx_lockstep_begin(f));
    SX_TRY(sx_fit_restore(f, &found));
    sx_fit_progress(f)->n_sums = f->n_metrics;
    SX_TRY(choose_target(f));
    if (f->step >= f->target) {
        return confirm_finished(f);
    }

    SX_TRY(sx_fit_begin(f, found));
    if (!found) {
        SX_TRY(sx_fit_save(f));
    }
    SX_TRY(sx_fit_replay_eval(f));

    SX_TRY(sx_fit_run(f));
    sx_fit_keep_cursor(f); /* for another fit in this process */
    sx_trainer_end_save(t, true);
    bool cut = f->cut_short || (sx_trainer_stopped(t) && f->step < f->target);
    const char *reason = f->control.stop        ? f->control.reason
                         : cut                  ? "stopped"
                         : f->step >= f->target ? "finished"
                                                : "end of data";
    sx_fit_tell_end(f, reason != NULL ? reason : "stopped by a callback");
    return f->cut_short || (sx_trainer_stopped(t) && !sx_fit_at_end(f)) ? stopped(f) : SX_OK;
}

sx_status sx_trainer_fit(sx_trainer *t, const sx_fit_request *request)
{
    sx_fit f = {.t = t, .r = request, .saved_step = -1, .partial_step = -1, .lock = SX_NO_LOCK};
    SX_TRY(check_request(request));
    t->callbacks = request->callbacks;
    t->n_callbacks = request->n_callbacks;
    t->times = (sx_train_times){0};
    sx_status status = fit(&f);
    sx_trainer_end_save(t, true);
    if (status == SX_OK) {
        status = t->save_failed;
    } else {
        sx_status_free(t->save_failed);
    }
    t->save_failed = SX_OK;
    status = sx_lockstep_end(t, status);
    t->callbacks = NULL;
    t->n_callbacks = 0;
    sx_batch_gather_deinit(&f.input);
    sx_host_caller_deinit(&f.host);
    sx_free(f.fed);
    sx_dir_unlock(f.lock);
    return status;
}
