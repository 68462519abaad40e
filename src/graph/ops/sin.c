/* sin: y = sin x;  dx = dy cos x
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  2 units in the last place
 * Source   TensorFlow tf.sin */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void sin_grad(sx_grad *g)
{
    sx_value slope = sx_build_op(g->b, cos, NULL, g->x[0]);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
}

static const sx_op_sample sin_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(sin)

const sx_op_def sx_op_sin = {
    SX_OP_NAMED(sin),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = sin_grad,
    SX_OP_ROW(sin),
    SX_OP_SAMPLES(sin_samples),
};
