/* floor_mod: z = x - y floor(x / y), with the sign of y;  dx = dz, dy = -dz floor(x / y)
 *
 *   x, y     one dtype, any number; the shapes broadcast as in NumPy: from the last
 *            dimension on, dimensions are equal or 1; the batch pairs only with the batch or 1
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast; an
 * integer is divided by zero (devices other than the CPU do not report that) Numbers  exact Source
 * TensorFlow tf.math.floormod */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void floor_mod_grad(sx_grad *g)
{
    if (g->needed[0]) {
        g->dx[0] = sx_unbroadcast(g->b, g->dy[0], g->x[0]);
    }
    if (g->needed[1]) {
        sx_value whole = sx_build_op(g->b, floor_div, NULL, g->x[0], g->x[1]);
        sx_value part = sx_build_op(g->b, mul, NULL, g->dy[0], whole);
        g->dx[1] = sx_unbroadcast(g->b, sx_build_op(g->b, neg, NULL, part), g->x[1]);
    }
}

static const sx_op_sample floor_mod_samples[] = {
    SX_SAMPLES_ZIP(SX_FILL_DISTINCT, SX_FILL_POSITIVE),
};

SX_PUBLIC_ZIP(floor_mod)

const sx_op_def sx_op_floor_mod = {
    SX_OP_NAMED(floor_mod),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_zip_number,
    .grad = floor_mod_grad,
    SX_OP_ROW(floor_mod),
    SX_OP_SAMPLES(floor_mod_samples),
};
