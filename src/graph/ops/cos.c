/* cos: y = cos x;  dx = -dy sin x, where sin x = cos(x - π/2)
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  kernels: 2 units in the last place for |x| < 10⁴
 * Source   TensorFlow tf.cos */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* dx = -dy cos(x - π/2) */
static void cos_grad(sx_grad *g)
{
    sx_value quarter = sx_scalar_like(g->b, g->x[0], 1.57079632679489661923);
    sx_value turned = sx_build_op(g->b, sub, NULL, g->x[0], quarter);
    sx_value slope = sx_build_op(g->b, cos, NULL, turned);
    sx_value product = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
    g->dx[0] = sx_build_op(g->b, neg, NULL, product);
}

static const sx_op_sample cos_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(cos)

const sx_op_def sx_op_cos = {
    SX_OP_NAMED(cos),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = cos_grad,
    SX_OP_ROW(cos),
    SX_OP_SAMPLES(cos_samples),
};
