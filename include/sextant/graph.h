/* Building a graph.
 *
 * A model is a function that records operators into a builder; nothing is computed. The builder
 * keeps the first error and turns every later call into a no-op that returns the empty value, so
 * model code reads like mathematics and checks once, at sx_builder_finish(), whose message names
 * the layer, the line of user code and both shapes.
 *
 * Invariants: values are numbered in order of creation, and a node's inputs precede it. A graph has
 * at most one symbolic dimension, the batch (SX_BATCH), always dimension 0 of a value. It is fixed
 * when the graph is compiled.
 *
 * Life cycle: sx_builder_create -> operators, layers -> sx_builder_finish (the graph is the
 * caller's) -> sx_builder_destroy. Not thread-safe. */
#ifndef SEXTANT_GRAPH_H
#define SEXTANT_GRAPH_H

#include <sextant/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sx_builder sx_builder;
typedef struct sx_graph sx_graph;

/* One result of one node; `id` 0 is the empty value. */
typedef struct sx_value {
    uint32_t id;
} sx_value;

#define SX_NO_VALUE ((sx_value){0})
static inline bool sx_value_is(sx_value v)
{
    return v.id != 0;
}

/* How a variable gets its first value; drawn on the host (D5), the fans come from its shape. */
typedef enum sx_initializer {
    SX_INIT_DEFAULT = 0, /* the layer's own choice: glorot_uniform for kernels, zeros for biases */
    SX_INIT_ZEROS,
    SX_INIT_ONES,
    SX_INIT_CONSTANT,         /* .value */
    SX_INIT_GLOROT_UNIFORM,   /* U(±sqrt(6 / (fan_in + fan_out))) */
    SX_INIT_GLOROT_NORMAL,    /* truncated normal, stddev sqrt(2 / (fan_in + fan_out)) / .8796 */
    SX_INIT_HE_UNIFORM,       /* U(±sqrt(6 / fan_in)) */
    SX_INIT_HE_NORMAL,        /* truncated normal, stddev sqrt(2 / fan_in) / .8796 */
    SX_INIT_LECUN_UNIFORM,    /* U(±sqrt(3 / fan_in)) */
    SX_INIT_LECUN_NORMAL,     /* truncated normal, stddev sqrt(1 / fan_in) / .8796 */
    SX_INIT_UNIFORM,          /* U(-value, value) */
    SX_INIT_TRUNCATED_NORMAL, /* stddev .value, cut at two standard deviations */
    SX_INIT_NORMAL,           /* stddev .value */
    SX_INIT_COUNT_
} sx_initializer;

/* What a variable is for: which of them a checkpoint, an export and a parameter count take. */
typedef enum sx_variable_role {
    SX_ROLE_WEIGHT = 0, /* trained */
    SX_ROLE_STATE,      /* part of the model, not trained: moving averages */
    SX_ROLE_SLOT,       /* the optimizer's, named <variable>/<slot> */
    SX_ROLE_STEP,       /* global_step, int64 scalar */
} sx_variable_role;

typedef struct sx_variable_spec {
    const char *name; /* full name, "conv2d_1/kernel": not prefixed by the scope */
    sx_type type;     /* static */
    sx_variable_role role;
    sx_initializer init; /* SX_INIT_DEFAULT = zeros here */
    double init_value;
} sx_variable_spec;

/* An empty builder, the caller's. Fails only when out of memory. */
SX_API SX_MUST_USE sx_status sx_builder_create(sx_builder **out_builder);
SX_API void sx_builder_destroy(sx_builder *b); /* NULL is fine */

/* Ends building: the first error, or the graph (destroy it with sx_graph_destroy). */
SX_API SX_MUST_USE sx_status sx_builder_finish(sx_builder *b, sx_graph **out_graph);
SX_API void sx_graph_destroy(sx_graph *g);

/* Has a call failed already? Only for code that would loop on a value's shape. */
SX_API bool sx_builder_failed(const sx_builder *b);
/* Records an error of the caller's own ("num_classes must be positive"), unless there is one. */
SX_API void sx_builder_fail(sx_builder *b, sx_status status);

/* dtype and shape of a value; the zero type if the builder has failed. */
SX_API sx_type sx_type_of_value(const sx_builder *b, sx_value v);

/* Opens a name scope for a layer of class `base`: "conv2d", then "conv2d_1", … as Keras numbers
 * them, or exactly `name` if that is not NULL (an error if taken). Nodes and sx_scoped_name() are
 * prefixed by it. Returns the scope's full name, borrowed from the builder. */
SX_API const char *sx_scope_begin(sx_builder *b, const char *base, const char *name);
SX_API void sx_scope_end(sx_builder *b);
/* "scope/leaf", owned by the builder. */
SX_API const char *sx_scoped_name(sx_builder *b, const char *leaf);

/* Where later nodes were asked for in user code; layers set it, errors quote it. */
SX_API void sx_builder_at(sx_builder *b, const char *file, int line);

/* --- Arguments and results of the program ---------------------------------------------------- */

/* A variable: an argument of the program under its name, kept between steps by the session.
 * Asking again for a name gives the same variable (its current value); a different type is an
 * error. */
SX_API sx_value sx_variable(sx_builder *b, const sx_variable_spec *spec);
/* From here on, reads of that variable see `value` (same type); the program's last assignment is
 * what the session keeps. `variable` is any value that sx_variable() returned for it. */
SX_API void sx_assign(sx_builder *b, const char *variable_name, sx_value value);
/* An input fed at every step: "image", "label". */
SX_API sx_value sx_input(sx_builder *b, const char *name, sx_type type);
/* A named result. */
SX_API void sx_output(sx_builder *b, const char *name, sx_value value);

/* A constant of static numeric type; the data is copied. */
SX_API sx_value sx_constant(sx_builder *b, sx_tensor value);
SX_API sx_value sx_constant_f32(sx_builder *b, double value); /* a scalar */

/* Gradients of the scalar `y` with respect to each xs[i], into out[i] (SX_NO_VALUE where `y` does
 * not depend on it): nodes are added, nothing is computed. Errors: a node on the way without
 * gradient. */
SX_API void sx_gradients(sx_builder *b, sx_value y, const sx_value *xs, int n, sx_value *out);

/* --- The finished graph ---------------------------------------------------------------------- */

/* Canonical text form, versioned (D18): "sextant-graph 1\n…". Parsing what was printed gives an
 * equal graph, whose text is the same to the byte. *out_text is the caller's (sx_text_free). */
SX_API SX_MUST_USE sx_status sx_graph_print(const sx_graph *g, char **out_text);
SX_API SX_MUST_USE sx_status sx_graph_parse(const char *text, size_t size, sx_graph **out_graph);

#ifdef __cplusplus
}
#endif
#endif
