/* The training steps of a profile on data: those of a run, or of a new one that is not kept. */
#ifndef SX_CLI_PROFILE_DATA_H
#define SX_CLI_PROFILE_DATA_H

#include "profile_model.h"

typedef struct sx_profile_data {
    sx_invocation *inv;
    const sx_profile_request *request;
    sx_strategy *strategy;
} sx_profile_data;

/* Runs the step loop as `train` does, from the run's newest checkpoint if there is one, and saves
 * nothing. *out_done is false, and nothing is run, if there are no data: none are given, and the
 * model is no run, or a run whose own are gone, which is said. Errors: those of the run, the model
 * and the data. */
SX_MUST_USE sx_status sx_profile_data_run(const sx_profile_data *data, sx_profiled *out,
                                          sx_profile_looped *looped, bool *out_done);

#endif
