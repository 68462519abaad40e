/* Dividing a program along the batch: what the operators' batch rules (op_def.h) say about the
 * nodes of a graph. Every backend divides by this, into shards on the CPU, into replicas on
 * devices. */
#ifndef SX_GRAPH_SPMD_H
#define SX_GRAPH_SPMD_H

#include "graph/ir.h"

/* How a node is computed where each part of the program holds a part of the batch. */
typedef enum sx_division {
    SX_COMMON,   /* alike in all parts: no value with the batch, or only types of the whole batch */
    SX_DIVIDED,  /* each part computes its examples */
    SX_COMBINED, /* the same, and its outputs without the batch are then combined by its rule */
    SX_GATHERED, /* examples depend on one another: only the whole batch gives the result */
} sx_division;

bool sx_reads_batch(const sx_graph *g, const sx_node *n);
sx_division sx_node_division(const sx_graph *g, const sx_node *n);

#endif
