/* kept_variable_has_value: whether a variable that a table keeps (kept_variable.h) has a value.
 *
 *   table     the variable's
 *   returns   bool scalar
 *
 * Errors   INVALID_ARGUMENT  the table's form
 * Source   TensorFlow VarIsInitializedOp, IsVariableInitialized */
#include "graph/ops/kept_variable.h"

static sx_status kept_variable_has_value_infer(sx_infer_context *c)
{
    sx_type declared;
    c->outputs[0] = sx_scalar_type(SX_BOOL);
    return sx_infer_kept_variable(c, &declared);
}

static sx_status kept_variable_has_value_host(const sx_kernel_call *c)
{
    sx_bytes bytes;
    SX_TRY(sx_kept_variable_value(c, &bytes));
    c->out[0].b[0] = bytes.data != NULL;
    return SX_OK;
}

const sx_op_def sx_op_kept_variable_has_value = {
    SX_OP_NAMED(kept_variable_has_value),
    .n_in = 0,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_STATE | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_kept_variable_attrs, sx_kept_variable_rows),
    .infer = kept_variable_has_value_infer,
    .host = kept_variable_has_value_host,
};
