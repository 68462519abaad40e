/* bitwise_or: z = x | y, bit by bit. No gradient.
 *
 *   x, y     one dtype, any integer; the shapes broadcast as in NumPy: from the last
 *            dimension on, dimensions are equal or 1; the batch pairs only with the batch or 1
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast
 * Numbers  exact
 * Source   TensorFlow tf.bitwise.bitwise_or */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static const sx_op_sample bitwise_or_samples[] = {SX_SAMPLES_BITS};

SX_PUBLIC_ZIP(bitwise_or)

const sx_op_def sx_op_bitwise_or = {
    SX_OP_NAMED(bitwise_or),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD,
    .infer = sx_infer_zip_integer,
    SX_OP_ROW(bitwise_or),
    SX_OP_SAMPLES(bitwise_or_samples),
};
