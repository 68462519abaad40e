/* Training graphs that tests write out: their weights, and how these learn. */
#ifndef SX_TESTS_BACKENDS_TRAINING_GRAPH_H
#define SX_TESTS_BACKENDS_TRAINING_GRAPH_H

#include "harness.h"

#include <stdio.h>

#include <sextant/nn.h>
#include <sextant/ops.h>

enum { TRAINING_GRAPH_WEIGHTS = 16 };

typedef struct training_graph {
    sx_builder *b;
    sx_value weights[TRAINING_GRAPH_WEIGHTS];
    char names[TRAINING_GRAPH_WEIGHTS][16]; /* w0, w1, … */
    int n;
} training_graph;

static inline sx_value weight(training_graph *m, sx_type type)
{
    snprintf(m->names[m->n], sizeof(m->names[0]), "w%d", m->n);
    sx_value v = sx_variable(m->b, &(sx_variable_spec){.name = m->names[m->n], .type = type});
    m->weights[m->n++] = v;
    return v;
}

/* The gradients of `loss`, the output "loss", a step of SGD for each weight; destroys the builder.
 */
static inline sx_graph *finish(training_graph *m, sx_value loss)
{
    sx_value gradients[TRAINING_GRAPH_WEIGHTS];
    sx_graph *g;
    sx_gradients(m->b, loss, m->weights, m->n, gradients);
    sx_output(m->b, "loss", loss);
    sx_value ok = sx_all_finite_at(m->b, gradients, m->n, NULL, 0);
    for (int i = 0; i < m->n; i++) {
        sx_assign(m->b, m->names[i],
                  sx_apply_sgd(m->b, m->weights[i], gradients[i], sx_constant_f32(m->b, 0.5), ok));
    }
    assert_ok(sx_builder_finish(m->b, &g));
    sx_builder_destroy(m->b);
    return g;
}

#endif
