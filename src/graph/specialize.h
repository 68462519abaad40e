/* Specialization: turns a function, with what is known about its arguments, into a list of steps.
 *
 *   device step   a static graph, as large as the order of steps allows
 *   host step     one node on the host: strings, shapes that depend on data, asserts
 *   if, while     a node whose regions cannot be part of a device graph, because of strings,
 *                 variables, host nodes or shapes that change: the host runs them as functions
 *   late call     what has a shape that is not known yet: a separate function, specialized when
 *                 the step is reached. What is static again is part of later steps.
 *
 * Steps pass values in slots: first the arguments, then constants and the outputs of steps. Known
 * values are folded, to at most 64 KiB beyond their inputs; calls are inlined; branches with a
 * known condition are chosen; attribute operands become attributes; variable handles become names.
 * The batch stays symbolic: an argument of type [N, …] gives device graphs of [N, …]. A symbol that
 * an argument declares is bound to N, or to a size. A node that only fits some sizes of the batch
 * is part of a late call; a number of examples that is compared with another, as tf.squeeze does
 * with 1, is taken to differ from it, and the program does not hold for that size (`excluded`).
 *
 * Order. A node runs as early as its inputs allow; one that reads what a step of another kind
 * makes comes after that step:
 *
 *     host 0   device 1   late 2   host 3   device 4   late 5  …
 *
 * Late nodes of one time that share no shape are calls of their own, so that none is specialized
 * for the shapes of another.
 * A variable's reads and assignments keep their order; no assignment is moved before an assert.
 * Asserts and prints keep theirs. */
#ifndef SX_GRAPH_SPECIALIZE_H
#define SX_GRAPH_SPECIALIZE_H

#include "base/cancel.h"
#include "graph/library.h"

/* What is known about one argument: its type, static or with c·N; `data`: its value, or NULL. A
 * variable's handle has dtype SX_RESOURCE and its name as data. */
typedef struct sx_binding {
    const sx_tensor *args;
    int n_args;
    bool knows_batch; /* N in the attributes of the function is `batch`: of a late call, whose
                       * arguments are static, and of a batch without rows */
    int64_t batch;
    bool differentiated; /* what is made is: SX_OP_FOR_GRADIENT stays */
} sx_binding;

/* 0 = the default. */
typedef struct sx_specialize_limits {
    int64_t nodes;           /* after inlining: 1 << 18 */
    int64_t calls;           /* nested calls: 64 */
    int64_t folded_bytes;    /* of all folded constants: 64 MiB */
    sx_budget *memory;       /* charged for what is made, which it outlives; NULL = none */
    const sx_cancel *cancel; /* checked while nodes are walked and folded; NULL = none */
} sx_specialize_limits;

typedef enum sx_step_kind {
    SX_STEP_DEVICE,
    SX_STEP_HOST,
    SX_STEP_IF,
    SX_STEP_WHILE,
    SX_STEP_MAP,
    SX_STEP_LATE,
} sx_step_kind;

typedef struct sx_step {
    sx_step_kind kind;
    const int *in, *out; /* slots */
    int n_in, n_out;
    /* DEVICE: static; its inputs are in[], its outputs out[], its variables the library's.
     * LATE: a function's body over in[]. */
    const sx_graph *graph;
    /* HOST, IF, WHILE, MAP: the node; its inputs are in[0 .. n_inputs), its attribute operands
     * follow. */
    const sx_node *node;
    sx_digest digests[2]; /* sx_graph_digest(): DEVICE (without names), LATE: of the graph; IF,
                           * WHILE, MAP: of the regions */
} sx_step;

typedef struct sx_step_slot {
    sx_type type;              /* with unknown parts if a step determines them */
    const sx_tensor *constant; /* or NULL */
} sx_step_slot;

typedef struct sx_specialized {
    sx_arena arena;
    const sx_library *library; /* outlives it */
    sx_step *steps;
    int n_steps;
    sx_step_slot *slots; /* [n_slots], the arguments first */
    int n_slots, n_args;
    const int *results; /* [n_results]: slots */
    int n_results;
    sx_graph **graphs; /* [n_graphs]: of device and late steps */
    int n_graphs;
    int64_t excluded;   /* a size that the batch was taken not to have; 0: it may have any */
    int64_t nodes;      /* walked */
    int n_gradients;    /* gradient functions that were made */
    bool reads, writes; /* variables, in device steps */
} sx_specialized;

/* `body` is a function of the library, or a region or late call made from one. Errors:
 * INVALID_ARGUMENT, naming the node: arguments, types that contradict their declaration, a handle
 * that is chosen at run time, an assert that is known to fail; RESOURCE_EXHAUSTED: a limit;
 * CANCELLED, DEADLINE_EXCEEDED: those of `cancel`. */
SX_MUST_USE sx_status sx_specialize(const sx_library *library, const sx_graph *body,
                                    const sx_binding *binding, const sx_specialize_limits *limits,
                                    sx_specialized **out);
void sx_specialized_destroy(sx_specialized *s); /* NULL is fine */

#endif
