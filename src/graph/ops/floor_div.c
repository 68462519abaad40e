/* floor_div: z = x / y, rounded down. No gradient.
 *
 *   x, y     one dtype, any number; the shapes broadcast as in NumPy: from the last
 *            dimension on, dimensions are equal or 1; the batch pairs only with the batch or 1
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast; an
 * integer is divided by zero (devices other than the CPU do not report that) Numbers  integers
 * exact, the least divided by -1 is itself; floats as the floor of the rounded quotient Source
 * TensorFlow tf.math.floordiv */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static const sx_op_sample floor_div_samples[] = {
    SX_SAMPLES_ZIP(SX_FILL_DISTINCT, SX_FILL_POSITIVE),
};

SX_PUBLIC_ZIP(floor_div)

const sx_op_def sx_op_floor_div = {
    SX_OP_NAMED(floor_div),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD,
    .infer = sx_infer_zip_number,
    SX_OP_ROW(floor_div),
    SX_OP_SAMPLES(floor_div_samples),
};
