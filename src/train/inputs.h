/* Calling input functions as the input mode says (input_plan.h), with their context. */
#ifndef SX_TRAIN_INPUTS_H
#define SX_TRAIN_INPUTS_H

#include "nn/params.h"
#include "train/input_plan.h"

/* What the calls made; {0} may be released. */
typedef struct sx_inputs {
    sx_dataset *data[SX_MAX_INPUTS];
    int n;
    int pulls; /* batches of one data set that a step takes */
    /* Of all of them together, where one alone does not say; 0 = it does. */
    int64_t step_batch, steps_per_epoch;
} sx_inputs;

/* Calls `fn` for training, evaluation or prediction with batches of `global` examples (0 = the
 * configuration's). `params` are the model's; those that `fn` asks for are marked as used.
 * Errors: INVALID_ARGUMENT a senseless configuration, a batch that does not divide, parts that do
 * not fit together; those of `fn`. */
SX_MUST_USE sx_status sx_inputs_call(const sx_run_config *config, sx_params *params, sx_mode mode,
                                     int64_t global, sx_input_fn *fn, void *user,
                                     sx_inputs *out_inputs);
void sx_inputs_release(sx_inputs *inputs);

#endif
