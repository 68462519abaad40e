/* Writes a run's directory: its description and its checkpoints. See save.h. */
#include "train/save.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "checkpoint/checkpoint_state.h"
#include "io/path.h"
#include "train/config.h"

static sx_status write_run(sx_trainer *t, const char *dir)
{
    sx_run_info info = t->info;
    SX_TRY(sx_run_config_to_json(&t->config, &info.config));
    sx_status status = sx_run_write(dir, &info, &t->graphs);
    json_decref(info.config);
    return status;
}

sx_status sx_trainer_begin_run(sx_trainer *t)
{
    if (t->config.model_dir == NULL || t->on_disk) {
        return SX_OK;
    }
    if (!sx_trainer_writes(t)) {
        t->on_disk = true; /* once the chief has come as far (sx_lockstep_compare_variables) */
        return SX_OK;
    }
    if (t->config.fresh) {
        SX_TRY(sx_run_delete(t->config.model_dir));
    }
    SX_TRY(write_run(t, t->config.model_dir));
    t->on_disk = true;
    return SX_OK;
}

static sx_checkpoint_retention retention_of(const sx_run_config *c)
{
    return (sx_checkpoint_retention){
        .keep_max = c->keep_checkpoint_max == SX_KEEP_ALL ? 0 : c->keep_checkpoint_max,
        .keep_every_n_hours = c->keep_checkpoint_every_n_hours};
}

void sx_trainer_clean_up(sx_trainer *t)
{
    const sx_checkpoint_retention keep = retention_of(&t->config);
    sx_status status = sx_run_clean_up(t->config.model_dir, t->history.best_step, &keep);
    if (status != SX_OK) {
        sx_trainer_warn(t, sx_status_message(status));
        sx_status_free(status);
    }
}

void sx_trainer_repair(sx_trainer *t)
{
    const char *dir = t->config.model_dir;
    sx_status status = sx_run_repair(dir, sx_trainer_warn, t);
    if (status == SX_OK) {
        status = sx_history_repair(dir, sx_trainer_warn, t);
    }
    if (status != SX_OK) {
        sx_trainer_warn(t, sx_status_message(status));
        sx_status_free(status);
    }
}

/* ---- Checkpoints ---- */

static sx_checkpoint_contents contents_of(const sx_trainer *t)
{
    return (sx_checkpoint_contents){
        .state = &t->state, .callbacks = t->callbacks, .n_callbacks = t->n_callbacks};
}

static void name_checkpoint(sx_trainer *t, char name[64])
{
    snprintf(name, 64, SX_CHECKPOINT_BASENAME "-%" PRId64, sx_trainer_step(t));
}

static sx_status begin(sx_trainer *t)
{
    char name[64];
    const sx_checkpoint_retention keep = retention_of(&t->config);
    const sx_checkpoint_contents contents = contents_of(t);
    name_checkpoint(t, name);
    t->state.progress.saves++;
    sx_status status =
        sx_saver_begin(&t->saver, t->session, t->config.model_dir, name, &contents, &keep);
    t->state.progress.saves -= status != SX_OK;
    return status;
}

/* Waits for the write in progress; if it went well, tells the observers. */
static sx_status end(sx_trainer *t)
{
    sx_saver *s = &t->saver;
    sx_status status = sx_saver_end(s);
    t->state.progress.saves -= status != SX_OK;
    SX_TRY(status);
    sx_free(t->prefix);
    t->prefix = s->prefix;
    s->prefix = NULL;
    t->saved_step = s->step;
    sx_trainer_emit(t, &(sx_train_event){.kind = SX_EVENT_CHECKPOINT,
                                         .step = s->step,
                                         .path = t->prefix,
                                         .seconds = (double)(s->ended_ns - s->began_ns) * 1e-9});
    return SX_OK;
}

static void warn_of_failure(sx_trainer *t, sx_status failed)
{
    sx_buf text;
    sx_buf_init(&text, 1 << 14);
    sx_buf_printf(
        &text,
        "%s; training goes on, and its end will be this error; the checkpoints before are "
        "kept",
        sx_status_message(failed));
    sx_trainer_warn(t, sx_buf_text(&text));
    sx_buf_deinit(&text);
}

void sx_trainer_end_save(sx_trainer *t, bool wait)
{
    if (!t->saver.running || (!wait && sx_saver_is_busy(&t->saver))) {
        return;
    }
    const int64_t start = sx_now_ns();
    sx_status status = end(t);
    t->times.save_ns += sx_now_ns() - start;
    if (status == SX_OK) {
        return;
    }
    warn_of_failure(t, status);
    if (t->save_failed == SX_OK) {
        t->save_failed = status;
    } else {
        sx_status_free(status);
    }
}

sx_status sx_trainer_begin_save(sx_trainer *t)
{
    sx_trainer_end_save(t, true);
    const int64_t start = sx_now_ns();
    sx_status status = begin(t);
    t->times.save_ns += sx_now_ns() - start;
    return status;
}

sx_status sx_trainer_save(sx_trainer *t)
{
    const int64_t start = sx_now_ns();
    sx_trainer_end_save(t, true);
    sx_status status = begin(t);
    if (status == SX_OK) {
        status = end(t);
    }
    t->times.save_ns += sx_now_ns() - start;
    return status;
}

sx_status sx_trainer_save_history(sx_trainer *t, bool is_best)
{
    char *best = NULL;
    sx_trainer_end_save(t, is_best);
    if (is_best && t->save_failed != SX_OK) { /* there may be nothing to keep */
        sx_status failed = t->save_failed;
        t->save_failed = SX_OK;
        return failed;
    }
    SX_TRY(sx_trainer_path(t, "best", &best));
    sx_status status = is_best ? sx_checkpoint_keep(t->prefix, best) : SX_OK;
    if (status == SX_OK) {
        status = sx_history_save(&t->history, t->config.model_dir);
    }
    if (status == SX_OK && is_best) {
        status = sx_checkpoint_keep_only(best, t->history.best_step);
    }
    sx_free(best);
    return status;
}

sx_status sx_trainer_save_as(sx_trainer *t, const char *dir)
{
    char name[64], *prefix = NULL;
    sx_program *p;
    SX_TRY(sx_trainer_check_chief(t, "save a model"));
    if (sx_run_exists(dir)) {
        return sx_error(SX_ALREADY_EXISTS, "%s already contains a run", dir);
    }
    if (!t->has_state) {
        return sx_error(SX_FAILED_PRECONDITION, "the model has not been trained or loaded");
    }
    SX_TRY(sx_trainer_program(t, SX_TRAIN,
                              &p)); /* with slots and step, so that training can continue */
    SX_TRY(write_run(t, dir));
    name_checkpoint(t, name);
    SX_TRY(sx_path_join(dir, name, &prefix));
    const sx_checkpoint_retention keep = retention_of(&t->config);
    const sx_checkpoint_contents contents = contents_of(t);
    t->state.progress.saves++;
    sx_status status = sx_checkpoint_save(t->session, prefix, &contents);
    if (status == SX_OK) {
        status = sx_checkpoint_register(dir, name, sx_wall_seconds(), &keep);
    }
    t->state.progress.saves -= status != SX_OK;
    sx_free(prefix);
    return status;
}
