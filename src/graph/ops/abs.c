/* abs: y = |x|;  dx = dy sign x  (0 at 0)
 *
 *   x        any shape, any number
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not numbers
 * Numbers  exact
 * Source   TensorFlow tf.abs */
#include "graph/ops/common.h"

static sx_status abs_infer(sx_infer *c)
{
    return sx_infer_map_number(c);
}

/* dx = dy sign x */
static void abs_grad(sx_grad *g)
{
    sx_value slope = sx_build_op(g->b, sign, NULL, g->x[0]);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
}

static void abs_ref(const sx_ref *r)
{
    sx_ref_map(r, fabs);
}

static void abs_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Abs");
}

static void abs_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    if (sx_hlo_is_unsigned(w, op->in[0])) {
        op->out[0] = op->in[0];
    } else {
        sx_hlo_map(w, op, "abs");
    }
}

static const sx_op_sample abs_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_DISTINCT),
};

SX_PUBLIC_MAP(abs)

const sx_op_def sx_op_abs = {
    SX_OP_NAMED(abs),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = abs_infer,
    .grad = abs_grad,
    .ref = abs_ref,
    .to_tf = abs_to_tf,
    .to_stablehlo = abs_to_stablehlo,
    SX_OP_SAMPLES(abs_samples),
};
