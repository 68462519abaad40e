/* Several processes that train one model in step (distribute/processes.h): what they must have in
 * common, and who decides what a clock or a signal would decide otherwise. The chief decides: how
 * many steps a launch has, when a checkpoint is due, whether the run stops; the others follow. With
 * one process alone, the functions do nothing. */
#ifndef SX_TRAIN_LOCKSTEP_H
#define SX_TRAIN_LOCKSTEP_H

#include "train/fit.h"

/* Waits for the others; compares the model, its parameters, the data and the settings. After the
 * input and the program are opened. */
SX_MUST_USE sx_status sx_lockstep_begin(sx_fit *f);
/* Restores the checkpoint that the chief restores. */
SX_MUST_USE sx_status sx_lockstep_restore(sx_trainer *t, bool *out_found);
/* Compares the variables' values, once after they were set. */
SX_MUST_USE sx_status sx_lockstep_compare_variables(sx_trainer *t);
/* Compares a few records, and their number; `what` is for the error. */
SX_MUST_USE sx_status sx_lockstep_compare_data(sx_trainer *t, const char *what, sx_dataset *data);
/* An sx_plan_launch_fn of an sx_fit. */
sx_status sx_lockstep_plan(void *fit, int64_t *steps);
/* Takes over the chief's controls: whether they stop the fit. */
SX_MUST_USE sx_status sx_lockstep_agree_controls(sx_fit *f);
/* Whether a stop was requested on any of them: the answer of sx_trainer_stopped() from now on. */
SX_MUST_USE sx_status sx_lockstep_agree_stop(sx_trainer *t);
/* Ends in step; an error is told to the others, and the cause of the run's failure returned. */
SX_MUST_USE sx_status sx_lockstep_end(sx_trainer *t, sx_status status);
/* Adds the loss of a process, if that is behind an error of the device. */
SX_MUST_USE sx_status sx_lockstep_explain(sx_trainer *t, sx_status status);

/* This process's part of batches that replicas or shards share; `full` as in sx_part. */
sx_part sx_lockstep_part(const sx_trainer *t, int64_t full);

#endif
