/* TensorFlow's warm_start_from: a run starts with the weights of another. */
#ifndef SX_TRAIN_WARM_START_H
#define SX_TRAIN_WARM_START_H

#include "train/state.h"

/* Loads weights and moving averages (not slots, not the step) from config.warm_start_from: a
 * directory of checkpoints (the newest intact one), a SavedModel, or a checkpoint prefix. Only
 * variables whose names config.vars_to_warm_start matches from the beginning, like Python's
 * re.match; NULL = all. Does nothing if warm_start_from is NULL.
 * Errors: NOT_FOUND: no checkpoint there; FAILED_PRECONDITION: a variable is missing or has another
 * shape; INVALID_ARGUMENT: an invalid expression, or one that matches no variable. */
SX_MUST_USE sx_status sx_warm_start(sx_trainer *t);

#endif
