/* logical_or: z = x or y. No gradient.
 *
 *   x, y     bool; the shapes broadcast as in NumPy: from the last
 *            dimension on, dimensions are equal or 1; the batch pairs only with the batch or 1
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast
 * Numbers  exact
 * Source   TensorFlow tf.logical_or */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static const sx_op_sample logical_or_samples[] = {
    {.name = "same",
     .inputs = {SX_SAMPLE_BOOL(SX_BATCH, 9), SX_SAMPLE_BOOL(SX_BATCH, 9)},
     .n_inputs = 2},
    {.name = "row", .inputs = {SX_SAMPLE_BOOL(SX_BATCH, 9), SX_SAMPLE_BOOL(9)}, .n_inputs = 2},
};

SX_PUBLIC_ZIP(logical_or)

const sx_op_def sx_op_logical_or = {
    SX_OP_NAMED(logical_or),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD,
    .infer = sx_infer_zip_bool,
    SX_OP_ROW(logical_or),
    SX_OP_SAMPLES(logical_or_samples),
};
