/* asin: y = the angle in [-π/2, π/2] whose sine is x, NaN if |x| > 1;  dx = dy / √(1 - x²)
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  2 units in the last place
 * Source   TensorFlow tf.asin */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void asin_grad(sx_grad *g)
{
    sx_value one = sx_scalar_like(g->b, g->x[0], 1);
    sx_value square = sx_build_op(g->b, square, NULL, g->x[0]);
    sx_value root = sx_build_op(g->b, sqrt, NULL, sx_build_op(g->b, sub, NULL, one, square));
    g->dx[0] = sx_build_op(g->b, div, NULL, g->dy[0], root);
}

static const sx_op_sample asin_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_UNIFORM),
};

SX_PUBLIC_MAP(asin)

const sx_op_def sx_op_asin = {
    SX_OP_NAMED(asin),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = asin_grad,
    SX_OP_ROW(asin),
    SX_OP_SAMPLES(asin_samples),
};
