/* A training session's state (sextant/runtime.h), for training.c and step.c. */
#ifndef SX_TRAIN_TRAINING_H
#define SX_TRAIN_TRAINING_H

#include "train/distributed.h"
#include "train/fit.h"

/* A program of the session, on distributed data. */
struct sx_step_program {
    sx_training *t;
    const char *name, *file; /* name in the trainer's arena; file static */
    int line;                /* where it was added; 0 = the training program */
    sx_mode mode;
    sx_graph *graph; /* NULL = the training program's, which is the trainer's */
    sx_program *program;
    const sx_distributed *data; /* that `input` reads; NULL = none, or at its beginning */
    sx_batch_gather input;
    int order[SX_MAX_MODEL_INPUTS], n_inputs;
    int64_t batch; /* of the last run; 0 = none. Of the training program: fit.batch */
    sx_step_program *next;
};

struct sx_training {
    sx_trainer *trainer;        /* NULL = closed */
    sx_iterator *batches;       /* borrowed; NULL = none */
    const sx_distributed *data; /* or these; borrowed; NULL = none */
    sx_batch_gather kept;       /* their feeds, while batches of the caller's are trained on */
    sx_fit_request request;     /* of the fit */
    sx_fit fit;
    bool begun;
    bool numerics_known; /* compared with those of the checkpoint */
    sx_step_program train_step;
    sx_step_program *steps; /* of the caller's, newest first */
};

SX_MUST_USE sx_status sx_training_check_open(const sx_training *t);
/* Opens the feeds of distributed data. INVALID_ARGUMENT: of another strategy; those of the feeds.
 */
SX_MUST_USE sx_status sx_training_open_data(sx_training *t, const sx_distributed *data,
                                            sx_mode mode, sx_batch_gather *out);
/* step.c */
void sx_steps_destroy(sx_training *t);

#endif
