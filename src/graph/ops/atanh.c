/* atanh: y = the number whose tanh is x, NaN if |x| > 1;  dx = dy / (1 - x²)
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  2 units in the last place
 * Source   TensorFlow tf.atanh */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void atanh_grad(sx_grad *g)
{
    sx_value one = sx_scalar_like(g->b, g->x[0], 1);
    sx_value square = sx_build_op(g->b, square, NULL, g->x[0]);
    sx_value below = sx_build_op(g->b, sub, NULL, one, square);
    g->dx[0] = sx_build_op(g->b, div, NULL, g->dy[0], below);
}

static const sx_op_sample atanh_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_UNIFORM),
};

SX_PUBLIC_MAP(atanh)

const sx_op_def sx_op_atanh = {
    SX_OP_NAMED(atanh),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = atanh_grad,
    SX_OP_ROW(atanh),
    SX_OP_SAMPLES(atanh_samples),
};
