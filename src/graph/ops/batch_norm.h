/* Shared by the four batch-norm operators. Their statistics are [C], of the accumulator's dtype. */
#ifndef SX_GRAPH_OPS_BATCH_NORM_H
#define SX_GRAPH_OPS_BATCH_NORM_H

#include "graph/builder.h"
#include "graph/ops/common.h"

/* Checks x [..., C], epsilon, and that each of n statistics is [C]. */
SX_MUST_USE sx_status sx_check_batch_norm(const sx_batch_norm_attrs *attrs, const sx_type *x,
                                          const sx_type *statistics, int n);

/* batch_norm, batch_norm_train: inputs x, scale, offset, mean, variance. */
SX_MUST_USE sx_status sx_infer_batch_norm(sx_infer_context *c);
sx_status sx_host_batch_norm(const sx_kernel_call *c);
void sx_batch_norm_to_tf(sx_tf_writer *w, const sx_tf_op *op);

/* Of the second gradients: (x - mean) s and s = 1 / sqrt(variance + epsilon), in the dtype of the
 * statistics; returns dy in it. */
sx_value sx_batch_norm_formula(sx_builder *b, const void *attrs, sx_value dy, sx_value x,
                               sx_value mean, sx_value variance, sx_value *out_normal,
                               sx_value *out_s);

#endif
