/* Whether a node fits the batch: some of what is wrong with N in its types is right for numbers of
 * examples, such as a reshape of [N,4] to [2,-1] or to [1,28,28,1]. */
#ifndef SX_GRAPH_BATCH_FIT_H
#define SX_GRAPH_BATCH_FIT_H

#include "graph/ir.h"

/* Infers as sx_infer_types() does, with `batch` instead of N in the inputs' types and in the
 * attributes. */
SX_MUST_USE sx_status sx_infer_with_batch(const sx_op_def *op, const void *attrs,
                                          const sx_type *inputs, int n_inputs, int64_t batch,
                                          sx_type outputs[SX_MAX_OUTPUTS], int *out_n);

/* A size of the batch for which the types of the inputs are right, where N is in them or in the
 * attributes; 0: none was found. Tries small ones, one that many numbers divide, and those that
 * other sizes in the types and the attributes suggest. */
int64_t sx_batch_that_fits(const sx_op_def *op, const void *attrs, const sx_type *inputs,
                           int n_inputs);

#endif
