/* Chooses a checkpoint and loads it into the session. See trainer.h, state.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "io/path.h"
#include "checkpoint/checkpoint_state.h"
#include "train/state.h"

/* ---- Loading ---- */

static sx_status load(sx_trainer *t, const char *prefix)
{
    char *own = sx_strdup(prefix);
    if (own == NULL) {
        return sx_no_memory("restoring a checkpoint");
    }
    sx_status status = sx_checkpoint_load(t->session, prefix, 0);
    if (status == SX_OK) {
        status =
            sx_checkpoint_load_state(prefix, &t->arena, &t->state, t->callbacks, t->n_callbacks);
    }
    if (status != SX_OK) {
        sx_free(own);
        return status;
    }
    sx_free(t->prefix);
    t->prefix = own;
    t->has_state = true;
    return SX_OK;
}

/* ---- The newest intact checkpoint ---- */

static void say_broken(sx_trainer *t, sx_status broken)
{
    sx_buf text;
    sx_buf_init(&text, 1 << 16);
    sx_buf_printf(&text, "skipping a broken checkpoint: %s", sx_status_message(broken));
    sx_trainer_warn(t, sx_buf_text(&text));
    sx_buf_deinit(&text);
}

/* The newest intact checkpoint of `list`; NULL if there is none. */
static const char *newest_whole(sx_trainer *t, const sx_checkpoints *list)
{
    for (size_t i = list->count; i-- > 0;) {
        sx_status status = sx_checkpoint_verify(list->items[i].prefix);
        if (status == SX_OK) {
            return list->items[i].prefix;
        }
        say_broken(t, status);
        sx_status_free(status);
    }
    return NULL;
}

sx_status sx_trainer_restore_latest(sx_trainer *t, bool *out_found)
{
    sx_arena arena;
    sx_checkpoints list = {0};
    *out_found = false;
    if (!t->on_disk) {
        return SX_OK;
    }
    sx_arena_init(&arena, 0);
    sx_status status = sx_checkpoints_list(t->config.model_dir, &arena, &list);
    const char *prefix = status == SX_OK ? newest_whole(t, &list) : NULL;
    if (status == SX_OK && prefix == NULL && list.count > 0) {
        status =
            sx_error(SX_DATA_LOSS, "%s: all %zu checkpoints are broken; start over with --fresh",
                     t->config.model_dir, list.count);
    }
    if (prefix != NULL) {
        status = load(t, prefix);
        *out_found = status == SX_OK;
    }
    sx_arena_deinit(&arena);
    return status;
}

/* ---- A checkpoint by name ---- */

static sx_status no_such_step(const sx_trainer *t, const sx_checkpoints *list, const char *wanted)
{
    sx_buf steps;
    sx_buf_init(&steps, 1 << 16);
    for (size_t i = 0; i < list->count; i++) {
        sx_buf_printf(&steps, "%s%" PRId64, i > 0 ? ", " : "", list->items[i].step);
    }
    sx_status status =
        sx_error(SX_NOT_FOUND, "%s has no checkpoint for step %s; available: %s",
                 t->config.model_dir, wanted, list->count > 0 ? sx_buf_text(&steps) : "none");
    sx_buf_deinit(&steps);
    return status;
}

static sx_status load_step(sx_trainer *t, const char *wanted)
{
    char *end;
    long long step = strtoll(wanted, &end, 10);
    if (end == wanted || *end != '\0' || step < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "checkpoint \"%s\": expected latest, best, or a step",
                        wanted);
    }
    sx_arena arena;
    sx_checkpoints list = {0};
    sx_arena_init(&arena, 0);
    sx_status status = sx_checkpoints_list(t->config.model_dir, &arena, &list);
    const char *prefix = NULL;
    for (size_t i = 0; i < list.count; i++) {
        prefix = list.items[i].step == step ? list.items[i].prefix : prefix;
    }
    if (status == SX_OK) {
        status = prefix == NULL ? no_such_step(t, &list, wanted) : sx_checkpoint_verify(prefix);
    }
    if (status == SX_OK) {
        status = load(t, prefix);
    }
    sx_arena_deinit(&arena);
    return status;
}

/* The newest checkpoint in best/, for a run whose history is damaged; -1 = none. */
static sx_status newest_best(const sx_trainer *t, int64_t *out_step)
{
    sx_arena arena;
    sx_checkpoints list = {0};
    char *dir = NULL;
    SX_TRY(sx_trainer_path(t, "best", &dir));
    sx_arena_init(&arena, 0);
    sx_status status = sx_checkpoints_list(dir, &arena, &list);
    *out_step = list.count > 0 ? list.items[list.count - 1].step : -1;
    sx_arena_deinit(&arena);
    sx_free(dir);
    return status;
}

static sx_status load_best(sx_trainer *t)
{
    char *prefix = NULL;
    int64_t step = t->history.best_step;
    if (step < 0 && t->history_damaged) {
        SX_TRY(newest_best(t, &step));
    }
    if (step < 0) {
        return sx_error(SX_NOT_FOUND, "%s has no best checkpoint: the run has not been evaluated",
                        t->config.model_dir);
    }
    SX_TRY(sx_path_format(&prefix, "%s/best/" SX_CHECKPOINT_BASENAME "-%" PRId64,
                          t->config.model_dir, step));
    sx_status status = sx_checkpoint_verify(prefix);
    if (status == SX_OK) {
        status = load(t, prefix);
    }
    sx_free(prefix);
    return status;
}

static sx_status load_latest(sx_trainer *t)
{
    bool found;
    SX_TRY(sx_trainer_restore_latest(t, &found));
    return found ? SX_OK
                 : sx_error(SX_NOT_FOUND, "%s has no checkpoint: the run has not been trained yet",
                            t->config.model_dir != NULL ? t->config.model_dir : "this model");
}

sx_status sx_trainer_restore(sx_trainer *t, const char *checkpoint)
{
    sx_program *p;
    if (!t->on_disk) {
        return sx_error(SX_NOT_FOUND, "%s is not a run directory",
                        t->config.model_dir != NULL ? t->config.model_dir : "memory");
    }
    if (sx_session_variable_count(t->session) == 0) {
        SX_TRY(sx_trainer_program(t, SX_PREDICT, &p)); /* the model's variables, without slots */
    }
    if (checkpoint == NULL || strcmp(checkpoint, "latest") == 0) {
        return load_latest(t);
    }
    return strcmp(checkpoint, "best") == 0 ? load_best(t) : load_step(t, checkpoint);
}
