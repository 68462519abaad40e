/* minimum: z = min(x, y), NaN if either is;  dz goes to x where x <= y, else to y
 *
 *   x, y     one dtype, any number; shapes that broadcast as numpy's do: counted from the last,
 *            dimensions are equal or 1, and the batch meets only the batch or 1
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or do not fit, shapes do not broadcast
 * Numbers  exact
 * Source   TensorFlow tf.minimum */
#include "graph/ops/common.h"

static sx_status minimum_infer(sx_infer *c)
{
    return sx_infer_zip_number(c);
}

/* where y < x, dy = dz; elsewhere dx = dz */
static void minimum_grad(sx_grad *g)
{
    sx_grad_choice(g, sx_build_op(g->b, less, NULL, g->x[1], g->x[0]));
}

static double minimum_of(double x, double y)
{
    return isnan(x) || x <= y ? x : y;
}

static void minimum_ref(const sx_ref *r)
{
    sx_ref_zip(r, minimum_of);
}

static void minimum_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Minimum");
}

static void minimum_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo_zip(w, op, "minimum");
}

static const sx_op_sample minimum_samples[] = {
    SX_SAMPLES_ZIP(SX_FILL_DISTINCT, SX_FILL_DISTINCT),
};

SX_PUBLIC_ZIP(minimum)

const sx_op_def sx_op_minimum = {
    SX_OP_NAMED(minimum),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE,
    .infer = minimum_infer,
    .grad = minimum_grad,
    .ref = minimum_ref,
    .to_tf = minimum_to_tf,
    .to_stablehlo = minimum_to_stablehlo,
    SX_OP_SAMPLES(minimum_samples),
};
