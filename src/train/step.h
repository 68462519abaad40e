/* Outputs of a step's last run, for step.c and metric.c. */
#ifndef SX_TRAIN_STEP_H
#define SX_TRAIN_STEP_H

#include <sextant/runtime.h>

/* Begins on distributed data. See sx_training_begin_distributed(). */
SX_MUST_USE sx_status sx_training_begin_on(sx_training *t, const sx_distributed *data);
/* An output's value; free the data with sx_free(). */
SX_MUST_USE sx_status sx_step_fetch(sx_step_program *s, const char *output, sx_tensor *out);
/* After one of these: */
bool sx_step_has_output(const sx_step_program *s, const char *output);
/* Examples in the batch of the last run. */
int64_t sx_step_batch(const sx_step_program *s);

#endif
