/* The precision policy at the level of operators (sx_builder_set_precision, nn.h): which values are
 * narrowed to the policy's type, which are widened to float32, and how the functions of
 * sextant/ops.h combine operands of both. Without a policy, these functions do nothing. */
#ifndef SX_GRAPH_OPS_PRECISION_H
#define SX_GRAPH_OPS_PRECISION_H

#include "graph/builder.h"

static inline bool sx_precision_is_narrow(const sx_builder *b)
{
    return b->compute != SX_DTYPE_NONE && b->compute != SX_F32;
}

/* A float32 value in the policy's type; any other as it is. */
sx_value sx_narrow(sx_builder *b, sx_value x);
/* A bfloat16 or float16 value in float32; any other as it is. Also without a policy. */
sx_value sx_widen(sx_builder *b, sx_value x);

/* Converts the operands of `op` in place: losses and softmax get float32; operators that require
 * one dtype get one (constants and variables follow the others). */
void sx_meet_precision(sx_builder *b, const sx_op_def *op, sx_value *inputs, int n);

/* The gradient dy of a narrowed value, in float32: the accumulator of a product or sum over the
 * batch reaches the float32 variable without rounding. */
sx_value sx_widen_gradient(sx_builder *b, sx_value dy);

#endif
