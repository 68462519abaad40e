/* swish: y = x s, where s = 1 / (1 + e⁻ˣ);  dx = dy (s + y (1 - s))
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  kernels: 4 units in the last place
 * Source   TensorFlow tf.nn.silu */
#include "graph/ops/common.h"

static sx_status swish_infer(sx_infer *c)
{
    return sx_infer_map_float(c);
}

static void swish_grad(sx_grad *g)
{
    sx_value s = sx_build_op(g->b, sigmoid, NULL, g->x[0]);
    sx_value rest = sx_build_op(g->b, sub, NULL, sx_scalar_like(g->b, s, 1), s);
    sx_value tail = sx_build_op(g->b, mul, NULL, g->y[0], rest);
    sx_value slope = sx_build_op(g->b, add, NULL, s, tail);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
}

static double swish_of(double x)
{
    return x / (1 + exp(-x));
}

static void swish_ref(const sx_ref *r)
{
    sx_ref_map(r, swish_of);
}

static void swish_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_attr_list t = sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype));
    sx_tf_value s = sx_tf_add(w, "Sigmoid", NULL, sx_tf_in(op->in[0]), t);
    op->out[0] = sx_tf_add(w, "Mul", NULL, sx_tf_in(op->in[0], s), t);
}

static void swish_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo x = sx_hlo_widen(w, op->in[0]); /* rounded once */
    sx_hlo y = sx_hlo_binary(w, "multiply", x, sx_hlo_unary(w, "logistic", x));
    op->out[0] = sx_hlo_convert(w, y, op->out_types[0].dtype);
}

static const sx_op_sample swish_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(swish)

const sx_op_def sx_op_swish = {
    SX_OP_NAMED(swish),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = swish_infer,
    .grad = swish_grad,
    .ref = swish_ref,
    .to_tf = swish_to_tf,
    .to_stablehlo = swish_to_stablehlo,
    SX_OP_SAMPLES(swish_samples),
};
