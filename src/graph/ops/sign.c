/* sign: y = -1, 0 or 1 by the sign of x; NaN stays NaN. The gradient is zero.
 *
 *   x        any shape, any number
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not numbers
 * Numbers  exact
 * Source   TensorFlow tf.sign */
#include "graph/ops/common.h"

static sx_status sign_infer(sx_infer *c)
{
    return sx_infer_map_number(c);
}

static double sign_of(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

static void sign_ref(const sx_ref *r)
{
    sx_ref_map(r, sign_of);
}

static void sign_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Sign");
}

static void sign_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    if (sx_hlo_is_unsigned(w, op->in[0])) {
        op->out[0] = sx_hlo_with(w, "minimum", op->in[0], 1);
    } else {
        sx_hlo_map(w, op, "sign");
    }
}

static const sx_op_sample sign_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_DISTINCT),
};

SX_PUBLIC_MAP(sign)

const sx_op_def sx_op_sign = {
    SX_OP_NAMED(sign),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD,
    .infer = sign_infer,
    .ref = sign_ref,
    .to_tf = sign_to_tf,
    .to_stablehlo = sign_to_stablehlo,
    SX_OP_SAMPLES(sign_samples),
};
