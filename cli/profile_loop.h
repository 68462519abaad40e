/* The step loop of a profile: on data, as `train` runs it, or on inputs that stay the same. Nothing
 * is saved. */
#ifndef SX_CLI_PROFILE_LOOP_H
#define SX_CLI_PROFILE_LOOP_H

#include "backends/profile.h"
#include "runtime/session.h"
#include "train/gather.h"

typedef struct sx_profile_loop {
    sx_program *program; /* of a training step, prepared for its loop */
    int64_t batch;       /* of a full step */
    int64_t steps;       /* to record; 0 = as many as take about two seconds */
    sx_profile *profile; /* records those steps only; NULL = none */
    /* One of both: */
    sx_batch_gather *input;
    const void *const *inputs; /* [the program's], of `batch` examples */
    /* With `input`: the run's input of each of the program. */
    const int *order;
    int n_order;
} sx_profile_loop;

typedef struct sx_profile_looped {
    int64_t steps, examples;           /* recorded */
    int64_t first_launch, last_launch; /* those recorded, from 1 */
    double seconds;    /* from the end of the step before them to the end of the last */
    double input_rate; /* examples per second that the pipeline gives alone; 0 = no data */
} sx_profile_looped;

/* Ends early, but after at least one step, when a stop is requested. Errors: those of the data and
 * of the loop. */
SX_MUST_USE sx_status sx_profile_loop_run(const sx_profile_loop *loop, sx_profile_looped *out);

/* Runs a few steps more while the device records what it computes (sx_platform_record()), and
 * visits that. *out_steps: of how many steps it is. *out_refused: why nothing was recorded, or not
 * all of it; the caller's. Errors: those of the steps. */
SX_MUST_USE sx_status sx_profile_loop_record(const sx_profile_loop *loop, sx_platform *platform,
                                             sx_device_op_visit *visit, void *user,
                                             int64_t *out_steps, sx_status *out_refused);

#endif
