/* exp: y = eˣ;  dx = y dy
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  kernels: 2 units in the last place
 * Source   TensorFlow tf.exp */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* dx = dy y */
static void exp_grad(sx_grad *g)
{
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], g->y[0]);
}

static const sx_op_sample exp_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(exp)

const sx_op_def sx_op_exp = {
    SX_OP_NAMED(exp),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = exp_grad,
    SX_OP_ROW(exp),
    SX_OP_SAMPLES(exp_samples),
};
