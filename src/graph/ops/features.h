/* What the operators share that read features of records (proto/example.h). */
#ifndef SX_GRAPH_OPS_FEATURES_H
#define SX_GRAPH_OPS_FEATURES_H

#include "graph/ops/host_ops.h"
#include "proto/example.h"

/* The key that element k of a tensor of strings is, as text in the run's arena. UNIMPLEMENTED: it
 * contains a zero byte. */
SX_MUST_USE sx_status sx_feature_key(const sx_kernel_call *c, const sx_host_tensor *t, int64_t k,
                                     const char **out);
/* INVALID_ARGUMENT: the feature has values, of another kind than the dtype's. */
SX_MUST_USE sx_status sx_feature_require(const char *key, const sx_example_feature *f,
                                         sx_dtype dtype);
/* Writes a feature's values as elements of t from `at` on. */
SX_MUST_USE sx_status sx_feature_put(const sx_kernel_call *c, const sx_example_feature *f,
                                     const sx_host_tensor *t, int64_t at);
/* `status` of record r as the operators report it: a malformed record is INVALID_ARGUMENT. */
SX_MUST_USE sx_status sx_feature_refuse(sx_status status, int64_t r);

#endif
