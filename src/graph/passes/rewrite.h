/* The driver of every graph-to-graph pass: walks the old graph in order, appends the nodes chosen
 * by the pass to a new graph, and maps each old value to the new one. */
#ifndef SX_GRAPH_PASSES_REWRITE_H
#define SX_GRAPH_PASSES_REWRITE_H

#include "graph/builder.h"

/* The result of a pass on a region, as on any graph. */
typedef sx_status sx_region_pass(const sx_graph *region, void *user, sx_graph **out);

typedef struct sx_rewrite {
    const sx_graph *from;
    sx_builder *to;
    sx_value *map;           /* [from->n_values]: the new value of each old one */
    sx_region_pass *regions; /* NULL: regions are not changed */
    void *user;
} sx_rewrite;

/* Handles one node that is not a parameter: sets map[] of all its outputs, with sx_rewrite_keep()
 * or otherwise. Leaving them empty removes the node. */
typedef void sx_rewrite_fn(sx_rewrite *rw, const sx_node *node);

/* Runs `fn` over the nodes. Args are kept, with the batch set to `batch` if it is > 0; results are
 * mapped. */
SX_MUST_USE sx_status sx_rewrite_run(const sx_graph *from, int64_t batch, sx_rewrite_fn *fn,
                                     void *user, sx_graph **out);

/* The same, with a pass for the regions of the nodes that `fn` keeps. */
SX_MUST_USE sx_status sx_rewrite_run_deep(const sx_graph *from, int64_t batch, sx_rewrite_fn *fn,
                                          sx_region_pass *regions, void *user, sx_graph **out);

/* Appends the same node over the mapped inputs, with its name, device and source line; `attrs` NULL
 * = its own. */
void sx_rewrite_keep(sx_rewrite *rw, const sx_node *node, const void *attrs);

/* Appends a constant in place of the node's k-th output, with the node's name and source line: a
 * generated name could be that of a later node of the old graph. */
void sx_rewrite_constant(sx_rewrite *rw, const sx_node *node, int k, const sx_tensor *value);

#endif
