/* Special functions of the operator `special`, in double. Where TensorFlow has a convention for
 * arguments outside a function's domain, they follow it: NaN, or the limit. */
#ifndef SX_GRAPH_SPECIAL_FUNCTIONS_H
#define SX_GRAPH_SPECIAL_FUNCTIONS_H

typedef enum sx_special_function {
#define ONE(name, tf_op, c)   SX_SPECIAL_##name,
#define TWO(name, tf_op, c)   SX_SPECIAL_##name,
#define THREE(name, tf_op, c) SX_SPECIAL_##name,
#include "graph/special_functions.def"
#undef ONE
    SX_SPECIAL_FUNCTIONS
} sx_special_function;

double sx_lgamma(double x);
double sx_digamma(double x);
double sx_polygamma(double n, double x);
/* Hurwitz's: the sum of (q + k)^-x for k from 0 on. */
double sx_zeta(double x, double q);
/* Regularized incomplete gamma functions, lower and upper. */
double sx_igamma(double a, double x);
double sx_igammac(double a, double x);
/* The derivative of the lower one by a. */
double sx_igamma_grad_a(double a, double x);
/* Regularized incomplete beta function. */
double sx_betainc(double a, double b, double x);
double sx_erfinv(double x);
double sx_ndtri(double p);
/* Modified and plain Bessel functions; those that end in e are scaled: e^-|x| I, e^x K. */
double sx_bessel_i0(double x);
double sx_bessel_i0e(double x);
double sx_bessel_i1(double x);
double sx_bessel_i1e(double x);
double sx_bessel_k0(double x);
double sx_bessel_k0e(double x);
double sx_bessel_k1(double x);
double sx_bessel_k1e(double x);
double sx_bessel_j0(double x);
double sx_bessel_j1(double x);
double sx_bessel_y0(double x);
double sx_bessel_y1(double x);
double sx_dawsn(double x);
double sx_expint(double x);
double sx_fresnel_cos(double x);
double sx_fresnel_sin(double x);
double sx_spence(double x);

#endif
