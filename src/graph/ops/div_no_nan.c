/* div_no_nan: z = x / y, 0 where y is 0;  dx = dz / y, dy = -dz z / y, 0 where y is 0
 *
 *   x, y     one dtype, f16 bf16 f32 f64; the shapes broadcast as in NumPy: from the last
 *            dimension on, dimensions are equal or 1; the batch pairs only with the batch or 1
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast
 * Numbers  1 unit in the last place
 * Source   TensorFlow tf.math.divide_no_nan */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void div_no_nan_grad(sx_grad *g)
{
    sx_value share = sx_build_op(g->b, div_no_nan, NULL, g->dy[0], g->x[1]);
    if (g->needed[0]) {
        g->dx[0] = sx_unbroadcast(g->b, share, g->x[0]);
    }
    if (g->needed[1]) {
        sx_value part = sx_build_op(g->b, mul, NULL, share, g->y[0]);
        g->dx[1] = sx_unbroadcast(g->b, sx_build_op(g->b, neg, NULL, part), g->x[1]);
    }
}

static const sx_op_sample div_no_nan_samples[] = {
    SX_SAMPLES_ZIP(SX_FILL_NORMAL, SX_FILL_POSITIVE),
};

SX_PUBLIC_ZIP(div_no_nan)

const sx_op_def sx_op_div_no_nan = {
    SX_OP_NAMED(div_no_nan),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_zip_float,
    .grad = div_no_nan_grad,
    SX_OP_ROW(div_no_nan),
    SX_OP_SAMPLES(div_no_nan_samples),
};
