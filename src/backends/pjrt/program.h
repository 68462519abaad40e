/* The program text of a whole graph (design D3): each node by its operator's `to_stablehlo`.
 *
 *   arguments  the graph's, in order; a variable that the program assigns is donated: its argument
 *              carries the number of the result that is written over it
 *   results    the graph's, in order
 *
 * Replicas (design D11). The same program runs on each of n devices over its part of the batch:
 * values with the batch dimension hold batch / n examples, all others are equal on all devices.
 * Where a node loses the batch, its results meet by all_reduce as its operator says (`combine`), so
 * loss, gradients and the moments of batch norm are those of the whole batch; random operators
 * count positions in the whole batch (D5). */
#ifndef SX_BACKENDS_PJRT_PROGRAM_H
#define SX_BACKENDS_PJRT_PROGRAM_H

#include "graph/ir.h"

typedef struct sx_pjrt_program_options {
    int64_t batch; /* of all replicas together; ignored by a graph without it */
    int replicas;  /* 0 = 1 */
    sx_hlo_options hlo;
} sx_pjrt_program_options;

typedef struct sx_pjrt_program {
    const char *text;
    size_t size;
    sx_hlo_writer *writer; /* owns the text */
} sx_pjrt_program;

/* Errors: INVALID_ARGUMENT (the replicas do not divide the batch: the nearest batches that they
 * do), UNIMPLEMENTED (an operator that device programs or replicas do not have: its node and
 * place). */
SX_MUST_USE sx_status sx_pjrt_program_create(const sx_graph *g,
                                             const sx_pjrt_program_options *options,
                                             sx_pjrt_program *out);
void sx_pjrt_program_destroy(sx_pjrt_program *p); /* zero is fine */

/* The node that the text of a plugin's error names, or NULL: operations carry loc("node"). */
const sx_node *sx_pjrt_node_of_message(const sx_graph *g, const char *message);

#endif
