/* refuse_gradient: values that have a gradient which is not known: an error where it is asked for.
 * Where none is, it is left out.
 *
 *   y...     the first `results` operands, of any type
 *   x...     what y depends on
 *   results  how many of the operands are y
 *   why      the error
 *   returns  y...
 *
 * Errors   UNIMPLEMENTED  (gradients) a gradient passes to one of the operands
 * Gradient an error
 * Numbers  exact
 * Source   TensorFlow tf.custom_gradient whose gradient function was not saved */
#ifdef SX_ATTRS
typedef struct sx_refuse_gradient_attrs {
    int64_t results;
    const char *why;
} sx_refuse_gradient_attrs;
#endif

#include "graph/ops/regions.h"

static const sx_attr_def refuse_gradient_attrs[] = {
    SX_ATTR(sx_refuse_gradient_attrs, results, SX_ATTR_INT),
    SX_ATTR(sx_refuse_gradient_attrs, why, SX_ATTR_STRING),
};

static sx_status refuse_gradient_infer(sx_infer_context *c)
{
    return sx_infer_first(c, ((const sx_refuse_gradient_attrs *)c->attrs)->results);
}

static const sx_op_sample refuse_gradient_samples[] = {
    {.name = "unknown",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2)},
     .n_inputs = 2,
     .attrs = &(const sx_refuse_gradient_attrs){.results = 1, .why = "the gradient was not saved"}},
};

const sx_op_def sx_op_refuse_gradient = {
    SX_OP_NAMED(refuse_gradient),
    .n_in = SX_VARIADIC,
    .n_out = SX_VARIADIC,
    .flags = SX_OP_NO_TF | SX_OP_EXACT | SX_OP_FOR_GRADIENT | SX_OP_REFUSES_GRAD,
    SX_OP_ATTRS(sx_refuse_gradient_attrs, refuse_gradient_attrs),
    .moved = SX_MOVES_ALL,
    .infer = refuse_gradient_infer,
    .host = sx_host_first,
    SX_OP_SAMPLES(refuse_gradient_samples),
};
