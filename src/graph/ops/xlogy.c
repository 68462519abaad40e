/* xlogy: z = x ln y, 0 where x is 0;  dx = dz ln y, dy = dz x / y, 0 where x is 0
 *
 *   x, y     one dtype, f16 bf16 f32 f64; the shapes broadcast as in NumPy: from the last
 *            dimension on, dimensions are equal or 1; the batch pairs only with the batch or 1
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast
 * Numbers  2 units in the last place
 * Source   TensorFlow tf.math.xlogy */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void xlogy_grad(sx_grad *g)
{
    if (g->needed[0]) {
        sx_value zero = sx_scalar_like(g->b, g->x[0], 0);
        sx_value is_zero = sx_build_op(g->b, equal, NULL, g->x[0], zero);
        sx_value slope = sx_build_op(g->b, log, NULL, g->x[1]);
        sx_value part = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
        part = sx_build_op(g->b, select, NULL, is_zero, zero, part);
        g->dx[0] = sx_unbroadcast(g->b, part, g->x[0]);
    }
    if (g->needed[1]) {
        sx_value slope = sx_build_op(g->b, xdivy, NULL, g->x[0], g->x[1]);
        sx_value part = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
        g->dx[1] = sx_unbroadcast(g->b, part, g->x[1]);
    }
}

static const sx_op_sample xlogy_samples[] = {
    SX_SAMPLES_ZIP(SX_FILL_NORMAL, SX_FILL_POSITIVE),
};

SX_PUBLIC_ZIP(xlogy)

const sx_op_def sx_op_xlogy = {
    SX_OP_NAMED(xlogy),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_zip_float,
    .grad = xlogy_grad,
    SX_OP_ROW(xlogy),
    SX_OP_SAMPLES(xlogy_samples),
};
