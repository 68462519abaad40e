/* What the nodes of a profiled program are: their layer, their operator, what they cost. A layer is
 * a name scope of the model: of "block1/conv2d/conv2d" it is "block1/conv2d".
 *
 * Nodes of the backward pass lie in a scope of their own. Their layer is that of the variable that
 * they read, or whose gradient they make; else that of the latest value of the model that they
 * read; else that of the gradient that they read. */
#ifndef SX_CLI_PROFILE_LAYERS_H
#define SX_CLI_PROFILE_LAYERS_H

#include "base/arena.h"
#include "base/map.h"
#include "graph/ir.h"

typedef struct sx_profile_node {
    const char *name, *op, *layer;
    double flops, bytes; /* of one step */
} sx_profile_node;

/* Texts lie in the arena that it was read into, so that it may outlive the graph. */
typedef struct sx_profile_nodes {
    sx_profile_node *items;
    int n;
    sx_map by_name; /* name -> index + 1 */
    double flops;   /* of all */
} sx_profile_nodes;

/* {0} is one without nodes. */
SX_MUST_USE sx_status sx_profile_nodes_read(const sx_graph *g, int64_t batch, sx_arena *arena,
                                            sx_profile_nodes *out);
void sx_profile_nodes_deinit(sx_profile_nodes *nodes);

/* Which node a name means: that of the node, of one that a pass has made of it ("conv2d/part2"), or
 * of several, joined by "+", of which it is the one with the most arithmetic. NULL: none that is
 * known. */
const sx_profile_node *sx_profile_nodes_find(const sx_profile_nodes *nodes, const char *name);
/* The layer of such a name, by the node that it means, else by the name alone; in `arena`. */
const char *sx_profile_layer_of(const sx_profile_nodes *nodes, const char *name, sx_arena *arena);

#endif
