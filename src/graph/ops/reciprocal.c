/* reciprocal: y = 1 / x;  dx = -dy y²
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  2 units in the last place
 * Source   TensorFlow tf.math.reciprocal */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void reciprocal_grad(sx_grad *g)
{
    sx_value square = sx_build_op(g->b, square, NULL, g->y[0]);
    sx_value product = sx_build_op(g->b, mul, NULL, g->dy[0], square);
    g->dx[0] = sx_build_op(g->b, neg, NULL, product);
}

static const sx_op_sample reciprocal_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_POSITIVE),
};

SX_PUBLIC_MAP(reciprocal)

const sx_op_def sx_op_reciprocal = {
    SX_OP_NAMED(reciprocal),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = reciprocal_grad,
    SX_OP_ROW_BUT_FROM_TF(reciprocal),
    SX_FROM_TF({.op = "Reciprocal"}, {.op = "Inv"}),
    SX_OP_SAMPLES(reciprocal_samples),
};
