/* What the step loop adds to a program for a device that it does not wait for:
 *
 *   _latch    a variable, int32. Once the output SX_OK_OUTPUT of a step is false, it is 0, and that
 *             output of each later step is false: no update is applied, neither by that launch nor
 *             by one that was submitted before the host had read the first one's outputs.
 *   _packed   an output, int32 [words]: a 1, and the bits of the scalar outputs, so that one copy
 *             brings all that is shown of a step, or, as a ring, of a launch. */
#ifndef SX_RUNTIME_LAUNCH_GRAPH_H
#define SX_RUNTIME_LAUNCH_GRAPH_H

#include "graph/ir.h"

#define SX_LATCH_VARIABLE "_latch"
#define SX_PACKED_OUTPUT  "_packed"

/* Whether a scalar output of that type is packed: those of one word. */
bool sx_launch_packs(const sx_type *type);

/* *out is NULL for a graph that assigns no variable, or has no scalar outputs to pack. */
SX_MUST_USE sx_status sx_make_launch_graph(const sx_graph *g, sx_graph **out);

#endif
