/* pull_back: the gradients of a region's parameters, from those of its results. Specialization
 * makes it where the shapes of a function's values are not known beforehand, for the parts of the
 * function, and replaces it once they are.
 *
 *   x...     the region's parameters
 *   y...     `ran`: what its results are: then it is one operator, whose gradient rule is applied
 *   dy...    the gradient of each result of a float type
 *   body     the region
 *   returns  dx of each x of a float type
 *
 * Errors   INVALID_ARGUMENT  in a static graph
 *          UNIMPLEMENTED     (specializing) what is part of the region has no gradient
 * Source   ours */
#ifdef SX_ATTRS
typedef struct sx_pull_back_attrs {
    const sx_graph *body;
    bool ran; /* its results are operands, too */
} sx_pull_back_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def pull_back_attrs[] = {
    SX_ATTR(sx_pull_back_attrs, body, SX_ATTR_BODY),
    SX_ATTR(sx_pull_back_attrs, ran, SX_ATTR_BOOL),
};

static sx_status pull_back_infer(sx_infer_context *c)
{
    (void)c;
    return sx_error(SX_INVALID_ARGUMENT,
                    "its shapes are not known here; declare the types of the outputs");
}

const sx_op_def sx_op_pull_back = {
    SX_OP_NAMED(pull_back),
    .n_in = SX_VARIADIC,
    .n_out = SX_VARIADIC,
    .flags = SX_OP_FUNCTION | SX_OP_NO_HOST | SX_OP_NO_TF | SX_OP_REFUSES_GRAD,
    SX_OP_ATTRS(sx_pull_back_attrs, pull_back_attrs),
    .infer = pull_back_infer,
};
