/* tan: y = tan x;  dx = dy (1 + y²)
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  2 units in the last place
 * Source   TensorFlow tf.tan */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void tan_grad(sx_grad *g)
{
    sx_value one = sx_scalar_like(g->b, g->x[0], 1);
    sx_value square = sx_build_op(g->b, square, NULL, g->y[0]);
    sx_value slope = sx_build_op(g->b, add, NULL, square, one);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
}

static const sx_op_sample tan_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_UNIFORM),
};

SX_PUBLIC_MAP(tan)

const sx_op_def sx_op_tan = {
    SX_OP_NAMED(tan),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = tan_grad,
    SX_OP_ROW(tan),
    SX_OP_SAMPLES(tan_samples),
};
