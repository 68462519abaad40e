/* truncate_div: z = x / y, rounded towards 0. No gradient.
 *
 *   x, y     one dtype, any integer; the shapes broadcast as in NumPy: from the last
 *            dimension on, dimensions are equal or 1; the batch pairs only with the batch or 1
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast; an
 * integer is divided by zero (devices other than the CPU do not report that) Numbers  exact; the
 * least divided by -1 is itself Source   TensorFlow tf.truncatediv */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static const sx_op_sample truncate_div_samples[] = {
    {.name = "by_one", /* others: test_op_values.c */
     .inputs = {SX_SAMPLE_I32(1 << 30, SX_BATCH, 7),
                {.type = SX_TYPE_LITERAL_(SX_I32, 7), .fill = SX_FILL_TRUE}},
     .n_inputs = 2},
};

SX_PUBLIC_ZIP(truncate_div)

const sx_op_def sx_op_truncate_div = {
    SX_OP_NAMED(truncate_div),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD,
    .infer = sx_infer_zip_integer,
    SX_OP_ROW(truncate_div),
    SX_OP_SAMPLES(truncate_div_samples),
};
