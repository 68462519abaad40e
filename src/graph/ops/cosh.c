/* cosh: y = (eˣ + e⁻ˣ) / 2;  dx = dy sinh x
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  2 units in the last place
 * Source   TensorFlow tf.cosh */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void cosh_grad(sx_grad *g)
{
    sx_value slope = sx_build_op(g->b, sinh, NULL, g->x[0]);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
}

static const sx_op_sample cosh_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(cosh)

const sx_op_def sx_op_cosh = {
    SX_OP_NAMED(cosh),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = cosh_grad,
    SX_OP_ROW(cosh),
    SX_OP_SAMPLES(cosh_samples),
};
