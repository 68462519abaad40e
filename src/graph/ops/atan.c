/* atan: y = the angle in (-π/2, π/2) whose tangent is x;  dx = dy / (1 + x²)
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  2 units in the last place
 * Source   TensorFlow tf.atan */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void atan_grad(sx_grad *g)
{
    sx_value one = sx_scalar_like(g->b, g->x[0], 1);
    sx_value square = sx_build_op(g->b, square, NULL, g->x[0]);
    sx_value below = sx_build_op(g->b, add, NULL, one, square);
    g->dx[0] = sx_build_op(g->b, div, NULL, g->dy[0], below);
}

static const sx_op_sample atan_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(atan)

const sx_op_def sx_op_atan = {
    SX_OP_NAMED(atan),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = atan_grad,
    SX_OP_ROW(atan),
    SX_OP_SAMPLES(atan_samples),
};
