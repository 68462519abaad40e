/* A model: a function that builds the network, and a descriptor of its inputs.
 *
 *     static sx_spec flowers(sx_builder *b, const sx_batch *in, const sx_params *p) { ... }
 *     SX_MODEL(flowers, .build = flowers, .image = {128, 128, 3}, .scale = SX_MINUS1_1)
 *
 * A model on several named features declares each of them; the function asks for them by name:
 *
 *     SX_MODEL(income, .build = income, .inputs = {{"age"}, {"city", SX_I32}},
 *              .labels = {{"rich", SX_I32}}, .example_weight = "weight")
 *
 * One of them may be an encoded image, {"photo", .image = true}, of the model's .image, .scale and
 * .augment. Features that the network cannot take as they are go through a function of their own
 * first:
 *
 *     static void prepare(sx_builder *b, const sx_batch *in, const sx_params *p)
 *     {
 *         sx_value age = sx_feature(b, in, "age");
 *         sx_output(b, "age", sx_mul(b, age, sx_constant_f32(b, 1. / 90)));
 *         sx_output(b, "city", sx_one_hot(b, sx_feature(b, in, "city"), .depth = 10));
 *     }
 *     SX_MODEL(income, .build = income, .preprocess = prepare, .inputs = {{"age"}, …
 *
 * The function is called once per mode and adds operators to the builder. `sextant train
 * ./flowers.c` compiles and loads the file and finds the descriptor by its versioned symbol. */
#ifndef SEXTANT_MODEL_H
#define SEXTANT_MODEL_H

#include <sextant/data.h>
#include <sextant/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The function's arguments ---- */

/* Named parameters, from the command line or a configuration. */
typedef struct sx_params sx_params;
/* Each returns the parameter, or `otherwise` if it is not set. A value that is not a number is
 * recorded as an error, which the trainer reports. */
SX_API int64_t sx_param_int(const sx_params *p, const char *name, int64_t otherwise);
SX_API double sx_param_float(const sx_params *p, const char *name, double otherwise);
SX_API const char *sx_param_string(const sx_params *p, const char *name, const char *otherwise);
/* A parameter with a few values, "constant|cosine": the index of the one that is set. The first is
 * the default. Any other value is recorded as an error. */
SX_API int sx_param_choice(const sx_params *p, const char *name, const char *choices);

typedef struct sx_named_value {
    const char *name;
    sx_value value;
} sx_named_value;

/* One batch. `features` and `labels` are the first entries of the maps; `labels` is empty in
 * SX_PREDICT. Images are float32 [N,H,W,C] after preprocessing, labels int32 [N]. Of a model with
 * named features, the maps have the declared ones in their order, each followed by its mask. */
typedef struct sx_batch {
    sx_mode mode;
    sx_value features, labels;
    const sx_named_value *feature_map, *label_map;
    int n_features, n_labels;
    sx_value example_weights; /* in SX_TRAIN, float32 [N]; empty if the model has none */
} sx_batch;

/* The feature or label of that name; of a model without named ones, "features" and "labels". The
 * error for a name that does not exist lists those that do. In SX_PREDICT, a label is the empty
 * value. */
SX_API sx_value sx_feature_at(sx_builder *b, const sx_batch *in, const char *name, const char *file,
                              int line);
#define sx_feature(b, in, name) sx_feature_at((b), (in), (name), SX_HERE_)
SX_API sx_value sx_label_at(sx_builder *b, const sx_batch *in, const char *name, const char *file,
                            int line);
#define sx_label(b, in, name) sx_label_at((b), (in), (name), SX_HERE_)

/* ---- The function's result ---- */

enum { SX_MAX_METRICS = 8, SX_MAX_PREDICTIONS = 8, SX_MAX_HOST_TENSORS = 8 };

/* A value passed from the device to a host function, for one example or one step. */
typedef struct sx_host_value {
    const char *name;
    sx_type type;     /* static */
    const void *data; /* row-major; borrowed for the call */
} sx_host_value;

/* A metric that is not a mean of one number per example, such as an F1 score or an AUC. `add` is
 * called once per example, in the order of the data, regardless of batch size and replicas;
 * `result` computes the metric. The state is plain bytes, initially zero. */
typedef struct sx_host_metric {
    const char *name; /* a string constant */
    size_t state_bytes;
    void *user;
    void (*add)(void *state, const sx_host_value *values, void *user); /* values: as `tensors` */
    double (*result)(const void *state, void *user);
} sx_host_metric;

/* TPUEstimatorSpec's eval_metrics: the values of each example that an evaluation passes to the
 * host, and the metrics computed from them there. A run does not store functions: an evaluation
 * without the model's source omits these metrics, with a warning. */
typedef struct sx_eval_metrics {
    sx_named_value tensors[SX_MAX_HOST_TENSORS]; /* [N, ...] */
    sx_host_metric metrics[SX_MAX_METRICS];
} sx_eval_metrics;

/* TPUEstimatorSpec's host_call: a host function called with values of the steps.
 *
 *   SX_TRAIN   called every experimental_host_call_every_n_steps, in order. Scalars are allowed
 *              (TensorFlow requires shape [1]); a value with a batch dimension is that of the whole
 *              global batch.
 *   SX_EVAL    called for each batch that the device runs, with its examples in the order of the
 *              data, without padding; tensors are [N, ...]. `step` is the step being evaluated.
 *
 * `values` are in the order of `tensors`. If the function returns an error, training or evaluation
 * ends. An evaluation without the model's source omits the call, with a warning. */
typedef struct sx_host_call {
    sx_status (*fn)(void *user, int64_t step, const sx_host_value *values, int n);
    void *user;
    sx_named_value tensors[SX_MAX_HOST_TENSORS];
} sx_host_call;

typedef struct sx_spec {
    sx_value loss;           /* float32 [N], per example; training minimizes the mean */
    sx_value regularization; /* float32 scalar added to the mean, or empty */
    sx_named_value metrics[SX_MAX_METRICS];         /* float32 [N]; the mean is reported */
    sx_named_value predictions[SX_MAX_PREDICTIONS]; /* [N, ...] */
    sx_optimizer optimizer;
    sx_eval_metrics eval_metrics;
    sx_host_call host_call;
} sx_spec;

typedef struct sx_classifier_args {
    size_t struct_size;
    sx_optimizer optimizer; /* Adam */
    int top_k;              /* > 0: adds the metric top_<k>_accuracy; at most C */
} sx_classifier_args;
/* The spec of a classifier with logits [N,C]: softmax cross entropy (for C = 1, sigmoid cross
 * entropy of a binary label), the metric `accuracy`, the predictions `probabilities` [N,C] (for
 * C = 1, [N,2]: no, yes) and `classid` int32 [N]. */
SX_API sx_spec sx_classifier_spec_at(sx_builder *b, sx_value logits, sx_value labels,
                                     const sx_classifier_args *args, const char *file, int line);
#define sx_classifier_spec(b, logits, labels, ...)                                            \
    sx_classifier_spec_at((b), (logits), (labels), SX_ARGS_(sx_classifier_args, __VA_ARGS__), \
                          SX_HERE_)

/* ---- The descriptor ---- */

/* A step of the caller's (sextant/runtime.h): from a batch, that of all replicas together, to
 * outputs; a training step calls sx_minimize(). */
typedef void sx_step_build_fn(sx_builder *b, const sx_batch *in, const sx_params *p);

typedef sx_spec sx_build_fn(sx_builder *b, const sx_batch *in, const sx_params *p);

/* Preprocessing, as tf.Transform's preprocessing_fn: the features and labels of `in` are the
 * declared ones, a batch of them; each sx_output() is a feature of the model, [N, ...], by its
 * name. A feature that the model needs as it is is an output, too. An output that is computed from
 * labels and has the name of one replaces it: strings become numbers with sx_vocabulary_lookup().
 * If the function changes no labels, it is called again without them (`in->mode` is SX_PREDICT):
 * training, evaluation and serving compute features in the same way. An output is float32, int32,
 * int64, uint8 or bool; each of its examples depends on that example alone; there are no variables
 * and no random numbers. Every size but the batch is known, also between the nodes:
 * sx_string_split_padded() gives each text the same number of words. A vocabulary's file is read
 * when the run is made, and is part of it.
 *
 * Input pipelines run it for each element, on their worker threads; data that are batched already
 * must have its outputs. An exported model contains it, vocabularies as assets: `serving_default`
 * takes the declared inputs, `tensors` the features that the function gives. */
typedef void sx_preprocess_fn(sx_builder *b, const sx_batch *in, const sx_params *p);

enum { SX_MODEL_VERSION = 1, SX_MAX_FEATURES = 32, SX_MAX_LABELS = 8 };

typedef struct sx_model_def {
    size_t struct_size;
    int version; /* SX_MODEL_VERSION */
    const char *name, *about;
    sx_build_fn *build;
    int image[3]; /* for a model on images: height, width, channels */
    int features; /* for a model on vectors: numbers per example */
    sx_scale scale;
    float mean[3], std[3]; /* SX_MEAN_STD */
    unsigned augment;      /* SX_FLIP_LEFT_RIGHT | … */
    const char *recipe;    /* a named preprocessing instead of these: "tpu-flowers" */
    int num_classes;       /* default of the parameter num_classes; 0 = from the data */
    int random_crop;       /* augmentations with a strength, as in image.h; 0 = none */
    float random_shear, random_zoom, random_brightness, random_contrast[2];
    /* The named features and labels of a model on several, up to the first row without a name; they
     * replace .features, and .image unless one of them is the image: {"photo", .image = true}. Data
     * sets have a component of each name, programs the inputs "features/<name>" and
     * "labels/<name>", an exported signature an input <name>. */
    sx_feature_spec inputs[SX_MAX_FEATURES];
    sx_feature_spec labels[SX_MAX_LABELS];
    /* With .inputs: the component of the data that holds the weight of each example, float32, not
     * negative (Keras' sample_weight, the Estimators' weight_column). The loss and the metrics of
     * training and evaluation are weighted means, Σ w·x / Σ w, 0 if all weights are; eval_metrics
     * and host_call are not weighted. NULL = every example counts the same. */
    const char *example_weight;
    sx_preprocess_fn *preprocess; /* with .inputs; NULL = the model takes them as they are */
} sx_model_def;

/* The initializer of a descriptor, for programs that train a model of their own:
 *     static const sx_model_def net = SX_MODEL_DEF(.name = "net", .build = net_fn, .features = 4);
 */
#define SX_MODEL_DEF(...)                                                             \
    {                                                                                 \
        .struct_size = sizeof(sx_model_def), .version = SX_MODEL_VERSION, __VA_ARGS__ \
    }

/* Use once in a model file, at file scope. */
#define SX_MODEL(model_name, ...)                      \
    SX_API extern const sx_model_def sextant_model_v1; \
    const sx_model_def sextant_model_v1 = SX_MODEL_DEF(.name = #model_name, __VA_ARGS__);

#ifdef __cplusplus
}
#endif
#endif
