/* The driver of every graph-to-graph pass: walks the old graph in order, appends the nodes chosen
 * by the pass to a new graph, and maps each old value to the new one. */
#ifndef SX_GRAPH_PASSES_REWRITE_H
#define SX_GRAPH_PASSES_REWRITE_H

#include "graph/builder.h"

/* The result of a pass on a region, as on any graph. */
typedef sx_status sx_region_pass(const sx_graph *region, void *user, sx_graph **out);

typedef struct sx_rewrite sx_rewrite;

/* Handles one node that is not a parameter: sets map[] of all its outputs, with sx_rewrite_keep()
 * or otherwise. Leaving them empty removes the node. */
typedef void sx_rewrite_fn(sx_rewrite *rw, const sx_node *node);

typedef struct sx_rewrite_hooks {
    sx_rewrite_fn *node;
    bool (*arg)(sx_rewrite *rw, const sx_arg *arg); /* sets map[]; false: the arg is to be kept */
    void (*end)(sx_rewrite *rw);                    /* after all nodes, before the results */
} sx_rewrite_hooks;

struct sx_rewrite {
    const sx_graph *from;
    sx_builder *to;
    sx_value *map; /* [from->n_values]: the new value of each old one */
    sx_rewrite_hooks hooks;
    sx_region_pass *regions; /* NULL: regions are not changed */
    void *user;
};

/* Runs `fn` over the nodes. Args are kept, with the batch set to `batch` if it is > 0; results are
 * mapped. */
SX_MUST_USE sx_status sx_rewrite_run(const sx_graph *from, int64_t batch, sx_rewrite_fn *fn,
                                     void *user, sx_graph **out);

/* The same, with a pass for the regions of the nodes that `fn` keeps. */
SX_MUST_USE sx_status sx_rewrite_run_deep(const sx_graph *from, int64_t batch, sx_rewrite_fn *fn,
                                          sx_region_pass *regions, void *user, sx_graph **out);

/* The same, with more to do than nodes (arg and end may be NULL). */
SX_MUST_USE sx_status sx_rewrite_run_hooks(const sx_graph *from, const sx_rewrite_hooks *hooks,
                                           void *user, sx_graph **out);

/* Appends the same node over the mapped inputs, with its name, device and source line; `attrs` NULL
 * = its own. */
void sx_rewrite_keep(sx_rewrite *rw, const sx_node *node, const void *attrs);

/* Appends a node in the place of `node`: with its name, device and source line. Sets no map[]. */
sx_value sx_rewrite_node(sx_rewrite *rw, const sx_node *node, const sx_op_def *op,
                         const void *attrs, const sx_value *inputs, int n_inputs);

/* The same of a further node, whose name is the node's and a suffix, of at most 63 bytes: a
 * generated name could be that of a later node of the old graph. */
sx_value sx_rewrite_beside(sx_rewrite *rw, const sx_node *node, const sx_op_def *op,
                           const void *attrs, const sx_value *inputs, int n_inputs,
                           const char *suffix, ...) SX_PRINTF(7, 8);

/* Appends a constant in place of the node's k-th output. */
void sx_rewrite_constant(sx_rewrite *rw, const sx_node *node, int k, const sx_tensor *value);

/* Adds to readers[g->n_values] how many nodes' inputs and results each value is. */
void sx_rewrite_count_readers(const sx_graph *g, int *readers);

/* The node of `g` that computes what node `n` of another graph does: operator, attributes, device,
 * and inputs, of which like[] says the value in `g` (0: none). NULL if there is none. The search
 * begins at node *at, where nodes in the same order are found at once, and leaves it behind the
 * node. */
const sx_node *sx_rewrite_find_like(const sx_graph *g, const sx_node *n, const uint32_t *like,
                                    int *at);

#endif
