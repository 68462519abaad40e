/* Jacobi's rotations of complex numbers, shared by complex_self_adjoint_eig and complex_svd. */
#ifndef SX_GRAPH_OPS_ROTATIONS_H
#define SX_GRAPH_OPS_ROTATIONS_H

#include <complex.h>
#include <math.h>
#include <stdint.h>

enum { SX_MOST_SWEEPS = 60 }; /* over all pairs; they converge in some ten */

/* j = [c, s; -conj(s), c] */
typedef struct sx_rotation {
    double c;
    double complex s;
} sx_rotation;

/* That which makes jᴴ [left, between; conj(between), right] j a diagonal; `between` is not 0. */
static inline sx_rotation sx_rotation_of(double left, double right, double complex between)
{
    const double size = cabs(between), half = (right - left) / (2 * size);
    const double t = (half < 0 ? -1 : 1) / (fabs(half) + sqrt(1 + half * half));
    const double c = 1 / sqrt(1 + t * t);
    return (sx_rotation){c, t * c * (between / size)};
}

/* Columns [x y] times j; n elements each, `step` apart. */
static inline void sx_rotate(const sx_rotation *r, double complex *x, double complex *y, int64_t n,
                             int64_t step)
{
    for (int64_t i = 0; i < n * step; i += step) {
        const double complex a = x[i], b = y[i];
        x[i] = r->c * a - conj(r->s) * b;
        y[i] = r->s * a + r->c * b;
    }
}

#endif
