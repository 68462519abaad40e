/* sigmoid: y = 1 / (1 + e⁻ˣ);  dx = dy y (1 - y)
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  kernels: 4 units in the last place
 * Source   TensorFlow tf.sigmoid */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* dx = dy y (1 - y) */
static void sigmoid_grad(sx_grad *g)
{
    sx_value rest = sx_build_op(g->b, sub, NULL, sx_scalar_like(g->b, g->y[0], 1), g->y[0]);
    sx_value slope = sx_build_op(g->b, mul, NULL, g->y[0], rest);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
}

static const sx_op_sample sigmoid_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(sigmoid)

const sx_op_def sx_op_sigmoid = {
    SX_OP_NAMED(sigmoid),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = sigmoid_grad,
    SX_OP_ROW(sigmoid),
    SX_OP_SAMPLES(sigmoid_samples),
};
