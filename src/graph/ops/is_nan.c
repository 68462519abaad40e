/* is_nan: y = whether x is not a number. No gradient.
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape, bool
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  exact
 * Source   TensorFlow tf.math.is_nan */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static const sx_op_sample is_nan_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_DISTINCT),
};

SX_PUBLIC_MAP(is_nan)

const sx_op_def sx_op_is_nan = {
    SX_OP_NAMED(is_nan),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD,
    .infer = sx_infer_test,
    SX_OP_ROW(is_nan),
    SX_OP_SAMPLES(is_nan_samples),
};
