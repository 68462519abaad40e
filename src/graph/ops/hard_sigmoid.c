/* hard_sigmoid: y = min(max(x + 3, 0), 6) / 6;  dx = dy / 6 where |x| < 3, otherwise 0
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  2 units in the last place
 * Source   Keras activations.hard_sigmoid */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void hard_sigmoid_grad(sx_grad *g)
{
    sx_value three = sx_scalar_like(g->b, g->x[0], 3);
    sx_value inside = sx_build_op(g->b, less, NULL, sx_build_op(g->b, abs, NULL, g->x[0]), three);
    g->dx[0] = sx_build_op(g->b, select, NULL, inside, sx_times(g->b, g->dy[0], 1.0 / 6),
                           sx_scalar_like(g->b, g->dy[0], 0));
}

static const sx_op_sample hard_sigmoid_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_DISTINCT),
};

SX_PUBLIC_MAP(hard_sigmoid)

const sx_op_def sx_op_hard_sigmoid = {
    SX_OP_NAMED(hard_sigmoid),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = hard_sigmoid_grad,
    SX_OP_ROW(hard_sigmoid),
    SX_OP_SAMPLES(hard_sigmoid_samples),
};
