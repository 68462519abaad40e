/* Placement: every node of a static graph gets one of the devices that a program has.
 *
 *   said             by a device scope: the first device that the name fits
 *   an assigned      what no scope says, but a variable gets: where the variable lies
 *   a source         argument or constant that no scope says: where it is read first
 *   of types alone   size: where its operand is, so that nothing is copied
 *   anything else    on the first device that can, as in TensorFlow
 *
 * Gradients and updates say the device of their node and of their variable (autodiff.c,
 * nn/optimizer.c), so that they follow without a rule. */
#ifndef SX_GRAPH_PLACEMENT_H
#define SX_GRAPH_PLACEMENT_H

#include "base/buffer.h"
#include "graph/ir.h"

typedef struct sx_placement_device {
    const char *name;               /* whole: "/job:localhost/replica:0/task:0/device:CPU:0" */
    bool (*runs)(const sx_node *n); /* whether it has the operator; NULL: all */
} sx_placement_device;

typedef struct sx_placement_options {
    const sx_placement_device *devices;
    int n_devices;
    /* A device that is not there, or that lacks the operator, is an error; else the first that can
     * takes its place, of the same type if there is one. */
    bool strict;
} sx_placement_options;

/* The graph with a device's whole name in every node. Errors: INVALID_ARGUMENT, of `strict`, names
 * the node and lists the devices; UNIMPLEMENTED: no device has the operator. */
SX_MUST_USE sx_status sx_pass_place(const sx_graph *g, const sx_placement_options *options,
                                    sx_graph **out);
/* A line for each node, as TensorFlow logs them: "dense/matmul: (MatMul): /job:localhost/…". */
void sx_placement_print(const sx_graph *placed, sx_buf *out);

#endif
