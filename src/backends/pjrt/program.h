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
 * count positions in the whole batch (D5).
 *
 * Batch norm in training (design D11): SX_BATCH_NORM_SYNC meets as above. With REPLICA the moments
 * that a batch_norm_train takes, and the sums that its own gradient takes, are those of the
 * replica's part; the moving averages see the mean of the parts' moments, and the gradients of
 * scale and offset are sums over all.
 *
 * A batch that the replicas do not divide (`any_batch`: the last of an epoch): each replica
 * computes all of it, with no cut and no meeting, so loss, moments and gradients are one device's.
 * New values of variables are the first replica's, on all: replicas whose arithmetic varies from
 * run to run (a GPU's atomics) must not drift apart.
 *
 * Step loop (design D4). With steps = K > 1 the program is a loop of up to K steps over a
 * superbatch:
 *
 *   arguments  inputs that have the batch are [K, batch, …]; the others, and the variables, are as
 *              ever; one more at the end, int64: how many steps to run, at most K
 *   results    assigned variables after the last step; outputs as rings [K, …], row i of step i,
 *              zero where no step was; one more at the end, int64: how many steps ran
 *
 * The loop leaves after the first step whose `ok_output` is false. */
#ifndef SX_BACKENDS_PJRT_PROGRAM_H
#define SX_BACKENDS_PJRT_PROGRAM_H

#include "backends/backend.h"

typedef struct sx_pjrt_program_options {
    int64_t batch;         /* of all replicas together; ignored by a graph without it */
    int replicas;          /* 0 = 1 */
    int64_t steps;         /* of the loop; 0 and 1 = no loop */
    const char *ok_output; /* bool scalar output that lets the loop go on; NULL = none */
    bool any_batch;        /* a batch that the replicas do not divide is computed whole by each */
    sx_batch_norm_scope batch_norm;
    sx_hlo_options hlo;
} sx_pjrt_program_options;

typedef struct sx_pjrt_program {
    const char *text;
    size_t size;
    sx_hlo_writer *writer; /* owns the text */
} sx_pjrt_program;

/* Into how many parts the replicas cut a batch: as many as they are, or 1: each computes all. */
int sx_pjrt_batch_parts(const sx_pjrt_program_options *o);
/* Argument or result i as the caller sees it: the batch of all replicas, superbatches and rings.
 * Argument n_args and result n_results are the loop's counts. */
sx_type sx_pjrt_program_arg_type(const sx_graph *g, const sx_pjrt_program_options *o, int i);
sx_type sx_pjrt_program_result_type(const sx_graph *g, const sx_pjrt_program_options *o, int i);

/* Errors: INVALID_ARGUMENT (the replicas do not divide the batch: the nearest batches that they
 * do), UNIMPLEMENTED (an operator that device programs or replicas do not have: its node and
 * place). */
SX_MUST_USE sx_status sx_pjrt_program_create(const sx_graph *g,
                                             const sx_pjrt_program_options *options,
                                             sx_pjrt_program *out);
void sx_pjrt_program_destroy(sx_pjrt_program *p); /* zero is fine */

/* Writes the text as a file. */
SX_MUST_USE sx_status sx_pjrt_program_save(const sx_pjrt_program *p, const char *path);

/* The node that the text of a plugin's error names, or NULL: operations carry loc("node"). */
const sx_node *sx_pjrt_node_of_message(const sx_graph *g, const char *message);
/* A plugin's error with the node and the user's line that it names; as it is if it names none, and
 * then *out_named (may be NULL) is false. */
SX_MUST_USE sx_status sx_pjrt_locate(const sx_graph *g, sx_status status, bool *out_named);

#endif
