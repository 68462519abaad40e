/* Below Estimator and Model: a training loop of your own.
 *
 * A training session has the variables of a model on devices, its programs (train, eval, predict),
 * and its checkpoints. Estimator and Model train through the same one, so a loop that feeds the
 * same batches with the same seed computes the same bits, and either continues the other's runs.
 *
 *     sx_training *t;
 *     sx_iterator *batches;
 *     sx_training_step step;
 *     SX_TRY(sx_training_open(&my_model, &t, .data = data,
 *                             .config = sx_run_config_of(.model_dir = "run1", .threads = 2)));
 *     SX_TRY(sx_training_preprocess(t, SX_TRAIN, &data));
 *     SX_TRY(sx_dataset_shuffle(&data, .seed = 7));
 *     SX_TRY(sx_dataset_batch(&data, .size = 32));
 *     SX_TRY(sx_dataset_repeat(&data, 0));
 *     SX_TRY(sx_iterator_create(data, &batches));
 *     SX_TRY(sx_training_begin(t, batches));
 *     while (sx_training_global_step(t) < 1000) {
 *         SX_TRY(sx_training_run(t, 1, &step));
 *         ...
 *     }
 *     SX_TRY(sx_training_save(t));
 *     sx_training_free(t);
 *     sx_iterator_destroy(batches);
 *
 * Devices, buffers and graphs compiled for them are in sextant/device.h, strategies in
 * sextant/distribute.h, functions of unknown shapes in sextant/functions.h. */
#ifndef SEXTANT_RUNTIME_H
#define SEXTANT_RUNTIME_H

#include <sextant/device.h>
#include <sextant/functions.h>
#include <sextant/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One thread at a time. */
typedef struct sx_training sx_training;

typedef struct sx_training_args {
    size_t struct_size;
    /* Seed, devices or strategy, threads, shards (a fixed number: strict mode), precision,
     * model_dir, batch sizes, steps per launch, observer, stop. Saving, logging and evaluating are
     * the loop's own affair: intervals for them have no effect. NULL = the defaults, without a
     * model_dir. Texts are copied. */
    const sx_run_config *config;
    const char *const *params; /* "name=value", up to NULL; as sx_estimator_create() */
    /* The training data, for class names, the types of undeclared features, and learning rates that
     * depend on the length of an epoch; not kept. NULL = the model declares its inputs. */
    sx_dataset *data;
    sx_optimizer optimizer; /* default: the model's own */
} sx_training_args;

/* Opens the devices and builds the model's programs, or, if config->model_dir holds a run, reads
 * them from there. `model` as for sx_estimator_create(); NULL = the run's. Variables get their
 * initial values, from the seed. Nothing is written yet. The caller frees *out_training.
 * Errors: the model's own (layer, line, shapes); FAILED_PRECONDITION: model_dir holds another model
 * (names the first differing variable and both shapes); NOT_FOUND: neither a model nor a run;
 * INVALID_ARGUMENT: a contradictory configuration; those of opening the devices. */
#define sx_training_open(model, out_training, ...) \
    sx_training_open_at((model), SX_ARGS_(sx_training_args, __VA_ARGS__), (out_training))
SX_API SX_MUST_USE sx_status sx_training_open_at(const sx_model_def *model,
                                                 const sx_training_args *args,
                                                 sx_training **out_training);
/* Releases devices, variables and the lock on model_dir. What was not saved is lost. From here on
 * every call is FAILED_PRECONDITION. */
SX_API void sx_training_close(sx_training *t);
SX_API void sx_training_free(sx_training *t); /* closes it; NULL is fine */

/* ---- Data ---- */

/* Adds the model's preprocessing for `mode` to unbatched data: decoding, scaling and augmenting
 * images, or its own function. Replaces *data like the functions of sextant/data.h; data that need
 * none stay as they are. The seed is the run's. INVALID_ARGUMENT: data that are batched, or that do
 * not fit the model. */
SX_API SX_MUST_USE sx_status sx_training_preprocess(sx_training *t, sx_mode mode,
                                                    sx_dataset **data);

/* ---- Steps ---- */

/* Begins to train on the batches of an iterator. If model_dir holds a run, its newest intact
 * checkpoint is restored (a warning names newer ones that are damaged) and the iterator moved to
 * its position; if not, the run is written there, with a checkpoint of its beginning. `batches` is
 * borrowed until the training is closed or begins on another iterator, which continues at this
 * step; the caller does not move it meanwhile. NULL = every batch will come from
 * sx_training_run_batch(). Components are found by name: "features" or "image" and "labels" or
 * "label", or the declared names; integers of any width become int32. Errors: INVALID_ARGUMENT:
 * data that are not batched or do not fit the model (component, both types and the layer), a batch
 * that the replicas do not divide; RESOURCE_EXHAUSTED: the batch does not fit in the device's
 * memory; FAILED_PRECONDITION: another process trains in model_dir. */
SX_API SX_MUST_USE sx_status sx_training_begin(sx_training *t, sx_iterator *batches);

typedef struct sx_training_step {
    int64_t step;     /* global_step after it: steps since the beginning of the run */
    int64_t epoch;    /* from 1 */
    int64_t examples; /* in its batch */
    bool ends_epoch;
    double learning_rate;
    int n_metrics;
    sx_metric
        metrics[SX_MAX_RESULTS];  /* "loss" first; of this step; names as long as `t` is open */
    double means[SX_MAX_RESULTS]; /* of the epoch so far, weighted by examples */
} sx_training_step;

/* Runs up to `steps` steps on the next batches, fewer at the end of an epoch or of the data; a
 * device that can loop runs them in launches of many. *out_step (may be NULL) describes the last.
 * Errors: OUT_OF_RANGE: there was no batch; ABORTED: a non-finite loss or gradient (the message
 * names the step and the first such value; its update is not applied); CANCELLED: config->stop was
 * set; FAILED_PRECONDITION: not begun; those of reading data. */
SX_API SX_MUST_USE sx_status sx_training_run(sx_training *t, int64_t steps,
                                             sx_training_step *out_step);

/* Runs one step on a batch of the caller's, borrowed for the call: [count] tensors by their names,
 * with equal leading dimensions; static types. A checkpoint saved after it has no position in data.
 * Errors: INVALID_ARGUMENT: a name that the model does not have, a missing one, another dtype or
 * shape (names the tensor, both types and the layer), a label outside the classes; ABORTED,
 * CANCELLED, FAILED_PRECONDITION as above. */
SX_API SX_MUST_USE sx_status sx_training_run_batch(sx_training *t, int count,
                                                   const char *const *names,
                                                   const sx_tensor *tensors,
                                                   sx_training_step *out_step);

/* Steps since the beginning of the run; 0 if `t` is closed. */
SX_API int64_t sx_training_global_step(const sx_training *t);

/* ---- Checkpoints ---- */

/* Saves variables, step and position in the data as model_dir/model.ckpt-<step>, unless that is
 * there; older ones are deleted as config->keep_checkpoint_max says. `sextant train`, Estimator and
 * Model continue from it. Errors: FAILED_PRECONDITION: no model_dir, or not begun; DATA_LOSS: a
 * variable is not finite (nothing is saved); those of writing. */
SX_API SX_MUST_USE sx_status sx_training_save(sx_training *t);
/* Loads a checkpoint of the run, to evaluate or predict: "latest" (NULL), "best", or a step.
 * Errors: NOT_FOUND; DATA_LOSS: it is damaged; FAILED_PRECONDITION: training has begun. */
SX_API SX_MUST_USE sx_status sx_training_restore(sx_training *t, const char *checkpoint);

/* ---- Evaluation and prediction ---- */

/* With the variables as they are; `data` as for sx_model_evaluate(): elements, which are
 * preprocessed, or batches. Errors: FAILED_PRECONDITION: neither begun nor restored;
 * INVALID_ARGUMENT: data that do not fit. */
SX_API SX_MUST_USE sx_status sx_training_evaluate(sx_training *t, sx_dataset *data,
                                                  sx_eval_result *out_result);
SX_API SX_MUST_USE sx_status sx_training_predict(sx_training *t, sx_dataset *data,
                                                 sx_prediction_fn *row, void *row_user);

/* The same of one batch of the caller's, borrowed for the call: [count] tensors by the names of the
 * features, as the model declares them, with equal leading dimensions; they are preprocessed. `row`
 * is called for each example, in order. Errors: as above. */
SX_API SX_MUST_USE sx_status sx_training_predict_batch(sx_training *t, int count,
                                                       const char *const *names,
                                                       const sx_tensor *tensors,
                                                       sx_prediction_fn *row, void *row_user);

/* Writes the model, with the variables as they are, as the SavedModel base/<version>, as `sextant
 * export` does; `version` NULL = the highest + 1. *out_dir (may be NULL): the directory, free with
 * sx_text_free(). Errors: FAILED_PRECONDITION: neither begun nor restored; ALREADY_EXISTS: the
 * version; UNIMPLEMENTED: operators that TensorFlow does not have, which are named. */
SX_API SX_MUST_USE sx_status sx_training_export(sx_training *t, const char *base,
                                                const char *version, char **out_dir);

/* ---- Variables ---- */

typedef struct sx_variable_info {
    const char *name; /* "dense/kernel"; valid as long as `t` is open */
    sx_type type;     /* static */
    sx_variable_role role;
} sx_variable_info;

/* Weights, moving averages, slots of the optimizer, global_step; 0 if `t` is closed. */
SX_API int sx_training_variable_count(const sx_training *t);
/* OUT_OF_RANGE: no such variable. */
SX_API SX_MUST_USE sx_status sx_training_variable_at(const sx_training *t, int i,
                                                     sx_variable_info *out_info);
/* Copies a value from or to the devices: row-major, `bytes` as its type says. Errors: NOT_FOUND,
 * with the nearest names; INVALID_ARGUMENT: another number of bytes. */
SX_API SX_MUST_USE sx_status sx_training_read_variable(sx_training *t, const char *name, void *data,
                                                       size_t bytes);
SX_API SX_MUST_USE sx_status sx_training_write_variable(sx_training *t, const char *name,
                                                        const void *data, size_t bytes);

/* The program of a mode as a graph, the batch N symbolic; owned by `t`. FAILED_PRECONDITION: `t` is
 * closed; NOT_FOUND or DATA_LOSS: the run has lost it. */
SX_API SX_MUST_USE sx_status sx_training_graph(const sx_training *t, sx_mode mode,
                                               const sx_graph **out_graph);

#ifdef __cplusplus
}
#endif
#endif
