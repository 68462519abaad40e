/* A SavedModel ready to run: its signatures imported as functions (import_library.h), its variables
 * on a device.
 *
 * A function that computes each example by itself runs in pieces of the batch (runtime/pieces.h):
 * few executables, and memory that does not grow with the batch. Any other, one that couples
 * examples, has loops or shapes that are not known beforehand, runs over the whole batch at once,
 * and so does any whose inputs have different numbers of rows
 * (runtime/function_run.h): compiled for each new shape, the deadline checked before each step and
 * each trip of a loop that the host drives.
 *
 * Thread-safe: any number of threads may run at once, and as many execute as there are processors,
 * each in a slot of the program (session.h); with more than one thread for the device, large
 * programs take turns on it. With several devices, slots lie on each of them; a model that assigns
 * variables, and what runs over the whole batch at once, runs on the first. */
#ifndef SX_SAVEDMODEL_PREDICTOR_H
#define SX_SAVEDMODEL_PREDICTOR_H

#include <sextant/infer.h>

#include "base/cancel.h"
#include "image/image.h"
#include "savedmodel/saved_model_read.h"

typedef struct sx_predictor sx_predictor;

typedef struct sx_predictor_options {
    const char *tags;      /* of the graph, comma-separated; NULL = "serve" */
    sx_strategy_args on;   /* the device, or those among which batches are divided */
    sx_strategy *strategy; /* instead of these; the predictor keeps a reference. NULL = none */
    int threads;           /* of cpu; 0 = all */
    const sx_image_limits *limits; /* of encoded images; NULL = those for untrusted requests */
    /* Maximum memory of graphs, variables, programs and their runs together; checked before it is
     * allocated. 0 = a quarter of the memory of the device, or of the machine (or cgroup) if the
     * device is the CPU, so that two versions, while one replaces the other, and the requests fit;
     * negative = no limit. */
    int64_t memory_limit_bytes;
    /* What errors say that limit applies to; outlives the predictor. NULL = "the model". */
    const char *memory_limit_of;
    /* Compile each signature that runs in pieces for the smallest of their sizes when loading, and
     * pack its weights: one that does not fit is an error of the load, not of the first request,
     * and the first request takes no longer than later ones. */
    bool compile_at_load;
    int64_t compile_rows;       /* and for the other sizes up to this */
    const int64_t *batch_sizes; /* [batch_size_count] of pieces, ascending; NULL: 1, 2, 4 … 64 */
    int batch_size_count;
    /* Checked before each node that is imported, each variable that is read and each program that
     * is compiled; used by the load alone. NULL = none. */
    const sx_cancel *cancel;
    const sx_int8_calibration *int8; /* as in sx_servable_options; NULL = float32 */
    bool bfloat16;                   /* as in sx_servable_options */
    struct sx_profile *profile;      /* as in sx_cpu_options; outlives the predictor */
    struct sx_timeline *timeline;    /* as in sx_platform_options; the same */
} sx_predictor_options;

/* Loads dir/saved_model.pb and its variables; `options` may be NULL. Signatures that cannot be
 * imported, or whose programs do not fit, can be inspected but fail when run; if none can be run,
 * the error of the default one is returned. RESOURCE_EXHAUSTED: variables and graphs do not fit.
 * CANCELLED, DEADLINE_EXCEEDED: according to `cancel`. */
SX_MUST_USE sx_status sx_predictor_load(const char *dir, const sx_predictor_options *options,
                                        sx_predictor **out_predictor);
void sx_predictor_unload(sx_predictor *p); /* NULL is allowed; no run may be in progress */

/* The limit in force; 0 = none. */
size_t sx_predictor_memory_limit(const sx_predictor *p);
/* Of graphs, variables and programs, now; not of runs. */
size_t sx_predictor_memory_used(const sx_predictor *p);
/* The model: signatures, variables. Borrowed. */
const sx_saved_model *sx_predictor_model(const sx_predictor *p);

/* Whether small inputs may take long: encoded images, loops, shapes or numbers of rows to be
 * compiled for. */
bool sx_predictor_may_take_long(const sx_predictor *p, const sx_signature *signature);

/* The sizes of the pieces in which a signature runs, if several batches can be run as one; else
 * NULL. */
const int64_t *sx_predictor_batch_sizes(const sx_predictor *p, const sx_signature *signature,
                                        int *out_count);
/* Whether one row is computed otherwise than several, and so is not to be merged with others. */
bool sx_predictor_runs_one_by_itself(const sx_predictor *p, const sx_signature *signature);
/* Whether a run of so many rows uses the whole device. */
bool sx_predictor_is_wide(const sx_predictor *p, const sx_signature *signature, int64_t rows);

/* Runs a signature of the model on inputs[n_inputs] in its order. outputs[n_outputs] in its order
 * get types and data in `arena`, whose budget is charged for all memory of the run before it is
 * allocated. `cancel` (may be NULL) is checked before each image and each piece. INVALID_ARGUMENT:
 * a wrong dtype or shape; the message names the input. UNIMPLEMENTED: a signature that could not be
 * imported. RESOURCE_EXHAUSTED: out of memory or over the budget. CANCELLED, DEADLINE_EXCEEDED:
 * according to `cancel`. And decoding errors, with the index of the image. */
SX_MUST_USE sx_status sx_predictor_run(sx_predictor *p, const sx_signature *signature,
                                       const sx_tensor *inputs, const sx_cancel *cancel,
                                       sx_arena *arena, sx_tensor *outputs);

#endif
