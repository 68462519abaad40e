/* The frame of every graph-to-graph pass: walk the old graph in order, put into a new one what the
 * pass decides, and remember which new value stands for which old one. */
#ifndef SX_GRAPH_PASSES_REWRITE_H
#define SX_GRAPH_PASSES_REWRITE_H

#include "graph/builder.h"

typedef struct sx_rewrite {
    const sx_graph *from;
    sx_builder *to;
    sx_value *map; /* [from->n_values]: the new value of each old one */
    void *user;
} sx_rewrite;

/* Decides about one node that is not a parameter: set map[] of all its outputs, by
 * sx_rewrite_keep() or otherwise; leaving them empty drops the node. */
typedef void sx_rewrite_fn(sx_rewrite *rw, const sx_node *node);

/* Runs `fn` over the nodes; args are kept (types through `batch` when it is > 0), results mapped.
 */
SX_MUST_USE sx_status sx_rewrite_run(const sx_graph *from, int64_t batch, sx_rewrite_fn *fn,
                                     void *user, sx_graph **out);

/* The same node over the mapped inputs, under its own name, device and place; `attrs` NULL = its
 * own. */
void sx_rewrite_keep(sx_rewrite *rw, const sx_node *node, const void *attrs);

/* A constant in place of the node's k-th output, under the node's name and place: a name made anew
 * could be one that a later node of the old graph has. */
void sx_rewrite_constant(sx_rewrite *rw, const sx_node *node, int k, const sx_tensor *value);

#endif
