/* Saving a run as a fit goes on. */
#ifndef SX_TRAIN_SAVE_H
#define SX_TRAIN_SAVE_H

#include "train/state.h"

/* Writes the run's own files at its first fit. */
SX_MUST_USE sx_status sx_trainer_begin_run(sx_trainer *t);
/* Removes what a killed process left in model_dir, whose lock the caller holds; a failure is told
 * as a warning. */
void sx_trainer_clean_up(sx_trainer *t);
/* Saves the session and t->state as model.ckpt-<step>, registers it, tells the observers. */
SX_MUST_USE sx_status sx_trainer_save(sx_trainer *t);
/* Writes history.json; where the checkpoint saved last `is_best`, best/ holds it before the history
 * names it, and the one before until then. */
SX_MUST_USE sx_status sx_trainer_save_history(sx_trainer *t, bool is_best);

#endif
