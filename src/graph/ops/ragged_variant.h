/* A ragged tensor in one string: what values of TensorFlow's type `variant` hold. The bytes never
 * leave the process, but a graph may feed others, so that they are checked as foreign ones. */
#ifndef SX_GRAPH_OPS_RAGGED_VARIANT_H
#define SX_GRAPH_OPS_RAGGED_VARIANT_H

#include "graph/ops/host_ops.h"

/*   int64 number of splits, dtype, rank of the values
 *   int64 dimensions of the values
 *   of each splits: int64 how many, int64 each
 *   the values: numbers as they are; of strings, int64 size and bytes of each */
enum { SX_RAGGED_HEADER = 3 };

/* One of these strings; the splits are unaligned int64. */
typedef struct sx_ragged_part {
    int n_splits;
    sx_type values;
    const uint8_t *splits[SX_MAX_RANK];
    int64_t n[SX_MAX_RANK]; /* of each splits */
    const uint8_t *data, *end;
} sx_ragged_part;

/* Appends one, whose row r of splits i is splits[i].i[first[i] + r] - splits[i].i[first[i]], with
 * n[i] rows; of the values, elements [from, from + count) along axis 0, or the whole if that is -1.
 */
void sx_ragged_put(const sx_host_tensor *splits, int n_splits, const int64_t *first,
                   const int64_t *n, const sx_host_tensor *values, int64_t from, int64_t count,
                   sx_buf *out);
/* INVALID_ARGUMENT: bytes that are none, splits that contradict each other. */
SX_MUST_USE sx_status sx_ragged_get(const sx_bytes *bytes, sx_ragged_part *out);
int64_t sx_ragged_split(const sx_ragged_part *p, int i, int64_t row);

#endif
