/* Runs a static graph by host kernels, one node after the other: what the host kernels of
 * operators with regions do with them. */
#ifndef SX_GRAPH_INTERPRET_H
#define SX_GRAPH_INTERPRET_H

#include "graph/host.h"

/* args[n_args] -> results[n_results], which have room for their static types. In the carriers or
 * the dtypes' own bytes, as `like` has its operands. Values live in an arena of the call's own,
 * charged to like's budget. CANCELLED, DEADLINE_EXCEEDED: like->cancel says so. */
SX_MUST_USE sx_status sx_interpret(const sx_kernel_call *like, const sx_graph *g,
                                   const sx_host_tensor *args, const sx_host_tensor *results);

/* Bytes of a tensor of that type as `like` has its operands; 0 where it is not static. */
size_t sx_interpret_bytes(const sx_kernel_call *like, const sx_type *type);

#endif
