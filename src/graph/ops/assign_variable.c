/* assign_variable: sets a variable. Later reads see the value, and it outlives the program.
 *
 *   handle    resource scalar
 *   value     of the variable's type
 *   returns   the value
 *
 * Source   TensorFlow AssignVariableOp */
#include "graph/ops/common.h"

static sx_status assign_variable_infer(sx_infer_context *c)
{
    SX_TRY(sx_require_scalar("the handle", &c->inputs[0], SX_RESOURCE));
    c->outputs[0] = c->inputs[1];
    return SX_OK;
}

const sx_op_def sx_op_assign_variable = {
    SX_OP_NAMED(assign_variable),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_FUNCTION | SX_OP_EFFECT | SX_OP_NO_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    .infer = assign_variable_infer,
};
