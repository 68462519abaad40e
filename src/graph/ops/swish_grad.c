/* swish_grad: dx = dy (s + x s (1 - s)), where s = 1 / (1 + e⁻ˣ): the gradient of swish, from its
 * input.
 *
 *   dy, x    one type, f16 bf16 f32 f64
 *   returns  that type
 *
 * Gradient ddy = g (s + x s (1 - s));  dx = g dy s (1 - s) (2 + x (1 - 2 s))
 * Errors   INVALID_ARGUMENT  types differ or are not float types
 * Numbers  kernels: 4 units in the last place of dy */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static sx_value one_minus(sx_grad *g, sx_value v)
{
    return sx_build_op(g->b, sub, NULL, sx_scalar_like(g->b, v, 1), v);
}

static void swish_grad_grad(sx_grad *g)
{
    if (g->needed[0]) {
        g->dx[0] = sx_build_op(g->b, swish_grad, NULL, g->dy[0], g->x[1]);
    }
    if (g->needed[1]) {
        sx_value s = sx_build_op(g->b, sigmoid, NULL, g->x[1]);
        sx_value tail = sx_build_op(g->b, mul, NULL, g->x[1], one_minus(g, sx_times(g->b, s, 2)));
        sx_value slope = sx_build_op(g->b, mul, NULL, s, one_minus(g, s));
        sx_value curve = sx_build_op(
            g->b, mul, NULL, slope, sx_build_op(g->b, add, NULL, sx_scalar_like(g->b, s, 2), tail));
        sx_value both = sx_build_op(g->b, mul, NULL, g->dy[0], g->x[0]);
        g->dx[1] = sx_build_op(g->b, mul, NULL, both, curve);
    }
}

static const sx_op_sample swish_grad_samples[] = {
    {.name = "batch",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 7),
                SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 7)},
     .n_inputs = 2},
    {.name = "image",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3, 5, 2),
                SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3, 5, 2)},
     .n_inputs = 2},
};

const sx_op_def sx_op_swish_grad = {
    SX_OP_NAMED(swish_grad),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_zip_equal,
    .grad = swish_grad_grad,
    SX_OP_ROW(swish_grad),
    .zero_of = 0x1,
    SX_OP_SAMPLES(swish_grad_samples),
};
