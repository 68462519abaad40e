/* Initial values, drawn on the host with a portable logarithm and inverse error function, so that
 * the bits are the same everywhere. Key = (seed, hash of the variable's name), counter = element.
 */
#ifndef SX_RUNTIME_INITIALIZE_H
#define SX_RUNTIME_INITIALIZE_H

#include <sextant/graph.h>

/* Fills `data` (row-major, type static float32; or zeros/ones/constant of any numeric dtype).
 * fan_in, fan_out: the last two dimensions times the product of those before (Keras); rank 1: both
 * n. Errors: UNIMPLEMENTED: a random initializer of another dtype. */
SX_MUST_USE sx_status sx_draw_initial_value(sx_initializer init, double value, const sx_type *type,
                                            uint64_t seed, const char *name, void *data);

/* Correctly rounded to within 2 ulp of double, from + − × ÷ and √ alone: equal bits everywhere. */
double sx_portable_log(double x);
double sx_portable_erfinv(double x);

#endif
