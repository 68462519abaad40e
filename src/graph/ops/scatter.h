/* Shared by gather_nd and tensor_scatter: slices x[i0, .., iK-1, ...] whose places are the rows of
 * `indices` [I..., K]. */
#ifndef SX_GRAPH_OPS_SCATTER_H
#define SX_GRAPH_OPS_SCATTER_H

#include "graph/ops/common.h"

/* K; INVALID_ARGUMENT if indices of these types are none. */
SX_MUST_USE sx_status sx_slices_depth(const sx_type *x, const sx_type *indices, int *out);

/* For host kernels: the number of the slice at row `i` of the indices; -1 if it is outside of x,
 * *out_negative then says whether an index is negative. */
int64_t sx_slices_row(const sx_type *x, const sx_host_tensor *indices, int k, int64_t i,
                      bool *out_negative);
/* INVALID_ARGUMENT: that row is outside. */
SX_MUST_USE sx_status sx_slices_outside(const sx_type *x, const sx_host_tensor *indices, int k,
                                        int64_t i);

#endif
