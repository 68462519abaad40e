/* Resumes a run. See fit.h. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "io/dir_lock.h"
#include "io/file.h"
#include "io/path.h"
#include "train/lockstep.h"
#include "train/save.h"

sx_status sx_fit_lock(sx_fit *f)
{
    const char *dir = f->t->config.model_dir;
    if (!sx_trainer_writes(f->t) || f->lock != SX_NO_LOCK || !sx_path_exists(dir)) {
        return SX_OK;
    }
    if (access(dir, W_OK | X_OK) != 0) { /* else found at the first save, after hours perhaps */
        return sx_errno_status(errno, "save checkpoints in", dir);
    }
    return sx_dir_lock(dir, &f->lock);
}

sx_status sx_fit_restore(sx_fit *f, bool *out_found)
{
    sx_trainer *t = f->t;
    *out_found = false;
    SX_TRY(sx_fit_lock(f));
    if (t->on_disk && f->lock != SX_NO_LOCK) {
        sx_trainer_repair(t);
        sx_trainer_clean_up(t);
    }
    if (!t->has_state) {
        SX_TRY(sx_lockstep_restore(t, out_found));
    }
    f->step = sx_trainer_step(t);
    sx_history_cut(&t->history, f->step);
    const sx_progress *p = sx_fit_progress(f);
    f->partial_step = p->step_in_epoch > 0 && !p->eval_due ? f->step : -1;
    f->saved_step = t->saved_step = *out_found ? f->step : -1;
    return SX_OK;
}

sx_status sx_fit_place_input(sx_fit *f)
{
    sx_train_state *state = &f->t->state;
    if (state->n_cursors == 0 || (sx_fit_progress(f)->data_ended && sx_fit_until_data_end(f->r))) {
        sx_fit_progress(f)->data_ended = false;
        return SX_OK;
    }
    sx_status status = sx_batch_gather_restore(&f->input, state->cursors, state->n_cursors,
                                               sx_fit_progress(f)->step_in_epoch);
    if (status == SX_OK || f->t->config.require_exact) {
        return sx_status_annotate(status, __FILE__, __LINE__, "cannot resume exactly");
    }
    if (f->t->config.model_dir == NULL) { /* in memory, other data may follow: not a resume */
        sx_status_free(status);
        sx_fit_begin_epoch(f);
        return SX_OK;
    }
    sx_buf text;
    sx_buf_init(&text, 1 << 16);
    sx_buf_printf(&text,
                  "cannot resume exactly: %s; continuing with batch %" PRId64 " of this data",
                  sx_status_message(status), f->step);
    sx_trainer_warn(f->t, sx_buf_text(&text));
    sx_buf_deinit(&text);
    sx_status_free(status);
    return sx_batch_gather_seek(&f->input, f->step);
}

sx_status sx_fit_check_numerics(sx_fit *f)
{
    sx_executable_info info = {0};
    sx_trainer *t = f->t;
    SX_TRY(sx_program_info(f->program, f->input.max_batch, &info));
    const char *now = sx_arena_strdup(&t->arena, info.numerics != NULL ? info.numerics : "");
    const char *then = t->state.numerics;
    t->state.numerics = now;
    if (now == NULL || then == NULL || strcmp(now, then) == 0) {
        return now != NULL ? SX_OK : sx_no_memory("resuming a run");
    }
    if (t->config.require_exact) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "cannot resume exactly: the checkpoint was computed with \"%s\", this "
                        "machine has \"%s\"",
                        then, now);
    }
    sx_buf text;
    sx_buf_init(&text, 1 << 16);
    sx_buf_printf(&text,
                  "results may differ in the last bits: computed so far with \"%s\", from here on "
                  "with \"%s\"",
                  then, now);
    sx_trainer_warn(t, sx_buf_text(&text));
    sx_buf_deinit(&text);
    return SX_OK;
}
