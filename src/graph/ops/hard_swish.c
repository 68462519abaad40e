/* hard_swish: y = x min(max(x + 3, 0), 6) / 6;  dx = dy (2 x + 3) / 6 where |x| < 3, otherwise dy
 * or 0
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  2 units in the last place
 * Source   Keras activations.hard_silu */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void hard_swish_grad(sx_grad *g)
{
    sx_value three = sx_scalar_like(g->b, g->x[0], 3);
    sx_value inside = sx_build_op(g->b, less, NULL, sx_build_op(g->b, abs, NULL, g->x[0]), three);
    sx_value outside =
        sx_cast_like(g->b, sx_build_op(g->b, greater, NULL, g->x[0], three), g->x[0]);
    sx_value bent =
        sx_times(g->b, sx_build_op(g->b, add, NULL, sx_times(g->b, g->x[0], 2), three), 1.0 / 6);
    sx_value slope = sx_build_op(g->b, select, NULL, inside, bent, outside);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
}

static const sx_op_sample hard_swish_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_DISTINCT),
};

SX_PUBLIC_MAP(hard_swish)

const sx_op_def sx_op_hard_swish = {
    SX_OP_NAMED(hard_swish),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = hard_swish_grad,
    SX_OP_ROW(hard_swish),
    SX_OP_SAMPLES(hard_swish_samples),
};
