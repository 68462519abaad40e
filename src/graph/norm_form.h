/* Norms as Keras, TensorFlow and others write them, in some ten nodes:
 *
 *   y = (x - mean) s gamma + beta     s = 1 / sqrt(variance + epsilon)
 *   y = x s gamma                     s = 1 / sqrt(mean of squares + epsilon)
 *
 * with mean and variance of x over any axes, where gamma and beta may be absent. The forms, F being
 * s or s gamma:
 *
 *   x F + (beta - mean F)        Keras, tf.nn.batch_normalization
 *   ((x - mean) s) gamma + beta  by hand; (x - mean) / sqrt(variance + epsilon), too */
#ifndef SX_GRAPH_NORM_FORM_H
#define SX_GRAPH_NORM_FORM_H

#include "graph/ir.h"

enum { SX_NORM_NODES = 24 };

/* The parts of a norm. */
typedef struct sx_norm_form {
    const sx_graph *graph;
    const sx_node *nodes[SX_NORM_NODES]; /* root first, but for the constants */
    int n_nodes;
    sx_value x, gamma, beta;               /* SX_NO_VALUE: none */
    sx_value mean, variance;               /* the divisions; without a mean, that of squares */
    const sx_type *gamma_type, *beta_type; /* of what they multiply and are added to */
    const sx_ints *axes;
    double epsilon;
    bool stops_gradient; /* through the mean or the variance, so that y's is not that of a norm */
} sx_norm_form;

/* Whether y, float32, is a norm. */
bool sx_find_norm(const sx_graph *g, sx_value y, sx_norm_form *out);

#endif
