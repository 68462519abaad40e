/* The operators as StableHLO: a table by operator (rows.def), and a static graph's nodes in place,
 * which operators with regions write into theirs. */
#ifndef SX_GRAPH_LOWER_STABLEHLO_LOWER_H
#define SX_GRAPH_LOWER_STABLEHLO_LOWER_H

#include "graph/ir.h"
#include "graph/lower/stablehlo/stablehlo.h"

/* ---- The table ---- */

/* A node to lower: set out[0 .. n_out). */
typedef struct sx_hlo_op {
    const void *attrs; /* with the batch size substituted */
    const char *name;  /* of the node */
    const sx_hlo *in;
    sx_hlo *out;
    const sx_type *in_types, *out_types; /* static */
    int n_in, n_out;
} sx_hlo_op;

typedef void sx_hlo_lower_fn(sx_hlo_writer *w, const sx_hlo_op *op);

typedef struct sx_hlo_row {
    sx_hlo_lower_fn *lower; /* NULL: */
    const char *none;       /* why a device program cannot have it */
} sx_hlo_row;
extern const sx_hlo_row sx_hlo_rows[SX_OPID_COUNT];

/* ---- Graphs ---- */

/* args[n_args] -> results[n_results]. The batch is fixed, and no argument is a variable. */
void sx_hlo_graph(sx_hlo_writer *w, const sx_graph *g, const sx_hlo *args, sx_hlo *results);

/* Whether it has a loop with a bound, in a region too. */
bool sx_hlo_has_bounds(const sx_hlo_writer *w, const sx_graph *g);
/* What is reached (stablehlo.h), as a value of the open region. */
sx_hlo sx_hlo_reached_value(sx_hlo_writer *w);

/* Element `i` (int64 scalar) along axis 0, and a stack with that element replaced. */
sx_hlo sx_hlo_take_row(sx_hlo_writer *w, sx_hlo stack, sx_hlo i);
sx_hlo sx_hlo_put_row(sx_hlo_writer *w, sx_hlo stack, sx_hlo value, sx_hlo i);

#endif
