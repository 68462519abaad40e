/* A static graph's nodes as StableHLO, in place: what operators with regions write into theirs. */
#ifndef SX_GRAPH_LOWER_STABLEHLO_GRAPH_H
#define SX_GRAPH_LOWER_STABLEHLO_GRAPH_H

#include "graph/ir.h"
#include "graph/lower/stablehlo.h"

/* args[n_args] -> results[n_results]. The batch is fixed, and no argument is a variable. */
void sx_hlo_graph(sx_hlo_writer *w, const sx_graph *g, const sx_hlo *args, sx_hlo *results);

/* Element `i` (int64 scalar) along axis 0, and a stack with that element replaced. */
sx_hlo sx_hlo_row(sx_hlo_writer *w, sx_hlo stack, sx_hlo i);
sx_hlo sx_hlo_set_row(sx_hlo_writer *w, sx_hlo stack, sx_hlo value, sx_hlo i);

#endif
