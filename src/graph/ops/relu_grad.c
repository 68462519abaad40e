/* relu_grad: dx = dy where y > 0, else 0: the gradient of relu, from its output.
 *
 *   dy, y    one type, f16 bf16 f32 f64
 *   returns  that type
 *
 * Gradient ddy = g where y > 0; none to y (zero almost everywhere).
 * Errors   INVALID_ARGUMENT  types differ, or no float
 * Numbers  exact
 * Source   TensorFlow ReluGrad */
#include "graph/ops/common.h"

static sx_status relu_grad_infer(sx_infer *c)
{
    return sx_infer_zip_equal(c);
}

static void relu_grad_grad(sx_grad *g)
{
    g->dx[0] = sx_build_op(g->b, relu_grad, NULL, g->dy[0], g->x[1]);
}

static double relu_grad_of(double dy, double y)
{
    return y > 0 ? dy : 0;
}

static void relu_grad_ref(const sx_ref *r)
{
    sx_ref_zip(r, relu_grad_of);
}

static void relu_grad_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "ReluGrad");
}

static void relu_grad_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo zero = sx_hlo_like(w, op->in[0], 0);
    sx_hlo positive = sx_hlo_compare(w, "GT", op->in[1], zero);
    op->out[0] = sx_hlo_select(w, positive, op->in[0], zero);
}

static const sx_op_sample relu_grad_samples[] = {
    {.name = "batch",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 7),
                SX_SAMPLE_F32(SX_FILL_DISTINCT, SX_BATCH, 7)},
     .n_inputs = 2},
    {.name = "image",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3, 5, 2),
                SX_SAMPLE_F32(SX_FILL_DISTINCT, SX_BATCH, 3, 5, 2)},
     .n_inputs = 2},
};

const sx_op_def sx_op_relu_grad = {
    SX_OP_NAMED(relu_grad),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE,
    .infer = relu_grad_infer,
    .grad = relu_grad_grad,
    .ref = relu_grad_ref,
    .to_tf = relu_grad_to_tf,
    .to_stablehlo = relu_grad_to_stablehlo,
    SX_OP_SAMPLES(relu_grad_samples),
};
