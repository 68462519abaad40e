/* relu: y = max(x, 0), NaN stays NaN;  dx = dy where y > 0, else 0
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  exact
 * Source   TensorFlow tf.nn.relu */
#include "graph/ops/common.h"

static sx_status relu_infer(sx_infer *c)
{
    return sx_infer_map_float(c);
}

/* dx = dy where y > 0 */
static void relu_grad(sx_grad *g)
{
    g->dx[0] = sx_build_op(g->b, relu_grad, NULL, g->dy[0], g->y[0]);
}

static double relu_of(double x)
{
    return x < 0 ? 0 : x;
}

static void relu_ref(const sx_ref *r)
{
    sx_ref_map(r, relu_of);
}

static void relu_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Relu");
}

static void relu_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    op->out[0] = sx_hlo_with(w, "maximum", op->in[0], 0);
}

static const sx_op_sample relu_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_DISTINCT),
};

SX_PUBLIC_MAP(relu)

const sx_op_def sx_op_relu = {
    SX_OP_NAMED(relu),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = relu_infer,
    .grad = relu_grad,
    .ref = relu_ref,
    .to_tf = relu_to_tf,
    .to_stablehlo = relu_to_stablehlo,
    SX_OP_SAMPLES(relu_samples),
};
