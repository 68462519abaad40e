/* Internals of specialization (specialize.h), shared by specialize*.c.
 *
 *   walk    each node, in program order, becomes known (folded), or a row of the trace
 *   live    what results and effects need
 *   time    of each row: when it runs, and as what; see specialize.h
 *   emit    rows of one time and kind become a step
 *
 * A `val` is a value of the trace: of the function, or of one that was inlined into it. */
#ifndef SX_GRAPH_SPECIALIZE_TRACE_H
#define SX_GRAPH_SPECIALIZE_TRACE_H

#include "graph/attr_operands.h"
#include "graph/specialize.h"

enum { SX_NO_ROW = -1 /* of an argument or a constant */ };

typedef struct sx_trace_val {
    sx_type type;
    const sx_tensor *known; /* in the arena of the program or the library */
    bool lent;              /* `known` is in the library */
    const sx_count *counts; /* [elements], if they depend on the batch */
    const char *variable;   /* of a handle */
    int row, output; /* its row; if that is SX_NO_ROW, `output` is the argument's number, or -1 */
    int slot;        /* + 1, once it has one */
} sx_trace_val;

typedef struct sx_trace_row {
    const sx_node *node; /* of the library */
    const void *attrs;   /* the node's attributes, as far as resolved; static regions */
    int *in;             /* [n_in]: vals; then those of attribute operands */
    int n_in, n_operands;
    int first, n_out; /* vals */
    const char *name; /* call/node */
    const char *variable;
    bool resolved, on_host, live;
    bool control; /* on_host: the host runs its regions */
    bool folds;   /* a number that types decide */
    bool behind;  /* what it reads depends on a late call */
    bool joins;   /* static, but part of a late call */
    int time;
    int ready; /* of what a late call has: the time of what decides its shapes */
    int step;  /* of a late call: its first row */
} sx_trace_row;

/* A variable that a function reads of which the gradient is made: an argument of that. */
typedef struct sx_trace_read {
    const sx_node *node; /* the first that reads it */
    const char *variable;
    int val;
    struct sx_trace_read *next;
} sx_trace_read;

typedef struct sx_specializer {
    sx_specialized *out;
    sx_arena *arena; /* out's */
    sx_binding binding;
    sx_specialize_limits limits;
    sx_trace_val *vals;
    sx_trace_row *rows;
    int n_vals, val_capacity, n_rows, row_capacity;
    int64_t folded_bytes;
    int64_t *nodes;                      /* walked, in all regions */
    int depth;                           /* of calls */
    struct sx_made_gradient **gradients; /* those made so far, of all regions */
    bool pure;                           /* for a gradient: without asserts and prints */
    bool of_library;                     /* the body, which outlives what is made of it */
    const sx_node *refused; /* the first that sx_emit_region() could not take; NULL: none */
    sx_trace_read **reads;  /* collected instead of rows; NULL: not */
} sx_specializer;

/* ---- specialize.c ---- */

sx_status sx_specialize_no_memory(void);
/* The vals and the rows, and what was charged for them. */
void sx_free_trace(sx_specializer *s);
/* Whether a device can hold it: a known shape, and numbers. */
bool sx_is_device_type(const sx_type *t);
/* INVALID_ARGUMENT: "WHAT i is GOT, but is declared as DECLARED". */
sx_status sx_contradicts(const char *what, int i, const sx_type *got, const sx_type *declared);
/* Adds the node's place and name to an error. */
sx_status sx_name_node(const sx_node *n, sx_status status);

SX_MUST_USE sx_status sx_new_val(sx_specializer *s, const sx_trace_val *v, int *out);
SX_MUST_USE sx_status sx_known_val(sx_specializer *s, sx_type type, const void *data, int *out);
/* Appends a graph to the trace: args[n_args] are the vals of its arguments, results[n_results]
 * those of its results; `prefix` is put before the nodes' names. */
SX_MUST_USE sx_status sx_walk_graph(sx_specializer *s, const sx_graph *g, const int *args,
                                    const char *prefix, int *results);

/* RESOURCE_EXHAUSTED if one more call would nest too deep. */
SX_MUST_USE sx_status sx_check_depth(const sx_specializer *s);
/* Replaces a node with a body: its results become the node's. */
SX_MUST_USE sx_status sx_inline_body(sx_specializer *s, const sx_graph *body, const int *args,
                                     int n_args, const char *prefix, int *results);
/* The value that the variable has here. */
SX_MUST_USE sx_status sx_read_variable(sx_specializer *s, const sx_trace_read *read,
                                       const char *name, int *out_val);

/* ---- specialize_gradient.c ---- */

/* A call of a gradient function of `f`, all of whose inputs' shapes are known. *out_waits: it can
 * only be made once the batch is a number; nothing was added. */
SX_MUST_USE sx_status sx_walk_gradient(sx_specializer *s, const sx_node *n, const sx_function *f,
                                       const int *in, const char *name, int *out_vals,
                                       bool *out_waits);

/* A pull_back, all of whose inputs' shapes are known; *out_waits as above. */
SX_MUST_USE sx_status sx_walk_pull_back(sx_specializer *s, const sx_node *n, const int *in,
                                        const char *name, int *out_vals, bool *out_waits);

/* ---- specialize_parts.c ---- */

/* Of a trace that is not static, since data decide the shapes of some values: its gradient in
 * parts, a function (args..., dy of each float result...) -> dx of each args[i] with differ[i].
 * *out is NULL, and s->refused a row's node, if a row stands in the way. */
SX_MUST_USE sx_status sx_emit_gradient(sx_specializer *s, const int *args, int n_args,
                                       const bool *differ, const int *results, int n_results,
                                       sx_graph **out);

/* ---- specialize_known.c ---- */

/* Computes a node whose inputs are all known; *out_folded is false if its results are not small. */
SX_MUST_USE sx_status sx_fold_node(sx_specializer *s, const sx_op_def *op, const void *attrs,
                                   const int *in, int n_in, const sx_type *inferred, int n_out,
                                   int *out_vals, bool *out_folded);
/* Folds the comparison of numbers that depend on the batch, if one size of it decides the result:
 * the program excludes that (sx_specialized). *out_folded is false if there is none, or it excludes
 * another already. */
SX_MUST_USE sx_status sx_fold_comparison(sx_specializer *s, const sx_op_def *op, const int *in,
                                         const sx_type *type, int *out_val, bool *out_folded);
/* Element k of an integer that is known or depends on the batch; false if it is neither. */
bool sx_read_count(const sx_trace_val *v, int64_t k, sx_count *out);
/* The counts of a node's only output, if they can be followed; else NULL. */
SX_MUST_USE sx_status sx_follow_counts(sx_specializer *s, const sx_op_def *op, const void *attrs,
                                       const int *in, int n_in, const sx_type *type,
                                       const sx_count **out);

/* ---- specialize_regions.c ---- */

/* Whether the regions have as many args and results as the node says. */
SX_MUST_USE sx_status sx_check_regions(const sx_node *n);
/* Makes the regions static, if that is possible for all of them: *out_static. */
SX_MUST_USE sx_status sx_make_regions_static(sx_specializer *s, const sx_node *n, void *attrs,
                                             const int *in, bool *out_static);

/* ---- specialize_steps.c ---- */

/* A graph under construction from rows: a device's, a region's, a late call's. */
typedef struct sx_emitter {
    sx_specializer *s;
    sx_builder *b;
    sx_value *here; /* [n_vals] */
    bool late;      /* a function, whose nodes are those of the library */
    int *in, *out;  /* vals */
    bool *read;     /* [n_vals]: by another step, or by the caller */
    int n_in, n_out;
} sx_emitter;

SX_MUST_USE sx_status sx_emitter_init(sx_emitter *e, sx_specializer *s);
/* Begins another graph; here[] has no values. */
SX_MUST_USE sx_status sx_emitter_begin(sx_emitter *e, bool late);
void sx_emitter_deinit(sx_emitter *e);
/* The val in the graph: computed there, a constant of it, or a new input. */
sx_value sx_emitted_value(sx_emitter *e, int v);
SX_MUST_USE sx_status sx_emit_row(sx_emitter *e, const sx_trace_row *r);
/* The chosen rows (NULL = the live ones) as a graph (x0 = args[0], ...) -> y0 = results[0], ... in
 * the specializer's arena; `late`: as a function. */
SX_MUST_USE sx_status sx_emit_graph(sx_specializer *s, bool late, const bool *chosen,
                                    const int *args, int n_args, const int *results, int n_results,
                                    sx_graph **out);
/* The type as a late call's function declares it: c·N and symbols here are unknown there. */
sx_type sx_type_without_batch(sx_type t);
/* Marks what results and effects need. Before times are known, all attribute operands count as
 * read; afterwards (`timed`), only those that remain operands. */
void sx_mark_live(sx_specializer *s, const int *results, int n, bool timed);
/* Whether a row can be part of a static graph that is inlined: its types are static, and it only
 * computes. */
bool sx_row_is_static(const sx_specializer *s, const sx_trace_row *r);

/* Makes the program's steps from the whole trace. */
SX_MUST_USE sx_status sx_emit_steps(sx_specializer *s, const int *results, int n_results);
/* Makes a region's trace one static graph, with these vals as its inputs and outputs; *out is NULL
 * if a device cannot run it. `host`: nodes may be such that only the host runs, if their types are
 * static: of a graph that is inlined. */
SX_MUST_USE sx_status sx_emit_region(sx_specializer *s, const int *args, int n_args,
                                     const int *results, int n_results, bool host, sx_graph **out);

#endif
