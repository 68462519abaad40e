/* Below Estimator and Model: a training loop of your own.
 *
 * A training session has the variables of a model on the devices of a strategy, its programs
 * (train, eval, predict, and steps of the caller's), and its checkpoints. Estimator and Model train
 * through the same one, so a loop that feeds the same batches with the same seed computes the same
 * bits, and either continues the other's runs.
 *
 *     sx_training *t;
 *     sx_distributed *data;
 *     sx_metric_object *loss;
 *     bool more;
 *     SX_TRY(sx_training_open(&my_model, &t, .train_step = my_step,
 *                             .config = sx_run_config_of(.model_dir = "run1",
 *                                                        .train_distribute = strategy)));
 *     SX_TRY(sx_distribute_dataset(strategy, elements, &data, .global_batch_size = 128));
 *     SX_TRY(sx_metric_create(&loss, .name = "loss"));
 *     SX_TRY(sx_training_begin_distributed(t, data));
 *     while (sx_training_global_step(t) < 1000) {
 *         SX_TRY(sx_step_run(sx_training_train_step(t), data, &more));
 *         SX_TRY(sx_metric_update_step(loss, sx_training_train_step(t)));
 *         ...
 *     }
 *     SX_TRY(sx_training_save(t));
 *     sx_metric_free(loss);
 *     sx_training_free(t);
 *     sx_distributed_free(data);
 *
 * A step is a graph on the batch of all replicas. Each replica computes its part of it, and what
 * depends on the whole batch, such as a mean or a gradient, is combined where the graph needs it:
 * the function that builds a step is the same for one device and for many. Mistakes of such a loop
 * (data of another strategy, an output that the step does not have, a batch of another shape) are
 * errors that begin with the line of the call, "loop.c:41: …".
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
    /* Builds the training program instead of the model's .build, which then evaluates and predicts.
     * Its first output is "loss", and it calls sx_minimize(); of a run on disk, the stored program
     * is used. NULL = the model's. */
    sx_step_build_fn *train_step;
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
/* That of the configuration, or made from its device fields; borrowed. NULL if `t` is closed. */
SX_API sx_strategy *sx_training_strategy(const sx_training *t);

/* ---- Data of a strategy ----
 *
 * A data set of elements is preprocessed, shuffled and batched as the model and the configuration
 * say, as in sx_input_fn; one of batches is used as it is. In training it is repeated, an epoch is
 * one pass. */

typedef struct sx_distributed sx_distributed;

typedef struct sx_distribute_args {
    size_t struct_size;
    int64_t global_batch_size; /* examples of a step on all replicas; 0 = the batches', or
                                  config->train_batch_size */
    sx_mode mode;              /* SX_TRAIN */
    /* Of a function: how often it is called, and for which batch size. Default: SX_PER_HOST_V2,
     * once, for the batch of one replica, of which a step takes one for each. */
    sx_input_config input;
} sx_distribute_args;

/* Global batches, of which each replica computes an equal part. `dataset` is retained; the caller
 * frees *out_distributed, after the training that reads it. Errors: INVALID_ARGUMENT: a training
 * batch that the replicas do not divide (names the nearest that they do), batches that are not of
 * global_batch_size. Source: tf.distribute.Strategy.experimental_distribute_dataset. */
#define sx_distribute_dataset(strategy, dataset, out_distributed, ...)                         \
    sx_distribute_dataset_at((strategy), (dataset), SX_ARGS_(sx_distribute_args, __VA_ARGS__), \
                             (out_distributed), SX_HERE_)
SX_API SX_MUST_USE sx_status sx_distribute_dataset_at(sx_strategy *strategy, sx_dataset *dataset,
                                                      const sx_distribute_args *args,
                                                      sx_distributed **out_distributed,
                                                      const char *file, int line);
/* The data sets that `fn` makes of its context (sx_input_context): batches of context->batch_size,
 * for each input its own part of the data. global_batch_size is required. A function that ignores
 * its context, so that a step takes another number of examples or several inputs read the same
 * ones, is a warning in the log. Errors: as above, and those of `fn`. Source:
 * tf.distribute.Strategy.distribute_datasets_from_function. */
#define sx_distribute_datasets_from_function(strategy, fn, user, out_distributed, ...) \
    sx_distribute_datasets_from_function_at((strategy), (fn), (user),                  \
                                            SX_ARGS_(sx_distribute_args, __VA_ARGS__), \
                                            (out_distributed), SX_HERE_)
SX_API SX_MUST_USE sx_status sx_distribute_datasets_from_function_at(
    sx_strategy *strategy, sx_input_fn *fn, void *user, const sx_distribute_args *args,
    sx_distributed **out_distributed, const char *file, int line);
SX_API void sx_distributed_free(sx_distributed *data); /* NULL is fine */

/* As sx_training_begin(), on distributed data, which are borrowed until the training is closed or
 * begins on others. Errors: also INVALID_ARGUMENT: the data are of another strategy. */
SX_API SX_MUST_USE sx_status sx_training_begin_distributed_at(sx_training *t,
                                                              const sx_distributed *data,
                                                              const char *file, int line);
#define sx_training_begin_distributed(t, data) \
    sx_training_begin_distributed_at((t), (data), SX_HERE_)

/* ---- Steps on all replicas ---- */

/* A program on batches: the training program, or one of the caller's. One thread at a time. */
typedef struct sx_step_program sx_step_program;

typedef struct sx_step_args {
    size_t struct_size;
    const char *name; /* for messages; "step" */
    sx_mode mode;     /* SX_TRAIN: `in` has labels and example weights, dropout drops; SX_EVAL: with
                         labels; SX_PREDICT: without */
} sx_step_args;

/* The training program; owned by `t`. NULL if `t` is closed. */
SX_API sx_step_program *sx_training_train_step(sx_training *t);
/* Builds another program, such as a test step, or the second of two that train in turns. It shares
 * the session's variables by name; new ones get their initial values, or, in a run on disk, those
 * of its checkpoint, and are saved with the others. *out_step is owned by `t`. Errors: those of
 * building; INVALID_ARGUMENT: it has no outputs; FAILED_PRECONDITION: a variable of another type.
 */
#define sx_training_add_step(t, build, out_step, ...) \
    sx_training_add_step_at((t), (build), SX_ARGS_(sx_step_args, __VA_ARGS__), (out_step), SX_HERE_)
SX_API SX_MUST_USE sx_status sx_training_add_step_at(sx_training *t, sx_step_build_fn *build,
                                                     const sx_step_args *args,
                                                     sx_step_program **out_step, const char *file,
                                                     int line);

/* Runs a step on all replicas, on the next batch of `data`. At the end of the data, nothing is run
 * and *out_more is false; the next call begins again with the first batch. (Of training data, which
 * are repeated, that end does not come: sx_training_run() tells where an epoch ends.) Errors: as
 * sx_training_run(); INVALID_ARGUMENT: data of another strategy, or that do not fit the step
 * (component, both types); FAILED_PRECONDITION: neither begun nor restored. */
SX_API SX_MUST_USE sx_status sx_step_run_at(sx_step_program *step, const sx_distributed *data,
                                            bool *out_more, const char *file, int line);
#define sx_step_run(step, data, out_more) sx_step_run_at((step), (data), (out_more), SX_HERE_)

typedef enum sx_reduce_op { SX_REDUCE_SUM = 0, SX_REDUCE_MEAN } sx_reduce_op;
/* One number of an output of the step's last run: the sum or the mean of its elements, added in
 * double, in the order of the examples of all replicas, so that the number of replicas changes no
 * bit of it. A scalar is the same on all replicas, and is given as it is. Errors: NOT_FOUND: the
 * step has no such output (lists those that it has); FAILED_PRECONDITION: it has not run. */
SX_API SX_MUST_USE sx_status sx_step_reduce_at(sx_step_program *step, sx_reduce_op op,
                                               const char *output, double *out_value,
                                               const char *file, int line);
#define sx_step_reduce(step, op, output, out_value) \
    sx_step_reduce_at((step), (op), (output), (out_value), SX_HERE_)
/* Copies an output of the last run, row-major, the rows of all replicas in the order of the batch;
 * `bytes` as its type says. Errors: as above; INVALID_ARGUMENT: another number of bytes. */
SX_API SX_MUST_USE sx_status sx_step_read_at(sx_step_program *step, const char *output, void *data,
                                             size_t bytes, const char *file, int line);
#define sx_step_read(step, output, data, bytes) \
    sx_step_read_at((step), (output), (data), (bytes), SX_HERE_)

/* ---- Metrics ---- */

/* A metric over many batches. One thread at a time. */
typedef struct sx_metric_object sx_metric_object;

typedef enum sx_metric_kind { SX_METRIC_MEAN = 0, SX_METRIC_SUM } sx_metric_kind;

typedef struct sx_metric_args {
    size_t struct_size;
    const char *name; /* of the output that sx_metric_update_step() reads; required; copied */
    sx_metric_kind kind;
    /* A metric of the caller's instead, computed from outputs of a step with a row for each
     * example: its `add` is called for each, in order, with the values of `outputs`, up to NULL.
     * Both are copied. */
    const sx_host_metric *host;
    const char *outputs[SX_MAX_HOST_TENSORS];
} sx_metric_args;

/* The caller frees *out_metric. INVALID_ARGUMENT: no name; a host metric without add, result or
 * outputs. Source: tf.keras.metrics.Metric. */
#define sx_metric_create(out_metric, ...) \
    sx_metric_create_at(SX_ARGS_(sx_metric_args, __VA_ARGS__), (out_metric))
SX_API SX_MUST_USE sx_status sx_metric_create_at(const sx_metric_args *args,
                                                 sx_metric_object **out_metric);
SX_API void sx_metric_free(sx_metric_object *metric); /* NULL is fine */
SX_API void sx_metric_reset(sx_metric_object *metric);
/* Adds [n] values, times their weights (NULL = 1 each), in double, in order. Not of host metrics.
 */
SX_API void sx_metric_update(sx_metric_object *metric, int64_t n, const float *values,
                             const float *weights);
/* Adds what the step's last run gives. A scalar output is a mean over the batch, and counts in a
 * mean as often as that has examples, or by the output "weight_sum", if there is one. Errors: as
 * sx_step_reduce(); INVALID_ARGUMENT: of a host metric, an output without a row for each example.
 */
SX_API SX_MUST_USE sx_status sx_metric_update_step_at(sx_metric_object *metric,
                                                      sx_step_program *step, const char *file,
                                                      int line);
#define sx_metric_update_step(metric, step) sx_metric_update_step_at((metric), (step), SX_HERE_)
/* Of what was added since the last reset. A mean of nothing is 0. */
SX_API double sx_metric_result(const sx_metric_object *metric);

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
