/* mul: z = x y;  dx = dz y, dy = dz x, each summed over broadcast dimensions
 *
 *   x, y     one dtype, any number; the shapes broadcast as in NumPy: from the last
 *            dimension on, dimensions are equal or 1; the batch pairs only with the batch or 1
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast
 * Numbers  one rounding
 * Source   TensorFlow tf.multiply */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* dx = dz y, dy = dz x */
static void mul_grad(sx_grad *g)
{
    for (int i = 0; i < 2; i++) {
        if (g->needed[i]) {
            sx_value product = sx_build_op(g->b, mul, NULL, g->dy[0], g->x[1 - i]);
            g->dx[i] = sx_unbroadcast(g->b, product, g->x[i]);
        }
    }
}

static const sx_op_sample mul_samples[] = {
    SX_SAMPLES_ZIP(SX_FILL_NORMAL, SX_FILL_NORMAL),
    {.name = "int32",
     .inputs = {SX_SAMPLE_I32(9, SX_BATCH, 4), SX_SAMPLE_I32(9, 4)},
     .n_inputs = 2},
};

SX_PUBLIC_ZIP(mul)

const sx_op_def sx_op_mul = {
    SX_OP_NAMED(mul),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_zip_number,
    .grad = mul_grad,
    SX_OP_ROW(mul),
    SX_OP_SAMPLES(mul_samples),
};
