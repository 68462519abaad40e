/* selu: y = scale x if positive, otherwise scale α (eˣ - 1), where scale = 1.0507… and α = 1.6732…;
 *  dx = dy scale if x > 0, otherwise dy (y + scale α)
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  2 units in the last place
 * Source   TensorFlow tf.nn.selu; Klambauer et al., "Self-Normalizing Neural Networks" (2017) */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void selu_grad(sx_grad *g)
{
    sx_value positive = sx_build_op(g->b, greater, NULL, g->x[0], sx_scalar_like(g->b, g->x[0], 0));
    sx_value scale = sx_scalar_like(g->b, g->x[0], 1.0507009873554805);
    sx_value below =
        sx_build_op(g->b, add, NULL, g->y[0], sx_scalar_like(g->b, g->x[0], 1.7580993408473766));
    sx_value slope = sx_build_op(g->b, select, NULL, positive, scale, below);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
}

static const sx_op_sample selu_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_DISTINCT), /* a kink at 0 */
};

SX_PUBLIC_MAP(selu)

const sx_op_def sx_op_selu = {
    SX_OP_NAMED(selu),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = selu_grad,
    SX_OP_ROW(selu),
    SX_OP_SAMPLES(selu_samples),
};
