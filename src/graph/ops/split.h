/* Operators that cut each string of a vector into several: string_split, string_split_v2. Their
 * outputs are a sparse tensor's:
 *
 *   indices  int64 [k, 2]: row, and place in the row
 *   values   strings [k]
 *   shape    int64 [2]: rows, and the most parts of a row */
#ifndef SX_GRAPH_OPS_SPLIT_H
#define SX_GRAPH_OPS_SPLIT_H

#include "graph/ops/host_ops.h"

/* How many parts the text has; writes them to `out` unless that is NULL. The parts are views of the
 * text. */
typedef int64_t sx_splitter(const sx_kernel_call *c, const sx_bytes *text, sx_bytes *out);

SX_MUST_USE sx_status sx_split_infer(sx_infer_context *c);
SX_MUST_USE sx_status sx_split_types(const sx_kernel_call *c, sx_splitter *split, sx_type *out);
SX_MUST_USE sx_status sx_split_run(const sx_kernel_call *c, sx_splitter *split);

#endif
