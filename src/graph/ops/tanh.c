/* tanh: y = tanh x;  dx = dy (1 - y²)
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  kernels: 4 units in the last place
 * Source   TensorFlow tf.tanh */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* dx = dy (1 - y²) */
static void tanh_grad(sx_grad *g)
{
    sx_value y2 = sx_build_op(g->b, square, NULL, g->y[0]);
    sx_value slope = sx_build_op(g->b, sub, NULL, sx_scalar_like(g->b, g->y[0], 1), y2);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
}

static const sx_op_sample tanh_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(tanh)

const sx_op_def sx_op_tanh = {
    SX_OP_NAMED(tanh),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = tanh_grad,
    SX_OP_ROW(tanh),
    SX_OP_SAMPLES(tanh_samples),
};
