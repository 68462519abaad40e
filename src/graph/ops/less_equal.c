/* less_equal: z = x <= y. No gradient.
 *
 *   x, y     one dtype, any number; the shapes broadcast as in NumPy: from the last
 *            dimension on, dimensions are equal or 1; the batch pairs only with the batch or 1
 *   returns  the broadcast shape, bool
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast
 * Numbers  exact; a comparison with NaN is false
 * Source   TensorFlow tf.less_equal */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static const sx_op_sample less_equal_samples[] = {SX_SAMPLES_COMPARE};

SX_PUBLIC_ZIP(less_equal)

const sx_op_def sx_op_less_equal = {
    SX_OP_NAMED(less_equal),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD,
    .infer = sx_infer_compare,
    SX_OP_ROW(less_equal),
    SX_OP_SAMPLES(less_equal_samples),
};
