/* mul: z = x y;  dx = dz y, dy = dz x, each summed over what broadcasting added
 *
 *   x, y     one dtype, any number; shapes that broadcast as numpy's do: counted from the last,
 *            dimensions are equal or 1, and the batch meets only the batch or 1
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or do not fit, shapes do not broadcast
 * Numbers  one rounding
 * Source   TensorFlow tf.multiply */
#include "graph/ops/common.h"

static sx_status mul_infer(sx_infer *c)
{
    return sx_infer_zip_number(c);
}

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

static double mul_of(double x, double y)
{
    return x * y;
}

static void mul_ref(const sx_ref *r)
{
    sx_ref_zip(r, mul_of);
}

static void mul_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Mul");
}

static void mul_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo_zip(w, op, "multiply");
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
    .infer = mul_infer,
    .grad = mul_grad,
    .ref = mul_ref,
    .to_tf = mul_to_tf,
    .to_stablehlo = mul_to_stablehlo,
    SX_OP_SAMPLES(mul_samples),
};
