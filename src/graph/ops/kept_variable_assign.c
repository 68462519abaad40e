/* kept_variable_assign: gives a variable that a table keeps (kept_variable.h) another value.
 *
 *   value        of its dtype; its shape fits the dimensions that are declared
 *   dims, any_rank   as of kept_variable_read
 *   same_shape   whether a value that the variable has must have the same shape
 *   returns      bool scalar, true
 *
 * Errors   INVALID_ARGUMENT    dtype, shape; (running) the shape
 *          RESOURCE_EXHAUSTED  (running) the model's memory limit
 * Source   TensorFlow AssignVariableOp, same_shape its validate_shape */
#include "graph/ops/kept_variable.h"
#include "graph/ops/tensor_proto.h"

static sx_status kept_variable_assign_infer(sx_infer_context *c)
{
    const sx_kept_variable_attrs *a = c->attrs;
    sx_type declared;
    SX_TRY(sx_infer_kept_variable(c, &declared));
    SX_TRY(sx_require_dtype("the value", &c->inputs[0], a->dtype));
    SX_TRY(sx_check_kept_variable(&c->inputs[0], &declared));
    c->outputs[0] = sx_scalar_type(SX_BOOL);
    return SX_OK;
}

static sx_status kept_variable_assign_host(const sx_kernel_call *c)
{
    const sx_kept_variable_attrs *a = c->attrs;
    const sx_type *type = &c->in[0].type;
    sx_type declared, old;
    sx_bytes bytes;
    sx_table *t = NULL;
    SX_TRY(sx_infer_kept_variable(&(sx_infer_context){.attrs = a}, &declared));
    SX_TRY(sx_check_kept_variable(type, &declared), "assigning to %.200s", a->base.table);
    SX_TRY(sx_kept_variable_value(c, &bytes));
    if (bytes.data != NULL && a->same_shape) {
        SX_TRY(sx_tensor_get_type(&bytes, a->dtype, &old));
        if (!sx_same_dims(type, &old)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "%.200s is %s and cannot be assigned %s: it was saved with "
                            "validate_shape=True",
                            a->base.table, SX_TEXT(&old), SX_TEXT(type));
        }
    }
    SX_TRY(sx_require_table(c, &t));
    c->out[0].b[0] = true;
    return sx_kept_variable_put(t, &c->in[0], c->arena->budget);
}

const sx_op_def sx_op_kept_variable_assign = {
    SX_OP_NAMED(kept_variable_assign),
    .n_in = 1,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_STATE | SX_OP_EFFECT | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_kept_variable_attrs, sx_kept_variable_rows),
    .infer = kept_variable_assign_infer,
    .host = kept_variable_assign_host,
};
