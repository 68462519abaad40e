/* variable_handle: a handle to a variable of the library, for read_variable and assign_variable.
 *
 *   name      the variable's
 *   returns   resource scalar
 *
 * A handle may be passed to functions, but not chosen at run time: sx_specialize() resolves it.
 *
 * Source   TensorFlow VarHandleOp */
#ifdef SX_ATTRS
typedef struct sx_variable_handle_attrs {
    const char *name; /* of the library's variable */
} sx_variable_handle_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def variable_handle_attrs[] = {
    SX_ATTR(sx_variable_handle_attrs, name, SX_ATTR_STRING)};

static sx_status variable_handle_infer(sx_infer_context *c)
{
    c->outputs[0] = sx_scalar_type(SX_RESOURCE);
    return SX_OK;
}

const sx_op_def sx_op_variable_handle = {
    SX_OP_NAMED(variable_handle),
    .n_in = 0,
    .n_out = 1,
    .flags = SX_OP_FUNCTION | SX_OP_NO_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_variable_handle_attrs, variable_handle_attrs),
    .infer = variable_handle_infer,
};
