/* div: z = x / y;  dx = dz / y, dy = -dz z / y, each summed over what broadcasting added
 *
 *   x, y     one dtype, f16 bf16 f32 f64; shapes that broadcast as numpy's do: counted from the
 * last, dimensions are equal or 1, and the batch meets only the batch or 1 returns  the broadcast
 * shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or do not fit, shapes do not broadcast
 * Numbers  one rounding; x / 0 is IEEE's inf or NaN
 * Source   TensorFlow tf.realdiv */
#include "graph/ops/common.h"

static sx_status div_infer(sx_infer *c)
{
    return sx_infer_zip_float(c);
}

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

static double div_of(double x, double y)
{
    return x / y;
}

static void div_ref(const sx_ref *r)
{
    sx_ref_zip(r, div_of);
}

static void div_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "RealDiv");
}

static void div_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo_zip(w, op, "divide");
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
    .infer = div_infer,
    .grad = div_grad,
    .ref = div_ref,
    .to_tf = div_to_tf,
    .to_stablehlo = div_to_stablehlo,
    SX_OP_SAMPLES(div_samples),
};
