/* asinh: y = the number whose sinh is x;  dx = dy / √(x² + 1)
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  2 units in the last place
 * Source   TensorFlow tf.asinh */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void asinh_grad(sx_grad *g)
{
    sx_value one = sx_scalar_like(g->b, g->x[0], 1);
    sx_value square = sx_build_op(g->b, square, NULL, g->x[0]);
    sx_value root = sx_build_op(g->b, sqrt, NULL, sx_build_op(g->b, add, NULL, square, one));
    g->dx[0] = sx_build_op(g->b, div, NULL, g->dy[0], root);
}

static const sx_op_sample asinh_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(asinh)

const sx_op_def sx_op_asinh = {
    SX_OP_NAMED(asinh),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = asinh_grad,
    SX_OP_ROW(asinh),
    SX_OP_SAMPLES(asinh_samples),
};
