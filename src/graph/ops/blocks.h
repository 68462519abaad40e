/* Shared by space_to_batch and batch_to_space: how blocks of the axes after the first lie along the
 * first. */
#ifndef SX_GRAPH_OPS_BLOCKS_H
#define SX_GRAPH_OPS_BLOCKS_H

#include "graph/ops/common.h"

/* The type with blocks in space of `batch`, the type with blocks as examples. INVALID_ARGUMENT if
 * the attributes do not fit. */
SX_MUST_USE sx_status sx_blocks_to_space(const sx_blocks_attrs *attrs, const sx_type *batch,
                                         sx_type *out);

/* The node `tf_op` with block and pads (crops) as constants, and back. */
void sx_tf_blocks(sx_tf_writer *w, const sx_tf_op *op, const char *tf_op);
SX_MUST_USE sx_status sx_tf_read_blocks(const sx_tf_node *n, void *attrs);

extern const sx_attr_def sx_blocks_rows[2];

#endif
