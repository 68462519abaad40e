/* log1p: y = ln(1 + x), exact near 0;  dx = dy / (1 + x)
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  kernels: 2 units in the last place
 * Source   TensorFlow tf.math.log1p */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* dx = dy / (1 + x) */
static void log1p_grad(sx_grad *g)
{
    sx_value one = sx_scalar_like(g->b, g->x[0], 1);
    sx_value shifted = sx_build_op(g->b, add, NULL, g->x[0], one);
    g->dx[0] = sx_build_op(g->b, div, NULL, g->dy[0], shifted);
}

static const sx_op_sample log1p_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_POSITIVE),
};

SX_PUBLIC_MAP(log1p)

const sx_op_def sx_op_log1p = {
    SX_OP_NAMED(log1p),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = log1p_grad,
    SX_OP_ROW(log1p),
    SX_OP_SAMPLES(log1p_samples),
};
