/* Training, evaluation and prediction: two APIs over one trainer. Below them, for a loop of your
 * own, is sextant/runtime.h.
 *
 * Estimator: a model function, input functions and a model_dir. All state is on disk, and every
 * call starts from the newest checkpoint.
 *
 * Model: create, compile, fit, evaluate, predict, save. The state is in memory.
 *
 * A run (model_dir) is self-contained: it holds its configuration, graphs and checkpoints, so
 * evaluating, predicting, exporting and resuming never need the model's source. A run that was
 * killed at any time resumes exactly (weights, slots, step, position in the data, running means).
 *
 *     sx_estimator *e;
 *     SX_TRY(sx_estimator_create(&my_model, sx_run_config_of(.model_dir = "run1"), NULL, &e));
 *     SX_TRY(sx_estimator_train(e, my_input, NULL, .max_steps = 1000));
 *
 * To see progress, pass an observer: it receives every event. Without one, warnings (a field of the
 * configuration that is ignored, a checkpoint that is skipped) go to the log, by default to stderr
 * (sextant/log.h); nothing else is printed. Not thread-safe. */
#ifndef SEXTANT_TRAIN_H
#define SEXTANT_TRAIN_H

#include <signal.h>

#include <sextant/data.h>
#include <sextant/distribute.h>
#include <sextant/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Events for observers ---- */

typedef struct sx_metric {
    const char *name; /* "loss", "accuracy" */
    double value;
} sx_metric;

enum { SX_MAX_RESULTS = 1 + SX_MAX_METRICS };

/* Each comment lists the valid fields besides step, total_steps, epoch and epochs. */
typedef enum sx_train_event_kind {
    SX_EVENT_BEGIN,         /* training starts at `step`; resumed; path: the checkpoint, or NULL;
                               text: how the learning rate was scaled, or NULL */
    SX_EVENT_COMPILE_BEGIN, /* text: "train", "eval", "predict"; batch; device */
    SX_EVENT_COMPILE_END,   /* the same; seconds, from_cache */
    SX_EVENT_PROGRESS,      /* metrics: means of this epoch so far; rates; at_cadence */
    SX_EVENT_EPOCH,         /* an epoch has ended; metrics: its means; seconds */
    SX_EVENT_CHECKPOINT, /* saved: path, seconds; step: its own, training has gone on meanwhile */
    SX_EVENT_EVAL_BEGIN, /* examples: the total, 0 = unknown */
    SX_EVENT_EVAL_PROGRESS, /* examples: evaluated so far */
    SX_EVENT_EVAL,          /* metrics: the results; examples, seconds, is_best; available and
                               eval_steps as in sx_eval_result */
    SX_EVENT_WARNING,       /* text */
    SX_EVENT_NONFINITE,     /* step: the withheld step; text: the first non-finite value */
    SX_EVENT_END,           /* text: the reason ("finished", "already finished", "stopped", "end of
                               data", or a callback's reason); the times; examples: trained on;
                               metrics: of the final step only, if there was one */
} sx_train_event_kind;

typedef struct sx_train_event {
    size_t struct_size;
    sx_train_event_kind kind;
    int64_t step;                           /* steps since the beginning of the run */
    int64_t total_steps;                    /* the last step; 0 = unknown (until the data end) */
    int64_t epoch, epochs;                  /* the current epoch, from 1; the total, 0 = unknown */
    int64_t step_in_epoch, steps_per_epoch; /* 0 = unknown */
    int64_t batch, examples;
    int64_t available, eval_steps;
    int n_metrics;
    const sx_metric *metrics;                     /* [n_metrics], "loss" first */
    double examples_per_second, steps_per_second; /* since the last PROGRESS with at_cadence */
    double input_wait;  /* 0 … 1: fraction of that time spent waiting for data */
    double eta_seconds; /* time until total_steps; < 0 = unknown */
    double learning_rate;
    double seconds;
    double compile_seconds, train_seconds, eval_seconds, save_seconds; /* in this call so far */
    bool at_cadence; /* PROGRESS: true every log_step_count_steps and at the end of an epoch; false
                        for the events sent ten times a second for a progress bar */
    bool resumed, is_best;
    bool from_cache; /* the program came from the compile cache */
    const char *path, *text;
    const char *device; /* "/device:TPU:0" */
} sx_train_event;

/* `event` and everything it points to are valid only during the call. */
typedef void sx_observer_fn(void *user, const sx_train_event *event);

/* ---- Configuration ---- */

enum {
    SX_NEVER = -1,    /* for intervals */
    SX_KEEP_ALL = -1, /* for keep_checkpoint_max */
    SX_EVERY_EPOCH = -2,
};

/* Which hosts call the input function, and its batch size; R replicas on H hosts, global batch B.
 *
 *                      called               batch size             batches per step
 *   SX_PER_HOST_V1     once per host        B / H                  one
 *   SX_PER_SHARD_V1    once per replica     B / R                  one of each; training only
 *   SX_PER_HOST_V2     once per host        B / R                  R / H
 *   SX_BROADCAST       on host 0            B, any                 one, passed to every replica
 *   SX_SLICED          on host 0            B                      one; evaluation, prediction
 *
 * The values are TensorFlow's InputPipelineConfig. */
typedef enum sx_input_config {
    SX_PER_SHARD_V1 = 1,
    SX_PER_HOST_V1,
    SX_PER_HOST_V2,
    SX_BROADCAST,
    SX_SLICED,
} sx_input_config;

/* TensorFlow's TPUConfig, with the same field names. A field that is 0 takes the default in its
 * comment. Setting an "ignored" field only produces a warning with the reason; a "rejected" field
 * must be NULL. */
typedef struct sx_tpu_config {
    int64_t iterations_per_loop; /* as in sx_run_config (TensorFlow's 2) */
    int num_shards;              /* ignored, as in TensorFlow: set by the device's replicas */
    int num_cores_per_replica;   /* 1; more would be model parallelism: rejected */
    sx_input_config per_host_input_for_training;           /* SX_PER_HOST_V1 */
    const char *tpu_job_name;                              /* ignored: one process drives the TPU */
    int initial_infeed_sleep_secs;                         /* ignored: there is no infeed */
    const void *input_partition_dims;                      /* rejected: model parallelism */
    sx_input_config eval_training_input_configuration;     /* SX_PER_HOST_V1; or SX_SLICED */
    int64_t experimental_host_call_every_n_steps;          /* 1 */
    bool experimental_allow_per_host_v2_parallel_get_next; /* ignored: always parallel */
    const void *experimental_feed_hook;                    /* rejected: there is no infeed */
} sx_tpu_config;

/* TensorFlow's RunConfig, with the same field names, and fields of our own for a single machine. A
 * field that is 0 takes the default in its comment; "ignored" and "rejected" as in sx_tpu_config.
 * Create one with sx_run_config_of(.model_dir = "run1"). */
typedef struct sx_run_config {
    size_t struct_size;
    const char *model_dir;                /* NULL = nothing is stored on disk */
    uint64_t tf_random_seed;              /* 0; for weights, shuffling, dropout and augmentation */
    int64_t save_checkpoints_steps;       /* exclusive with save_checkpoints_secs */
    int64_t save_checkpoints_secs;        /* 600 if neither is set; SX_NEVER */
    int keep_checkpoint_max;              /* 5; SX_KEEP_ALL */
    double keep_checkpoint_every_n_hours; /* 10000 */
    int64_t log_step_count_steps;         /* 100; SX_NEVER */
    /* Steps per launch, on a device that can run several before returning (the last launch before
     * an event is shorter): a number of steps, or a time. Default: about half a second. */
    int64_t iterations_per_loop;
    double iterations_per_loop_secs; /* exclusive with iterations_per_loop */
    int64_t train_batch_size;        /* 32 */
    int64_t eval_batch_size;         /* 32; examples read at a time, does not affect results */
    int64_t steps_per_eval;          /* SX_EVERY_EPOCH; SX_NEVER */
    /* The devices for training, evaluation and prediction: a strategy, of which the trainer keeps a
     * reference, or the fields after it, as in sx_strategy_args. */
    sx_strategy *train_distribute;
    const char *device;      /* "cpu", "tpu", "pjrt:cpu:4"; default: the first that can train */
    int replicas;            /* default: all cores of a TPU, otherwise 1 */
    int virtual_devices;     /* of cpu and pjrt:cpu; default: the real ones */
    const char *batch_norm;  /* scope of the moments: "sync" (all replicas; default), "replica" */
    const char *pjrt_plugin; /* path of the plugin library; default: search */
    const char *python;      /* a Python whose packages are searched */
    const char *dump_stablehlo; /* directory to write every program to; default: none */
    int threads;                /* default: all processors available to the process */
    int shards;                 /* > 0: a fixed number of shards, a multiple of the replicas:
                                   neither these nor `threads` change a bit of the results */
    sx_dtype precision;         /* of layers: SX_F32, or SX_BF16 with float32 variables
                                   (sx_builder_set_precision); an existing run keeps its own */
    bool no_shuffle;            /* keep the order of the records */
    bool require_exact;         /* refuse to resume if the bits could differ */
    bool no_compile_cache;      /* do not use the cache of compiled programs (pjrt) */
    /* A new run starts with the weights and moving averages of another run, a SavedModel or a
     * checkpoint: all of them, or those whose names match the POSIX extended regular expression,
     * anchored at the start. Of a run, the newest checkpoint, which must not be damaged; an older
     * one is named as DIR/model.ckpt-STEP. Ignored when a run is resumed. */
    const char *warm_start_from, *vars_to_warm_start;
    bool fresh; /* start over; the contents of model_dir are deleted when training starts */
    sx_tpu_config tpu_config;
    /* The TPU, if the device is one: its address ("local", "grpc://HOST:PORT") or its name, not
     * both. Evaluation runs where training does: evaluation_master must be NULL or equal `master`.
     */
    const char *master, *cluster, *evaluation_master;
    /* Devices for evaluation, referenced like train_distribute; the variables are copied there for
     * each evaluation. NULL = those of training. */
    sx_strategy *eval_distribute;

    int64_t save_summary_steps;             /* 100; ignored: no event files are written */
    int experimental_max_worker_delay_secs; /* ignored: there are no other workers */
    int session_creation_timeout_secs;      /* 7200; ignored: a device opens at once or fails */
    int checkpoint_save_graph_def; /* 1; otherwise ignored: graphs are stored once, in graphs/ */
    const char *protocol;          /* ignored: one process, no servers */
    const void *session_config;    /* rejected: use the fields for threads, device and precision */
    const void *device_fn;         /* rejected: no parameter servers */
    const void *experimental_distribute; /* rejected: use train_distribute */

    sx_observer_fn *observer; /* NULL = none; warnings go to the log (sextant/log.h) */
    void *observer_user;
    const volatile sig_atomic_t *stop; /* if nonzero: finish the step, save, return CANCELLED */

    /* Of cpu: a training step's variables, batch and temporaries take at most so many bytes: what
     * would take more is computed again in the backward pass, with the same bits. A step that needs
     * more is RESOURCE_EXHAUSTED. Of a list of devices, each cpu has so many bytes, as a virtual
     * device of limited memory: for all that programs keep there. 0 = no limit. */
    int64_t memory_limit_bytes;

    /* Several processes that train in step, as in sx_strategy_args; NULL: those of TF_CONFIG, if it
     * names several workers, else this one alone. */
    const char *coordinator;
    int num_processes, process_id;
    /* Of a program that is placed on several devices (.device = "cpu:0,cpu:1"), as in
     * sx_strategy_args. */
    bool strict_placement, log_device_placement;
    int inter_op, intra_op, micro_batches;
    /* TPUEstimator's batch_axis, and the transpose_input of TensorFlow's models for TPUs; ignored:
     * data sets put examples along the first axis, and the device's compiler chooses the layout of
     * inputs, which no transposition on the host improves. */
    int batch_axis;
    bool transpose_input;
} sx_run_config;

#define sx_run_config_of(...) SX_ARGS_(sx_run_config, __VA_ARGS__)

/* ---- Callbacks ---- */

typedef struct sx_control {
    bool stop;          /* end training after this step */
    const char *reason; /* a string constant; the text of the END event */
} sx_control;

/* A callback has an `observe` function, which sees every event and does not shorten launches, or a
 * `control` function, which is called at the end of epochs, after evaluations and every
 * `every_steps` steps (launches end there). Its state is saved in and restored from checkpoints. */
typedef struct sx_callback {
    const char *name; /* unique in the run; part of the checkpoint's keys */
    sx_observer_fn *observe;
    void (*control)(void *user, const sx_train_event *event, sx_control *control);
    int64_t every_steps; /* 0 = epochs and evaluations only */
    void *user;
    void *state; /* [state_bytes], plain bytes; NULL = none */
    size_t state_bytes;
} sx_callback;

/* Stops when a metric has not improved for `patience` evaluations. */
typedef struct sx_early_stopping {
    const char *monitor; /* "loss" */
    int patience;
    double min_delta;
    bool larger_is_better;
    struct {
        double best;
        int64_t waited, seen;
    } state; /* initialize with zeros */
} sx_early_stopping;
/* A callback that uses *stopping, which must outlive it. */
SX_API sx_callback sx_early_stopping_callback(sx_early_stopping *stopping);

/* ---- Results ---- */

typedef struct sx_eval_result {
    int64_t step, examples;
    int64_t available; /* examples in the data; 0 = unknown */
    int64_t steps;     /* maximum number of batches; 0 = no limit */
    double loss;
    int n_metrics;
    sx_metric metrics[SX_MAX_METRICS]; /* names are valid as long as the estimator or model */
} sx_eval_result;

typedef struct sx_prediction_value {
    const char *name;
    sx_type type; /* of one example */
    const void *data;
} sx_prediction_value;

/* The predictions for one example, valid only during the call. */
typedef struct sx_prediction {
    int64_t number; /* position in the data, from 0 */
    int64_t record; /* id of its record (sx_dataset_record_name) */
    int n_values;
    const sx_prediction_value *values;
    /* For classifiers; otherwise n_classes is 0. */
    int n_classes, classid;
    const float *probabilities; /* [n_classes] */
    float probability;          /* of classid */
    const char *class_name;     /* NULL if the run has no class names */
} sx_prediction;

/* Called for each row. An error ends the prediction, which returns it. */
typedef sx_status sx_prediction_fn(void *user, const sx_prediction *row);

/* ---- Estimator ---- */

typedef struct sx_estimator sx_estimator;

/* The context of an input function: TPUEstimator's params["batch_size"] and params["context"]. */
typedef struct sx_input_context {
    size_t struct_size;
    sx_mode mode;
    int64_t batch_size;        /* batch size for this call (sx_input_config) */
    int64_t global_batch_size; /* examples per step over all replicas */
    int num_replicas, num_hosts, num_of_replicas_per_host, current_host;
    int invocation_index, num_invocations; /* the index and number of calls on this host */
    const sx_params
        *params; /* of the model, with batch_size: sx_param_int(params, "batch_size", 0) */
} sx_input_context;

/* Creates a data set, which the estimator releases. If it is not batched, the estimator
 * preprocesses, shuffles (in training), batches and repeats it according to model and
 * configuration. A batched data set is used as it is: float32 features first (or "features"),
 * integer labels second (or "labels"); training ends with its last batch. The context is valid only
 * during the call. */
typedef sx_status sx_input_fn(void *user, const sx_input_context *context,
                              sx_dataset **out_dataset);

/* `model` describes the model; SX_MODEL_DEF(.build = fn) is enough, the shape of the features
 * then comes from the data. NULL: the model stored in config->model_dir. `params` is a
 * NULL-terminated array of "name=value" strings, or NULL. The strings, and those of the
 * model, are borrowed; the two structs are copied. Errors: INVALID_ARGUMENT: invalid configuration.
 */
SX_API SX_MUST_USE sx_status sx_estimator_create(const sx_model_def *model,
                                                 const sx_run_config *config,
                                                 const char *const *params,
                                                 sx_estimator **out_estimator);
SX_API void sx_estimator_destroy(sx_estimator *e); /* NULL is fine */

typedef struct sx_tpu_estimator_args {
    size_t struct_size;
    const sx_run_config *config; /* required */
    const char *const *params;   /* as sx_estimator_create; batch_size and context are reserved */
    bool use_tpu; /* false: the same program on the CPU with one replica, unless config.device is
                     set (TensorFlow's default: true) */
    int64_t train_batch_size, eval_batch_size, predict_batch_size; /* global; 0 = the config's */
    bool no_eval_on_tpu; /* TensorFlow's eval_on_tpu=False: evaluate on the CPU */
    int batch_axis;      /* ignored, as in sx_run_config */
    bool export_to_tpu;  /* rejected: exports have the graph `serve` only (export_to_cpu) */
    const void *embedding_config_spec; /* rejected: no embeddings sharded over cores */
    bool transpose_input;              /* ignored, as in sx_run_config */
} sx_tpu_estimator_args;
/* TensorFlow's TPUEstimator: an estimator whose batch sizes are global. It runs on config.device;
 * if that is NULL, on "tpu" with use_tpu, otherwise on the CPU. The training batch size must be a
 * multiple of the replicas; the error names the nearest sizes that are. Evaluation and prediction
 * process every example once, whatever their batch size. */
#define sx_tpu_estimator_create(model, out_estimator, ...)                            \
    sx_tpu_estimator_create_at((model), SX_ARGS_(sx_tpu_estimator_args, __VA_ARGS__), \
                               (out_estimator))
SX_API SX_MUST_USE sx_status sx_tpu_estimator_create_at(const sx_model_def *model,
                                                        const sx_tpu_estimator_args *args,
                                                        sx_estimator **out_estimator);

typedef struct sx_train_args {
    size_t struct_size;
    int64_t steps;     /* additional steps; exclusive with the others */
    int64_t max_steps; /* the last step, counted from the beginning of the run */
    int64_t epochs;    /* likewise; if none of the three is set: until the data end, or 1 epoch */
    const sx_callback *callbacks;
    int n_callbacks;
} sx_train_args;
/* Trains from the newest intact checkpoint in model_dir, or from the start; a warning names newer
 * ones that are damaged or missing, and their steps are trained again. If the run has already
 * reached the requested step, nothing happens (END event "already finished").
 * Errors: CANCELLED: config.stop was set, everything is saved; ABORTED: a non-finite loss or
 * gradient (the message names the step and the first such value; the step is not saved);
 * FAILED_PRECONDITION: model_dir holds another model (names the first differing variable and both
 * shapes); INVALID_ARGUMENT: the data do not fit the model; errors of reading data and saving.
 * Checkpoints are written while training goes on: one that cannot be is a warning at once, and the
 * error at the end; those before it are kept. */
#define sx_estimator_train(e, input, user, ...) \
    sx_estimator_train_at((e), (input), (user), SX_ARGS_(sx_train_args, __VA_ARGS__))
SX_API SX_MUST_USE sx_status sx_estimator_train_at(sx_estimator *e, sx_input_fn *input, void *user,
                                                   const sx_train_args *args);

typedef struct sx_evaluate_args {
    size_t struct_size;
    const char *checkpoint; /* "latest" (default), "best", or a step: "1200" */
    int64_t examples;       /* maximum number of examples; 0 = all */
    int64_t steps;          /* maximum number of eval_batch_size batches; exclusive with examples */
} sx_evaluate_args;
/* Evaluates every example once. Batch size, threads and replicas change no bit of the results.
 * Errors: NOT_FOUND: no such checkpoint; DATA_LOSS: it is damaged. If that is the latest, the
 * message names the older steps that are intact; none is taken unless `checkpoint` says so. The
 * same holds for sx_estimator_predict() and sx_estimator_export_saved_model(). */
#define sx_estimator_evaluate(e, input, user, out_result, ...)                              \
    sx_estimator_evaluate_at((e), (input), (user), SX_ARGS_(sx_evaluate_args, __VA_ARGS__), \
                             (out_result))
SX_API SX_MUST_USE sx_status sx_estimator_evaluate_at(sx_estimator *e, sx_input_fn *input,
                                                      void *user, const sx_evaluate_args *args,
                                                      sx_eval_result *out_result);

/* Calls `row` for each example, in the order of the data; labels are ignored. */
#define sx_estimator_predict(e, input, user, row, row_user, ...)     \
    sx_estimator_predict_at((e), (input), (user), (row), (row_user), \
                            SX_ARGS_(sx_evaluate_args, __VA_ARGS__))
SX_API SX_MUST_USE sx_status sx_estimator_predict_at(sx_estimator *e, sx_input_fn *input,
                                                     void *user, sx_prediction_fn *row,
                                                     void *row_user, const sx_evaluate_args *args);

/* The inputs of an exported model (TensorFlow's ServingInputReceiver): their names, and the
 * preprocessing of encoded images. */
typedef struct sx_serving_input {
    const char *image_bytes; /* name of the encoded images, string [N]; "image_bytes" */
    const char *features; /* name of the features in the signature "tensors"; "image"; for a model
                             on arrays, of the only input; "features" */
    bool no_tensors;      /* omit that signature */
    const char *recipe;   /* preprocessing; NULL = that of evaluation */
} sx_serving_input;
/* Sets the fields that differ from the defaults; the strings must live until the export ends. */
typedef sx_status sx_serving_input_fn(void *user, sx_serving_input *input);

typedef struct sx_export_args {
    size_t struct_size;
    const char *checkpoint; /* as in sx_evaluate_args */
    const char *version;    /* "0001" keeps its zeros; NULL = the highest existing + 1 */
    sx_serving_input_fn *serving_input_fn; /* NULL = the defaults */
    void *serving_user;
} sx_export_args;
/* Writes a SavedModel to `base`/<version> that TensorFlow, TensorFlow Serving and `sextant serve`
 * can load. *out_dir (may be NULL) receives its path; free with sx_text_free(). */
#define sx_estimator_export_saved_model(e, base, out_dir, ...)                             \
    sx_estimator_export_saved_model_at((e), (base), SX_ARGS_(sx_export_args, __VA_ARGS__), \
                                       (out_dir))
SX_API SX_MUST_USE sx_status sx_estimator_export_saved_model_at(sx_estimator *e, const char *base,
                                                                const sx_export_args *args,
                                                                char **out_dir);

typedef struct sx_train_spec {
    size_t struct_size;
    sx_input_fn *input;
    void *user;
    int64_t max_steps, epochs;
    const sx_callback *callbacks;
    int n_callbacks;
} sx_train_spec;

typedef struct sx_eval_spec {
    size_t struct_size;
    sx_input_fn *input;
    void *user;
    int64_t examples;    /* maximum number of examples; 0 = all */
    int64_t every_steps; /* 0 = config.steps_per_eval */
    int64_t steps; /* > 0: maximum number of eval_batch_size batches (TensorFlow's default: 100) */
} sx_eval_spec;

#define sx_train_spec_of(...) SX_ARGS_(sx_train_spec, __VA_ARGS__)
#define sx_eval_spec_of(...)  SX_ARGS_(sx_eval_spec, __VA_ARGS__)

/* Trains, evaluates periodically and at the end, and keeps the best checkpoint (lowest loss, also
 * across restarts) in addition to the others. *out_result (may be NULL): the last evaluation. */
SX_API SX_MUST_USE sx_status sx_train_and_evaluate(sx_estimator *e, const sx_train_spec *train,
                                                   const sx_eval_spec *eval,
                                                   sx_eval_result *out_result);

/* ---- Model ---- */

typedef struct sx_model sx_model;

/* `def` and `params` as for sx_estimator_create. */
SX_API SX_MUST_USE sx_status sx_model_create(const sx_model_def *def, const char *const *params,
                                             sx_model **out_model);
SX_API void sx_model_destroy(sx_model *m); /* NULL is fine */

typedef struct sx_compile_args {
    size_t struct_size;
    sx_optimizer optimizer; /* default: the model's own */
    int64_t steps_per_execution;
    uint64_t seed;
    sx_dtype precision; /* SX_F32; SX_BF16 as in sx_run_config */
    /* As in sx_run_config. */
    sx_strategy *train_distribute;
    const char *device;
    int replicas, virtual_devices;
    const char *batch_norm, *pjrt_plugin, *python, *dump_stablehlo;
    int threads;
    sx_observer_fn *observer;
    void *observer_user;
    const volatile sig_atomic_t *stop;
} sx_compile_args;
/* Configures training; call before fit(). Errors: FAILED_PRECONDITION: called after fit(). */
#define sx_model_compile(m, ...) sx_model_compile_at((m), SX_ARGS_(sx_compile_args, __VA_ARGS__))
SX_API SX_MUST_USE sx_status sx_model_compile_at(sx_model *m, const sx_compile_args *args);

typedef struct sx_fit_args {
    size_t struct_size;
    int64_t epochs;     /* 1; additional epochs, or with backup_dir the total */
    int64_t batch_size; /* 32 */
    bool no_shuffle;
    sx_dataset *validation_data; /* evaluated after each epoch; borrowed */
    const char *backup_dir;      /* a run to save to and resume from; NULL = none */
    const sx_callback *callbacks;
    int n_callbacks;
} sx_fit_args;
/* Trains on an unbatched data set (see sx_input_fn), borrowed for the call. */
#define sx_model_fit(m, data, ...) sx_model_fit_at((m), (data), SX_ARGS_(sx_fit_args, __VA_ARGS__))
SX_API SX_MUST_USE sx_status sx_model_fit_at(sx_model *m, sx_dataset *data,
                                             const sx_fit_args *args);

typedef struct sx_to_args {
    size_t struct_size;
    /* As in sx_run_config. */
    sx_strategy *train_distribute;
    const char *device;
    int replicas, virtual_devices;
    const char *batch_norm, *pjrt_plugin, *python, *dump_stablehlo;
    int threads;
} sx_to_args;
/* Moves the model to other devices, with its weights, optimizer state, step and position in the
 * data, so that training continues there. Before fit(), selects the devices for it. On failure the
 * model is not moved. Errors: those of opening the devices. */
#define sx_model_to(m, ...) sx_model_to_at((m), SX_ARGS_(sx_to_args, __VA_ARGS__))
SX_API SX_MUST_USE sx_status sx_model_to_at(sx_model *m, const sx_to_args *args);

/* The history of fit(): one row per epoch; validation results are named "val_…". Borrowed. */
typedef struct sx_history_row {
    int64_t epoch, step;
    int n_metrics;
    sx_metric metrics[2 * SX_MAX_RESULTS];
} sx_history_row;
SX_API const sx_history_row *sx_model_history(const sx_model *m, int *out_count);

/* Errors: FAILED_PRECONDITION: before fit() or sx_model_load(). */
SX_API SX_MUST_USE sx_status sx_model_evaluate(sx_model *m, sx_dataset *data,
                                               sx_eval_result *out_result);
SX_API SX_MUST_USE sx_status sx_model_predict(sx_model *m, sx_dataset *data, sx_prediction_fn *row,
                                              void *row_user);

/* Saves a run (graphs and a checkpoint) in `dir`, for `sextant evaluate|predict|export` and
 * sx_model_load(). Errors: ALREADY_EXISTS: `dir` already holds a run. */
SX_API SX_MUST_USE sx_status sx_model_save(sx_model *m, const char *dir);
/* Loads the newest checkpoint of a run, to evaluate, predict or continue fitting. Errors:
 * NOT_FOUND: not a run, or no checkpoint; DATA_LOSS: the newest checkpoint is damaged or missing:
 * the message names it and the older steps that are intact, which sx_model_load_checkpoint() takes.
 */
SX_API SX_MUST_USE sx_status sx_model_load(const char *dir, sx_model **out_model);
/* The same for a checkpoint of the caller's choice, as in sx_evaluate_args. */
SX_API SX_MUST_USE sx_status sx_model_load_checkpoint(const char *dir, const char *checkpoint,
                                                      sx_model **out_model);

#ifdef __cplusplus
}
#endif
#endif
