/* What the server asks of a model runtime: load a version's directory, say its signatures, run,
 * unload. The server knows models through this table only; tests bring a fake one. */
#ifndef SX_SERVE_MODEL_H
#define SX_SERVE_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include <sextant/types.h>

#include "base/arena.h"
#include "base/cancel.h"

/* One named tensor of a signature. Unknown dimensions are negative (SX_BATCH, SX_UNKNOWN_DIM). */
typedef struct sx_serve_tensor {
    const char *name;        /* "images": what clients say */
    const char *tensor_name; /* "serving_default_images:0": what metadata shows; may be "" */
    sx_type type;
    bool unknown_rank; /* then type holds the dtype alone */
} sx_serve_tensor;

typedef struct sx_serve_signature {
    const char *name;   /* "serving_default" */
    const char *method; /* "tensorflow/serving/predict" */
    size_t input_count, output_count;
    const sx_serve_tensor *inputs, *outputs;
    bool decodes_images; /* small inputs may take long */
} sx_serve_signature;

/* The runtime's functions; a static table. `model` is what load gave. */
typedef struct sx_serve_model_ops {
    /* Loads the version in `version_dir` (absolute). Runs on a loader thread, may take long. An
     * error's message goes to the status page. */
    sx_status (*load)(void *user, const char *version_dir, void **out_model);
    /* The signatures, borrowed until unload; any thread. */
    const sx_serve_signature *(*signatures)(void *model, size_t *out_count);
    /* Runs one signature on a whole batch. `inputs` are in the signature's order, of its dtypes, of
     * dimensions that fit its shapes. Sets outputs[i].type and .data, in the signature's order; the
     * data lives in `arena` or with the model, until the arena is freed. Charges the arena's budget
     * before it uses memory, and checks `cancel` between pieces of its work. Any number of threads
     * at once. INVALID_ARGUMENT if the inputs are at fault. */
    sx_status (*run)(void *model, const sx_serve_signature *signature, const sx_tensor *inputs,
                     const sx_cancel *cancel, sx_arena *arena, sx_tensor *outputs);
    /* No run is under way and none will begin. */
    void (*unload)(void *model);
} sx_serve_model_ops;

#endif
