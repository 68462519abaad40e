/* logical_and: z = x and y. No gradient.
 *
 *   x, y     bool, shapes that broadcast as in NumPy
 *   returns  the broadcast shape
 *
 * Errors   INVALID_ARGUMENT  not bool, shapes that do not broadcast
 * Numbers  exact
 * Source   TensorFlow tf.logical_and */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static const sx_op_sample logical_and_samples[] = {
    {.name = "same",
     .inputs = {SX_SAMPLE_BOOL(SX_BATCH, 9), SX_SAMPLE_BOOL(SX_BATCH, 9)},
     .n_inputs = 2},
    {.name = "row", .inputs = {SX_SAMPLE_BOOL(SX_BATCH, 9), SX_SAMPLE_BOOL(9)}, .n_inputs = 2},
    {.name = "scalars",
     .inputs = {SX_SAMPLE_SCALAR(SX_BOOL, SX_FILL_TRUE), SX_SAMPLE_SCALAR(SX_BOOL, SX_FILL_BOOL)},
     .n_inputs = 2},
};

SX_PUBLIC_ZIP(logical_and)

const sx_op_def sx_op_logical_and = {
    SX_OP_NAMED(logical_and),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD,
    .infer = sx_infer_zip_bool,
    SX_OP_ROW(logical_and),
    SX_OP_SAMPLES(logical_and_samples),
};
