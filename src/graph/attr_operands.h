/* Attributes whose values are operands: converts values that a model computes, in TensorFlow's
 * form, to attributes of operators. */
#ifndef SX_GRAPH_ATTR_OPERANDS_H
#define SX_GRAPH_ATTR_OPERANDS_H

#include "graph/ir.h"

/* An integer that may depend on the batch: n·N + k. */
typedef struct sx_count {
    int64_t n, k;
} sx_count;

/* What is known of an operand: a value, or integers that contain the batch. */
typedef struct sx_known_operand {
    const sx_tensor *value; /* NULL = unknown */
    const sx_count *counts; /* [elements] if value is NULL */
    const sx_type *type;
} sx_known_operand;

/* Sets attribute row `row` of a node with these input types. -1 in reshape's shape or slice's size
 * means the remaining elements; axes may be negative and in any order. *out_resolved is false if
 * the attribute would depend on the batch in a way that it cannot represent. INVALID_ARGUMENT: the
 * value is not valid for the attribute. UNIMPLEMENTED: !sx_attr_holds(). */
SX_MUST_USE sx_status sx_attr_from_operand(const sx_op_def *op, int row, void *attrs,
                                           const sx_type *inputs, int n_inputs,
                                           const sx_known_operand *operand, bool *out_resolved);

/* Whether a scalar's number is the same as a double, which attributes of SX_ATTR_FLOAT are: not of
 * every 64-bit integer. */
bool sx_attr_holds(const sx_tensor *number);

/* Replaces N in a node's attributes by a batch size. */
void sx_attrs_put_batch(const sx_op_def *op, void *attrs, int64_t batch);

#endif
