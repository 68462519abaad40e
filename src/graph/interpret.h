/* Runs a static graph with host kernels, one node after another; used by the host kernels of
 * operators with regions. */
#ifndef SX_GRAPH_INTERPRET_H
#define SX_GRAPH_INTERPRET_H

#include "graph/host.h"

/* args[n_args] -> results[n_results], which have room for their static types. Tensors are in
 * carriers or in the dtypes' own bytes, like the operands of `like`. Values are in an arena of the
 * call, charged to the budget of `like`. CANCELLED, DEADLINE_EXCEEDED: according to like->cancel.
 */
SX_MUST_USE sx_status sx_interpret(const sx_kernel_call *like, const sx_graph *g,
                                   const sx_host_tensor *args, const sx_host_tensor *results);

/* The size of a tensor of that type, represented like the operands of `like`; -1 if it is not
 * static or the size overflows. */
int64_t sx_interpret_bytes(const sx_kernel_call *like, const sx_type *type);

#endif
