/* expm1: y = eˣ - 1, exact near 0;  dx = dy eˣ
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  2 units in the last place
 * Source   TensorFlow tf.math.expm1 */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void expm1_grad(sx_grad *g)
{
    sx_value slope = sx_build_op(g->b, exp, NULL, g->x[0]);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
}

static const sx_op_sample expm1_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(expm1)

const sx_op_def sx_op_expm1 = {
    SX_OP_NAMED(expm1),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = expm1_grad,
    SX_OP_ROW(expm1),
    SX_OP_SAMPLES(expm1_samples),
};
