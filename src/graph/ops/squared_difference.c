/* squared_difference: z = (x - y)²;  dx = 2 dz (x - y), dy = -dx
 *
 *   x, y     one dtype, any number; the shapes broadcast as in NumPy: from the last
 *            dimension on, dimensions are equal or 1; the batch pairs only with the batch or 1
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast
 * Numbers  2 units in the last place; integers wrap
 * Source   TensorFlow tf.math.squared_difference */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void squared_difference_grad(sx_grad *g)
{
    sx_value off = sx_build_op(g->b, sub, NULL, g->x[0], g->x[1]);
    sx_value share = sx_build_op(g->b, mul, NULL, g->dy[0], sx_times(g->b, off, 2));
    if (g->needed[0]) {
        g->dx[0] = sx_unbroadcast(g->b, share, g->x[0]);
    }
    if (g->needed[1]) {
        g->dx[1] = sx_unbroadcast(g->b, sx_build_op(g->b, neg, NULL, share), g->x[1]);
    }
}

static const sx_op_sample squared_difference_samples[] = {
    SX_SAMPLES_ZIP(SX_FILL_NORMAL, SX_FILL_NORMAL),
};

SX_PUBLIC_ZIP(squared_difference)

const sx_op_def sx_op_squared_difference = {
    SX_OP_NAMED(squared_difference),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_zip_number,
    .grad = squared_difference_grad,
    SX_OP_ROW(squared_difference),
    SX_OP_SAMPLES(squared_difference_samples),
};
