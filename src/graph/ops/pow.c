/* pow: z = xʸ;  dx = dz y xʸ⁻¹, dy = dz z ln x (0 where x <= 0)
 *
 *   x, y     one dtype, any number; the shapes broadcast as in NumPy: from the last dimension
 *            on, dimensions are equal or 1; the batch pairs only with the batch or 1
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast; (running)
 *                            an integer to a negative power
 * Numbers  kernels: 4 units in the last place; integers wrap. Gradients are of floats
 * Source   TensorFlow tf.pow */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* dx = dz y x^(y-1), dy = dz z ln x */
static void pow_grad(sx_grad *g)
{
    if (g->needed[0]) {
        sx_value one = sx_scalar_like(g->b, g->x[1], 1);
        sx_value less_one = sx_build_op(g->b, sub, NULL, g->x[1], one);
        sx_value power = sx_build_op(g->b, pow, NULL, g->x[0], less_one);
        sx_value slope = sx_build_op(g->b, mul, NULL, g->x[1], power);
        sx_value product = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
        g->dx[0] = sx_unbroadcast(g->b, product, g->x[0]);
    }
    if (g->needed[1]) {
        sx_value positive =
            sx_build_op(g->b, greater, NULL, g->x[0], sx_scalar_like(g->b, g->x[0], 0));
        sx_value one = sx_scalar_like(g->b, g->x[0], 1);
        sx_value safe = sx_build_op(g->b, select, NULL, positive, g->x[0], one);
        sx_value slope = sx_build_op(g->b, mul, NULL, g->y[0], sx_build_op(g->b, log, NULL, safe));
        sx_value product = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
        g->dx[1] = sx_unbroadcast(g->b, product, g->x[1]);
    }
}

static const sx_op_sample pow_samples[] = {
    SX_SAMPLES_ZIP(SX_FILL_POSITIVE, SX_FILL_NORMAL),
    {.name = "int32",
     .inputs = {SX_SAMPLE_I32(20, SX_BATCH, 7), SX_SAMPLE_I32(9, SX_BATCH, 7)},
     .n_inputs = 2},
};

SX_PUBLIC_ZIP(pow)

const sx_op_def sx_op_pow = {
    SX_OP_NAMED(pow),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_zip_number,
    .grad = pow_grad,
    SX_OP_ROW(pow),
    SX_OP_SAMPLES(pow_samples),
};
