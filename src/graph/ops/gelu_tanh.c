/* gelu_tanh: y = x (1 + tanh u) / 2, where u = √(2/π) (x + 0.044715 x³);  dx = dy ((1 + tanh u) / 2
 * + x (1 - tanh² u) u' / 2)
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  4 units in the last place
 * Source   TensorFlow tf.nn.gelu(approximate=True); Hendrycks and Gimpel (2016) */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void gelu_tanh_grad(sx_grad *g)
{
    sx_value one = sx_scalar_like(g->b, g->x[0], 1);
    sx_value square = sx_build_op(g->b, square, NULL, g->x[0]);
    sx_value inner = sx_build_op(g->b, add, NULL, sx_times(g->b, square, 0.044715), one);
    sx_value u =
        sx_times(g->b, sx_build_op(g->b, mul, NULL, g->x[0], inner), 0.79788456080286535588);
    sx_value t = sx_build_op(g->b, tanh, NULL, u);
    sx_value steep = sx_build_op(g->b, sub, NULL, one, sx_build_op(g->b, square, NULL, t));
    sx_value du =
        sx_times(g->b, sx_build_op(g->b, add, NULL, sx_times(g->b, square, 3 * 0.044715), one),
                 0.79788456080286535588);
    sx_value bend = sx_build_op(g->b, mul, NULL, g->x[0], sx_build_op(g->b, mul, NULL, steep, du));
    sx_value twice = sx_build_op(g->b, add, NULL, sx_build_op(g->b, add, NULL, t, one), bend);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], sx_times(g->b, twice, 0.5));
}

static const sx_op_sample gelu_tanh_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(gelu_tanh)

const sx_op_def sx_op_gelu_tanh = {
    SX_OP_NAMED(gelu_tanh),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = gelu_tanh_grad,
    SX_OP_ROW(gelu_tanh),
    SX_OP_SAMPLES(gelu_tanh_samples),
};
