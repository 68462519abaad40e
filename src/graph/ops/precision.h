/* The precision policy at the level of operators (sx_builder_set_precision, nn.h): what is narrowed
 * to the policy's type, what is widened to float32, and what the functions of sextant/ops.h do with
 * operands of both. Without a policy nothing here does anything. */
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

/* The operands of `op` as users gave them, made fit in place: losses and softmax get float32;
 * operators of one dtype get one (constants and variables follow the others). */
void sx_meet_precision(sx_builder *b, const sx_op_def *op, sx_value *inputs, int n);

/* dy, the gradient of a value that was narrowed, in float32: what a product or sum over the batch
 * is accumulated in reaches the float32 variable unrounded. */
sx_value sx_widen_gradient(sx_builder *b, sx_value dy);

#endif
