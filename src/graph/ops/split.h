/* Operators that cut each string of a vector into several: string_split, string_split_v2,
 * string_split_padded. The outputs of the first two are a sparse tensor's:
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

/* The parts of a text between separators; an empty one stands for any run of ASCII white space. At
 * most `maxsplit` cuts, -1: no limit. Returns how many parts there are; the first `most` of them
 * are written to `out`, views of the text. */
int64_t sx_split_text(const sx_bytes *text, const sx_bytes *separator, int64_t maxsplit,
                      int64_t most, sx_bytes *out);

SX_MUST_USE sx_status sx_split_infer(sx_infer_context *c);
SX_MUST_USE sx_status sx_split_types(const sx_kernel_call *c, sx_splitter *split, sx_type *out);
SX_MUST_USE sx_status sx_split_run(const sx_kernel_call *c, sx_splitter *split);

#endif
