/* div: z = x / y;  dx = dz / y, dy = -dz z / y, each summed over broadcast dimensions
 *
 *   x, y     one dtype, f16 bf16 f32 f64; the shapes broadcast as in NumPy: from the last dimension
 *            on, dimensions are equal or 1; the batch pairs only with the batch or 1
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast
 * Numbers  one rounding; x / 0 is IEEE's inf or NaN
 * Source   TensorFlow tf.realdiv */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* dx = dz / y, dy = -dx z */
static void div_grad(sx_grad *g)
{
    sx_value quotient = sx_build_op(g->b, div, NULL, g->dy[0], g->x[1]);
    if (g->needed[0]) {
        g->dx[0] = sx_unbroadcast(g->b, quotient, g->x[0]);
    }
    if (g->needed[1]) {
        sx_value product = sx_build_op(g->b, mul, NULL, quotient, g->y[0]);
        sx_value sum = sx_unbroadcast(g->b, product, g->x[1]);
        g->dx[1] = sx_build_op(g->b, neg, NULL, sum);
    }
}

static const sx_op_sample div_samples[] = {
    SX_SAMPLES_ZIP(SX_FILL_NORMAL, SX_FILL_POSITIVE),
};

SX_PUBLIC_ZIP(div)

const sx_op_def sx_op_div = {
    SX_OP_NAMED(div),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_zip_float,
    .grad = div_grad,
    SX_OP_ROW(div),
    SX_OP_SAMPLES(div_samples),
};
