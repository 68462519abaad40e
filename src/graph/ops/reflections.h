/* Householder's reflections, by which matrices become triangular, tridiagonal or bidiagonal: of
 * each a row v and a factor stand for 1 - factor v^T v. Many of them are applied as products of
 * matrices: (1 - f0 v0^T v0) (1 - f1 v1^T v1) ... = 1 - V^T T V, T an upper triangle (R. Schreiber,
 * C. Van Loan, "A storage-efficient WY representation", 1989). */
#ifndef SX_GRAPH_OPS_REFLECTIONS_H
#define SX_GRAPH_OPS_REFLECTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* The product of `count` reflections, of rows v [count,length]: of row k the elements before
 * k + begin are 0. */
typedef struct sx_reflections {
    const double *v, *factors;
    int64_t count, length, begin;
} sx_reflections;

enum { SX_REFLECTIONS_BLOCK = 32 }; /* are applied at a time */

/* The doubles of room that the functions below need for matrices of that many columns. */
int64_t sx_reflections_room(int64_t columns);

/* The reflection that makes of x[n], n > 0, one number and zeros: x becomes v, whose first element
 * is 1, *out_to that number, of the sign that the first has not; if the others are 0, x[0] itself.
 * No element is so large that squares overflow. Returns the factor. */
double sx_reflection(double *x, int64_t n, double *out_to);
/* a [length,columns], whose rows are row_a apart, = the product times a, or, if `transposed`, its
 * transpose times a. */
void sx_reflect(const sx_reflections *r, bool transposed, double *a, int64_t row_a, int64_t columns,
                double *room);
/* a [length,columns] = the first columns of the product. */
void sx_reflections_product(const sx_reflections *r, double *a, int64_t columns, double *room);

#endif
