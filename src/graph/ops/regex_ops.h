/* What the operators of regular expressions share (base/regex.h). */
#ifndef SX_GRAPH_OPS_REGEX_OPS_H
#define SX_GRAPH_OPS_REGEX_OPS_H

#include "base/regex.h"
#include "graph/ops/host_ops.h"

/* Output 0 is each string of input 0 with its first match, or `all`, rewritten. */
SX_MUST_USE sx_status sx_regex_replace_host(const sx_kernel_call *c, sx_bytes pattern,
                                            sx_bytes rewrite, bool all);
/* Output 0 is whether each string of input 0 matches as a whole. */
SX_MUST_USE sx_status sx_regex_full_match_host(const sx_kernel_call *c, sx_bytes pattern);
/* The same shape; the other inputs are scalars of strings. */
SX_MUST_USE sx_status sx_regex_infer(sx_infer_context *c);

static inline sx_bytes sx_bytes_of(const char *text)
{
    return (sx_bytes){text, text != NULL ? strlen(text) : 0};
}

#endif
