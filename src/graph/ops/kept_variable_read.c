/* kept_variable_read: the value of a variable that a table keeps (kept_variable.h).
 *
 *   table      the variable's
 *   dtype      of the value
 *   dims       the dimensions that are declared, -1 where one is unknown
 *   any_rank   whether the rank is unknown, too
 *   returns    the value, of whatever shape was assigned
 *
 * Errors   INVALID_ARGUMENT     the table's form, dims; (running) a value of another shape
 *          FAILED_PRECONDITION  (running) it has no value
 *          RESOURCE_EXHAUSTED   (running) it is too large
 * Source   TensorFlow ReadVariableOp */
#include "graph/ops/kept_variable.h"
#include "graph/ops/tensor_proto.h"

static sx_status kept_variable_read_infer(sx_infer_context *c)
{
    return sx_infer_kept_variable(c, &c->outputs[0]);
}

static sx_status require_value(const sx_kernel_call *c, sx_bytes *out)
{
    const sx_kept_variable_attrs *a = c->attrs;
    SX_TRY(sx_kept_variable_value(c, out));
    return out->data != NULL
               ? SX_OK
               : sx_error(SX_FAILED_PRECONDITION,
                          "%.200s is read before it has a value: the checkpoint has none, and "
                          "nothing has assigned it",
                          a->base.table);
}

static sx_status kept_variable_read_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_kept_variable_attrs *a = c->attrs;
    sx_bytes bytes;
    sx_type declared;
    SX_TRY(require_value(c, &bytes));
    SX_TRY(sx_tensor_get_type(&bytes, a->dtype, &out_types[0]));
    /* a lookup table of the same name could have set it */
    SX_TRY(sx_infer_kept_variable(&(sx_infer_context){.attrs = a}, &declared));
    return sx_check_kept_variable(&out_types[0], &declared);
}

static sx_status kept_variable_read_host(const sx_kernel_call *c)
{
    const sx_kept_variable_attrs *a = c->attrs;
    sx_bytes bytes;
    sx_host_tensor value;
    SX_TRY(require_value(c, &bytes));
    SX_TRY(sx_tensor_get(c, &bytes, a->dtype, &value));
    memcpy(c->out[0].data, value.data,
           (size_t)sx_type_elems(&value.type) * sx_carrier_bytes(a->dtype));
    return SX_OK;
}

const sx_op_def sx_op_kept_variable_read = {
    SX_OP_NAMED(kept_variable_read),
    .n_in = 0,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_STATE | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_kept_variable_attrs, sx_kept_variable_rows),
    .infer = kept_variable_read_infer,
    .host = kept_variable_read_host,
    .host_types = kept_variable_read_types,
};
