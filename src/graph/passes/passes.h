/* Graph-to-graph passes that every backend may use. Each makes a new graph (the caller's) with the
 * same args and results; as every graph, it is validated (sx_graph_validate). */
#ifndef SX_GRAPH_PASSES_H
#define SX_GRAPH_PASSES_H

#include "graph/ir.h"

/* SX_BATCH becomes `batch` everywhere: types, attributes that hold shapes. */
SX_MUST_USE sx_status sx_pass_fix_batch(const sx_graph *g, int64_t batch, sx_graph **out);
/* Nodes whose inputs are all constants become constants, computed by the operator's reference and
 * rounded to its dtype: results of at most 64 KiB, 64 MiB in all. */
SX_MUST_USE sx_status sx_pass_fold_constants(const sx_graph *g, sx_graph **out);
/* Equal nodes (operator, attributes, inputs) become one; random and host nodes only if equal keys.
 */
SX_MUST_USE sx_status sx_pass_merge_equal(const sx_graph *g, sx_graph **out);
/* Nodes that no result needs go. Args stay. */
SX_MUST_USE sx_status sx_pass_drop_dead(const sx_graph *g, sx_graph **out);
/* What types alone tell: identities, casts and reshapes to the same type, counts of elements. */
SX_MUST_USE sx_status sx_pass_simplify(const sx_graph *g, sx_graph **out);
/* bfloat16 values become float32 values that are rounded to bfloat16, for devices that compute in
 * float32: args and results keep their types. A value that only one elementwise node reads is left
 * unrounded, as compilers leave what they fuse. The graph itself, copied, where there are none. */
SX_MUST_USE sx_status sx_pass_widen_bf16(const sx_graph *g, sx_graph **out);
/* The same without any rounding: the graph as if it had been built in float32. Args and results of
 * bfloat16 keep their types. */
SX_MUST_USE sx_status sx_pass_drop_bf16(const sx_graph *g, sx_graph **out);

#endif
