/* sqrt: y = √x;  dx = dy / (2 y).  NaN below 0.
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  one rounding
 * Source   TensorFlow tf.sqrt */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* dx = dy / 2y */
static void sqrt_grad(sx_grad *g)
{
    sx_value slope = sx_times(g->b, g->y[0], 2);
    g->dx[0] = sx_build_op(g->b, div, NULL, g->dy[0], slope);
}

static const sx_op_sample sqrt_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_POSITIVE),
};

SX_PUBLIC_MAP(sqrt)

const sx_op_def sx_op_sqrt = {
    SX_OP_NAMED(sqrt),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = sqrt_grad,
    SX_OP_ROW(sqrt),
    SX_OP_SAMPLES(sqrt_samples),
};
