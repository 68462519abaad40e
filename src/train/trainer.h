/* The trainer: a model's graphs, a session, its checkpoints; both public faces and the command line
 * stand on it.
 *
 *   sx_trainer_create   a new run, or one that model_dir holds (then its stored graphs count)
 *   sx_trainer_fit      trains (fit.c)
 *   sx_trainer_restore  loads a checkpoint into the session
 *   sx_trainer_evaluate, sx_trainer_predict   with the session's variables (evaluate.c, predict.c)
 *
 * Invariant: whatever is saved is finite, and belongs to the step it says. One thread at a time. */
#ifndef SX_TRAIN_TRAINER_H
#define SX_TRAIN_TRAINER_H

#include <sextant/train.h>

#include "nn/params.h"
#include "runtime/session.h"
#include "train/run_dir.h"

typedef struct sx_trainer sx_trainer;

typedef struct sx_trainer_options {
    const sx_run_config *config;   /* required; copied, but for what it points to */
    const sx_model_def *def;       /* NULL: the run that model_dir holds */
    const char *source;            /* "zoo", or the path of the .c; NULL = "function" */
    const sx_params *params;       /* may be NULL */
    const sx_optimizer *optimizer; /* wishes over the model's (sx_program_request); may be NULL */
    const char *recipe;            /* of preprocessing; NULL = the model's */
    const char *augment;           /* augmentations as a list; NULL = the model's */
    /* The training data, for what only they know: class names, shapes. Elements, or batches. */
    sx_dataset *data;
    /* Where `data` are not all that a step takes (sx_fit_request: shards, pulls); 0 = they are. */
    int64_t step_batch, steps_per_epoch;
    const char *data_spec, *data_description, *image_key,
        *label_key; /* for sextant.json; may be NULL */
    int label_base;
} sx_trainer_options;

/* Builds the graphs (new run: written to model_dir at the first fit) or reads the stored ones.
 * Nothing is read from the data, nothing computed. Errors: the model's own (layer, line, shapes);
 * FAILED_PRECONDITION another model's directory, or checkpoints without sextant.json;
 * INVALID_ARGUMENT a senseless configuration, parameters that no model asked for, data that do not
 * fit; NOT_FOUND no run and no def. */
SX_MUST_USE sx_status sx_trainer_create(const sx_trainer_options *options,
                                        sx_trainer **out_trainer);
void sx_trainer_destroy(sx_trainer *t); /* NULL is fine */

/* Tells a trainer made from a directory alone which model it holds: for the model's functions on
 * the host. Errors: the model's own. */
SX_MUST_USE sx_status sx_trainer_know_model(sx_trainer *t, const sx_model_def *def);

/* What sextant.json says, or will say. Borrowed. */
const sx_run_info *sx_trainer_info(const sx_trainer *t);
/* The program of a mode, symbolic batch. Borrowed. */
sx_session *sx_trainer_session(sx_trainer *t);
/* The step that the session's variables are at. */
int64_t sx_trainer_step(sx_trainer *t);

typedef struct sx_fit_request {
    sx_dataset *train; /* elements or batches (sx_input_fn says what becomes of them); required */
    sx_dataset *const *shards; /* PER_SHARD_V1: one for each replica, the first is `train` */
    int n_shards;              /* 0 = `train` is all */
    int pulls;                 /* batches of `train` that a step takes (PER_HOST_V2); 0 = 1 */
    sx_dataset *eval;          /* likewise; NULL = no evaluation */
    int64_t steps, max_steps, epochs; /* sx_train_args; at most one */
    int64_t eval_examples;            /* at most so many of `eval`; 0 = all */
    int64_t eval_steps;               /* or at most so many batches of eval_batch_size */
    const sx_callback *callbacks;
    int n_callbacks;
} sx_fit_request;

/* See sx_estimator_train(). With a model_dir: restores the newest whole checkpoint first, unless
 * the session is at a step of its own already. */
SX_MUST_USE sx_status sx_trainer_fit(sx_trainer *t, const sx_fit_request *request);

/* Loads a checkpoint: "latest" or NULL, "best", or a step. A broken latest one is passed over with
 * a warning event. Without training slots when `weights_only`. Errors: NOT_FOUND none, or no such
 * step (those that exist are named); DATA_LOSS a step that was asked for is broken;
 * FAILED_PRECONDITION variables of other shapes, or require_exact and other numerics. */
SX_MUST_USE sx_status sx_trainer_restore(sx_trainer *t, const char *checkpoint);

/* Goes on elsewhere: of `place` the fields that say where to compute count. Variables (weights,
 * slots, step) and the place in the data go with it; programs are compiled anew when needed. On
 * failure everything stays as it was. Errors: those of opening a device. */
SX_MUST_USE sx_status sx_trainer_move(sx_trainer *t, const sx_run_config *place);

/* Evaluates the session's variables; `examples` > 0: at most so many; `steps` > 0: at most so many
 * batches of eval_batch_size (or of the data's own). */
SX_MUST_USE sx_status sx_trainer_evaluate_at_most(sx_trainer *t, sx_dataset *data, int64_t examples,
                                                  int64_t steps, sx_eval_result *out_result);
SX_MUST_USE sx_status sx_trainer_evaluate(sx_trainer *t, sx_dataset *data, int64_t examples,
                                          sx_eval_result *out_result);
SX_MUST_USE sx_status sx_trainer_predict(sx_trainer *t, sx_dataset *data, int64_t examples,
                                         sx_prediction_fn *row, void *row_user);

/* The session's variables and the predict program as SavedModel base/`version` (NULL: the highest +
 * 1); the path goes to *out_dir (may be NULL), free with sx_text_free(). `serving` may be NULL. See
 * sx_export_saved_model(). */
SX_MUST_USE sx_status sx_trainer_export(sx_trainer *t, const char *base, const char *version,
                                        const sx_serving_input *serving, char **out_dir);

/* Writes the run and a checkpoint of the session's variables into another directory. */
SX_MUST_USE sx_status sx_trainer_save_as(sx_trainer *t, const char *dir);

#endif
