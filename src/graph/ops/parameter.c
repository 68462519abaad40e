/* parameter: an argument of the program, a variable or an input.
 *
 *   y [shape]  whatever the caller passes
 *
 * Errors  INVALID_ARGUMENT  no dtype, no rank, a negative dimension
 *
 * Made by sx_variable() and sx_input(), never differentiated: gradients end here. Exported as
 * Placeholder or ReadVariableOp by the exporter, which knows which it is. */
#ifdef SX_ATTRS
typedef struct sx_parameter_attrs {
    sx_dtype dtype;
    sx_ints shape; /* may have the batch */
} sx_parameter_attrs;
#endif

#include "graph/ops/attrs.h"

static sx_status infer(sx_infer_context *c)
{
    const sx_parameter_attrs *a = c->attrs;
    sx_type type = sx_type_make(a->dtype, a->shape.n, a->shape.v);
    bool sound = type.dtype == SX_STRING || sx_dtype_bytes(type.dtype) > 0;
    for (int i = 0; i < type.rank; i++) {
        sound = sound && (type.dims[i] >= 0 || type.dims[i] == SX_UNKNOWN_DIM ||
                          sx_dim_is_batch(type.dims[i]));
    }
    if (!sound) {
        char text[SX_TYPE_TEXT];
        return sx_error(SX_INVALID_ARGUMENT,
                        "invalid type %s: expected a known dtype, and dimensions that are numbers "
                        "or multiples of the batch size N",
                        sx_type_format(&type, text, sizeof(text)));
    }
    c->outputs[0] = type;
    return SX_OK;
}

static const sx_attr_def rows[] = {
    SX_ATTR(sx_parameter_attrs, dtype, SX_ATTR_DTYPE),
    SX_ATTR(sx_parameter_attrs, shape, SX_ATTR_SHAPE),
};

const sx_op_def sx_op_parameter = {
    SX_OP_NAMED(parameter),
    .n_in = 0,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_NO_GRAD | SX_OP_NO_TF | SX_OP_NO_HOST,
    SX_OP_ATTRS(sx_parameter_attrs, rows),
    .infer = infer,
};
