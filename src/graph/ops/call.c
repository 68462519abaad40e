/* call: calls a function of the library. sx_specialize() replaces it with the function's body.
 *
 *   x...       the function's parameters
 *   function   its name
 *   returns    its outputs, of declared types
 *
 * Errors   INVALID_ARGUMENT  in a static graph; NOT_FOUND: no such function (sx_library_finish)
 * Source   TensorFlow PartitionedCall */
#ifdef SX_ATTRS
typedef struct sx_call_attrs {
    const char *function; /* of the library */
} sx_call_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def call_attrs[] = {SX_ATTR(sx_call_attrs, function, SX_ATTR_STRING)};

static sx_status call_infer(sx_infer_context *c)
{
    const sx_call_attrs *attrs = c->attrs;
    return sx_error(
        SX_INVALID_ARGUMENT,
        "the types of function \"%.100s\" are unknown here; declare those of the outputs",
        attrs->function != NULL ? attrs->function : "");
}

const sx_op_def sx_op_call = {
    SX_OP_NAMED(call),
    .n_in = SX_VARIADIC,
    .n_out = SX_VARIADIC,
    .flags = SX_OP_FUNCTION | SX_OP_NO_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_call_attrs, call_attrs),
    .infer = call_infer,
};
