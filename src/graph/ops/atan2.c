/* atan2: z = the angle of the point (y, x) in (-π, π];  dx = dz y / r, dy = -dz x / r, where
 * r = x² + y²
 *
 *   x, y     one dtype, f16 bf16 f32 f64; the shapes broadcast as in NumPy: from the last dimension
 *            on, dimensions are equal or 1; the batch pairs only with the batch or 1. x is the
 *            sine's side, as in C
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast
 * Numbers  2 units in the last place; the gradient at the origin is NaN
 * Source   TensorFlow tf.atan2 */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void atan2_grad(sx_grad *g)
{
    sx_value xx = sx_build_op(g->b, square, NULL, g->x[0]);
    sx_value yy = sx_build_op(g->b, square, NULL, g->x[1]);
    sx_value share = sx_build_op(g->b, div, NULL, g->dy[0], sx_build_op(g->b, add, NULL, xx, yy));
    if (g->needed[0]) {
        g->dx[0] = sx_unbroadcast(g->b, sx_build_op(g->b, mul, NULL, share, g->x[1]), g->x[0]);
    }
    if (g->needed[1]) {
        sx_value product = sx_build_op(g->b, mul, NULL, share, g->x[0]);
        g->dx[1] = sx_unbroadcast(g->b, sx_build_op(g->b, neg, NULL, product), g->x[1]);
    }
}

static const sx_op_sample atan2_samples[] = {
    SX_SAMPLES_ZIP(SX_FILL_NORMAL, SX_FILL_POSITIVE), /* y > 0: away from the jump at x = 0 */
};

SX_PUBLIC_ZIP(atan2)

const sx_op_def sx_op_atan2 = {
    SX_OP_NAMED(atan2),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_zip_float,
    .grad = atan2_grad,
    SX_OP_ROW(atan2),
    SX_OP_SAMPLES(atan2_samples),
};
