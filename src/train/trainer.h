/* The trainer: a model's graphs, a session, its checkpoints. Both public APIs (Model, Estimator)
 * and the command line are built on it.
 *
 *   sx_trainer_create   a new run, or the one in model_dir (then its stored graphs are used)
 *   sx_trainer_fit      trains (fit.c)
 *   sx_trainer_restore  loads a checkpoint into the session
 *   sx_trainer_evaluate, sx_trainer_predict   with the session's variables (evaluate.c, predict.c)
 *
 * Invariant: everything saved is finite and belongs to the step in its name. One thread at a time.
 */
#ifndef SX_TRAIN_TRAINER_H
#define SX_TRAIN_TRAINER_H

#include <sextant/train.h>

#include "nn/params.h"
#include "runtime/session.h"
#include "train/run_dir.h"

/* Of the cpu's execution batch, four examples each: evaluation and prediction give the same bits
 * on any number of threads (sx_cpu_options.eval_shards). */
enum { SX_EVAL_SHARDS = 8 };

typedef struct sx_trainer sx_trainer;

typedef struct sx_trainer_options {
    const sx_run_config *config;   /* required; copied, except for what it points to */
    const sx_model_def *def;       /* NULL: the run in model_dir */
    const char *source;            /* "zoo", or the path of the .c; NULL = "function" */
    const sx_params *params;       /* may be NULL */
    const sx_optimizer *optimizer; /* overrides of the model's (sx_program_request); may be NULL */
    sx_step_build_fn *train_step;  /* builds the training program; NULL = the model's */
    const char *recipe;            /* for preprocessing; NULL = the model's */
    const char *augment;           /* augmentations as a list; NULL = the model's */
    /* The training data, for class names and shapes. Elements or batches. */
    sx_dataset *data;
    /* If a step takes more than one batch of `data` (sx_fit_request: shards, pulls); else 0. */
    int64_t step_batch, steps_per_epoch;
    const char *data_spec, *data_description, *image_key,
        *label_key; /* for sextant.json; may be NULL */
    int label_base;
    bool *out_bad_params; /* set to true if creating fails because of `params`; may be NULL */
    struct sx_timeline
        *timeline; /* of the training devices, and their kernels' times; NULL = none */
    struct sx_profile *profile;
} sx_trainer_options;

/* Builds the graphs (new run: written to model_dir at the first fit) or reads the stored ones.
 * Reads no data, computes nothing. Errors: the model's own (layer, line, shapes);
 * FAILED_PRECONDITION: another model's directory, or checkpoints without sextant.json;
 * INVALID_ARGUMENT: a contradictory configuration, parameters that the model does not have, data
 * that do not fit; NOT_FOUND: neither a run nor `def`. */
SX_MUST_USE sx_status sx_trainer_create(const sx_trainer_options *options,
                                        sx_trainer **out_trainer);
void sx_trainer_destroy(sx_trainer *t); /* NULL is fine */

/* Gives a trainer created from a directory alone its model, for the model's host functions. Errors:
 * the model's own. */
SX_MUST_USE sx_status sx_trainer_know_model(sx_trainer *t, const sx_model_def *def);

/* The contents of sextant.json, written or yet to be. Borrowed. */
const sx_run_info *sx_trainer_info(const sx_trainer *t);
/* The program of a mode, symbolic batch. Borrowed. */
sx_session *sx_trainer_session(sx_trainer *t);
/* Whether this process is the only one, or the one of several that writes files. */
bool sx_trainer_is_chief(const sx_trainer *t);
/* The step of the session's variables. */
int64_t sx_trainer_step(sx_trainer *t);

typedef struct sx_fit_request {
    sx_dataset *train;                /* elements or batches (see sx_input_fn); required */
    sx_dataset *const *shards;        /* PER_SHARD_V1: one for each replica, the first is `train` */
    int n_shards;                     /* 0 = `train` is all */
    int pulls;                        /* batches of `train` per step (PER_HOST_V2); 0 = 1 */
    sx_dataset *eval;                 /* likewise; NULL = no evaluation */
    int64_t steps, max_steps, epochs; /* sx_train_args; at most one */
    int64_t eval_examples;            /* maximum number of examples of `eval`; 0 = all */
    int64_t eval_steps;               /* or maximum number of batches of eval_batch_size */
    const sx_callback *callbacks;
    int n_callbacks;
} sx_fit_request;

/* See sx_estimator_train(). With a model_dir, restores the newest intact checkpoint first unless
 * the session's variables are trained or restored already; a warning event names newer ones that
 * are damaged or missing, whose steps are trained again. */
SX_MUST_USE sx_status sx_trainer_fit(sx_trainer *t, const sx_fit_request *request);

/* Loads a checkpoint: "latest" or NULL, "best", or a step. No other one is taken in its place: only
 * sx_trainer_fit() continues from an older one. Errors: NOT_FOUND: no checkpoint, or none of that
 * step (existing ones are named); DATA_LOSS: the requested one is corrupt, or the latest is corrupt
 * or missing (the steps with an intact checkpoint are named), or all are lost; FAILED_PRECONDITION:
 * variables of other shapes, or require_exact and other numerics. */
SX_MUST_USE sx_status sx_trainer_restore(sx_trainer *t, const char *checkpoint);

/* Moves to other devices: only the device fields of `place` are used. Variables (weights, slots,
 * step) and the position in the data are kept; programs are recompiled when needed. On failure
 * nothing changes. Errors: those of opening a device. */
SX_MUST_USE sx_status sx_trainer_move(sx_trainer *t, const sx_run_config *place);

/* Evaluates the session's variables on at most `examples` examples and `steps` batches of
 * eval_batch_size (or of the data's own size); 0 = no limit. */
SX_MUST_USE sx_status sx_trainer_evaluate_at_most(sx_trainer *t, sx_dataset *data, int64_t examples,
                                                  int64_t steps, sx_eval_result *out_result);
SX_MUST_USE sx_status sx_trainer_evaluate(sx_trainer *t, sx_dataset *data, int64_t examples,
                                          sx_eval_result *out_result);
SX_MUST_USE sx_status sx_trainer_predict(sx_trainer *t, sx_dataset *data, int64_t examples,
                                         sx_prediction_fn *row, void *row_user);

/* Exports the predict program with the session's variables as the SavedModel base/`version` (NULL:
 * the highest + 1). *out_dir (may be NULL) gets the path; free with sx_text_free(). `serving` may
 * be NULL. See sx_export_saved_model(). */
SX_MUST_USE sx_status sx_trainer_export(sx_trainer *t, const char *base, const char *version,
                                        const sx_serving_input *serving, char **out_dir);

/* Writes the run and a checkpoint of the session's variables to another directory. */
SX_MUST_USE sx_status sx_trainer_save_as(sx_trainer *t, const char *dir);

#endif
