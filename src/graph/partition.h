/* Partition: a placed graph is cut into segments of one device each.
 *
 *   level     of a node: twice how often a value on the way to it has changed the device, or the
 *             part; one more where products are made that no other segment waits for
 *   segment   the nodes of one device, one level and one part, in program order: a graph of its own
 *   border    a value that is made in one segment and read in others: copied, if on other devices
 *
 * A segment waits for segments of lower levels only, so that they run in an order; those that do
 * not wait for one another run at the same time. A rounded value is rounded again where it arrives,
 * for products to see. Constants are in every segment that reads them; arguments, too: whoever runs
 * the segments brings their values to the devices. */
#ifndef SX_GRAPH_PARTITION_H
#define SX_GRAPH_PARTITION_H

#include "graph/ir.h"

/* What an argument or result of a segment's graph is outside. */
typedef enum sx_end_kind {
    SX_END_ARG,    /* argument of the whole graph */
    SX_END_BORDER, /* border */
    SX_END_OUTPUT, /* result of the whole graph, an output */
    SX_END_UPDATE, /* result of the whole graph: assigned here, in the variable's own buffer */
    SX_END_LATER,  /* the same, to be assigned when all segments have ended: others may read it */
} sx_end_kind;

typedef struct sx_segment_end {
    sx_end_kind kind;
    int index; /* of the arguments, borders or results */
} sx_segment_end;

typedef struct sx_segment {
    int device, level, part;
    sx_graph *graph;     /* its own */
    sx_segment_end *in;  /* [graph->n_args] */
    sx_segment_end *out; /* [graph->n_results] */
    int *after;          /* [n_after]: the segments that must have ended, each once */
    int n_after;
} sx_segment;

typedef struct sx_border {
    sx_type type; /* as in the graph: N is N */
    int segment;  /* that makes it */
} sx_border;

typedef struct sx_partition {
    sx_arena arena;
    sx_segment *segments; /* [n_segments], a segment after those that it waits for */
    int n_segments;
    sx_border *borders;
    int n_borders;
} sx_partition;

/* `devices` are the names that the nodes have (placement.h). A node without one, which a pass has
 * made, is where the largest of its operands is. */
typedef struct sx_partition_options {
    const char *const *devices;
    int n_devices;
    const int *part; /* [n_values]: sx_spmd.part; the parts of the batch have segments of their own,
                        which follow one another through the devices. NULL = none */
    sx_budget *memory; /* charged for the partition, which it outlives; NULL = none */
} sx_partition_options;

SX_MUST_USE sx_status sx_partition_create(const sx_graph *g, const sx_partition_options *options,
                                          sx_partition *out);
void sx_partition_deinit(sx_partition *p); /* zero is fine */

#endif
