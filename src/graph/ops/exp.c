/* exp: y = eˣ;  dx = y dy
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  kernels: 2 units in the last place
 * Source   TensorFlow tf.exp */
#include "graph/ops/common.h"

static sx_status exp_infer(sx_infer *c)
{
    return sx_infer_map_float(c);
}

/* dx = dy y */
static void exp_grad(sx_grad *g)
{
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], g->y[0]);
}

static void exp_ref(const sx_ref *r)
{
    sx_ref_map(r, exp);
}

static void exp_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Exp");
}

static void exp_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo_map(w, op, "exponential");
}

static const sx_op_sample exp_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(exp)

const sx_op_def sx_op_exp = {
    SX_OP_NAMED(exp),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = exp_infer,
    .grad = exp_grad,
    .ref = exp_ref,
    .to_tf = exp_to_tf,
    .to_stablehlo = exp_to_stablehlo,
    SX_OP_SAMPLES(exp_samples),
};
