/* Chooses a checkpoint and loads it into the session. See trainer.h, state.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "checkpoint/checkpoint_state.h"
#include "io/path.h"
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
    t->compared = false;
    return SX_OK;
}

/* ---- The newest intact checkpoint ---- */

/* The newest checkpoint in best/, -1 = none. */
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

/* The newest step that the run is known to have saved: named in the state file, which is written
 * after a checkpoint, or evaluated, which follows one; -1 = unknown. The history's other entries
 * are written before their checkpoint, and its best step may be of a part trained again. */
static int64_t newest_recorded(const sx_trainer *t, sx_arena *arena)
{
    sx_checkpoint_state saved = {0};
    int64_t step = -1;
    sx_status status = sx_checkpoint_state_read(t->config.model_dir, arena, &saved);
    if (status == SX_OK && saved.latest != NULL) {
        step = sx_checkpoint_step(saved.latest);
    }
    sx_status_free(status); /* the state file is only a hint */
    for (size_t i = 0; i < t->history.count; i++) {
        const sx_history_entry *entry = &t->history.items[i];
        step = entry->evaluated && entry->step > step ? entry->step : step;
    }
    return step;
}

static sx_status all_lost(const sx_trainer *t, int64_t recorded)
{
    const char *dir = t->config.model_dir;
    int64_t best;
    SX_TRY(newest_best(t, &best));
    if (best >= 0) {
        return sx_error(SX_DATA_LOSS,
                        "%s: the run's checkpoints are lost, but best/ has step %" PRId64
                        ": use it with --checkpoint best, or train on from it in another "
                        "directory with --warm-start-from %s/best; to begin again, add --fresh",
                        dir, best, dir);
    }
    return recorded >= 0 || t->history.count > 0
               ? sx_error(SX_DATA_LOSS,
                          "%s: the run's checkpoints are lost; to begin again, add --fresh", dir)
               : SX_OK;
}

/* Finds the newest intact checkpoint of `list`, NULL if there is none, and the text of a warning
 * about those that are newer. PERMISSION_DENIED: one that may not be read need not be damaged. */
static sx_status newest_whole(const sx_checkpoints *list, int64_t recorded, sx_buf *warning,
                              const char **out_prefix)
{
    *out_prefix = NULL;
    int64_t newest = list->items[list->count - 1].step;
    if (recorded > newest) {
        sx_buf_printf(warning,
                      "checkpoint " SX_CHECKPOINT_BASENAME "-%" PRId64
                      " is missing (it has no .index file); ",
                      recorded);
        newest = recorded;
    }
    for (size_t i = list->count; i-- > 0;) {
        sx_status status = sx_checkpoint_verify(list->items[i].prefix);
        if (status == SX_OK) {
            if (warning->size > 0) {
                sx_buf_printf(warning, "using step %" PRId64 " instead of %" PRId64,
                              list->items[i].step, newest);
            }
            *out_prefix = list->items[i].prefix;
            return SX_OK;
        }
        if (sx_status_code(status) == SX_PERMISSION_DENIED) {
            return status;
        }
        sx_buf_printf(warning, "skipping a broken checkpoint: %s; ", sx_status_message(status));
        sx_status_free(status);
    }
    return SX_OK;
}

/* The newest checkpoint cannot be used, and an older one is not wanted. */
static sx_status refuse_older(const sx_trainer *t, const sx_checkpoints *list, int64_t recorded)
{
    const sx_checkpoint *newest = &list->items[list->count - 1];
    sx_buf steps, why;
    sx_buf_init(&steps, 1 << 16);
    sx_buf_init(&why, 1 << 16);
    if (recorded > newest->step) {
        sx_buf_printf(&why, "has no .index file");
    }
    for (size_t i = 0; i < list->count; i++) {
        sx_status status = sx_checkpoint_verify(list->items[i].prefix);
        if (status == SX_OK) {
            sx_buf_printf(&steps, "%s%" PRId64, steps.size > 0 ? ", " : "", list->items[i].step);
        } else if (&list->items[i] == newest && why.size == 0) {
            sx_buf_printf(&why, "is damaged (%s)", sx_status_message(status));
        }
        sx_status_free(status);
    }
    sx_status status = sx_error(
        SX_DATA_LOSS,
        "%s: the newest checkpoint, step %" PRId64
        ", %s; steps with a whole checkpoint: %s; choose one of them with --checkpoint STEP "
        "(checkpoint)%s",
        t->config.model_dir, recorded > newest->step ? recorded : newest->step, sx_buf_text(&why),
        sx_buf_text(&steps), t->history.best_step >= 0 ? ", or --checkpoint best" : "");
    sx_buf_deinit(&why);
    sx_buf_deinit(&steps);
    return status;
}

static sx_status restore_newest(sx_trainer *t, bool or_older, bool *out_found)
{
    sx_arena arena;
    sx_buf warning;
    sx_checkpoints list = {0};
    *out_found = false;
    if (!t->on_disk) {
        return SX_OK;
    }
    sx_arena_init(&arena, 0);
    sx_buf_init(&warning, 1 << 16);
    const char *prefix = NULL;
    sx_status status = sx_checkpoints_list(t->config.model_dir, &arena, &list);
    int64_t recorded = newest_recorded(t, &arena);
    if (status == SX_OK && list.count == 0) {
        status = all_lost(t, recorded);
    } else if (status == SX_OK) {
        status = newest_whole(&list, recorded, &warning, &prefix);
        if (status != SX_OK) {
            prefix = NULL;
        } else if (prefix == NULL) {
            status = sx_error(SX_DATA_LOSS,
                              "%s: all %zu checkpoints are broken; start over with --fresh",
                              t->config.model_dir, list.count);
        } else if (warning.size > 0 && !or_older) {
            status = refuse_older(t, &list, recorded);
        }
        if (status == SX_OK && warning.size > 0) {
            sx_trainer_warn(t, sx_buf_text(&warning));
        }
    }
    if (status == SX_OK && prefix != NULL) {
        status = load(t, prefix);
        *out_found = status == SX_OK;
    }
    sx_buf_deinit(&warning);
    sx_arena_deinit(&arena);
    return status;
}

sx_status sx_trainer_restore_latest(sx_trainer *t, bool *out_found)
{
    return restore_newest(t, true, out_found);
}

/* ---- A checkpoint by name ---- */

static void print_steps(const sx_checkpoints *list, sx_buf *out)
{
    for (size_t i = 0; i < list->count; i++) {
        sx_buf_printf(out, "%s%" PRId64, i > 0 ? ", " : "", list->items[i].step);
    }
}

static sx_status no_such_step(const sx_trainer *t, const sx_checkpoints *list, const char *wanted)
{
    sx_buf steps;
    sx_buf_init(&steps, 1 << 16);
    print_steps(list, &steps);
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

static sx_status best_lost(const sx_trainer *t, int64_t step)
{
    sx_arena arena;
    sx_checkpoints list = {0};
    sx_buf steps;
    sx_arena_init(&arena, 0);
    sx_buf_init(&steps, 1 << 16);
    sx_status status = sx_checkpoints_list(t->config.model_dir, &arena, &list);
    if (status == SX_OK) {
        print_steps(&list, &steps);
        status = sx_error(SX_NOT_FOUND,
                          "%s: the best checkpoint, step %" PRId64
                          ", is lost: best/ does not have it; available steps: %s",
                          t->config.model_dir, step, list.count > 0 ? sx_buf_text(&steps) : "none");
    }
    sx_buf_deinit(&steps);
    sx_arena_deinit(&arena);
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
    if (sx_status_code(status) == SX_NOT_FOUND) {
        sx_status_free(status);
        status = best_lost(t, step);
    } else if (status == SX_OK) {
        status = load(t, prefix);
    }
    sx_free(prefix);
    return status;
}

static sx_status load_latest(sx_trainer *t)
{
    bool found;
    SX_TRY(restore_newest(t, false, &found));
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
