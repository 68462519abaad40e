/* What the operators of sparse tensors share. A sparse tensor is three operands:
 *
 *   indices  int64 [n, rank]: where the values are
 *   values   [n]
 *   shape    int64 [rank] */
#ifndef SX_GRAPH_OPS_SPARSE_H
#define SX_GRAPH_OPS_SPARSE_H

#include "graph/builder.h"
#include "graph/ops/host_ops.h"

typedef struct sx_sparse {
    const sx_host_tensor *values;
    const int64_t *indices, *shape;
    int64_t n, rank;
} sx_sparse;

/* Operands i, v and s of the node. */
SX_MUST_USE sx_status sx_infer_sparse(const sx_infer_context *c, int i, int v, int s);
/* The same where it runs. INVALID_ARGUMENT: their sizes differ, an index outside of the shape, a
 * negative dimension. */
SX_MUST_USE sx_status sx_read_sparse(const sx_kernel_call *c, int i, int v, int s, sx_sparse *out);
/* Row by row: -1, 0, 1. */
int sx_compare_indices(const int64_t *a, const int64_t *b, int64_t rank);
/* The order of n rows of indices, equal ones by number; NULL without memory. */
int64_t *sx_order_indices(const sx_kernel_call *c, const int64_t *indices, int64_t n, int64_t rank);
/* Element `from` of `in` as element `to` of `out`, both of one dtype in its carrier. */
void sx_copy_element(const sx_host_tensor *out, int64_t to, const sx_host_tensor *in, int64_t from);

/* Of gradients: the places of indices [n, rank] among the elements of a tensor of shape int64
 * [rank], row by row: int64 [n]. */
sx_value sx_flat_places(sx_builder *b, sx_value indices, sx_value shape);
/* dy of those places [m], which ascend, at the places `at` [n]; 0 where there is none. */
sx_value sx_take_places(sx_builder *b, sx_value dy, sx_value places, sx_value at);

#endif
