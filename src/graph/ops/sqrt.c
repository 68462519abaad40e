/* sqrt: y = √x;  dx = dy / (2 y).  NaN below 0.
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  one rounding
 * Source   TensorFlow tf.sqrt */
#include "graph/ops/common.h"

static sx_status sqrt_infer(sx_infer *c)
{
    return sx_infer_map_float(c);
}

/* dx = dy / 2y */
static void sqrt_grad(sx_grad *g)
{
    sx_value slope = sx_times(g->b, g->y[0], 2);
    g->dx[0] = sx_build_op(g->b, div, NULL, g->dy[0], slope);
}

static void sqrt_ref(const sx_ref *r)
{
    sx_ref_map(r, sqrt);
}

static void sqrt_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Sqrt");
}

static void sqrt_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo_map(w, op, "sqrt");
}

static const sx_op_sample sqrt_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_POSITIVE),
};

SX_PUBLIC_MAP(sqrt)

const sx_op_def sx_op_sqrt = {
    SX_OP_NAMED(sqrt),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sqrt_infer,
    .grad = sqrt_grad,
    .ref = sqrt_ref,
    .to_tf = sqrt_to_tf,
    .to_stablehlo = sqrt_to_stablehlo,
    SX_OP_SAMPLES(sqrt_samples),
};
