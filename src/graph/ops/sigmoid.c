/* sigmoid: y = 1 / (1 + e⁻ˣ);  dx = dy y (1 - y)
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  kernels: 4 units in the last place
 * Source   TensorFlow tf.sigmoid */
#include "graph/ops/common.h"

static sx_status sigmoid_infer(sx_infer *c)
{
    return sx_infer_map_float(c);
}

/* dx = dy y (1 - y) */
static void sigmoid_grad(sx_grad *g)
{
    sx_value rest = sx_build_op(g->b, sub, NULL, sx_scalar_like(g->b, g->y[0], 1), g->y[0]);
    sx_value slope = sx_build_op(g->b, mul, NULL, g->y[0], rest);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
}

static double sigmoid_of(double x)
{
    return 1 / (1 + exp(-x));
}

static void sigmoid_ref(const sx_ref *r)
{
    sx_ref_map(r, sigmoid_of);
}

static void sigmoid_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Sigmoid");
}

static void sigmoid_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo_map(w, op, "logistic");
}

static const sx_op_sample sigmoid_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(sigmoid)

const sx_op_def sx_op_sigmoid = {
    SX_OP_NAMED(sigmoid),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sigmoid_infer,
    .grad = sigmoid_grad,
    .ref = sigmoid_ref,
    .to_tf = sigmoid_to_tf,
    .to_stablehlo = sigmoid_to_stablehlo,
    SX_OP_SAMPLES(sigmoid_samples),
};
