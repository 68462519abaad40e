/* Imports a signature of a SavedModel as a Sextant graph.
 *
 *   string input [N] ─ preprocessing ─┐
 *   float inputs ─────────────────────┴─ graph ─┬─ numeric outputs
 *                                               └─ index ─ lookup ─ string output
 *
 * Preprocessing and lookup run on the host.
 *
 * Functions are inlined, constants become attributes where operators need them, and variables
 * become the graph's variables, named by their checkpoint keys. TensorFlow's operators are read by
 * ours (graph/lower/tf_reader.h) or composed in import_ops.c; unsupported ones are reported
 * together, by operator and node name. Encoded images are recognized by the attribute that export
 * writes (export.h). */
#ifndef SX_SAVEDMODEL_IMPORT_H
#define SX_SAVEDMODEL_IMPORT_H

#include "graph/ir.h"
#include "image/preprocess.h"
#include "savedmodel/saved_model_read.h"

/* A string output: names[i] for each element i of the graph's output `index`. */
typedef struct sx_import_lookup {
    const char *output; /* the signature's key */
    const char *index;  /* the graph's output, int32 or int64 [N] */
    const sx_bytes *names;
    int64_t n_names;
} sx_import_lookup;

typedef struct sx_import {
    const sx_signature *signature; /* the model's */
    sx_graph *graph; /* inputs and outputs are named by the signature's keys, variables by their
                        checkpoint keys */
    const char *image_bytes; /* key of the input of encoded images, or NULL */
    const char *image;       /* the graph's input that preprocessing feeds */
    sx_preprocess preprocess;
    sx_import_lookup *lookups;
    size_t n_lookups;
    sx_arena arena; /* names, constants */
} sx_import;

/* Imports one signature. `model` must outlive the result. UNIMPLEMENTED: unsupported operators or
 * tensors; the message names them all. DATA_LOSS: an invalid graph: cycles, dangling references.
 * RESOURCE_EXHAUSTED: inlining beyond 200,000 nodes, or `memory`, which is charged with the result
 * (NULL = no limit) and outlives it. */
SX_MUST_USE sx_status sx_import_signature(const sx_saved_model *model, const char *signature,
                                          sx_budget *memory, sx_import **out_import);
void sx_import_destroy(sx_import *import); /* NULL is allowed */

#endif
