/* What the Model and Estimator APIs share. */
#ifndef SX_TRAIN_FACE_H
#define SX_TRAIN_FACE_H

#include "train/state.h"

/* Parses parameters "name=value"; the list ends with NULL (NULL = none). INVALID_ARGUMENT: '=' is
 * missing. */
SX_MUST_USE sx_status sx_face_params(const char *const *texts, sx_params **out_params);

/* Copies the result's names into the arena. */
SX_MUST_USE sx_status sx_face_own_names(sx_arena *arena, sx_eval_result *result);

#endif
