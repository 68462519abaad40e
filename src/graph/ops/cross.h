/* What the operators of feature crosses share: of each example all combinations of one value from
 * each feature, the first feature's changing last. */
#ifndef SX_GRAPH_OPS_CROSS_H
#define SX_GRAPH_OPS_CROSS_H

#include "graph/ops/sparse.h"

/* Example b of a feature has the values [starts[b], starts[b + 1]), integers or strings. */
typedef struct sx_cross_feature {
    const sx_host_tensor *values;
    int64_t *starts;
} sx_cross_feature;

typedef enum sx_cross_hash {
    SX_CROSS_TEXT,   /* none: the values as text, separated */
    SX_CROSS_NUMBER, /* integers as they are, FarmHash of strings, combined from `key` on */
    SX_CROSS_KEYED, /* from the first on, of the values' hash: FarmHash, of integers' low 32 bits */
    SX_CROSS_STRONG, /* the same with SipHash and `salt`, of strings */
} sx_cross_hash;

typedef struct sx_cross {
    const sx_cross_feature *features;
    int n_features;
    const bool *dense; /* [n_features]; only KEYED asks: it takes dense integers as they are */
    int64_t batch;
    sx_cross_hash hash;
    sx_bytes separator;
    uint64_t key, salt[2];
    int64_t num_buckets; /* of hashes; 0: 2^63 - 1 */
} sx_cross;

/* Checks the values of a feature: int64 or string. */
SX_MUST_USE sx_status sx_infer_feature(const sx_type *values);
/* Features [n, batch] of a matrix, of a sparse matrix (operands i, v, s), of ragged rows (operands
 * `values`, `splits`). INVALID_ARGUMENT: another batch, indices out of order, splits. */
SX_MUST_USE sx_status sx_cross_dense(const sx_kernel_call *c, int values, int64_t batch,
                                     sx_cross_feature *out);
SX_MUST_USE sx_status sx_cross_sparse(const sx_kernel_call *c, int i, int v, int s, int64_t batch,
                                      sx_cross_feature *out);
SX_MUST_USE sx_status sx_cross_ragged(const sx_kernel_call *c, int values, int splits,
                                      int64_t batch, sx_cross_feature *out);
/* The combinations of example b, of all examples. RESOURCE_EXHAUSTED: too many. */
SX_MUST_USE sx_status sx_cross_count(const sx_cross *x, int64_t b, int64_t *out);
SX_MUST_USE sx_status sx_cross_count_all(const sx_cross *x, int64_t *out);
/* Combination k of example b as element `at` of an output. `place` has room for n_features. */
SX_MUST_USE sx_status sx_cross_write(const sx_kernel_call *c, const sx_cross *x, int64_t b,
                                     int64_t k, int64_t *place, sx_buf *text, int output,
                                     int64_t at);

#endif
