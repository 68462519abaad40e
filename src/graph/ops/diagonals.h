/* What matrix_diag, matrix_diag_part and matrix_set_diag share: which diagonals of a matrix, and
 * where their elements lie.
 *
 * Diagonal d of a matrix begins at row -d, or at column d. Of several, from k[1] down to k[0], each
 * is a row; shorter ones lie at its left or right end, by `align`. */
#ifndef SX_GRAPH_OPS_DIAGONALS_H
#define SX_GRAPH_OPS_DIAGONALS_H

#include "graph/ops/host_ops.h"

/* align, RIGHT_LEFT and so on: where the diagonals above the main one lie, then those below it */
enum { SX_ALIGN_RIGHT_LEFT, SX_ALIGN_LEFT_RIGHT, SX_ALIGN_LEFT_LEFT, SX_ALIGN_RIGHT_RIGHT };

/* matrix_diag; the others have only the first two */
typedef struct sx_diagonals_attrs {
    sx_ints k; /* one diagonal, or the lowest and the highest; none = 0 */
    int32_t align;
    int64_t num_rows, num_cols; /* -1 = the least that the diagonals need */
} sx_diagonals_attrs;
extern const sx_attr_def sx_diagonals_rows[4];

typedef struct sx_diagonals {
    int64_t low, high;
    bool single;
} sx_diagonals;

/* INVALID_ARGUMENT: not one number or two in ascending order. */
SX_MUST_USE sx_status sx_diagonals_of(const sx_diagonals_attrs *attrs, sx_diagonals *out);
/* Whether those diagonals are in a matrix of known size, and how long the longest is. */
SX_MUST_USE sx_status sx_diagonals_fit(const sx_diagonals *d, int64_t rows, int64_t columns,
                                       int64_t *out_length);
/* How many elements diagonal d of a matrix has. */
int64_t sx_diagonal_length(int64_t d, int64_t rows, int64_t columns);
/* Where diagonal d begins in its row, if that has `width` elements. */
int64_t sx_diagonal_begin(const sx_diagonals_attrs *attrs, int64_t d, int64_t length,
                          int64_t width);
/* Copies rows of diagonals, input `in` (each `width` elements), into the matrices of the output. */
void sx_put_diagonals(const sx_kernel_call *c, const sx_diagonals *d, int in, int64_t width);
/* From `align` of TensorFlow's third form; its second form's. */
SX_MUST_USE sx_status sx_tf_read_diagonals(const sx_tf_node *n, void *attrs);
SX_MUST_USE sx_status sx_tf_read_diagonals_left(const sx_tf_node *n, void *attrs);
/* A constant of k; the attribute align. */
sx_tf_value sx_tf_diagonals(sx_tf_writer *w, const sx_diagonals_attrs *attrs);
sx_tf_attr sx_tf_align(const sx_diagonals_attrs *attrs);

#endif
