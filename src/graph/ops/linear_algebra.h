/* What the operators of linear algebra share: checks of stacks of matrices, and the algorithms, on
 * matrices of double in row order, on the calling thread. Most of their work is products of
 * parts (matrix_loops.h): factors and solutions by halves, reflections in blocks. */
#ifndef SX_GRAPH_OPS_LINEAR_ALGEBRA_H
#define SX_GRAPH_OPS_LINEAR_ALGEBRA_H

#include "base/memory.h"
#include "graph/builder.h"
#include "graph/ops/host_ops.h"

/* matrix_inverse, matrix_solve */
typedef struct sx_adjoint_attrs {
    bool adjoint;
} sx_adjoint_attrs;
extern const sx_attr_def sx_adjoint_rows[1];

/* matrix_triangular_solve */
typedef struct sx_triangular_attrs {
    bool lower, adjoint, banded;
} sx_triangular_attrs;

/* ---- Inference; shapes may have unknown parts ---- */

/* [..., m, n] of floats. */
SX_MUST_USE sx_status sx_require_matrices(const char *what, const sx_type *t);
/* [..., n, n] of floats, as far as it is known. */
SX_MUST_USE sx_status sx_require_square(const char *what, const sx_type *t);
/* Inputs re and im, the parts of complex matrices: each passes `require`, one of the above, and
 * they have one type, *out. */
SX_MUST_USE sx_status sx_require_parts(const sx_infer_context *c,
                                       sx_status (*require)(const char *what, const sx_type *t),
                                       sx_type *out);
/* One output like the one input, square matrices. */
SX_MUST_USE sx_status sx_infer_square(sx_infer_context *c);
/* The dimensions in front of the last `n`, with room for `extra` more; of an unknown rank unknown.
 */
sx_type sx_heads_of(const sx_type *t, int n);
/* heads and the dimensions; of an unknown rank unknown. */
sx_type sx_matrices_type(const sx_type *heads, int64_t rows, int64_t columns);
/* Dimension -1 or -2 of matrices; SX_UNKNOWN_DIM if it is not known. */
int64_t sx_matrix_dim(const sx_type *t, int from_end);
/* INVALID_ARGUMENT (running): heads of the two differ, which do not broadcast here. */
SX_MUST_USE sx_status sx_require_heads(const char *what_a, const sx_type *a, const char *what_b,
                                       const sx_type *b);

/* ---- Gradients ---- */

/* x [...,n,n], of known size, with zeros in the other triangle. */
sx_value sx_triangle(sx_builder *b, sx_value x, bool lower);
/* The diagonals of x [...,n,n] of known size, zeros around them; or zeros in their place. */
sx_value sx_keep_diagonal(sx_builder *b, sx_value x);
sx_value sx_clear_diagonal(sx_builder *b, sx_value x);
/* x [...,m,n] as [...,n,m]. */
sx_value sx_transposed(sx_builder *b, sx_value x);
/* op(x) op(y), each transposed or not. */
sx_value sx_product(sx_builder *b, sx_value x, bool transpose_x, sx_value y, bool transpose_y);
/* Columns [begin, begin + count) of x [...,m,n]. */
sx_value sx_columns(sx_builder *b, sx_value x, int64_t begin, int64_t count);
/* x [...,n] as [...,1,n], or as [...,n,1]. */
sx_value sx_as_row(sx_builder *b, sx_value x);
sx_value sx_as_column(sx_builder *b, sx_value x);
/* 1 / x; 0 where x is 0, and small where it is very small. */
sx_value sx_safe_reciprocal(sx_builder *b, sx_value x);

/* ---- Running ---- */

/* The matrices of a static type. */
typedef struct sx_matrices {
    int64_t count, rows, columns;
} sx_matrices;
sx_matrices sx_matrices_of(const sx_type *t);

/* Memory of the run for n doubles; NULL = none left. */
double *sx_matrix_room(const sx_kernel_call *c, int64_t n);

/* The power of 2 that brings `most`, the greatest magnitude of a matrix, to between 1 and 2 when it
 * divides it, so that squares neither overflow nor vanish; of 0 any. */
double sx_scale_of(double most);

/* a [n,n] becomes its factors with rows exchanged, order[i] the row that is now row i; *out_sign
 * changes with each exchange. *out_regular: no pivot is 0. */
SX_MUST_USE sx_status sx_lu_factor(const sx_kernel_call *c, double *a, int64_t n, int64_t *order,
                                   int *out_sign, bool *out_regular);
/* The factors of matrix `index` of input 0, transposed if `adjoint`. INVALID_ARGUMENT: it has no
 * inverse. */
SX_MUST_USE sx_status sx_lu_of(const sx_kernel_call *c, int64_t index, int64_t n, bool adjoint,
                               double *lu, int64_t *order);
/* a [n,n], matrix `index` of input 0, becomes its principal square root: by Denman and Beavers'
 * iteration in its product form, scaled by determinants (Higham, Functions of Matrices, section
 * 6.3). All NaN if it has an element that is not finite. INVALID_ARGUMENT: it has no inverse, or a
 * real eigenvalue that is negative. room [4 n n], order [n] */
SX_MUST_USE sx_status sx_matrix_square_root(const sx_kernel_call *c, int64_t index, int64_t n,
                                            double *a, double *room, int64_t *order);
/* x [n,columns] = the solution of the factored matrix for b. */
void sx_lu_solve(const double *lu, const int64_t *order, int64_t n, const double *b, double *x,
                 int64_t columns);
/* Solves op(a) x = x in place, a [n,n] triangular: op transposes if `transposed`; `lower` says
 * which triangle of a is read. */
void sx_triangular_solve(const double *a, int64_t n, bool lower, bool transposed, double *x,
                         int64_t columns);
/* a [n,n], of which the lower triangle is read, becomes l, zeros above; false if a is not positive
 * definite. */
bool sx_cholesky_factor(double *a, int64_t n);
/* Memory of the run for matrices [m,n]. */
typedef struct sx_svd sx_svd;
SX_MUST_USE sx_status sx_svd_prepare(const sx_kernel_call *c, int64_t m, int64_t n, bool full,
                                     sx_svd **out);
/* The singular values of a [m,n], descending, and the singular vectors: a = u s vᵀ, u [m,m'], v
 * [n,n'] with m', n' = min(m, n), or m and n if `full`. u and v may both be NULL. Not finite: all
 * NaN. */
SX_MUST_USE sx_status sx_svd_factor(const sx_kernel_call *c, const sx_svd *x, const double *a,
                                    double *s, double *u, double *v);

#endif
