/* acosh: y = the number whose cosh is x, NaN if x < 1;  dx = dy / √((x - 1) (x + 1))
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  2 units in the last place
 * Source   TensorFlow tf.acosh */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void acosh_grad(sx_grad *g)
{
    sx_value one = sx_scalar_like(g->b, g->x[0], 1);
    sx_value product = sx_build_op(g->b, mul, NULL, sx_build_op(g->b, sub, NULL, g->x[0], one),
                                   sx_build_op(g->b, add, NULL, g->x[0], one));
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], sx_build_op(g->b, rsqrt, NULL, product));
}

static const sx_op_sample acosh_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_FAR), /* above 1 */
};

SX_PUBLIC_MAP(acosh)

const sx_op_def sx_op_acosh = {
    SX_OP_NAMED(acosh),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = acosh_grad,
    SX_OP_ROW(acosh),
    SX_OP_SAMPLES(acosh_samples),
};
