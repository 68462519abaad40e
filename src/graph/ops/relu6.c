/* relu6: y = min(max(x, 0), 6);  dx = dy where 0 < y < 6, else 0
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  exact
 * Source   TensorFlow tf.nn.relu6 */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* dx = dy where 0 < y and 0 < 6 - y: elementwise operators of one dtype, which backends fuse */
static void relu6_grad(sx_grad *g)
{
    sx_value left = sx_build_op(g->b, sub, NULL, sx_scalar_like(g->b, g->y[0], 6), g->y[0]);
    sx_value below = sx_build_op(g->b, relu_grad, NULL, g->dy[0], left);
    g->dx[0] = sx_build_op(g->b, relu_grad, NULL, below, g->y[0]);
}

static const sx_op_sample relu6_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_DISTINCT),
    /* wide enough to pass 6 */
    {.name = "wide", .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, SX_BATCH, 90)}, .n_inputs = 1},
};

SX_PUBLIC_MAP(relu6)

const sx_op_def sx_op_relu6 = {
    SX_OP_NAMED(relu6),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE | SX_OP_EXACT,
    .infer = sx_infer_map_float,
    .grad = relu6_grad,
    SX_OP_ROW(relu6),
    SX_OP_SAMPLES(relu6_samples),
};
