/* neg: y = -x;  dx = -dy
 *
 *   x        any shape, any number
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not numbers
 * Numbers  exact
 * Source   TensorFlow tf.negative */
#include "graph/ops/common.h"

static sx_status neg_infer(sx_infer *c)
{
    return sx_infer_map_number(c);
}

/* dx = -dy */
static void neg_grad(sx_grad *g)
{
    g->dx[0] = sx_build_op(g->b, neg, NULL, g->dy[0]);
}

static double neg_of(double x)
{
    return -x;
}

static void neg_ref(const sx_ref *r)
{
    sx_ref_map(r, neg_of);
}

static void neg_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Neg");
}

static void neg_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo_map(w, op, "negate");
}

static const sx_op_sample neg_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(neg)

const sx_op_def sx_op_neg = {
    SX_OP_NAMED(neg),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = neg_infer,
    .grad = neg_grad,
    .ref = neg_ref,
    .to_tf = neg_to_tf,
    .to_stablehlo = neg_to_stablehlo,
    SX_OP_SAMPLES(neg_samples),
};
