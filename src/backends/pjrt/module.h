/* The program text of a graph, written by the operators' rows (graph/lower/stablehlo/rows.def).
 *
 *   arguments  those of the graph, in order; a variable that the program assigns is donated: its
 *              argument has the number of the result that overwrites it
 *   results    those of the graph, in order
 *
 * Replicas. The same program, divided by sx_pass_spmd(), runs on each of n devices with its part of
 * the batch: values with the batch dimension have batch / n examples, all others are equal on all
 * devices. Loss, gradients and batch-norm moments are those of the whole batch; random operators
 * use positions in the whole batch. A batch norm with the attribute own_moments uses
 * the moments of the replica's part. With `shards`, the batch is that number of parts whatever the
 * replicas, and results are combined in a fixed tree over them, so that the replicas change no bit.
 *
 * A batch that cannot be divided so (`any_batch`: the last of an epoch): each replica computes all
 * of it, without splitting or combining, so loss, moments and gradients are those of one device.
 *
 * Step loop. With steps = K > 1 the program is a loop of up to K steps over a
 * superbatch:
 *
 *   arguments  inputs with a batch dimension are [K, batch, …]; other inputs and the variables do
 *              not change; an additional last argument, int64: the number of steps, at most K
 *   results    assigned variables after the last step; outputs as rings [K, …], row i from step i,
 *              zero for steps not run; an additional last result, int64: the number of steps run
 *
 * The loop ends after the first step whose `ok_output` is false.
 *
 * Bounds. A program with loops that have bounds has one more result, the last, an int32 scalar: 0,
 * or the number of the loop that was to go on at its bound (sx_hlo_bounds()). */
#ifndef SX_BACKENDS_PJRT_MODULE_H
#define SX_BACKENDS_PJRT_MODULE_H

#include "backends/backend.h"
#include "graph/lower/stablehlo/stablehlo.h"

typedef struct sx_pjrt_module_options {
    int64_t batch;         /* global; ignored if the graph has no batch dimension */
    int replicas;          /* 0 = 1 */
    int shards;            /* parts of the batch, a multiple of the replicas; 0 = the replicas */
    bool ordered_sums;     /* partial results are gathered, and added in a fixed tree */
    int64_t steps;         /* maximum steps of the loop; 0 and 1 = no loop */
    const char *ok_output; /* bool scalar output that ends the loop if false; NULL = none */
    bool any_batch; /* if the batch is not a multiple of these, each replica computes all of it */
    bool whole_results; /* those with a batch dimension are whole on every replica: for processes,
                           each of which reads its own replicas alone */
    bool donate_inputs; /* those with a batch dimension are not needed after the execution */
    sx_hlo_options hlo;
} sx_pjrt_module_options;

typedef struct sx_pjrt_module {
    const char *text;
    size_t size;
    bool bounds;           /* it has the result for bounds */
    sx_hlo_writer *writer; /* owns the text */
} sx_pjrt_module;

/* The number of parts of a batch: the number of replicas, or 1 if each computes all of it. */
int sx_pjrt_batch_parts(const sx_pjrt_module_options *o);
/* The type of argument or result i for the caller: with the global batch, superbatches and rings.
 * Argument n_args and result n_results are the step counts of a loop. */
sx_type sx_pjrt_module_arg_type(const sx_graph *g, const sx_pjrt_module_options *o, int i);
sx_type sx_pjrt_module_result_type(const sx_graph *g, const sx_pjrt_module_options *o, int i);

/* Whether an execution takes argument i, which no result overwrites. */
bool sx_pjrt_module_donates(const sx_graph *g, const sx_pjrt_module_options *o, int i);

/* Errors: INVALID_ARGUMENT: the batch is not a multiple of the replicas (names the nearest that
 * are); UNIMPLEMENTED: an operator that device programs do not support (names node and line). */
SX_MUST_USE sx_status sx_pjrt_module_create(const sx_graph *g,
                                            const sx_pjrt_module_options *options,
                                            sx_pjrt_module *out);
void sx_pjrt_module_destroy(sx_pjrt_module *p); /* zero is fine */

/* Writes the text to a file. */
SX_MUST_USE sx_status sx_pjrt_module_save(const sx_pjrt_module *p, const char *path);

/* The node named in a plugin's error message (operations have loc("node")), or NULL. */
const sx_node *sx_pjrt_node_of_message(const sx_graph *g, const char *message);
/* Adds the node and the user's line to a plugin's error. If the error names no node, returns it
 * unchanged and sets *out_named (may be NULL) to false. */
SX_MUST_USE sx_status sx_pjrt_locate(const sx_graph *g, sx_status status, bool *out_named);

#endif
