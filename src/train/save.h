/* Saving a run during a fit. */
#ifndef SX_TRAIN_SAVE_H
#define SX_TRAIN_SAVE_H

#include "train/state.h"

/* Writes the run's files at its first fit. */
SX_MUST_USE sx_status sx_trainer_begin_run(sx_trainer *t);
/* Removes what a killed process left in model_dir, whose lock the caller holds; a failure becomes a
 * warning event. */
void sx_trainer_clean_up(sx_trainer *t);
/* Restores damaged files of model_dir, whose lock the caller holds, from their copies. A failure
 * becomes a warning. */
void sx_trainer_repair(sx_trainer *t);
/* Saves the session and t->state as model.ckpt-<step>, registers it, notifies the observers. */
SX_MUST_USE sx_status sx_trainer_save(sx_trainer *t);
/* The same, but the files are written while training goes on; it waits only for the copy of the
 * variables, and for the write before, if that has not ended. */
SX_MUST_USE sx_status sx_trainer_begin_save(sx_trainer *t);
/* Ends the write in progress, if it is done or with `wait`: then the observers are notified. A
 * failure is a warning event, and is kept as t->save_failed. */
void sx_trainer_end_save(sx_trainer *t, bool wait);
/* Writes history.json. If the checkpoint saved last `is_best`, it is put into best/ before the
 * history names it; the previous best one stays there until then. */
SX_MUST_USE sx_status sx_trainer_save_history(sx_trainer *t, bool is_best);

#endif
