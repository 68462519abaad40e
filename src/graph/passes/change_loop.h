/* Loops with further state or operands, for passes. */
#ifndef SX_GRAPH_PASSES_CHANGE_LOOP_H
#define SX_GRAPH_PASSES_CHANGE_LOOP_H

#include "graph/passes/rewrite.h"

/* A node of the body whose only result becomes row `index`, a value of the body, of new arg `arg`.
 */
typedef struct sx_loop_row {
    int node, arg;
    sx_value index;
    bool checked; /* as sx_row_attrs */
} sx_loop_row;

/* New state: its arg, with `value` as row `index`, both values of the body, in each trip. */
typedef struct sx_loop_put {
    sx_value value, index;
} sx_loop_put;

/* `n_added` new args: state behind the old one, all of them with a put, or without puts operands
 * behind the old ones. */
typedef struct sx_loop_change {
    int n_added;
    const sx_value *added; /* of the new graph */
    int n_rows;
    const sx_loop_row *rows;
    const sx_loop_put *puts; /* [n_added] or NULL */
} sx_loop_change;

/* Appends the loop with the change, its regions changed by the rewrite's pass, too, and maps its
 * outputs. *out_first: its first output. */
SX_MUST_USE sx_status sx_rewrite_loop(sx_rewrite *rw, const sx_node *loop,
                                      const sx_loop_change *change, sx_value *out_first);

#endif
