/* swish: y = x s, where s = 1 / (1 + e⁻ˣ);  dx = dy (s + x s (1 - s))
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
    g->dx[0] = sx_build_op(g->b, swish_grad, NULL, g->dy[0], g->x[0]);
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
