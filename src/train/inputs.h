/* Calls input functions as the input mode requires (input_plan.h). */
#ifndef SX_TRAIN_INPUTS_H
#define SX_TRAIN_INPUTS_H

#include "nn/params.h"
#include "train/input_plan.h"

/* The data sets that the calls returned; {0} may be released. */
typedef struct sx_inputs {
    sx_dataset *data[SX_MAX_INPUTS];
    int n;
    int pulls; /* batches per step of each data set */
    /* Of all data sets together; 0 = the one data set determines them. */
    int64_t step_batch, steps_per_epoch;
} sx_inputs;

/* Calls `fn` for `mode` with batches of `global` examples (0 = the configuration's). `params` are
 * the model's; those that `fn` reads are marked as used.
 * Errors: INVALID_ARGUMENT: a contradictory configuration, a batch that is not divisible, data sets
 * that do not match each other; those of `fn`. */
SX_MUST_USE sx_status sx_inputs_call(const sx_run_config *config, sx_params *params, sx_mode mode,
                                     int64_t global, sx_input_fn *fn, void *user,
                                     sx_inputs *out_inputs);
void sx_inputs_release(sx_inputs *inputs);

#endif
