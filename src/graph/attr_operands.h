/* Attributes whose values are operands: how what a model computes, as TensorFlow writes it, becomes
 * what an operator's attribute holds. */
#ifndef SX_GRAPH_ATTR_OPERANDS_H
#define SX_GRAPH_ATTR_OPERANDS_H

#include "graph/ir.h"

/* An integer that may depend on the batch: n·N + k. */
typedef struct sx_count {
    int64_t n, k;
} sx_count;

/* What is known of an operand: a value, or integers that contain the batch. */
typedef struct sx_known_operand {
    const sx_tensor *value; /* or NULL */
    const sx_count *counts; /* [elements] where value is NULL */
    const sx_type *type;
} sx_known_operand;

/* Sets attribute row `row` of a node whose input types are those. -1 in reshape's shape is what is
 * left, in slice's size the rest; axes may be negative and in any order. *out_resolved is false
 * where the attribute would depend on the batch in a way that it cannot hold. INVALID_ARGUMENT: the
 * value fits no attribute. */
SX_MUST_USE sx_status sx_attr_from_operand(const sx_op_def *op, int row, void *attrs,
                                           const sx_type *inputs, int n_inputs,
                                           const sx_known_operand *operand, bool *out_resolved);

#endif
