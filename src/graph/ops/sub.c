/* sub: z = x - y;  dx = dz, dy = -dz, each summed over broadcast dimensions
 *
 *   x, y     one dtype, any number; the shapes broadcast as in NumPy: from the last
 *            dimension on, dimensions are equal or 1; the batch pairs only with the batch or 1
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast
 * Numbers  one rounding
 * Source   TensorFlow tf.subtract */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* dx = dz, dy = -dz */
static void sub_grad(sx_grad *g)
{
    if (g->needed[0]) {
        g->dx[0] = sx_unbroadcast(g->b, g->dy[0], g->x[0]);
    }
    if (g->needed[1]) {
        sx_value sum = sx_unbroadcast(g->b, g->dy[0], g->x[1]);
        g->dx[1] = sx_build_op(g->b, neg, NULL, sum);
    }
}

static const sx_op_sample sub_samples[] = {
    SX_SAMPLES_ZIP(SX_FILL_NORMAL, SX_FILL_NORMAL),
    {.name = "int32",
     .inputs = {SX_SAMPLE_I32(9, SX_BATCH, 4), SX_SAMPLE_I32(9, 4)},
     .n_inputs = 2},
};

SX_PUBLIC_ZIP(sub)

const sx_op_def sx_op_sub = {
    SX_OP_NAMED(sub),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_zip_number,
    .grad = sub_grad,
    SX_OP_ROW(sub),
    SX_OP_SAMPLES(sub_samples),
};
