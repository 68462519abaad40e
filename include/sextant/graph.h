/* Building a graph.
 *
 * A model is a function that adds operators to a builder; nothing is computed. After the first
 * error, the builder keeps it and every later call does nothing and returns the empty value. Model
 * code therefore needs no checks; sx_builder_finish() returns the error, which names the layer, the
 * line of user code and the shapes.
 *
 * Invariants: values are numbered in order of creation, and a node's inputs precede it. A graph has
 * one symbolic dimension, the batch N (SX_BATCH); any one dimension of a value may be N or a
 * multiple of it. Compiling the graph fixes it.
 *
 * Life cycle: sx_builder_create -> operators, layers -> sx_builder_finish (the caller owns the
 * graph) -> sx_builder_destroy. Not thread-safe. */
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

/* A variable's initial value. It is drawn on the host; the fans are those of its shape. */
typedef enum sx_initializer {
    SX_INIT_DEFAULT = 0, /* the layer's default: glorot_uniform for kernels, zeros for biases */
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

/* The purpose of a variable; decides whether checkpoints, exports and parameter counts include it.
 */
typedef enum sx_variable_role {
    SX_ROLE_WEIGHT = 0, /* trained */
    SX_ROLE_STATE,      /* part of the model, not trained: moving averages */
    SX_ROLE_SLOT,       /* optimizer state, named <variable>/<slot> */
    SX_ROLE_STEP,       /* global_step, int64 scalar */
} sx_variable_role;

typedef struct sx_variable_spec {
    const char *name; /* the full name, "conv2d_1/kernel"; the scope is not prepended */
    sx_type type;     /* static */
    sx_variable_role role;
    sx_initializer init; /* here SX_INIT_DEFAULT means zeros */
    double init_value;
} sx_variable_spec;

/* Creates an empty builder, owned by the caller. Fails only if out of memory. */
SX_API SX_MUST_USE sx_status sx_builder_create(sx_builder **out_builder);
SX_API void sx_builder_destroy(sx_builder *b); /* NULL is fine */

/* Returns the first error, or the finished graph (free it with sx_graph_destroy). */
SX_API SX_MUST_USE sx_status sx_builder_finish(sx_builder *b, sx_graph **out_graph);
SX_API void sx_graph_destroy(sx_graph *g);

/* True if a call has failed. Only needed by code that loops depending on a value's shape. */
SX_API bool sx_builder_failed(const sx_builder *b);
/* Records the caller's own error ("num_classes must be positive"), unless there is one already. */
SX_API void sx_builder_fail(sx_builder *b, sx_status status);

/* dtype and shape of a value; the zero type if the builder has failed. */
SX_API sx_type sx_type_of_value(const sx_builder *b, sx_value v);

/* Opens a name scope for a layer of class `base`: "conv2d", then "conv2d_1", …, numbered as in
 * Keras, or exactly `name` if not NULL (an error if taken). It prefixes node names and
 * sx_scoped_name(). Returns the scope's full name, borrowed from the builder. */
SX_API const char *sx_scope_begin(sx_builder *b, const char *base, const char *name);
SX_API void sx_scope_end(sx_builder *b);
/* "scope/leaf", owned by the builder. */
SX_API const char *sx_scoped_name(sx_builder *b, const char *leaf);

/* Opens a device scope: what is added until its end runs on that device, if the program has several
 * (sextant/distribute.h), and variables created in it lie there; gradients are computed where their
 * nodes are, a variable is updated where it lies. TensorFlow's names, long or short, whole or in
 * part: "/cpu:1", "cpu:1", "/device:GPU:0", "/job:localhost/replica:0/task:0/device:CPU:0". What an
 * inner scope does not say, the outer one does; NULL: any device, whatever outer scopes say. */
SX_API void sx_device_scope_begin(sx_builder *b, const char *device);
SX_API void sx_device_scope_end(sx_builder *b);

/* Sets the line of user code for the nodes added from here on; layers call it, errors quote it. */
SX_API void sx_builder_at(sx_builder *b, const char *file, int line);

/* ---- Arguments and results of the program ---- */

/* A variable: an argument of the program, identified by its name, whose value the session keeps
 * between steps. A second call with the same name returns the variable's current value; a different
 * type is an error. */
SX_API sx_value sx_variable(sx_builder *b, const sx_variable_spec *spec);
/* Assigns `value` (of the same type) to a variable: later reads see it, and the session keeps the
 * program's last assignment. */
SX_API void sx_assign(sx_builder *b, const char *variable_name, sx_value value);
/* An input that is fed at every step: "image", "label". */
SX_API sx_value sx_input(sx_builder *b, const char *name, sx_type type);
/* A named result. */
SX_API void sx_output(sx_builder *b, const char *name, sx_value value);

/* A constant of static numeric type; the data is copied. */
SX_API sx_value sx_constant(sx_builder *b, sx_tensor value);
SX_API sx_value sx_constant_f32(sx_builder *b, double value); /* a scalar */

/* Adds the gradients of the scalar `y` with respect to each xs[i] and stores them in out[i]
 * (SX_NO_VALUE if `y` does not depend on it). Errors: an operator without a gradient on the path.
 */
SX_API void sx_gradients(sx_builder *b, sx_value y, const sx_value *xs, int n, sx_value *out);

/* ---- The finished graph ---- */

/* The canonical, versioned text form: "sextant-graph 1\n…". Parsing a printed graph and
 * printing it again gives identical text. The caller owns *out_text (sx_text_free). */
SX_API SX_MUST_USE sx_status sx_graph_print(const sx_graph *g, char **out_text);
SX_API SX_MUST_USE sx_status sx_graph_parse(const char *text, size_t size, sx_graph **out_graph);

#ifdef __cplusplus
}
#endif
#endif
