/* invert: y = ~x, the complement of each bit. No gradient.
 *
 *   x        any shape, any integer
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not an integer type
 * Numbers  exact
 * Source   TensorFlow tf.bitwise.invert */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static const sx_op_sample invert_samples[] = {
    {.name = "batch", .inputs = {SX_SAMPLE_I32(1 << 30, SX_BATCH, 7)}, .n_inputs = 1},
    {.name = "bytes",
     .inputs = {{.type = SX_TYPE_LITERAL_(SX_U8, 3, 5), .fill = SX_FILL_INDEX, .limit = 256}},
     .n_inputs = 1},
};

SX_PUBLIC_MAP(invert)

const sx_op_def sx_op_invert = {
    SX_OP_NAMED(invert),
    .n_in = 1,
    .n_out = 1,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD,
    .infer = sx_infer_map_integer,
    SX_OP_ROW(invert),
    SX_OP_SAMPLES(invert_samples),
};
