/* log1p: y = ln(1 + x), exact near 0;  dx = dy / (1 + x)
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  kernels: 2 units in the last place
 * Source   TensorFlow tf.math.log1p */
#include "graph/ops/common.h"

static sx_status log1p_infer(sx_infer *c)
{
    return sx_infer_map_float(c);
}

/* dx = dy / (1 + x) */
static void log1p_grad(sx_grad *g)
{
    sx_value one = sx_scalar_like(g->b, g->x[0], 1);
    sx_value shifted = sx_build_op(g->b, add, NULL, g->x[0], one);
    g->dx[0] = sx_build_op(g->b, div, NULL, g->dy[0], shifted);
}

static void log1p_ref(const sx_ref *r)
{
    sx_ref_map(r, log1p);
}

static void log1p_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Log1p");
}

static void log1p_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo_map(w, op, "log_plus_one");
}

static const sx_op_sample log1p_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_POSITIVE),
};

SX_PUBLIC_MAP(log1p)

const sx_op_def sx_op_log1p = {
    SX_OP_NAMED(log1p),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = log1p_infer,
    .grad = log1p_grad,
    .ref = log1p_ref,
    .to_tf = log1p_to_tf,
    .to_stablehlo = log1p_to_stablehlo,
    SX_OP_SAMPLES(log1p_samples),
};
