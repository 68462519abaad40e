/* Internals of the division pass (spmd.h), shared by spmd*.c.
 *
 * A value of the old graph has up to two forms in the new one:
 *
 *   whole   equal on all replicas
 *   parts   one for each part that this program computes: its examples of a value with the batch, a
 *           partial result of one without
 *
 * Either is made from the other when a node first needs it. Partial results wait until then, or
 * until there are enough of them for an exchange of their own: those of one kind go together. */
#ifndef SX_GRAPH_SPMD_PASS_H
#define SX_GRAPH_SPMD_PASS_H

#include "base/arena.h"
#include "graph/spmd.h"

/* Partial results that wait to be combined. */
typedef struct sx_spmd_waiter {
    sx_value v;    /* of the old graph; mean, followed by variance, for moments */
    int32_t how;   /* sx_combine */
    int first_use; /* the first node that reads it whole; INT32_MAX: only a result */
    int64_t bytes, elems;
} sx_spmd_waiter;

typedef struct sx_spmd_pass {
    const sx_spmd_options *o;
    const sx_graph *g;
    sx_builder *b;
    sx_arena *arena;
    int replicas;      /* that share the batch */
    int n_parts;       /* of this program */
    int first_part;    /* in a region: the part that it belongs to */
    bool strict;       /* combine in the fixed tree */
    bool is_region;    /* of a node: n_parts is 1 */
    bool exchanges;    /* the region needs other replicas */
    int64_t part;      /* examples of each part */
    sx_value *whole;   /* [n_values]; SX_NO_VALUE = not made */
    sx_value *parts;   /* [n_parts * n_values] */
    bool *accumulates; /* [n_values]: stays partial, until after the loop (spmd_accumulators.c) */
    bool *sees_parts;  /* [n_values]: read by nodes that compute with their part's statistics */
    int *first_use;    /* [n_values] */
    sx_value *first_examples; /* [n_parts]: the place of the part's first example in the batch */
    sx_spmd_waiter *waiting;  /* [n_values] */
    int n_waiting;
    bool *own;    /* [max_own], by node of the new graph */
    int *part_of; /* the same: the part, from 1, that the node computes; 0: all have it */
    int max_own;
    int making; /* the part of the nodes that are added now */
} sx_spmd_pass;

/* ---- spmd_values.c ---- */

sx_value *sx_spmd_part_at(const sx_spmd_pass *s, int part, sx_value v);
/* The values of this program's parts in one list, which the arena owns. */
sx_value *sx_spmd_list_parts(sx_spmd_pass *s, sx_value v);
/* Notes whether replicas differ in the node that is added next. */
bool sx_spmd_note_own(sx_spmd_pass *s, bool own);
/* Appends a node with the source line of `n`; `suffix` is appended to its name, which is n's if
 * NULL, and `number` if it is not 0. `own`: replicas differ in it. */
sx_value sx_spmd_emit(sx_spmd_pass *s, const sx_node *n, const char *suffix, int number,
                      const sx_op_def *op, const void *attrs, const sx_value *in, int n_in,
                      bool own);
sx_value sx_spmd_reshape(sx_spmd_pass *s, const sx_node *n, const char *suffix, int number,
                         sx_value x, const sx_type *to, bool own);
/* Elements [begin, begin + size) along an axis. */
sx_value sx_spmd_slice(sx_spmd_pass *s, const sx_node *n, const char *suffix, int number,
                       sx_value x, int axis, int64_t begin, int64_t size, bool own);
/* Along an axis; xs[0] itself if it is the only one. */
sx_value sx_spmd_concat(sx_spmd_pass *s, const sx_node *n, const char *suffix, int number,
                        const sx_value *xs, int count, int axis, bool own);
sx_value sx_spmd_whole_of(sx_spmd_pass *s, sx_value v);
sx_value sx_spmd_part_of(sx_spmd_pass *s, int part, sx_value v); /* of a value with the batch */
/* The place of the first row of the node's first operand, which has c rows for each example. */
sx_value sx_spmd_first_row(sx_spmd_pass *s, const sx_node *n, int part);

/* ---- spmd_combine.c ---- */

/* `v` waits to be combined; moments: with the value after it. `elems`: how many elements of a part
 * make one of it. */
void sx_spmd_combine_later(sx_spmd_pass *s, sx_value v, int32_t how, int64_t elems);
/* The outputs of a node wait that lose the batch, by its operator's batch rule. */
void sx_spmd_combine_outputs(sx_spmd_pass *s, const sx_node *n);
/* Combines `v`, if it waits, with those of its kind that are needed as early. */
void sx_spmd_combine_of(sx_spmd_pass *s, sx_value v);

/* ---- spmd_accumulators.c ---- */

/* Of a `while` in `outer`: out[i] is true if state i is a sum over its trips of partial sums over
 * the batch, as in the gradient of a loop: only the last is combined, after the loop, instead of
 * one in each trip. */
void sx_spmd_find_accumulators(const sx_graph *outer, const sx_node *n, bool *out);
/* Marks, of a body, the partial sums of which accumulator `v` consists. */
void sx_spmd_mark_accumulated(const sx_graph *g, sx_value v, bool *marks);

#endif
