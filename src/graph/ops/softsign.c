/* softsign: y = x / (1 + |x|);  dx = dy / (1 + |x|)²
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  2 units in the last place
 * Source   TensorFlow tf.nn.softsign */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void softsign_grad(sx_grad *g)
{
    sx_value one = sx_scalar_like(g->b, g->x[0], 1);
    sx_value below = sx_build_op(g->b, add, NULL, sx_build_op(g->b, abs, NULL, g->x[0]), one);
    sx_value share = sx_build_op(g->b, div, NULL, g->dy[0], below);
    g->dx[0] = sx_build_op(g->b, div, NULL, share, below);
}

static const sx_op_sample softsign_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_DISTINCT), /* |x| has a kink at 0 */
};

SX_PUBLIC_MAP(softsign)

const sx_op_def sx_op_softsign = {
    SX_OP_NAMED(softsign),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = softsign_grad,
    SX_OP_ROW(softsign),
    SX_OP_SAMPLES(softsign_samples),
};
