/* gelu: y = x Φ(x), where Φ is the normal distribution, x erfc(-x/√2) / 2;  dx = dy (Φ(x) + x
 * exp(-x²/2) / √(2π))
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  float32 within 1e-6; it does not cancel for negative x
 * Source   TensorFlow tf.nn.gelu(approximate=False) */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void gelu_grad(sx_grad *g)
{
    sx_value square = sx_build_op(g->b, square, NULL, g->x[0]);
    sx_value bell = sx_build_op(g->b, exp, NULL, sx_times(g->b, square, -0.5));
    sx_value turned = sx_times(g->b, g->x[0], -0.70710678118654752440);
    sx_value share = sx_times(g->b, sx_build_op(g->b, erfc, NULL, turned), 0.5);
    sx_value density = sx_times(g->b, bell, 0.39894228040143267794);
    sx_value slope =
        sx_build_op(g->b, add, NULL, share, sx_build_op(g->b, mul, NULL, g->x[0], density));
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
}

static const sx_op_sample gelu_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(gelu)

const sx_op_def sx_op_gelu = {
    SX_OP_NAMED(gelu),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = gelu_grad,
    SX_OP_ROW(gelu),
    SX_OP_SAMPLES(gelu_samples),
};
