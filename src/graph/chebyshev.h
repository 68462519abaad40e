/* Sums of Chebyshev polynomials. */
#ifndef SX_GRAPH_CHEBYSHEV_H
#define SX_GRAPH_CHEBYSHEV_H

/* The sum of c[k] T_k(t), by Clenshaw's rule. */
static inline double sx_chebyshev(const double *c, int n, double t)
{
    double a = 0, b = 0;
    for (int k = n - 1; k > 0; k--) {
        const double next = 2 * t * a + (c[k] - b); /* a is known last */
        b = a;
        a = next;
    }
    return t * a - b + c[0];
}
#define SX_CHEBYSHEV(c, t) sx_chebyshev(c, (int)(sizeof(c) / sizeof((c)[0])), t)

#endif
