/* square: y = x²;  dx = 2 x dy
 *
 *   x        any shape, any number
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not numeric
 * Numbers  one rounding
 * Source   TensorFlow tf.square */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* dx = dy 2x */
static void square_grad(sx_grad *g)
{
    sx_value slope = sx_times(g->b, g->x[0], 2);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
}

static const sx_op_sample square_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(square)

const sx_op_def sx_op_square = {
    SX_OP_NAMED(square),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_number,
    .grad = square_grad,
    SX_OP_ROW(square),
    SX_OP_SAMPLES(square_samples),
};
