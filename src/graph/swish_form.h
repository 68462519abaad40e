/* Swish as Keras and TensorFlow write it, s being sigmoid(x):
 *
 *   y = x s                        x may be 1 x, as tf.nn.silu has it
 *   dx = dy (s (1 + x (1 - s)))    as tf.nn.silu's own gradient has it */
#ifndef SX_GRAPH_SWISH_FORM_H
#define SX_GRAPH_SWISH_FORM_H

#include "graph/ir.h"

typedef struct sx_swish_form {
    sx_value x, s;
    sx_value dy; /* SX_NO_VALUE: it is swish itself */
} sx_swish_form;

/* Whether the node gives swish. */
bool sx_find_swish(const sx_graph *g, const sx_node *n, sx_swish_form *out);
/* Whether it gives swish's gradient, in which two nodes read s. */
bool sx_find_swish_grad(const sx_graph *g, const sx_node *n, sx_swish_form *out);

#endif
