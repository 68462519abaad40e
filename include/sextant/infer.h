/* Inference: load a SavedModel, run it. Any number of threads may run one servable at once.
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

#include <sextant/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sx_servable sx_servable;
typedef struct sx_outputs sx_outputs;

typedef struct sx_servable_options {
    size_t struct_size;
    const char *device; /* NULL = the default */
    int threads;        /* 0 = as many as the process may use */
} sx_servable_options;

/* An input or output of a signature. */
typedef struct sx_port {
    const char *name;   /* "image_bytes" */
    const char *tensor; /* TensorFlow's name of it: "image_bytes:0" */
    sx_type type;       /* SX_BATCH in front; SX_DYNAMIC: unknown */
    bool unknown_rank;  /* the type then holds the dtype alone */
} sx_port;

typedef struct sx_signature_info {
    const char *name, *method;
    int n_inputs, n_outputs;
    const sx_port *inputs, *outputs; /* sorted by name */
} sx_signature_info;

/* Loads one version directory (with saved_model.pb in it): graph and weights; nothing is run.
 * Errors: NOT_FOUND; DATA_LOSS corrupt files; UNIMPLEMENTED operators that we do not have, all
 * named. */
SX_API SX_MUST_USE sx_status sx_servable_load(const char *dir, const sx_servable_options *options,
                                              sx_servable **out_servable);
SX_API sx_servable *sx_servable_retain(sx_servable *s);
SX_API void sx_servable_release(sx_servable *s); /* NULL is fine; the last one frees it */

/* Signatures that can be run, sorted by name; borrowed. */
SX_API const sx_signature_info *sx_servable_signatures(const sx_servable *s, int *out_count);
/* NULL name = "serving_default". NOT_FOUND names those that exist. */
SX_API SX_MUST_USE sx_status sx_servable_find(const sx_servable *s, const char *name,
                                              const sx_signature_info **out_signature);

/* Runs a signature on a batch of any size. `inputs` are in the signature's order (strings: arrays
 * of sx_bytes); borrowed for the call. Each example's result is its own: it does not depend on the
 * others in the batch. Errors: INVALID_ARGUMENT an input of another dtype or shape, batch sizes
 * that differ, an image that is none (with its number). */
SX_API SX_MUST_USE sx_status sx_servable_run(sx_servable *s, const char *signature,
                                             const sx_tensor *inputs, sx_outputs **out_outputs);

/* Outputs in the signature's order, or by name (NULL if there is none); borrowed.
 */
SX_API const sx_tensor *sx_outputs_at(const sx_outputs *outputs, int i);
SX_API const sx_tensor *sx_outputs_find(const sx_outputs *outputs, const char *name);
SX_API void sx_outputs_free(sx_outputs *outputs); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
