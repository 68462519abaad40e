/* read_variable: the value of a variable at this point of the program.
 *
 *   handle    resource scalar
 *   returns   the variable's type, as declared
 *
 * Source   TensorFlow ReadVariableOp */
#include "graph/ops/common.h"

static sx_status read_variable_infer(sx_infer_context *c)
{
    SX_TRY(sx_require_scalar("the handle", &c->inputs[0], SX_RESOURCE));
    return sx_error(SX_INVALID_ARGUMENT, "the variable's type is unknown here; declare it");
}

const sx_op_def sx_op_read_variable = {
    SX_OP_NAMED(read_variable),
    .n_in = 1,
    .n_out = 1,
    .flags = SX_OP_FUNCTION | SX_OP_NO_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    .infer = read_variable_infer,
};
