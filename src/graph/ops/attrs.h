/* The attribute structs of the operators, which backends' kernels read. One struct per operator;
 * a field at zero is at its default. */
#ifndef SX_GRAPH_OPS_ATTRS_H
#define SX_GRAPH_OPS_ATTRS_H

#include "graph/ir.h"

typedef struct sx_parameter_attrs {
    sx_dtype dtype;
    sx_ints shape; /* may start with SX_BATCH */
} sx_parameter_attrs;

typedef struct sx_constant_attrs {
    sx_tensor value;
} sx_constant_attrs;

#endif
