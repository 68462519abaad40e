/* round_bf16: y = x rounded to what bfloat16 can hold, to nearest even; its dtype stays x's.
 *
 * Emulates bfloat16 values on a device that stores them as float32 (added by passes/widen_bf16.c
 * after differentiation: there is no gradient).
 *
 *   x        any shape, float32 or float64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is neither
 * Numbers  exact
 * Source   StableHLO reduce_precision with 8 and 7 bits */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

#include "base/half.h"

static sx_status round_bf16_infer(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[0];
    if (x->dtype != SX_F32 && x->dtype != SX_F64) {
        return sx_error(SX_INVALID_ARGUMENT, "x is %s, expected float32 or float64", SX_TEXT(x));
    }
    c->outputs[0] = *x;
    return SX_OK;
}

static const sx_op_sample round_bf16_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

const sx_op_def sx_op_round_bf16 = {
    SX_OP_NAMED(round_bf16),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD | SX_OP_NO_TF,
    .infer = round_bf16_infer,
    .host = sx_row_host_round_bf16,
    SX_OP_SAMPLES(round_bf16_samples),
};
