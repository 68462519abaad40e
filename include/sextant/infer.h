/* Inference: load a SavedModel and run it. Any number of threads may run a servable at once.
 *
 *     sx_servable *model;
 *     sx_outputs *outputs;
 *     SX_TRY(sx_servable_load("models/flowers/1", NULL, &model));
 *     sx_bytes jpeg = {data, size};
 *     sx_tensor input = {sx_type_of(SX_STRING, 1), &jpeg};
 *     SX_TRY(sx_servable_run(model, "serving_default", &input, &outputs));
 *     const sx_tensor *p = sx_outputs_find(outputs, "probabilities");
 *     ...
 *     sx_outputs_free(outputs);
 *     sx_servable_release(model); */
#ifndef SEXTANT_INFER_H
#define SEXTANT_INFER_H

#include <sextant/complex.h>
#include <sextant/distribute.h>
#include <sextant/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sx_servable sx_servable;
typedef struct sx_outputs sx_outputs;

/* One kernel of the programs that a model ran on the CPU. */
typedef struct sx_kernel_profile {
    const char *kernel; /* "conv2d onednn brgconv:avx512_core" */
    const char *node;   /* of the graph, or the nodes that it computes, joined by "+" */
    int64_t calls;
    double seconds;      /* of all calls, summed over threads */
    double flops, bytes; /* of one call */
} sx_kernel_profile;
typedef void sx_profile_fn(void *user, const sx_kernel_profile *row);

/* What 8-bit integers change, over the examples of a calibration. */
typedef struct sx_int8_report {
    const char *signature;
    int products,
        skipped; /* convolutions and products of matrices with integers; left in float32 */
    int64_t examples;
    const char *output; /* the first of float32 with a row for each example: it is compared */
    double mean_difference, max_difference; /* of its elements */
    double greatest;                        /* magnitude of one, in float32 */
    /* The share of the examples of which the same element is the greatest; NaN: a row is one. */
    double agreement;
    double accuracy_float32, accuracy; /* the same of those whose label it is; NaN: no labels */
} sx_int8_report;
typedef void sx_int8_report_fn(void *user, const sx_int8_report *report);

/* Examples from which it follows which numbers the integers of a model stand for: a hundred or more
 * like those that it will see. The memory belongs to the caller and is read while loading. */
typedef struct sx_int8_calibration {
    /* NULL = "serving_default"; signatures that compute something else stay in float32 */
    const char *signature;
    const sx_tensor *inputs;      /* as for sx_servable_run() */
    const int64_t *labels;        /* a class for each example; NULL = none */
    sx_int8_report_fn *on_report; /* called when the model is ready; NULL = nobody asks */
    void *user;
} sx_int8_calibration;

typedef struct sx_servable_options {
    size_t struct_size;
    /* "cpu", "tpu", "pjrt:cpu", "pjrt:cpu:4" (sextant/distribute.h), of a TPU one core; or a list,
     * "cpu:0,cpu:1": each node runs on that device of it that the model names (TensorFlow's
     * tf.device, sx_device_scope_begin()), as sx_placed_strategy() says; the nodes of a branch or a
     * loop with it. NULL = the default. Errors: INVALID_ARGUMENT: no such device; UNAVAILABLE: no
     * plugin (says what to install). */
    const char *device;
    int threads; /* of cpu; 0 = all processors available to the process */
    /* Limit of the memory for variables, graphs and programs together. The needs of a program are
     * known before it runs: a program that would exceed the limit is refused, and a batch that is
     * too large for it is run in smaller parts. 0 = a quarter of the memory of the device, or of
     * the machine (or cgroup) if the device is its processor; negative = no limit. */
    int64_t memory_limit_bytes;
    /* Which graph of the file: the one with exactly these tags, comma-separated; NULL = "serve".
     * Errors: NOT_FOUND lists the sets of tags that the file has. */
    const char *tags;
    /* Called for each kernel, those that took longest first, when the model is released; the texts
     * live as long as the call. NULL = no times are kept. */
    sx_profile_fn *on_profile;
    void *profile_user;
    /* The setting of the caller's that errors name beside the limit: "the memory limit of the model
     * (--model-memory-limit)"; copied. NULL = "memory_limit_bytes". */
    const char *memory_limit_name;
    /* Whether programs are compiled, and weights packed for them, when they first run. If not,
     * those for one row are made ready while loading, so that the first answer takes no longer than
     * later ones; those for more rows are always compiled when they first run. A program that
     * exceeds the memory limit is an error of the load then, and of the run if lazy.
     *
     * Of variables that a program has packed for itself, no other copy is kept: the model's file of
     * variables stays open, and a program for more rows, or if lazy the first, reads and checks it.
     * The directory may be deleted; if the file is overwritten meanwhile, a run is DATA_LOSS. */
    bool lazy;
    /* As in sx_strategy_args: the plugin library of a PJRT device, where its plugin is searched. */
    const char *pjrt_plugin, *python;
    /* The load, and each run, ends with DEADLINE_EXCEEDED so many milliseconds after its start; the
     * clock is read as by sx_functions_run(), and between the nodes, variables and programs of a
     * model that is loaded. 0 = no limit. */
    int64_t timeout_ms;
    /* Convolutions and products of matrices multiply 8-bit integers where the processor is fast at
     * that, and compute nearly the same in float32 elsewhere; the first and the last of a model
     * stay in float32. NULL = none do. Errors: INVALID_ARGUMENT: examples that the signature
     * refuses, none at all, or values that are not finite; FAILED_PRECONDITION: the signature has
     * nothing to quantize, or couples its examples. */
    const sx_int8_calibration *int8;
    /* On the CPU, convolutions and products by matrices of the model multiply bfloat16, and what
     * lies between them takes 2 bytes, where the processor multiplies it faster than float32 (AMX,
     * AVX512_BF16 of most); elsewhere nothing is gained, and everything stays in float32. With AMX
     * attention's products do so, too. Sums, inputs, outputs and all other operators are float32.
     * Not together with int8. */
    bool bfloat16;
    /* As in sx_strategy_args. */
    const char *device_options, *xla_options;
    int64_t gpu_memory_limit;
    /* Several devices, as in sx_strategy_args, each with a copy of the variables: the parts of a
     * batch, of up to 64 examples, and the calls of several threads are divided among them. Each
     * part is computed as on one device, with the same bits, and answers stay in order. A model
     * that assigns variables, and a signature that does not run in parts, runs on the first.
     * Virtual devices of cpu are its threads. */
    const char *devices;
    int replicas, virtual_devices;
    /* Instead of these and `device`; the model keeps a reference. NULL = none */
    sx_strategy *strategy;
    /* As in sx_strategy_args, of a model whose nodes are placed on the devices of a list. */
    bool strict_placement, log_device_placement;
} sx_servable_options;

/* An input or output of a signature. */
typedef struct sx_port {
    const char *name;   /* "image_bytes" */
    const char *tensor; /* its name in the TensorFlow graph: "image_bytes:0" */
    sx_type type;       /* an unknown first dimension is SX_BATCH, any other SX_UNKNOWN_DIM */
    bool unknown_rank;  /* only the dtype of `type` is valid */
} sx_port;

typedef struct sx_signature_info {
    const char *name, *method;
    int n_inputs, n_outputs;
    const sx_port *inputs, *outputs; /* sorted by name */
} sx_signature_info;

/* Loads the graph and weights of a version directory (one that contains saved_model.pb), or of the
 * highest version in a directory of numbered ones: models/flowers/1, models/flowers.
 * Errors: NOT_FOUND; DATA_LOSS: corrupt files; UNIMPLEMENTED: unsupported operators, all listed;
 * RESOURCE_EXHAUSTED: the memory limit, with figures; DEADLINE_EXCEEDED: timeout_ms. */
SX_API SX_MUST_USE sx_status sx_servable_load(const char *dir, const sx_servable_options *options,
                                              sx_servable **out_servable);
SX_API sx_servable *sx_servable_retain(sx_servable *s);
SX_API void sx_servable_release(sx_servable *s); /* the last release frees it; NULL is fine */
/* The version directory that was loaded; borrowed. */
SX_API const char *sx_servable_dir(const sx_servable *s);

/* The signatures that can be run, sorted by name; borrowed. */
SX_API const sx_signature_info *sx_servable_signatures(const sx_servable *s, int *out_count);
/* The signature `name` (NULL = "serving_default"). Errors: NOT_FOUND, listing those that exist. */
SX_API SX_MUST_USE sx_status sx_servable_find(const sx_servable *s, const char *name,
                                              const sx_signature_info **out_signature);

/* Runs a signature on a batch of any size. `inputs` are in the signature's order (strings: arrays
 * of sx_bytes) and borrowed for the call. An example's result does not depend on the other examples
 * in the batch. Inputs may have different batch sizes if the model's operators accept them.
 * Errors: INVALID_ARGUMENT: wrong dtype or shape of an input, batch sizes that the model refuses,
 * an image that cannot be decoded (with its index); RESOURCE_EXHAUSTED: one example needs more
 * memory than the limit, or the outputs do; DEADLINE_EXCEEDED: timeout_ms. */
SX_API SX_MUST_USE sx_status sx_servable_run(sx_servable *s, const char *signature,
                                             const sx_tensor *inputs, sx_outputs **out_outputs);

/* An output by its position in the signature, or by name (NULL if there is none); borrowed. */
SX_API const sx_tensor *sx_outputs_at(const sx_outputs *outputs, int i);
SX_API const sx_tensor *sx_outputs_find(const sx_outputs *outputs, const char *name);
SX_API void sx_outputs_free(sx_outputs *outputs); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
