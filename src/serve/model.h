/* The interface of a model runtime: load a version's directory, describe its signatures, run,
 * unload. The server calls models only through this table; tests use a fake one. */
#ifndef SX_SERVE_MODEL_H
#define SX_SERVE_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include <sextant/types.h>

#include "base/arena.h"
#include "base/cancel.h"

/* One named tensor of a signature. Unknown dimensions are negative (SX_BATCH, SX_UNKNOWN_DIM). */
typedef struct sx_serve_tensor {
    const char *name;        /* "images": the name in requests */
    const char *tensor_name; /* "serving_default_images:0": shown in metadata; may be "" */
    sx_type type;
    bool unknown_rank; /* then type has only the dtype */
} sx_serve_tensor;

typedef struct sx_serve_signature {
    const char *name;   /* "serving_default" */
    const char *method; /* "tensorflow/serving/predict" */
    size_t input_count, output_count;
    const sx_serve_tensor *inputs, *outputs;
    bool may_take_long; /* small inputs, too */
    /* Each row of the inputs is computed by itself: calls may be merged. The numbers of rows that
     * run together, ascending; others are padded, larger ones cut into these. NULL: they may not.
     */
    const int64_t *batch_sizes;
    int batch_size_count;
    bool one_by_itself; /* with batch_sizes: a call of one row is not merged, nor cut off another */
} sx_serve_signature;

/* The name of the signature that a request means: an empty one is "serving_default". */
sx_bytes sx_serve_signature_name(sx_bytes name);
/* The signature of that name, which may be empty; NULL: there is none. */
const sx_serve_signature *sx_serve_find_signature(const sx_serve_signature *signatures,
                                                  size_t count, sx_bytes name);
/* FAILED_PRECONDITION, in TensorFlow Serving's words: there is no such signature. */
SX_MUST_USE sx_status sx_serve_no_signature(sx_bytes name);

/* Whether the strings of an input or output are bytes, such as encoded images, and not text: by
 * TensorFlow Serving's convention, its name ends in _bytes. */
bool sx_serve_holds_bytes(const char *name);

/* The name of TensorFlow's DataType: "DT_FLOAT". */
const char *sx_serve_dtype_name(sx_dtype dtype);

/* The runtime's functions; a static table. `model` is the result of load. */
typedef struct sx_serve_model_ops {
    /* Loads the version in `version_dir` (absolute). Runs on a loader thread and may take long:
     * checks `cancel`, which says when nobody waits for it any more. Error messages appear in the
     * model status. */
    sx_status (*load)(void *user, const char *version_dir, const sx_cancel *cancel,
                      void **out_model);
    /* The signatures, borrowed until unload; any thread. */
    const sx_serve_signature *(*signatures)(void *model, size_t *out_count);
    /* Runs one signature on a whole batch. `inputs` are in the signature's order, of its dtypes,
     * with dimensions that match its shapes. Sets outputs[i].type and .data, in the signature's
     * order; the data is owned by `arena` or the model, and valid until the arena is freed. Charges
     * the arena's budget before allocating, and checks `cancel` between pieces of work.
     * Thread-safe. INVALID_ARGUMENT: invalid inputs. */
    sx_status (*run)(void *model, const sx_serve_signature *signature, const sx_tensor *inputs,
                     const sx_cancel *cancel, sx_arena *arena, sx_tensor *outputs);
    /* No run is in progress and none will start. */
    void (*unload)(void *model);
    /* Whether a run of so many rows uses all processors; NULL: none does. Any thread. */
    bool (*is_wide)(void *model, const sx_serve_signature *signature, int64_t rows);
    /* What it holds, when it has been loaded; NULL: unknown. Any thread. */
    size_t (*memory_bytes)(void *model);
} sx_serve_model_ops;

#endif
