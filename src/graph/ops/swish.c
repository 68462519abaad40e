/* swish: y = x s, where s = 1 / (1 + e⁻ˣ);  dx = dy (s + y (1 - s))
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  kernels: 4 units in the last place
 * Source   TensorFlow tf.nn.silu */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void swish_grad(sx_grad *g)
{
    sx_value s = sx_build_op(g->b, sigmoid, NULL, g->x[0]);
    sx_value rest = sx_build_op(g->b, sub, NULL, sx_scalar_like(g->b, s, 1), s);
    sx_value tail = sx_build_op(g->b, mul, NULL, g->y[0], rest);
    sx_value slope = sx_build_op(g->b, add, NULL, s, tail);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
}

static const sx_op_sample swish_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(swish)

const sx_op_def sx_op_swish = {
    SX_OP_NAMED(swish),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = swish_grad,
    SX_OP_ROW(swish),
    SX_OP_SAMPLES(swish_samples),
};
