/* The loops of linear algebra over matrices of double in row order, which compilers vectorize.
 * Every class of processor computes the same bits (base/clones.h), and an element's are those of
 * its row and column, whatever is computed beside it. */
#ifndef SX_GRAPH_OPS_MATRIX_LOOPS_H
#define SX_GRAPH_OPS_MATRIX_LOOPS_H

#include <stdint.h>

/* A matrix that is read: from an element to that of the next row, and of the next column. */
typedef struct sx_matrix_view {
    const double *at;
    int64_t row, column;
} sx_matrix_view;

/* c [m,n], whose rows are row_c apart, += factor a b, a [m,k], b [k,n]: each element by one chain
 * of additions over k. c may be another part of the matrices that a and b are parts of. */
void sx_matrix_add_product(double *c, int64_t row_c, int64_t m, int64_t n, int64_t k, double factor,
                           sx_matrix_view a, sx_matrix_view b);
/* The sum of x[i] y[i], in an order that n decides. */
double sx_row_dot(const double *x, const double *y, int64_t n);
/* y += factor x */
void sx_row_add(double *y, double factor, const double *x, int64_t n);
/* y += factors[i] times row i of x [rows,n], for all rows. */
void sx_row_add_rows(double *y, const double *factors, const double *x, int64_t row_x, int64_t rows,
                     int64_t n);
/* x, y = cosine x + sine y, cosine y - sine x */
void sx_row_rotate(double *x, double *y, int64_t n, double cosine, double sine);
/* The same of rows k and k + 1, for k from `first` to before `last`, one after the other, by
 * cosines[k] and sines[k]. */
typedef struct sx_row_sweep {
    int64_t first, last;
    const double *cosines, *sines;
} sx_row_sweep;
/* Sweeps of a [.,n], one after the other: several at once, so that columns stay in cache meanwhile.
 */
void sx_rows_rotate(double *a, int64_t row_a, int64_t n, const sx_row_sweep *sweeps, int count);
/* Rows that are turned many times lie so far apart that they do not share places in cache. */
static inline int64_t sx_row_apart(int64_t n)
{
    return n + 8;
}
/* Of a symmetric matrix the row from the diagonal on, n elements, -= v[0] w + w[0] v; then what
 * these elements add to the product of the matrix by x is added to y; all from the row's place on.
 */
void sx_symmetric_row_update(double *row, const double *v, const double *w, const double *x,
                             double *y, int64_t n);
/* to [n,m] = from [m,n] transposed; rows are row_to and row_from apart. */
void sx_matrix_transpose(double *to, int64_t row_to, const double *from, int64_t row_from,
                         int64_t m, int64_t n);

#endif
