/* The graph for `sextant compile`: of a zoo model or C file, built now; of a run, as stored; of a
 * SavedModel's signature, the device's part. */
#ifndef SX_CLI_COMPILE_MODEL_H
#define SX_CLI_COMPILE_MODEL_H

#include "model_args.h"
#include "graph/specialize.h"
#include "savedmodel/saved_model_read.h"
#include "train/run_dir.h"

typedef struct sx_compile_model_request {
    const char *name;
    sx_mode mode;          /* SX_TRAIN or SX_PREDICT */
    const char *precision; /* "bfloat16", "float32"; NULL = `by_default` */
    sx_dtype by_default;
    const sx_words *params;
    int64_t image_size;    /* 0 = the model's */
    const char *signature; /* of a SavedModel; NULL = serving_default */
} sx_compile_model_request;

typedef struct sx_compile_model {
    const sx_graph *graph; /* symbolic batch */
    sx_dtype precision;    /* compute type of the layers */
    sx_model_args args;    /* owners of `graph` */
    sx_graph *built;
    sx_run_graphs run;
    sx_saved_model *saved;
    sx_library *library;
    sx_specialized *examples; /* of the signature */
} sx_compile_model;

/* Call sx_compile_model_end() also after an error. Errors: those of sx_model_args_read(); a usage
 * error for an option that is fixed in a run or a SavedModel; INVALID_ARGUMENT: the training step
 * of a SavedModel, which has none, or a folder of versions; NOT_FOUND: no such graph or signature;
 * UNIMPLEMENTED: unsupported operators. */
SX_MUST_USE sx_status sx_compile_model_open(sx_invocation *inv,
                                            const sx_compile_model_request *request,
                                            sx_compile_model *out);
void sx_compile_model_end(sx_compile_model *model);

#endif
