/* Graph-to-graph passes for any backend. Each makes a new graph, owned by the caller, with the same
 * args and results, and does the same to its regions; it is validated like every graph
 * (sx_graph_validate). */
#ifndef SX_GRAPH_PASSES_H
#define SX_GRAPH_PASSES_H

#include "graph/ir.h"

/* Replaces the batch N with `batch` everywhere: in types and in attributes that are shapes. */
SX_MUST_USE sx_status sx_pass_fix_batch(const sx_graph *g, int64_t batch, sx_graph **out);
/* Replaces nodes whose inputs are all constants with constants, computed by the operator's host
 * kernel: results of at most 64 KiB, 64 MiB in total. */
SX_MUST_USE sx_status sx_pass_fold_constants(const sx_graph *g, sx_graph **out);
/* Merges equal nodes (operator, attributes, device, inputs). Random operators are functions of
 * their inputs and their key, an attribute, so the same rule applies to them. */
SX_MUST_USE sx_status sx_pass_merge_equal(const sx_graph *g, sx_graph **out);
/* Removes the nodes that no result needs. Keeps all args. */
SX_MUST_USE sx_status sx_pass_drop_dead(const sx_graph *g, sx_graph **out);
/* Leaves out the nodes of SX_OP_FOR_GRADIENT; *out is NULL if there are none. */
SX_MUST_USE sx_status sx_pass_drop_gradients(const sx_graph *g, sx_graph **out);
/* Removes the state of loops that neither a result nor their condition depends on, and their
 * operands that are read no more. What made those is dead then. */
SX_MUST_USE sx_status sx_pass_drop_state(const sx_graph *g, sx_graph **out);
/* Joins a loop and a later one that does the same and more, as the one that keeps the states for
 * the gradient does. */
SX_MUST_USE sx_status sx_pass_join_loops(const sx_graph *g, sx_graph **out);
/* Lets the loop that keeps the states for the gradient keep the products of matrices and the
 * convolutions of its body, too, so that the gradient's loop does not compute them again. */
SX_MUST_USE sx_status sx_pass_keep_products(const sx_graph *g, sx_graph **out);
/* Takes products out of loops: the product of a row of a stack by a matrix, neither of which the
 * loop changes, becomes a row of one product before it, where a row of the stack has few rows of
 * its own once the batch is `batch`. */
SX_MUST_USE sx_status sx_pass_hoist_products(const sx_graph *g, int64_t batch, sx_graph **out);
/* Makes moments and batch_norm_train of the nodes as which Keras and TensorFlow write a batch norm
 * in training, for a graph that is differentiated once or not at all; *out is NULL if there are
 * none. */
SX_MUST_USE sx_status sx_pass_fuse_norms(const sx_graph *g, sx_graph **out);
/* The same, and swish of x sigmoid(x), for a graph that is to be differentiated; *out is NULL if
 * there are none. */
SX_MUST_USE sx_status sx_pass_fuse_forms(const sx_graph *g, sx_graph **out);
/* Makes swish of x sigmoid(x), and swish_grad of its gradient as TensorFlow writes it. */
SX_MUST_USE sx_status sx_pass_fuse_swish(const sx_graph *g, sx_graph **out);
/* Gelu in TensorFlow's nodes becomes one operator. */
SX_MUST_USE sx_status sx_pass_fuse_gelu(const sx_graph *g, sx_graph **out);
/* Computes a batch norm again for each of its readers, where these are elementwise, so that they
 * fuse; for a device that reads a result from memory once for each. */
SX_MUST_USE sx_status sx_pass_repeat_norms(const sx_graph *g, sx_graph **out);
/* The outputs of which keep[n_results] is set, and the args and nodes that they need; no
 * assignments of variables. */
SX_MUST_USE sx_status sx_pass_keep_outputs(const sx_graph *g, const bool *keep, sx_graph **out);
/* Removes nodes whose result follows from types alone: identities, casts and reshapes to the same
 * type, counts of elements. Zeros with one row that are added become the addition of that row. */
SX_MUST_USE sx_status sx_pass_simplify(const sx_graph *g, sx_graph **out);
/* Where variables keep their values: multiplications and additions of vectors of the channels
 * behind a convolution, batch norms too, go into its filter and its bias. The new filter is
 * computed from the variables, by nodes. */
SX_MUST_USE sx_status sx_pass_freeze(const sx_graph *g, sx_graph **out);
/* Concats of concats that are only scaled become concats of their parts (join_concats.c). */
SX_MUST_USE sx_status sx_pass_join_concats(const sx_graph *g, sx_graph **out);
/* Divides checks of many bytes (all_finite) into several, for devices that compute steps at the
 * same time. */
SX_MUST_USE sx_status sx_pass_split_checks(const sx_graph *g, sx_graph **out);
/* Sets frozen[n_values], which is all false, where a value follows from constants and from
 * variables that the graph does not assign. */
void sx_mark_frozen(const sx_graph *g, bool *frozen);
/* Whether `v` is a float32 for each of so many channels, the last dimension, and broadcast along
 * all others. */
bool sx_is_channels(const sx_graph *g, sx_value v, int64_t channels);
/* Lets the batch norms in training use the moments of their replica's part of the batch (attribute
 * own_moments). */
SX_MUST_USE sx_status sx_pass_own_moments(const sx_graph *g, sx_graph **out);
/* Lets an input, float32 [..., channels], be fed as uint8: the graph computes from them what the
 * input was, x·mul[c] + add[c], a product and then a sum, to the bit on any device. mul[c] > 0.
 * INVALID_ARGUMENT: there is no such input. */
SX_MUST_USE sx_status sx_pass_feed_bytes(const sx_graph *g, const char *input, int channels,
                                         const float *mul, const float *add, sx_graph **out);
/* Replaces bfloat16 values with float32 values that are rounded to bfloat16, for devices that
 * compute in float32; args and results keep their types. A value that only one elementwise node
 * reads is not rounded, as in a compiler's fused kernel. A copy of the graph if it has no bfloat16
 * values. */
SX_MUST_USE sx_status sx_pass_widen_bf16(const sx_graph *g, sx_graph **out);
/* Replaces float16 values with float32 values that casts round to float16, for devices that compute
 * in float32; what only moves elements, args and results keep their types. */
SX_MUST_USE sx_status sx_pass_widen_f16(const sx_graph *g, sx_graph **out);
/* Whether the node's results only contain numbers of its operands, 0 and 6, so that bfloat16 can
 * represent them if it can represent the operands. */
bool sx_op_keeps_bf16(const sx_node *n);
/* The same without rounding: the graph as if it had been built in float32. Args and results of
 * bfloat16 keep their types. */
SX_MUST_USE sx_status sx_pass_drop_bf16(const sx_graph *g, sx_graph **out);

#endif
