/* The control flow of TensorFlow 1 (Switch, Merge, Enter, Exit, NextIteration, LoopCond) as that of
 * TensorFlow 2: nodes If and While, and the functions that they call. */
#ifndef SX_SAVEDMODEL_IMPORT_V1_CONTROL_H
#define SX_SAVEDMODEL_IMPORT_V1_CONTROL_H

#include "base/arena.h"
#include "base/map.h"
#include "proto/graph.pb-c.h"
#include "savedmodel/saved_model_read.h"

/* Where functions go that are made. */
typedef struct sx_v1_functions {
    const sx_saved_model *model; /* for its definitions of operators; NULL = none */
    sx_map *functions; /* name -> FunctionDef; the names that are made begin with a space */
    int n_made;
} sx_v1_functions;

/* *out[*out_n]: the nodes without this control flow; `nodes` if there is none. What is made lives
 * in `arena`. What is incomplete (a loop without its parts, a Merge without a predicate) stays as
 * it is. Errors: RESOURCE_EXHAUSTED: more than max_nodes nodes are made, or it takes too long. */
SX_MUST_USE sx_status sx_import_v1_control(Tensorflow__NodeDef *const *nodes, size_t n,
                                           int64_t max_nodes, sx_arena *arena,
                                           sx_v1_functions *made, Tensorflow__NodeDef ***out,
                                           size_t *out_n);

/* The same of a function's body; *out is the function itself if it has none. */
SX_MUST_USE sx_status sx_import_v1_function(const Tensorflow__FunctionDef *function,
                                            int64_t max_nodes, sx_arena *arena,
                                            sx_v1_functions *made,
                                            const Tensorflow__FunctionDef **out);

#endif
