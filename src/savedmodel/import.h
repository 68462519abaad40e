/* A signature of a SavedModel as a graph of ours (design D9).
 *
 *   string input [N] ─ preprocessing ─┐         host segment, run by image/preprocess
 *   float inputs ─────────────────────┴─ graph ─┬─ numeric outputs
 *                                               └─ index ─ lookup ─ string output       host
 * segment
 *
 * Functions are inlined, constants folded into attributes where operators want them, variables
 * become the graph's variables under their checkpoint keys. TensorFlow operators are mapped by the
 * table in import_ops.c; those that it lacks are refused, all at once, by node name and operator.
 * Encoded images are recognised by the mark that export leaves (export.h). */
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
    sx_graph *graph; /* its inputs and outputs are called by the signature's keys; its variables by
                        their checkpoint keys */
    const char *image_bytes; /* key of the input of encoded images, or NULL */
    const char *image;       /* the graph's input that preprocessing feeds */
    sx_preprocess preprocess;
    sx_import_lookup *lookups;
    size_t n_lookups;
    sx_arena arena; /* names, constants */
} sx_import;

/* Imports one signature. `model` must outlive the result.
 * UNIMPLEMENTED: operators or tensors that we have no form of, all named. DATA_LOSS: a graph that
 * is none: cycles, dangling references. RESOURCE_EXHAUSTED: inlining beyond 200,000 nodes, or
 * `memory`, which is charged with the result (NULL = no limit) and outlives it. */
SX_MUST_USE sx_status sx_import_signature(const sx_saved_model *model, const char *signature,
                                          sx_budget *memory, sx_import **out_import);
void sx_import_destroy(sx_import *import); /* NULL is fine */

#endif
