/* What the operators of sets share. A set is the values that one group has: a group is all
 * dimensions of a tensor but the last. The tensor is dense, or sparse: indices, values, shape. */
#ifndef SX_GRAPH_OPS_SETS_H
#define SX_GRAPH_OPS_SETS_H

#include "graph/ops/sparse.h"

/* Value number `at`; `group` is the row-major number of its group. */
typedef struct sx_member {
    int64_t group, at;
    const sx_host_tensor *values;
} sx_member;

/* The sets of a tensor: the members by group, ascending in each, every value once. */
typedef struct sx_sets {
    sx_member *members;
    int64_t n, rank, dims[SX_MAX_RANK]; /* rank of the tensor; dims but for the last: the groups */
} sx_sets;

/* Operand `at`, or three from there on if `sparse`; *out_rank is SX_UNKNOWN_DIM where it is not
 * known. INVALID_ARGUMENT: dtype, which has to be `dtype` unless that is none; a rank below 2. */
SX_MUST_USE sx_status sx_infer_sets(const sx_infer_context *c, int at, bool sparse, sx_dtype dtype,
                                    int64_t *out_rank);
/* INVALID_ARGUMENT: as sx_read_sparse(); `ordered`: indices that are not in order. */
SX_MUST_USE sx_status sx_read_sets(const sx_kernel_call *c, int at, bool sparse, bool ordered,
                                   sx_sets *out);
/* By group and value: below, at or above 0. */
int sx_compare_members(const sx_member *a, const sx_member *b);

#endif
