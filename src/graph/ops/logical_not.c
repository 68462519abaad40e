/* logical_not: y = not x. No gradient.
 *
 *   x        bool, any shape
 *   returns  x's type
 *
 * Errors   INVALID_ARGUMENT  not bool
 * Numbers  exact
 * Source   TensorFlow tf.logical_not */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static sx_status logical_not_infer(sx_infer_context *c)
{
    SX_TRY(sx_require_dtype("x", &c->inputs[0], SX_BOOL));
    c->outputs[0] = c->inputs[0];
    return SX_OK;
}

static const sx_op_sample logical_not_samples[] = {
    {.name = "batch", .inputs = {SX_SAMPLE_BOOL(SX_BATCH, 9)}, .n_inputs = 1},
    {.name = "scalar", .inputs = {SX_SAMPLE_SCALAR(SX_BOOL, SX_FILL_BOOL)}, .n_inputs = 1},
};

SX_PUBLIC_MAP(logical_not)

const sx_op_def sx_op_logical_not = {
    SX_OP_NAMED(logical_not),
    .n_in = 1,
    .n_out = 1,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD,
    .infer = logical_not_infer,
    SX_OP_ROW(logical_not),
    SX_OP_SAMPLES(logical_not_samples),
};
