/* Functions that compute each example of the batch by itself, as the operators' batch rules say
 * (op_def.h), and whose only unknown dimension is the batch. Such a function may be run on any part
 * of the batch: a server cuts requests into pieces of few sizes, and joins them. */
#ifndef SX_GRAPH_SPECIALIZE_EXAMPLES_H
#define SX_GRAPH_SPECIALIZE_EXAMPLES_H

#include "graph/specialize.h"

/* Specializes a function of the library with the types that it declares, each symbol bound to N:
 *
 *   host steps   one device step, or none   host steps
 *
 * and *out_device is the number of the device step, whose graph names its inputs and outputs as the
 * function does; the number of steps if there is none. The batch, or c·N, is the first dimension of
 * every slot that has it. *out is NULL if the function is of another form: examples depend on one
 * another, a shape is unknown, the host drives branches or loops, a node needs to know the number
 * of examples; or if the library assigns variables. (*out)->excluded is to be heeded. Errors: those
 * of sx_specialize(). */
SX_MUST_USE sx_status sx_specialize_examples(const sx_library *library, const sx_function *function,
                                             const sx_specialize_limits *limits,
                                             sx_specialized **out, int *out_device);

#endif
