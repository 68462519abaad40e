/* rsqrt: y = 1 / √x;  dx = -dy y³ / 2
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  kernels: 2 units in the last place
 * Source   TensorFlow tf.math.rsqrt */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* dx = -dy y³ / 2 */
static void rsqrt_grad(sx_grad *g)
{
    sx_value y2 = sx_build_op(g->b, square, NULL, g->y[0]);
    sx_value y3 = sx_build_op(g->b, mul, NULL, y2, g->y[0]);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], sx_times(g->b, y3, -0.5));
}

static const sx_op_sample rsqrt_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_POSITIVE),
};

SX_PUBLIC_MAP(rsqrt)

const sx_op_def sx_op_rsqrt = {
    SX_OP_NAMED(rsqrt),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = rsqrt_grad,
    SX_OP_ROW(rsqrt),
    SX_OP_SAMPLES(rsqrt_samples),
};
