/* Dividing a program along the batch. What the operators' batch rules (op_def.h) say about the
 * nodes of a graph decides alone how: every backend divides by this pass, into shards on the CPU,
 * into replicas on devices.
 *
 *   x [N,K]   ──> x [n,K]     a part: n of the N examples
 *   matmul    ──> the same    each replica computes its part
 *   dw [K,C]  ──> partial     all_reduce(sum): equal on all replicas again
 *   argsort   ──> all_gather, the same on all N examples, all_slice: examples depend on each other
 *
 * Values without the batch are equal on all replicas. */
#ifndef SX_GRAPH_SPMD_H
#define SX_GRAPH_SPMD_H

#include "graph/ir.h"

/* How a node is computed where each part of the program holds a part of the batch. */
typedef enum sx_division {
    SX_COMMON,   /* alike in all parts: no value with the batch, or only types of the whole batch */
    SX_DIVIDED,  /* each part computes its examples */
    SX_COMBINED, /* the same, and its outputs without the batch are then combined by its rule */
    SX_GATHERED, /* examples depend on one another: only the whole batch gives the result */
} sx_division;

bool sx_reads_batch(const sx_graph *g, const sx_node *n);
sx_division sx_node_division(const sx_graph *g, const sx_node *n);

typedef struct sx_spmd_options {
    int64_t batch;   /* N */
    int replicas;    /* programs that share the batch, each with a part or several; 0 = 1 */
    int64_t largest; /* examples of this replica; 0 = batch / replicas, which divides it */
    int64_t
        larger; /* replicas with one example more than the others, the first; 0 = all are equal */
    /* Strict: the bits do not depend on the replicas. `parts` logical parts of the batch, a
     * multiple of the replicas that divides it, are each computed as if alone, and results combined
     * in a fixed, balanced tree over them. A replica has parts / replicas of them, which follow one
     * another in its program. 0 = one for each replica, combined in the device's order. */
    int parts;
    /* Partial results are gathered, and combined in a fixed tree over the replicas; without
     * `parts`, too. */
    bool ordered;
    /* Each of `copies` replicas computes the whole batch, and takes the variables of the first: on
     * devices whose arithmetic is not deterministic they must not drift apart. `replicas` is 1. */
    int copies;
    bool byte_ranges;   /* a part of an argument or result must be a range of its bytes: others are
                           passed whole, and divided in the program */
    bool whole_results; /* results with the batch are whole, alike on all replicas */
    bool exchange_in_regions; /* regions may hold exchanges between replicas; else a node with such
                                 a region is computed whole */
} sx_spmd_options;

typedef struct sx_spmd {
    sx_graph *graph; /* static; the same nodes for all replicas */
    /* [n_values] of it: replicas differ in it, as it holds their part of the batch or a partial
     * result. NULL if there is one part. */
    bool *own;
    /* [n_values] of it, where `parts` are given: the part, from 1, that a value belongs to; 0: to
     * all. NULL if there is one part. */
    int *part;
} sx_spmd;

/* Whether a value has the batch, and its parts are ranges of its bytes. */
bool sx_spmd_is_byte_range(const sx_type *type);

/* The program of each replica. INVALID_ARGUMENT: a batch or a number of parts that cannot be
 * divided. */
SX_MUST_USE sx_status sx_pass_spmd(const sx_graph *g, const sx_spmd_options *options, sx_spmd *out);
void sx_spmd_deinit(sx_spmd *p); /* zero is fine */

#endif
