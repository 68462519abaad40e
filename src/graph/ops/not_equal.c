/* not_equal: z = x != y. No gradient.
 *
 *   x, y     one dtype, any number or string; the shapes broadcast as in NumPy: from the last
 *            dimension on, dimensions are equal or 1; the batch pairs only with the batch or 1
 *   returns  the broadcast shape, bool
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast
 * Numbers  exact; a comparison with NaN is true
 * Source   TensorFlow tf.not_equal */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static const sx_op_sample not_equal_samples[] = {SX_SAMPLES_COMPARE};

static sx_status not_equal_host(const sx_kernel_call *c)
{
    if (c->in[0].type.dtype != SX_STRING) {
        return sx_row_host_not_equal(c);
    }
    sx_host_compare_strings(c, false);
    return SX_OK;
}

SX_PUBLIC_ZIP(not_equal)

const sx_op_def sx_op_not_equal = {
    SX_OP_NAMED(not_equal),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD,
    .batch_rule = SX_RULE_EXAMPLES,
    .infer = sx_infer_equality,
    .host = not_equal_host,
    .to_tf = sx_row_tf_not_equal,
    .from_tf = sx_row_forms_not_equal,
    SX_OP_SAMPLES(not_equal_samples),
};
