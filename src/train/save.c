/* Writes a run's directory: its description and its checkpoints. See save.h. */
#include "train/save.h"

#include <inttypes.h>
#include <stdio.h>

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

static sx_status save_to(sx_trainer *t, const char *dir, const char *name, char **out_prefix)
{
    const sx_checkpoint_retention keep = retention_of(&t->config);
    char *prefix = NULL;
    SX_TRY(sx_path_join(dir, name, &prefix));
    t->state.progress.saves++;
    sx_status status =
        sx_checkpoint_save(t->session, prefix, &t->state, t->callbacks, t->n_callbacks);
    if (status == SX_OK) {
        status = sx_checkpoint_register(dir, name, sx_wall_seconds(), &keep);
    }
    if (status != SX_OK) {
        t->state.progress.saves--;
        sx_free(prefix);
        return status;
    }
    *out_prefix = prefix;
    return SX_OK;
}

sx_status sx_trainer_save(sx_trainer *t)
{
    char name[64], *prefix = NULL;
    int64_t start = sx_now_ns(), step = sx_trainer_step(t);
    snprintf(name, sizeof(name), SX_CHECKPOINT_BASENAME "-%" PRId64, step);
    SX_TRY(save_to(t, t->config.model_dir, name, &prefix));
    sx_free(t->prefix);
    t->prefix = prefix;
    int64_t ns = sx_now_ns() - start;
    t->times.save_ns += ns;
    sx_trainer_emit(t, &(sx_train_event){.kind = SX_EVENT_CHECKPOINT,
                                         .step = step,
                                         .path = prefix,
                                         .seconds = (double)ns * 1e-9});
    return SX_OK;
}

sx_status sx_trainer_save_history(sx_trainer *t, bool is_best)
{
    char *best = NULL;
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
    if (sx_run_exists(dir)) {
        return sx_error(SX_ALREADY_EXISTS, "%s already contains a run", dir);
    }
    if (!t->has_state) {
        return sx_error(SX_FAILED_PRECONDITION, "the model has not been trained or loaded");
    }
    SX_TRY(sx_trainer_program(t, SX_TRAIN,
                              &p)); /* with slots and step, so that training can continue */
    SX_TRY(write_run(t, dir));
    snprintf(name, sizeof(name), SX_CHECKPOINT_BASENAME "-%" PRId64, sx_trainer_step(t));
    SX_TRY(save_to(t, dir, name, &prefix));
    sx_free(prefix);
    return SX_OK;
}
